//! Which packet numbers were received: the replay window and the ranges to acknowledge, in one bounded list.

use crate::limits::{ACK_RANGES_MAX, RECEIVED_RANGES_MAX};

/// Received packet numbers as ascending inclusive ranges. What lies below `floor` counts as received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    ranges: Vec<(u64, u64)>,
    floor: u64,
}

impl Received {
    /// All below this number count as received.
    pub(crate) fn below(expected: u64) -> Received {
        let ranges = expected.checked_sub(1).map(|largest| (largest, largest)).into_iter().collect();
        Received { ranges, floor: expected }
    }

    /// The largest number that was received.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.last().map(|(_, end)| *end)
    }

    /// The sender knows what was received up to this number: what is missing below counts as lost there, and comes again
    /// under other numbers (RFC 9000, 13.2.4). So holes are not said for ever.
    pub(crate) fn told_upto(&mut self, largest: u64) {
        let known = self.ranges.partition_point(|(_, end)| *end < largest);
        if let Some((start, _)) = self.ranges.get(known).copied().filter(|(start, _)| *start <= largest) {
            self.ranges.drain(..known);
            self.floor = self.floor.max(start);
        }
    }

    /// The number expected next: one above the largest (RFC 9000, A.3).
    pub(crate) fn expected(&self) -> u64 {
        self.ranges.last().map_or(0, |(_, end)| end + 1)
    }

    /// Whether this number was not received before. Numbers too old to tell count as received (§1.6).
    pub(crate) fn is_new(&self, number: u64) -> bool {
        number >= self.floor
            && !self.ranges.iter().rev().any(|(start, end)| (*start..=*end).contains(&number))
    }

    /// Takes note of a new number.
    pub(crate) fn insert(&mut self, number: u64) {
        let at = self.ranges.partition_point(|(_, end)| *end < number);
        self.ranges.insert(at, (number, number));
        if let Some((next, _)) = self.ranges.get(at + 1).copied().filter(|(next, _)| *next == number + 1) {
            let (_, end) = self.ranges.remove(at + 1);
            debug_assert!(next <= end);
            self.ranges[at].1 = end;
        }
        if at > 0 && self.ranges[at - 1].1 + 1 == number {
            let (_, end) = self.ranges.remove(at);
            self.ranges[at - 1].1 = end;
        }
        if self.ranges.len() > RECEIVED_RANGES_MAX {
            let (_, end) = self.ranges.remove(0);
            self.floor = end + 1;
        }
    }

    /// The highest ranges, the highest first, as an acknowledgement says them.
    pub(crate) fn to_acknowledge(&self) -> Vec<(u64, u64)> {
        self.ranges.iter().rev().take(ACK_RANGES_MAX).copied().collect()
    }
}

/// The whole packet number of which `low` is the lower half, nearest to the expected one (RFC 9000, A.3) (§1.4).
pub(crate) fn expand_packet_number(expected: u64, low: u32) -> u64 {
    const WINDOW: u64 = 1 << 32;
    let candidate = (expected & !(WINDOW - 1)) | u64::from(low);
    if candidate + WINDOW / 2 <= expected && candidate < (1 << 62) - WINDOW {
        candidate + WINDOW
    } else if candidate > expected + WINDOW / 2 && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0u64..60, 0..80)) {
            let mut received = Received::default();
            let mut model = BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(received.is_new(number), !model.contains(&number));
                if model.insert(number) { received.insert(number); }
                let said: BTreeSet<u64> =
                    received.to_acknowledge().into_iter().flat_map(|(start, end)| start..=end).collect();
                prop_assert_eq!(&said, &model);
                prop_assert_eq!(received.expected(), model.last().map_or(0, |last| last + 1));
            }
        }

        #[test]
        fn numbers_expand_near_what_is_expected(expected in 0u64..1 << 60, ahead in -(1i64 << 31) + 1..1 << 31) {
            let number = expected.saturating_add_signed(ahead);
            prop_assert_eq!(expand_packet_number(expected, number as u32), number);
        }
    }

    #[test]
    fn holes_that_the_sender_knows_are_said_no_more() {
        let mut received = Received::default();
        for number in [0, 2, 3, 5, 7, 8] {
            received.insert(number);
        }
        // 4 never came, so no acknowledgement can have said so.
        received.told_upto(4);
        assert_eq!(received.to_acknowledge(), [(7, 8), (5, 5), (2, 3), (0, 0)]);
        received.told_upto(5);
        assert_eq!(received.to_acknowledge(), [(7, 8), (5, 5)]);
        assert!(!received.is_new(4) && received.is_new(6));
        received.told_upto(3);
        received.told_upto(8);
        assert_eq!((received.to_acknowledge(), received.expected()), (vec![(7, 8)], 9));
        assert!(!received.is_new(6) && received.is_new(9));
    }

    #[test]
    fn holes_are_bounded_and_what_is_below_counts_as_received() {
        let mut received = Received::default();
        for number in 0..10 * RECEIVED_RANGES_MAX as u64 {
            received.insert(number * 2);
        }
        assert_eq!(received.ranges.len(), RECEIVED_RANGES_MAX);
        assert!(!received.is_new(1));
    }
}
