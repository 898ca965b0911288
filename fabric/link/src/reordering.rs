//! How much later than its turn a packet may come before it counts as lost (RFC 8985, with the differences of
//! §7.4).

use crate::limits::{GRANULARITY, REORDERING_EPISODES};
use crate::round_trip::RoundTrip;
use crate::time::Span;

/// What was seen of reordering on a path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reordering {
    /// The most that a packet was late. None: all came in their turn.
    latest: Option<Span>,
    /// True losses since.
    episodes: u64,
}

impl Reordering {
    /// Whether packets come out of turn here: then how many came before one says nothing.
    pub(crate) fn was_seen(&self) -> bool {
        self.latest.is_some()
    }

    /// A packet came out of its turn, so much after it was expected.
    pub(crate) fn on_late(&mut self, by: Span) {
        self.latest = Some(self.latest.map_or(by, |latest| latest.max(by)));
        self.episodes = 0;
    }

    /// The window was cut. After many cuts in a row without a late packet the path is another one.
    pub(crate) fn on_episode(&mut self) {
        self.episodes += 1;
        if self.episodes >= REORDERING_EPISODES {
            *self = Reordering::default();
        }
    }

    /// How long a packet is waited for beyond the round trip: an eighth of it; with reordering a quarter of the smallest
    /// one, or what was seen and a quarter more, at most a round trip.
    pub(crate) fn window(&self, round_trip: &RoundTrip) -> Span {
        let expected = round_trip.expected();
        let window = match self.latest {
            None => expected.0 / 8,
            Some(latest) => (round_trip.smallest().0 / 4).max(latest.0 + latest.0 / 4).min(expected.0),
        };
        Span(window.max(GRANULARITY.0))
    }
}
