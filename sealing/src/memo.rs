//! The memo: what a link keeps over a restart, 256 bytes in a place of its own.
//!
//! Layout, numbers big-endian: version (1 byte: 1), flags (1: 1 if the link is fenced), peer (32), hello counters heard from the peer: run (8) and
//! sequence (8), current and then pending root, each 65 bytes: role (1: none 0, initiator 1, responder 2), epoch (8),
//! root (32), the peer's run (24); address: 0, 4 or 6 (1), address (16, the shorter one filled with zeros), port (2);
//! zeros; at the end a checksum of 16 bytes over all before it. A place of zeros has never been written.
//!
//! A memo may be lost at any time: that costs a hello, never a record. So what cannot be read is a lost memo, not a fault
//! to repair. It holds roots: whoever reads it can read and make packets of the current epoch.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use zeroize::Zeroizing;

use crate::identity::NodeId;
use crate::labels;
use crate::root::Root;
use crate::run::{RUN_BYTES, Run};
use crate::schedule::hash;

/// Bytes of a place.
pub const PLACE_BYTES: usize = 256;
/// One link's place.
pub type Place = [u8; PLACE_BYTES];

const VERSION: u8 = 1;
pub(crate) const CHECKSUM_BYTES: usize = 16;
const HELD_BYTES: usize = 1 + 8 + 32 + RUN_BYTES;

/// Which side of a root this node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It said the hello.
    Initiator,
    /// It answered it.
    Responder,
}

/// A root and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Which side of it this node is.
    pub role: Role,
    /// Counts the roots of a link since its hello, from 1.
    pub epoch: u64,
    /// The root.
    pub root: Root,
    /// The peer's run as last learned under this root.
    pub peer_run: Run,
}

/// The highest hello of a peer that was accepted: by run counter, then by sequence.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HelloCounters {
    /// The peer's run counter.
    pub run_counter: u64,
    /// Its count of hellos in that run.
    pub hello_sequence: u64,
}

/// What a link keeps over a restart.
#[derive(Clone, PartialEq, Eq)]
pub struct Memo {
    /// With whom.
    pub peer: NodeId,
    /// The root under which both sides were heard last.
    pub current: Option<Held>,
    /// A root that the other side has not confirmed yet.
    pub pending: Option<Held>,
    /// Hellos of the peer not above this are old.
    pub hello_heard: HelloCounters,
    /// Where the peer was proven to be last.
    pub address: Option<SocketAddr>,
    /// The peer knows a later start of this node than one that it had confirmed: this is one of two copies, and says
    /// nothing on this link until a person decides.
    pub is_fenced: bool,
}

/// A place that holds no memo of this version: a lost memo. The link starts with a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoError {
    /// Never written, or erased.
    #[error("the memo place is empty")]
    Empty,
    /// Torn, rotten or of another file.
    #[error("the memo place has a bad checksum; the link starts anew with a hello")]
    Checksum,
    /// Of another version of this program.
    #[error(
        "the memo place has version {0}, this program reads version 1; the link starts anew with a hello"
    )]
    Version(u8),
    /// A field that no memo has, under a right checksum.
    #[error("the memo place has a field that cannot be; the link starts anew with a hello")]
    Field,
}

impl Memo {
    /// The memo as its place.
    pub fn encode(&self) -> Place {
        let mut bytes = Zeroizing::new(Vec::with_capacity(PLACE_BYTES));
        bytes.extend_from_slice(&[VERSION, u8::from(self.is_fenced)]);
        bytes.extend_from_slice(self.peer.as_bytes());
        bytes.extend_from_slice(&self.hello_heard.run_counter.to_be_bytes());
        bytes.extend_from_slice(&self.hello_heard.hello_sequence.to_be_bytes());
        encode_held(&mut bytes, self.current.as_ref());
        encode_held(&mut bytes, self.pending.as_ref());
        encode_address(&mut bytes, self.address);
        bytes.resize(PLACE_BYTES - CHECKSUM_BYTES, 0);
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum);
        let mut place = [0; PLACE_BYTES];
        place.copy_from_slice(&bytes);
        place
    }

    /// The memo in this place.
    ///
    /// # Errors
    /// [`MemoError`] when there is none: the memo is lost.
    pub fn decode(place: &Place) -> Result<Memo, MemoError> {
        if place.iter().all(|byte| *byte == 0) {
            return Err(MemoError::Empty);
        }
        let (body, found) = place.split_at(PLACE_BYTES - CHECKSUM_BYTES);
        if checksum(body) != found {
            return Err(MemoError::Checksum);
        }
        if body[0] != VERSION {
            return Err(MemoError::Version(body[0]));
        }
        decode_body(body).ok_or(MemoError::Field)
    }
}

/// Who a memo is of and how far it is; no secret.
impl fmt::Debug for Memo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memo")
            .field("peer", &self.peer)
            .field("current", &self.current)
            .field("pending", &self.pending)
            .field("hello_heard", &self.hello_heard)
            .field("address", &self.address)
            .field("is_fenced", &self.is_fenced)
            .finish()
    }
}

pub(crate) fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&hash(labels::MEMO_CHECKSUM, &[body])[..CHECKSUM_BYTES]);
    checksum
}

