//! The root of a link and the keys that come from it: ids, pairs of runs, hails.
//!
//! A root is the 32 bytes of secret that a link keeps; everything else here is expanded from it on use and erased when
//! dropped.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::aead::{AeadKey, NONCE_BYTES, OpenError};
use crate::labels;
use crate::run::Run;
use crate::schedule::expand;

/// The secret of one epoch of a link, known to its two ends alone.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Root(pub(crate) [u8; 32]);

/// The 8-byte ids that packets of a link carry, one for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkIds {
    /// In packets that the initiator sends.
    pub to_responder: [u8; 8],
    /// In packets that the responder sends.
    pub to_initiator: [u8; 8],
}

/// Which end of a link packets go to. The initiator is who said the hello that the root comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Toward {
    /// From the initiator to the responder.
    Responder,
    /// From the responder to the initiator.
    Initiator,
}

/// The packet keys of one pair of runs.
#[derive(Debug)]
pub struct Pair {
    /// What the initiator seals with and the responder opens with.
    pub to_responder: Direction,
    /// What the responder seals with and the initiator opens with.
    pub to_initiator: Direction,
}

/// The packet key and iv of one direction. A packet number must never seal twice under one direction.
pub struct Direction {
    key: AeadKey,
    iv: [u8; NONCE_BYTES],
}

impl Root {
    /// The ids of the link's directions; from the root alone, so that they outlive restarts of both ends.
    pub fn ids(&self) -> LinkIds {
        let ids = expand::<16>(&self.0, labels::LINK_IDS, &[]);
        let (mut to_responder, mut to_initiator) = ([0; 8], [0; 8]);
        to_responder.copy_from_slice(&ids[..8]);
        to_initiator.copy_from_slice(&ids[8..]);
        LinkIds { to_responder, to_initiator }
    }

    /// The packet keys of these two runs.
    pub fn pair(&self, initiator_run: &Run, responder_run: &Run) -> Pair {
        let pair =
            expand::<32>(&self.0, labels::PAIR, &[&initiator_run.to_bytes(), &responder_run.to_bytes()]);
        Pair {
            to_responder: Direction::expand(&pair, labels::PAIR_TO_RESPONDER, &[]),
            to_initiator: Direction::expand(&pair, labels::PAIR_TO_INITIATOR, &[]),
        }
    }

    /// The keys under which a restarted end tells the other its new run: `toward` is where the hail goes, `run` the
    /// hailer's. A hail proves that its maker holds the root; it does not prove that it is fresh.
    pub fn hail(&self, toward: Toward, run: &Run) -> Direction {
        let purpose = match toward {
            Toward::Responder => labels::HAIL_TO_RESPONDER,
            Toward::Initiator => labels::HAIL_TO_INITIATOR,
        };
        Direction::expand(&self.0, purpose, &[&run.to_bytes()])
    }
}

/// Equal in constant time.
impl PartialEq for Root {
    fn eq(&self, other: &Root) -> bool {
        self.0.iter().zip(&other.0).fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
    }
}

impl Eq for Root {}

impl fmt::Debug for Root {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Root(secret)")
    }
}

impl Direction {
    fn expand(secret: &[u8; 32], purpose: &str, fields: &[&[u8]]) -> Direction {
        let material = expand::<{ 32 + NONCE_BYTES }>(secret, purpose, fields);
        let mut key = zeroize::Zeroizing::new([0; 32]);
        let mut iv = [0; NONCE_BYTES];
        key.copy_from_slice(&material[..32]);
        iv.copy_from_slice(&material[32..]);
        Direction { key: AeadKey::new(&key), iv }
    }

    /// `iv ⊕ packet number`, the number big-endian in the last 8 bytes (as RFC 9001, 5.3).
    fn nonce(&self, packet_number: u64) -> [u8; NONCE_BYTES] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_BYTES - 8..].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// `plaintext` sealed under this packet number and bound to `header`; [`crate::TAG_BYTES`] longer.
    pub fn seal(&self, packet_number: u64, header: &[u8], plaintext: &[u8]) -> Vec<u8> {
        self.key.seal(&self.nonce(packet_number), header, plaintext)
    }

    /// Seals what stands in `message` behind its first `header_bytes`, which are bound as the header, and appends the tag.
    pub fn seal_behind(&self, packet_number: u64, header_bytes: usize, message: &mut Vec<u8>) {
        self.key.seal_behind(&self.nonce(packet_number), header_bytes, message);
    }

    /// As [`Direction::open`], into a buffer, whose contents are replaced.
    ///
    /// # Errors
    /// [`OpenError`] as there; the buffer is empty then.
    pub fn open_into(
        &self,
        packet_number: u64,
        header: &[u8],
        ciphertext: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), OpenError> {
        self.key.open_into(&self.nonce(packet_number), header, ciphertext, plaintext)
    }

    /// What [`Direction::seal`] sealed.
    ///
    /// # Errors
    /// [`OpenError`] when key, packet number, header or any byte is not what was sealed.
    pub fn open(&self, packet_number: u64, header: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, OpenError> {
        self.key.open(&self.nonce(packet_number), header, ciphertext)
    }
}

impl Drop for Direction {
    fn drop(&mut self) {
        self.iv.zeroize();
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Direction(secret)")
    }
}
