//! How far a stream may be sent: what a receiver gives, and what of it is left for others.
//!
//! A credit is absolute, so that a lost, late or doubled one does no harm (§5.12). Must not know frames or what is sent.

use crate::limits::{CREDIT_BYTES_MIN, CREDIT_BYTES_PER_PEER_MAX, WIRE_BYTES, WIRE_RECORDS};

/// How far a stream may be sent in a pair of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credit {
    /// Up to this number.
    pub(crate) number: u64,
    /// A record may be begun as long as fewer bytes of payload stand before it, from the oldest of its declaration on.
    pub(crate) bytes: u64,
}

impl Credit {
    /// What a sender takes for granted until a credit came (§5.9).
    pub(crate) fn implied(oldest: u64) -> Credit {
        Credit { number: oldest.saturating_add(WIRE_RECORDS as u64 - 1), bytes: WIRE_BYTES as u64 }
    }

    /// Whether a record of this number, with so many bytes before it, may be sent.
    pub(crate) fn covers(&self, number: u64, bytes_before: u64) -> bool {
        number <= self.number && bytes_before < self.bytes
    }

    /// The higher one of each.
    pub(crate) fn max(self, other: Credit) -> Credit {
        Credit { number: self.number.max(other.number), bytes: self.bytes.max(other.bytes) }
    }
}

/// What a node gives to those who send to it. The default is right but for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Records of a stream beyond what its owner is done with: one at least.
    pub records: u64,
    /// Bytes of a stream beyond that: one at least.
    pub bytes: u64,
    /// Bytes of all streams of a peer beyond that; a stream that has nothing left gets a little all the same.
    pub bytes_per_peer: u64,
}

impl Default for Credits {
    fn default() -> Credits {
        Credits {
            records: WIRE_RECORDS as u64,
            bytes: WIRE_BYTES as u64,
            bytes_per_peer: CREDIT_BYTES_PER_PEER_MAX as u64,
        }
    }
}

/// What was given to the streams of a peer and is not used up.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    pub(crate) credits: Credits,
    bytes: u64,
    /// A stream got less than it might have.
    pub(crate) is_short: bool,
}

impl Lent {
    pub(crate) fn new(credits: Credits) -> Lent {
        Lent { credits, ..Lent::default() }
    }

    /// More for a stream that has so much left; as much as there may be, and never nothing.
    pub(crate) fn more(&mut self, left: u64) -> u64 {
        let wanted = self.credits.bytes.max(1).saturating_sub(left);
        let room = self.credits.bytes_per_peer.saturating_sub(self.bytes);
        let least = (CREDIT_BYTES_MIN as u64).min(self.credits.bytes.max(1)).saturating_sub(left);
        let more = wanted.min(room.max(least));
        self.is_short |= more < wanted;
        self.bytes += more;
        more
    }

    /// So much was used up, or its stream is gone.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever others have, a stream that has nothing left gets something, and all together hardly more than there is.
    #[test]
    fn nobody_gets_nothing_and_all_get_little_more_than_there_is() {
        let mut lent = Lent::default();
        let full = (CREDIT_BYTES_PER_PEER_MAX / WIRE_BYTES) as u64;
        for stream in 0..full {
            assert_eq!((lent.more(0), lent.is_short), (WIRE_BYTES as u64, false), "{stream}");
        }
        assert_eq!((lent.more(0), lent.is_short), (CREDIT_BYTES_MIN as u64, true));
        assert_eq!(lent.more(CREDIT_BYTES_MIN as u64), 0);
        lent.give_back(2 * WIRE_BYTES as u64);
        assert_eq!(lent.more(WIRE_BYTES as u64 / 2), WIRE_BYTES as u64 / 2);
    }
}
