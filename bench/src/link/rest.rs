//! `rest_bytes`: memory of a link at rest.
//!
//! One endpoint gets its links from memo places, hails over them, is answered, and has them rest, some hundred at a time: by
//! the protocol, but without a million hellos. The other ends are peers of another endpoint, which ends after each of them.

use super::network::SECOND;
use super::ours::{declaration, endpoint, record};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::language::alone;
use crate::machine::resident_bytes;
use crate::pairs::Contender;
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use ::link::{Effect, Endpoint, MemoPlace, Peer, Time};
use sealing::NodeId;
use sealing::memo::PLACE_BYTES;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub const REST_BYTES: Declared = Declared {
    name: "rest_bytes",
    unit: "bytes/link",
    better: Better::Lower,
    counter: true,
    bars: &[Bar { of: "ours", against: None, limit: 100.0 }],
};
/// What such a process is asked for.
pub const ALONE: &str = "links_at_rest";

/// Links that are awake at once.
const BATCH: usize = 250;
/// After which silent links rest, in virtual time, and more.
const SILENCE: u64 = 200 * SECOND;
/// The runs of the two ends.
const RUN: u64 = 1;
const RUN_RANDOM_BEGIN: u64 = 1;

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |links: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        Ok(vec![Box::new(AtRest { links })])
    };
    let sizes = sizes(extent, 10 * BATCH, 1_000_000, &[]);
    crate::suite::measure(declared, &sizes, |links| format!("{links} links"), contenders, settings(&[]))
}

/// A process that has links at rest and says what they take.
struct AtRest {
    links: usize,
}

impl Contender for AtRest {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        Ok(alone(ALONE, self.links)? / self.links as f64)
    }
}

/// Bytes that so many links at rest take.
pub fn bytes_of_links(links: usize) -> Result<u64, BenchError> {
    // What code, buffers and the allocator take by themselves is there before the first counted link.
    let mut first = Ends::new();
    first.add(0..BATCH)?;
    drop(first);
    let before = resident_bytes()?;
    let mut ends = Ends::new();
    for start in (0..links).step_by(BATCH) {
        ends.places.clear();
        ends.add(start..links.min(start + BATCH))?;
    }
    BenchError::unless("links at rest", links, ends.counted.links_at_rest())?;
    ends.far = None;
    let after = resident_bytes()?;
    ends.wake(links.saturating_sub(BATCH)..links)?;
    Ok(after.saturating_sub(before))
}

/// The endpoint that is counted, and the one that its peers are in.
struct Ends {
    now: u64,
    counted: Endpoint,
    far: Option<Endpoint>,
    /// Of the links that were added last.
    places: BTreeMap<NodeId, MemoPlace>,
    delivered: usize,
}

impl Ends {
    fn new() -> Ends {
        Ends { now: SECOND, counted: endpoint(0, RUN).0, far: None, places: BTreeMap::new(), delivered: 0 }
    }

    /// Has these links greeted and brought to rest.
    fn add(&mut self, links: std::ops::Range<usize>) -> Result<(), BenchError> {
        let mut far = endpoint(1, RUN).0;
        let now = Time(self.now);
        for link in links.clone() {
            far.add_peer(now, end(link, Side::Counted));
            self.counted.add_peer(now, end(link, Side::Far));
        }
        self.far = Some(far);
        let end = self.now + SILENCE;
        while self.deliver()? || self.time_goes_on(end) {}
        self.now = end;
        BenchError::unless("links at rest", links.end, self.counted.links_at_rest())
    }

    /// A record on each of these links comes to its other end.
    fn wake(&mut self, links: std::ops::Range<usize>) -> Result<(), BenchError> {
        let mut far = endpoint(1, RUN + 1).0;
        for link in links.clone() {
            let (now, peer) = (Time(self.now), end(link, Side::Far).node);
            far.add_peer(now, end(link, Side::Counted));
            self.counted.declare(now, peer, declaration(0));
            let sent = self.counted.send(now, peer, record(0, 1, Arc::from([7; 61])));
            sent.map_err(|error| BenchError::Process(error.to_string()))?;
        }
        self.far = Some(far);
        let end = self.now + SECOND;
        while self.deliver()? || self.time_goes_on(end) {}
        BenchError::unless("records that came", links.len(), self.delivered)
    }

