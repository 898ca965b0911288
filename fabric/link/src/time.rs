//! The only clock of this crate: numbers handed in by whoever drives it.

use std::ops::{Add, Sub};

/// A point on a monotonic clock that counts suspended time: microseconds since an arbitrary origin.
///
/// No wall clock takes part in any decision of the link (docs/link.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Span {
    /// So many milliseconds.
    pub const fn milliseconds(count: u64) -> Span {
        Span(count * 1_000)
    }

    /// So many seconds.
    pub const fn seconds(count: u64) -> Span {
        Span(count * 1_000_000)
    }

    /// What is left of this span without another one, at least nothing.
    pub(crate) const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// This span `count` times, at the most the longest one.
    pub const fn times(self, count: u64) -> Span {
        Span(self.0.saturating_mul(count))
    }
}

impl Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;

    /// The span from `earlier` to here; zero if `earlier` is later, so that a clock set wrongly never wraps.
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
