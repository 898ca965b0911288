//! A card: what a node says of its keys, signed by itself.
//!
//! Layout, numbers big-endian: version (1 byte: 1), node (32), sequence (8), number of suites (1), suites in order of
//! preference (1 each), KEM public key (1,216), signature (64) over all before it.

use std::fmt;

use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::kem::{KemPublic, PUBLIC_BYTES};
use crate::labels;
use crate::schedule::hash;

/// The only version of the layout.
const VERSION: u8 = 1;
/// X-Wing, HKDF-SHA256, AES-256-GCM.
pub(crate) const SUITE: u8 = 1;
/// A card names at most so many suites: enough for every migration, small enough for a datagram.
const SUITES_MAX: usize = 8;
const HEAD_BYTES: usize = 1 + 32 + 8 + 1;

/// A node's signed statement of its keys. There is no card that was not signed here or verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Card {
    bytes: Vec<u8>,
    node: NodeId,
    sequence: u64,
    kem: KemPublic,
}

/// Bytes that are no card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// Another length than its version and suites give.
    #[error("a card of {0} bytes is cut or has something after its end; ask for it again")]
    Length(usize),
    /// A layout that this version does not know.
    #[error("the card has version {0}, this program reads version 1; update the older of the two")]
    Version(u8),
    /// None of its suites is known here, or it names more than 8.
    #[error("the card names no suite that this program has; update the older of the two")]
    Suites,
    /// Its KEM key is invalid or of small order.
    #[error("the card's KEM key is invalid; whoever made it must make another")]
    KemKey,
    /// Not signed by the node it names.
    #[error("the card is not signed by the node it names; do not use it")]
    Signature,
}

impl Card {
    pub(crate) fn sign(identity: &Identity, sequence: u64) -> Card {
        let node = identity.id();
        let kem = identity.kem.public();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 1 + PUBLIC_BYTES + SIGNATURE_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(node.as_bytes());
        bytes.extend_from_slice(&sequence.to_be_bytes());
        bytes.extend_from_slice(&[1, SUITE]);
        bytes.extend_from_slice(&kem.to_bytes());
        let signature = identity.sign(labels::CARD_SIGNATURE, &[&bytes]);
        bytes.extend_from_slice(&signature);
        Card { bytes, node, sequence, kem }
    }

    /// The card in these bytes, if the node it names signed it.
    ///
    /// # Errors
    /// [`CardError`] says what is wrong; nothing of the bytes may be used then.
    pub fn verify(bytes: &[u8]) -> Result<Card, CardError> {
        let length = || CardError::Length(bytes.len());
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or_else(length)?;
        let (version, rest) = signed.split_first().ok_or_else(length)?;
        if *version != VERSION {
            return Err(CardError::Version(*version));
        }
        let (node, rest) = rest.split_first_chunk::<32>().ok_or_else(length)?;
        let (sequence, rest) = rest.split_first_chunk::<8>().ok_or_else(length)?;
        let (suites, rest) = rest.split_first().ok_or_else(length)?;
        let (suites, kem) = rest.split_at_checked(usize::from(*suites)).ok_or_else(length)?;
        let kem: &[u8; PUBLIC_BYTES] = kem.try_into().map_err(|_| length())?;
        let node = NodeId::from_bytes(*node);
        if !node.verifies(labels::CARD_SIGNATURE, &[signed], signature) {
            return Err(CardError::Signature);
        }
        if suites.len() > SUITES_MAX || !suites.contains(&SUITE) {
            return Err(CardError::Suites);
        }
        let kem = KemPublic::from_bytes(kem).ok_or(CardError::KemKey)?;
        Ok(Card { bytes: bytes.to_vec(), node, sequence: u64::from_be_bytes(*sequence), kem })
    }

    /// The card as it is sent and kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whose card it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The higher of two sequence numbers is the valid card.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// What tickets and hellos name this card by.
    pub fn hash(&self) -> [u8; 32] {
        hash(labels::CARD_HASH, &[&self.bytes])
    }

    /// The X-Wing public key to which others encapsulate, 1,216 bytes.
    pub fn kem_public_key(&self) -> Vec<u8> {
        self.kem.to_bytes().to_vec()
    }

    pub(crate) fn kem(&self) -> &KemPublic {
        &self.kem
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Card({}, sequence {})", self.node, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card as a node may sign it that means harm.
    fn signed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let identity = Identity::from_seed(&[1; 64]);
        let mut bytes = identity.card(7).bytes;
        bytes.truncate(bytes.len() - SIGNATURE_BYTES);
        change(&mut bytes);
        let signature = identity.sign(labels::CARD_SIGNATURE, &[&bytes]);
        bytes.extend_from_slice(&signature);
        bytes
    }

    #[test]
    fn a_signature_does_not_make_a_bad_card_good() {
        type Change = fn(&mut Vec<u8>);
        const SUITES: usize = HEAD_BYTES - 1;
        let table: [(&str, Change, Result<u64, CardError>); 7] = [
            ("nothing", |_| (), Ok(7)),
            ("a suite more", |bytes| suites(bytes, &[9, SUITE]), Ok(7)),
            ("only another suite", |bytes| bytes[SUITES + 1] = 9, Err(CardError::Suites)),
            ("no suite", |bytes| suites(bytes, &[]), Err(CardError::Suites)),
            ("nine suites", |bytes| suites(bytes, &[SUITE; 9]), Err(CardError::Suites)),
            ("a small X25519 part", |bytes| fill_end(bytes, 32, 0), Err(CardError::KemKey)),
            (
                "an ML-KEM part beyond its modulus",
                |bytes| fill_end(bytes, PUBLIC_BYTES, 0xff),
                Err(CardError::KemKey),
            ),
        ];
        fn suites(bytes: &mut Vec<u8>, suites: &[u8]) {
            let count = u8::try_from(suites.len()).unwrap();
            bytes.splice(SUITES..SUITES + 2, std::iter::once(count).chain(suites.iter().copied()));
        }
        fn fill_end(bytes: &mut [u8], count: usize, value: u8) {
            let start = bytes.len() - count;
            bytes[start..].fill(value);
        }
        for (name, change, expected) in table {
            assert_eq!(Card::verify(&signed(change)).map(|card| card.sequence()), expected, "{name}");
        }
    }

    #[test]
    fn a_signature_of_something_else_is_no_card() {
        let identity = Identity::from_seed(&[1; 64]);
        let card = identity.card(7);
        let body = &card.bytes[..card.bytes.len() - SIGNATURE_BYTES];
        for purpose in labels::ALL.into_iter().filter(|purpose| *purpose != labels::CARD_SIGNATURE) {
            let moved = [body, &identity.sign(purpose, &[body])].concat();
            assert_eq!(Card::verify(&moved), Err(CardError::Signature), "{purpose}");
        }
    }
}