fn encode_held(bytes: &mut Vec<u8>, held: Option<&Held>) {
    let Some(held) = held else {
        bytes.extend_from_slice(&[0; HELD_BYTES]);
        return;
    };
    bytes.push(match held.role {
        Role::Initiator => 1,
        Role::Responder => 2,
    });
    bytes.extend_from_slice(&held.epoch.to_be_bytes());
    bytes.extend_from_slice(&held.root.0);
    bytes.extend_from_slice(&held.peer_run.to_bytes());
}

fn encode_address(bytes: &mut Vec<u8>, address: Option<SocketAddr>) {
    let mut octets = [0; 16];
    let kind = match address.map(|address| address.ip()) {
        None => 0,
        Some(IpAddr::V4(ip)) => {
            octets[..4].copy_from_slice(&ip.octets());
            4
        }
        Some(IpAddr::V6(ip)) => {
            octets = ip.octets();
            6
        }
    };
    bytes.push(kind);
    bytes.extend_from_slice(&octets);
    bytes.extend_from_slice(&address.map_or(0, |address| address.port()).to_be_bytes());
}

fn decode_body(body: &[u8]) -> Option<Memo> {
    let ([_version, flags], rest) = body.split_first_chunk::<2>()?;
    let (peer, rest) = rest.split_first_chunk::<32>()?;
    let (run_counter, rest) = rest.split_first_chunk::<8>()?;
    let (hello_sequence, rest) = rest.split_first_chunk::<8>()?;
    let (current, rest) = decode_held(rest)?;
    let (pending, rest) = decode_held(rest)?;
    let (address, rest) = decode_address(rest)?;
    let unused_is_zero = *flags <= 1 && rest.iter().all(|byte| *byte == 0);
    unused_is_zero.then_some(Memo {
        peer: NodeId::from_bytes(*peer),
        current,
        pending,
        hello_heard: HelloCounters {
            run_counter: u64::from_be_bytes(*run_counter),
            hello_sequence: u64::from_be_bytes(*hello_sequence),
        },
        address,
        is_fenced: *flags == 1,
    })
}

fn decode_held(bytes: &[u8]) -> Option<(Option<Held>, &[u8])> {
    let (held, rest) = bytes.split_first_chunk::<HELD_BYTES>()?;
    let (role, fields) = held.split_first()?;
    let role = match role {
        0 if held.iter().all(|byte| *byte == 0) => return Some((None, rest)),
        1 => Role::Initiator,
        2 => Role::Responder,
        _ => return None,
    };
    let (epoch, fields) = fields.split_first_chunk::<8>()?;
    let (root, fields) = fields.split_first_chunk::<32>()?;
    let (run, _) = fields.split_first_chunk::<RUN_BYTES>()?;
    let held =
        Held { role, epoch: u64::from_be_bytes(*epoch), root: Root(*root), peer_run: Run::from_bytes(run) };
    Some((Some(held), rest))
}

fn decode_address(bytes: &[u8]) -> Option<(Option<SocketAddr>, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (octets, rest) = rest.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let port = u16::from_be_bytes(*port);
    let (v4, filling) = octets.split_first_chunk::<4>()?;
    let ip = match kind {
        0 if port == 0 && octets == &[0; 16] => return Some((None, rest)),
        4 if filling.iter().all(|byte| *byte == 0) => IpAddr::from(*v4),
        6 => IpAddr::from(*octets),
        _ => return None,
    };
    Some((Some(SocketAddr::new(ip, port)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that no memo has, under a checksum that is right.
    #[test]
    fn what_no_version_writes_is_refused() {
        let run = Run { counter: 1, random: [2; 16] };
        let held = Held { role: Role::Responder, epoch: 3, root: Root([4; 32]), peer_run: run };
        let memo = Memo {
            peer: NodeId::from_bytes([5; 32]),
            current: Some(held),
            pending: None,
            hello_heard: HelloCounters::default(),
            address: Some(SocketAddr::from(([127, 0, 0, 1], 4711))),
            is_fenced: false,
        };
        let fenced = Memo { is_fenced: true, ..memo.clone() };
        let current = 2 + 32 + 16;
        let pending = current + HELD_BYTES;
        let address = pending + HELD_BYTES;
        let table = [
            ("a newer version", 0, 2, Err(MemoError::Version(2))),
            ("nothing", 1, 0, Ok(memo.clone())),
            ("a fence", 1, 1, Ok(fenced)),
            ("an unknown flag", 1, 2, Err(MemoError::Field)),
            ("an unknown role", current, 3, Err(MemoError::Field)),
            ("no role but a root", current, 0, Err(MemoError::Field)),
            ("a run without a role", pending + HELD_BYTES - 1, 1, Err(MemoError::Field)),
            ("an unknown family", address, 5, Err(MemoError::Field)),
            ("no family but an address", address, 0, Err(MemoError::Field)),
            ("an address that is too long", address + 5, 1, Err(MemoError::Field)),
            ("something in the unused part", PLACE_BYTES - CHECKSUM_BYTES - 1, 1, Err(MemoError::Field)),
        ];
        for (name, position, value, expected) in table {
            let mut place = memo.encode();
            place[position] = value;
            let sum = checksum(&place[..PLACE_BYTES - CHECKSUM_BYTES]);
            place[PLACE_BYTES - CHECKSUM_BYTES..].copy_from_slice(&sum);
            assert_eq!(Memo::decode(&place), expected, "{name}");
        }
    }
}
