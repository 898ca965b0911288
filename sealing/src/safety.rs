//! The safety number of a pair: what two people read to each other to know that their nodes hold each other's true ids.
//!
//! Derived as Signal's is (its numeric fingerprint, version 2, with another first input): of each node
//!
//! ```text
//! h0 = SHA-512(L safety-number ‖ id)      hi = SHA-512(h(i-1) ‖ id), i = 1 .. 5,199
//! ```
//!
//! with the label and the id of h0 each behind its length, then thirty digits: of each of the first six groups of 5 bytes
//! of h5199, as a number, big-endian, the last five decimal digits. The number of the pair is the lesser of both thirty
//! digits, then the greater: the same on both sides.
//!
//! To pass for another node in somebody's eyes takes an id whose thirty digits are the same: about 2^100 tries, each made
//! 5,200 times dearer by the rounds.

use std::fmt;

use crate::identity::NodeId;
use crate::schedule::safety_digest;

/// Digits of one node.
const NODE_DIGITS: usize = 30;
/// Digits that are read together.
const GROUP_DIGITS: usize = 5;
/// Bytes that a group is made of.
const GROUP_BYTES: usize = 5;

/// Sixty digits that say which two nodes talk to each other; the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafetyNumber([[u8; NODE_DIGITS]; 2]);

impl SafetyNumber {
    /// The number of a pair, in any order. It takes 10,400 hashes, about 3 ms.
    pub fn of(one: &NodeId, other: &NodeId) -> SafetyNumber {
        let mut both = [digits(one), digits(other)];
        both.sort_unstable();
        SafetyNumber(both)
    }
}

/// In groups of five digits with spaces between.
impl fmt::Display for SafetyNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, digit) in self.0.as_flattened().iter().enumerate() {
            if position > 0 && position % GROUP_DIGITS == 0 {
                formatter.write_str(" ")?;
            }
            write!(formatter, "{digit}")?;
        }
        Ok(())
    }
}

fn digits(node: &NodeId) -> [u8; NODE_DIGITS] {
    let digest = safety_digest(node.as_bytes());
    let mut digits = [0; NODE_DIGITS];
    for (group, bytes) in digits.chunks_exact_mut(GROUP_DIGITS).zip(digest.chunks_exact(GROUP_BYTES)) {
        let mut number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        for digit in group.iter_mut().rev() {
            *digit = u8::try_from(number % 10).expect("below 10");
            number /= 10;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_pairs_the_same_on_both_sides() {
        let [ann, ben, eve] = [1, 2, 3].map(|number| NodeId::from_bytes([number; 32]));
        let number = SafetyNumber::of(&ann, &ben);
        assert_eq!(SafetyNumber::of(&ben, &ann), number);
        assert_ne!(SafetyNumber::of(&ann, &eve), number);
        let text = number.to_string();
        let groups: Vec<&str> = text.split(' ').collect();
        assert_eq!(groups.len(), 12);
        assert!(
            groups.iter().all(|group| group.len() == 5 && group.bytes().all(|byte| byte.is_ascii_digit()))
        );
        assert!(groups[..6] <= groups[6..]);
    }
}
