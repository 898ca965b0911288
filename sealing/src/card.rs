//! A card: what a node says of its keys, signed by itself.
//!
//! A signed statement (version 1, label `card-sig`) with the content: number of suites (1 byte), suites in order of
//! preference (1 each, none twice), KEM public key (1,216).

use std::fmt;

use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::kem::{KemPublic, PUBLIC_BYTES};
use crate::labels;
use crate::schedule::hash;
use crate::statement::{self, Fault, HEAD_BYTES, Kind, Unverified};

/// X-Wing, HKDF-SHA256, AES-256-GCM.
pub(crate) const SUITE: u8 = 1;
/// A card names at most so many suites: enough for every migration, small enough for a datagram.
const SUITES_MAX: usize = 8;
/// Bytes of the longest card.
pub(crate) const CARD_BYTES_MAX: usize = HEAD_BYTES + 1 + SUITES_MAX + PUBLIC_BYTES + SIGNATURE_BYTES;

pub(crate) const KIND: Kind = Kind { purpose: labels::CARD_SIGNATURE, version: 1, bytes_max: CARD_BYTES_MAX };

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
    /// None of its suites is known here, it names one twice, or more than 8.
    #[error("the card names no suite that this program has, or one twice; update the older of the two")]
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
        let kem = identity.kem.public().clone();
        let mut content = Vec::with_capacity(2 + PUBLIC_BYTES);
        content.extend_from_slice(&[1, SUITE]);
        content.extend_from_slice(&kem.to_bytes());
        let bytes = statement::sign(identity, KIND, sequence, &content);
        Card { bytes, node: identity.id(), sequence, kem }
    }

    /// The card in these bytes, if the node it names signed it.
    ///
    /// # Errors
    /// [`CardError`] says what is wrong; nothing of the bytes may be used then.
    pub fn verify(bytes: &[u8]) -> Result<Card, CardError> {
        let length = || CardError::Length(bytes.len());
        let fault = |fault| match fault {
            Fault::Length => length(),
            Fault::Version(version) => CardError::Version(version),
            Fault::Signature => CardError::Signature,
        };
        let statement = Unverified::read(KIND, bytes).map_err(fault)?;
        let (suites, rest) = statement.content.split_first().ok_or_else(length)?;
        let (suites, kem) = rest.split_at_checked(usize::from(*suites)).ok_or_else(length)?;
        let kem: &[u8; PUBLIC_BYTES] = kem.try_into().map_err(|_| length())?;
        statement.verify().map_err(fault)?;
        let is_twice = |(position, suite)| suites[..position].contains(suite);
        if suites.len() > SUITES_MAX || !suites.contains(&SUITE) || suites.iter().enumerate().any(is_twice) {
            return Err(CardError::Suites);
        }
        let kem = KemPublic::from_bytes(kem).ok_or(CardError::KemKey)?;
        Ok(Card { bytes: bytes.to_vec(), node: statement.node, sequence: statement.sequence, kem })
    }

    /// How long the card is that these bytes begin with, as far as it says so itself.
    pub(crate) fn length_of(bytes: &[u8]) -> Option<usize> {
        let suites = usize::from(*bytes.get(HEAD_BYTES)?);
        Some(HEAD_BYTES + 1 + suites + PUBLIC_BYTES + SIGNATURE_BYTES)
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

    /// Whether this is of the same node and says something later.
    pub fn supersedes(&self, older: &Card) -> bool {
        self.node == older.node && self.sequence > older.sequence
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
        const SUITES: usize = HEAD_BYTES;
        let table: [(&str, Change, Result<u64, CardError>); 8] = [
            ("nothing", |_| (), Ok(7)),
            ("a suite more", |bytes| suites(bytes, &[9, SUITE]), Ok(7)),
            ("only another suite", |bytes| bytes[SUITES + 1] = 9, Err(CardError::Suites)),
            ("no suite", |bytes| suites(bytes, &[]), Err(CardError::Suites)),
            ("eight suites", |bytes| suites(bytes, &[SUITE, 2, 3, 4, 5, 6, 7, 8]), Ok(7)),
            ("a suite twice", |bytes| suites(bytes, &[SUITE, SUITE]), Err(CardError::Suites)),
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
