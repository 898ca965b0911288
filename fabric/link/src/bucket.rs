//! A token bucket: so many at once, so many a second, nothing else kept.

use crate::time::{Span, Time};

/// Allows `burst` at once and one more each `interval`.
#[derive(Debug)]
pub(crate) struct Bucket {
    interval: Span,
    burst: u64,
    /// When the bucket is full again. Nothing is ever counted: the time says how much is missing.
    full_at: Time,
}

impl Bucket {
    pub(crate) fn new(interval: Span, burst: u64) -> Bucket {
        Bucket { interval, burst, full_at: Time(0) }
    }

    /// Allows `count` a second, and as many at once.
    pub(crate) fn per_second(count: u64) -> Bucket {
        Bucket::new(Span(1_000_000 / count), count)
    }

    /// When the next token is there, if there is none.
    pub(crate) fn next_at(&self) -> Time {
        Time((self.full_at - Time(0)).0.saturating_sub(self.interval.times(self.burst.saturating_sub(1)).0))
    }

    /// Takes one token if there is one.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let taken = full_at - now <= self.interval.times(self.burst);
        if taken {
            self.full_at = full_at;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let mut bucket = Bucket::new(Span(10), 3);
        let mut taken = |now| bucket.take(Time(now));
        assert_eq!(
            [0, 0, 0, 0, 9, 10, 10, 1000, 1000, 1000, 1000].map(&mut taken),
            [true, true, true, false, false, true, false, true, true, true, false]
        );
        assert_eq!(bucket.next_at(), Time(1010));
        assert!(!bucket.take(Time(1009)) && bucket.take(Time(1010)));
    }
}