    /// Carries out what both ask for. Whether they asked for anything.
    fn deliver(&mut self) -> Result<bool, BenchError> {
        let (now, Some(far)) = (Time(self.now), &mut self.far) else { return Ok(false) };
        let mut any = false;
        while let Some(effect) = self.counted.poll_effect() {
            any = true;
            match effect {
                Effect::Datagram { to, bytes } => far.handle_datagram(now, to, &bytes),
                Effect::SaveMemo { peer, place } => drop(self.places.insert(peer, place)),
                Effect::ReadMemo { peer } => {
                    let place = self.places.get(&peer).copied();
                    self.counted.place_read(now, peer, place);
                }
                Effect::Misbehaved { fault, .. } => return Err(BenchError::Process(fault.to_string())),
                _ => {}
            }
        }
        while let Some(effect) = far.poll_effect() {
            any = true;
            match effect {
                Effect::Datagram { to, bytes } => self.counted.handle_datagram(now, to, &bytes),
                Effect::Record { .. } => self.delivered += 1,
                Effect::Misbehaved { fault, .. } => return Err(BenchError::Process(fault.to_string())),
                _ => {}
            }
        }
        Ok(any)
    }

    /// Goes on to the next timer, if there is one before the end.
    fn time_goes_on(&mut self, end: u64) -> bool {
        let timers = [self.counted.next_timeout(), self.far.as_ref().and_then(Endpoint::next_timeout)];
        let Some(Time(next)) = timers.into_iter().flatten().min().filter(|at| at.0 < end) else {
            return false;
        };
        self.now = self.now.max(next);
        self.counted.handle_timeout(Time(self.now));
        if let Some(far) = &mut self.far {
            far.handle_timeout(Time(self.now));
        }
        true
    }
}

/// Which end of a link a peer is.
#[derive(Clone, Copy)]
enum Side {
    Counted,
    Far,
}

/// An end of a link, as the other end has it as a peer. Both are at the address of the link.
fn end(link: usize, side: Side) -> Peer {
    let node = NodeId::from_bytes(digest(&[&[side as u8], &link.to_be_bytes()]));
    let [.., a, b, c] = link.to_be_bytes();
    let addresses = vec![SocketAddr::from(([10, a, b, c], 4000))];
    Peer { node, card_hash: None, card: None, addresses, memo: Some(place(link, node, side)) }
}

/// A memo place with a root of the link's own (the bytes are in sealing's `memo`).
fn place(link: usize, peer: NodeId, side: Side) -> MemoPlace {
    let mut bytes = vec![1, 0];
    bytes.extend_from_slice(&peer.0);
    bytes.extend_from_slice(&[0; 16]);
    bytes.push(match side {
        Side::Counted => 2,
        Side::Far => 1,
    });
    bytes.extend_from_slice(&1u64.to_be_bytes());
    bytes.extend_from_slice(&digest(&[b"root", &link.to_be_bytes()]));
    bytes.extend_from_slice(&RUN.to_be_bytes());
    let mut random = [5; 16];
    random[..8].copy_from_slice(&RUN_RANDOM_BEGIN.to_be_bytes());
    bytes.extend_from_slice(&random);
    bytes.resize(PLACE_BYTES - 16, 0);
    let label = b"selvedge/1 memo-checksum";
    let lengths = [label.len() as u32, bytes.len() as u32].map(u32::to_be_bytes);
    let checksum = digest(&[&lengths[0], label, &lengths[1], &bytes]);
    bytes.extend_from_slice(&checksum[..16]);
    let mut place = [0; PLACE_BYTES];
    place.copy_from_slice(&bytes);
    MemoPlace(place)
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let hasher = parts.iter().fold(Sha256::new(), |hasher, part| hasher.chain_update(part));
    hasher.finalize().into()
}
