//! Pacing: what the window allows goes out over the round trip, not at once (RFC 9002, 7.7; §7.7).

use crate::limits::{PACING_BURST_DATAGRAMS, PACING_QUANTUM};
use crate::time::{Span, Time};

/// A bucket of bytes that is filled at the rate of the path.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    bytes: u64,
    filled_at: Time,
    /// Something was to be sent and must wait until then.
    pub(crate) until: Option<Time>,
}

/// Bytes a span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) bytes: u64,
    pub(crate) span: Span,
}

impl Rate {
    fn bytes_in(self, span: Span) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(span.0) / u128::from(self.span.0.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn time_for(self, bytes: u64) -> Span {
        let span = u128::from(bytes) * u128::from(self.span.0) / u128::from(self.bytes.max(1));
        Span(u64::try_from(span).unwrap_or(u64::MAX).saturating_add(1))
    }
}

impl Pacing {
    /// Whether a datagram of this size may go now; otherwise [`Pacing::until`] says when, in portions that are worth a
    /// timer.
    pub(crate) fn allows(&mut self, now: Time, rate: Rate, datagram: u64) -> bool {
        let portion = rate.bytes_in(PACING_QUANTUM);
        let burst = (PACING_BURST_DATAGRAMS * datagram).max(2 * portion);
        self.bytes = self.bytes.saturating_add(rate.bytes_in(now - self.filled_at)).min(burst);
        self.filled_at = now;
        let allowed = self.bytes >= datagram;
        let missing = portion.clamp(datagram, burst) - self.bytes.min(datagram);
        self.until = (!allowed).then(|| now + rate.time_for(missing));
        allowed
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.until = self.until.filter(|until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that go in a second at so many a round trip of 20 ms.
    fn sent_in_a_second(window: u64) -> u64 {
        let rate = Rate { bytes: window, span: Span::milliseconds(20) };
        let (mut pacing, mut now, mut sent) = (Pacing::default(), Time(1_000_000), 0);
        let end = Time(2_000_000);
        let mut wakes = 0;
        while now < end {
            while pacing.allows(now, rate, 1_200) {
                pacing.on_sent(1_200);
                sent += 1_200;
            }
            let until = pacing.until.unwrap();
            assert!(until > now);
            now = until;
            wakes += 1;
        }
        assert!(wakes <= 1_100, "{wakes}");
        sent
    }

    #[test]
    fn a_window_a_round_trip_in_few_portions() {
        for window in [2_400, 125_000, 4_000_000] {
            let sent = sent_in_a_second(window);
            let expected = 50 * window;
            // The first burst comes on top.
            assert!(sent <= expected + expected / 50 + 12_000, "{window}: {sent}");
            assert!(sent + expected / 50 + 1_200 >= expected, "{window}: {sent}");
        }
    }

    #[test]
    fn after_a_pause_a_burst_goes_and_no_more() {
        let rate = Rate { bytes: 12_000, span: Span::milliseconds(100) };
        let mut pacing = Pacing::default();
        let now = Time(3_600_000_000);
        let burst = std::iter::from_fn(|| pacing.allows(now, rate, 1_200).then(|| pacing.on_sent(1_200)));
        assert_eq!(burst.count() as u64, PACING_BURST_DATAGRAMS);
    }
}
