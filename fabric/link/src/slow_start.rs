//! When slow start ends before anything is lost: by a round trip that grows (HyStart++, RFC 9406).

use crate::time::Span;

/// Round trips measured in a round before it says anything (RFC 9406, 4.3: N_RTT_SAMPLE).
const SAMPLES_MIN: u32 = 8;

/// A round trip that grew by an eighth, but by no less and no more than these, has grown (MIN_RTT_THRESH, MAX_RTT_THRESH).
const GROWN_MIN: Span = Span::milliseconds(4);
/// See [`GROWN_MIN`].
const GROWN_MAX: Span = Span::milliseconds(16);

/// How much slower the window grows while it is found out whether it was a mistake (CSS_GROWTH_DIVISOR).
const CAUTION: u64 = 4;

/// Rounds of caution after which slow start ends (CSS_ROUNDS).
const CAUTIOUS_ROUNDS: u32 = 5;

/// What a measurement says of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    GoesOn,
    Ends,
}

#[derive(Debug, Clone, Copy)]
struct Caution {
    /// The round trip at which it began: one below it shows that it was a mistake.
    began_at: u64,
    rounds: u32,
}

/// The rounds of a slow start: from one packet being sent to its acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    /// The round ends with the acknowledgement of this packet or a later one.
    round_ends: u64,
    smallest_before: Option<u64>,
    smallest: Option<u64>,
    samples: u32,
    caution: Option<Caution>,
}

impl SlowStart {
    /// Takes the round trip that packet `acknowledged` had; `next` is sent next.
    pub(crate) fn on_round_trip(&mut self, latest: Span, acknowledged: u64, next: u64) -> Growth {
        if acknowledged >= self.round_ends && self.begin_round(next) == Growth::Ends {
            return Growth::Ends;
        }
        self.samples = self.samples.saturating_add(1);
        self.smallest = Some(self.smallest.map_or(latest.0, |smallest| smallest.min(latest.0)));
        let (Some(smallest), true) = (self.smallest, self.samples >= SAMPLES_MIN) else {
            return Growth::GoesOn;
        };
        match (self.caution, self.smallest_before) {
            (Some(caution), _) if smallest < caution.began_at => self.caution = None,
            (None, Some(before)) if smallest >= before + (before / 8).clamp(GROWN_MIN.0, GROWN_MAX.0) => {
                self.caution = Some(Caution { began_at: smallest, rounds: 0 });
            }
            _ => {}
        }
        Growth::GoesOn
    }

    fn begin_round(&mut self, next: u64) -> Growth {
        self.round_ends = next;
        self.smallest_before = self.smallest.take();
        self.samples = 0;
        let Some(caution) = &mut self.caution else { return Growth::GoesOn };
        caution.rounds += 1;
        if caution.rounds >= CAUTIOUS_ROUNDS { Growth::Ends } else { Growth::GoesOn }
    }

    /// How much the window grows by so many acknowledged bytes.
    pub(crate) fn growth(&self, bytes: u64) -> u64 {
        if self.caution.is_some() { bytes / CAUTION } else { bytes }
    }

    /// Packet numbers begin anew.
    pub(crate) fn restart(&mut self) {
        self.round_ends = 0;
        self.smallest = None;
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of ten measurements each of so many milliseconds: the factor of growth after each, 0 once it ended.
    fn check(rounds: &[u64], expected: &[u64]) {
        let mut slow_start = SlowStart::default();
        let mut factors = Vec::new();
        let mut number = 0;
        for milliseconds in rounds {
            let end = number + 10;
            let mut ended = false;
            for packet in number..end {
                ended |=
                    slow_start.on_round_trip(Span::milliseconds(*milliseconds), packet, end) == Growth::Ends;
            }
            number = end;
            factors.push(if ended { 0 } else { slow_start.growth(100) });
        }
        assert_eq!(factors, expected, "{rounds:?}");
    }

    #[test]
    fn a_round_trip_that_grows_makes_cautious_and_then_ends_it() {
        check(&[20, 20, 20, 20], &[100, 100, 100, 100]);
        // Less than 4 ms is jitter.
        check(&[20, 23, 26, 29], &[100, 100, 100, 100]);
        check(&[20, 25, 25, 25, 25, 25, 25], &[100, 25, 25, 25, 25, 25, 0]);
        // It was a mistake.
        check(&[20, 25, 21, 21], &[100, 25, 100, 100]);
        // An eighth of it, at most 16 ms.
        check(&[100, 111, 125], &[100, 100, 25]);
        check(&[400, 415, 432], &[100, 100, 25]);
    }
}
