//! The round trip of a path (RFC 9002, 5).

use crate::limits::{ACK_DELAY_MAX, GRANULARITY, ROUND_TRIP_INITIAL};
use crate::time::Span;

/// What was measured, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Measured {
    smoothed: u64,
    variation: u64,
    smallest: u64,
    latest: u64,
}

/// The round trip as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundTrip(Option<Measured>);

impl RoundTrip {
    /// RFC 9002, 5.3.
    pub(crate) fn measure(&mut self, latest: Span, delay: Span) {
        let latest = latest.0;
        let Some(known) = &mut self.0 else {
            self.0 = Some(Measured { smoothed: latest, variation: latest / 2, smallest: latest, latest });
            return;
        };
        known.smallest = known.smallest.min(latest);
        known.latest = latest;
        let delay = delay.0.min(ACK_DELAY_MAX.0);
        let adjusted = if latest >= known.smallest + delay { latest - delay } else { latest };
        known.variation = (3 * known.variation + known.smoothed.abs_diff(adjusted)) / 4;
        known.smoothed = (7 * known.smoothed + adjusted) / 8;
    }

    /// The smoothed one, if there is any.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.0.map(|known| Span(known.smoothed))
    }

    /// The smallest one; nothing before the first.
    pub(crate) fn smallest(&self) -> Span {
        Span(self.0.map_or(0, |known| known.smallest))
    }

    /// After which an acknowledgement is late, were there no reordering.
    pub(crate) fn expected(&self) -> Span {
        self.0.map_or(ROUND_TRIP_INITIAL, |known| Span(known.smoothed.max(known.latest)))
    }

    /// After which a probe asks for an acknowledgement (RFC 9002, 6.2.1).
    pub(crate) fn probe_after(&self) -> Span {
        self.0.map_or(ROUND_TRIP_INITIAL.times(3), |known| {
            Span(known.smoothed + (4 * known.variation).max(GRANULARITY.0) + ACK_DELAY_MAX.0)
        })
    }
}
