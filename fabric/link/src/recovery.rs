//! What was sent and not acknowledged, when it counts as lost, and how much may be on its way (RFC 9002, simplified).
//!
//! Differences from RFC 9002: one packet number space; NewReno without slow-start exit by delay and without persistent
//! congestion; no pacing; a probe is whatever is to be resent. What was in a lost packet is named as [`Content`]; the
//! streams decide from their own state what of it is sent again, so no packet is ever copied.

use std::collections::BTreeMap;

use crate::limits::{
    ACK_DELAY_MAX, CONGESTION_WINDOW_INITIAL, CONGESTION_WINDOW_MAX, CONGESTION_WINDOW_MIN, GRANULARITY,
    PROBE_INTERVAL_MAX, REORDERING_PACKETS, ROUND_TRIP_INITIAL,
};
use crate::time::{Span, Time};

/// What a packet carried that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Declaration {
        handle: u64,
        oldest: u64,
    },
    Records {
        handle: u64,
        generation: u64,
        first: u64,
        count: u64,
    },
    Piece {
        handle: u64,
        generation: u64,
        number: u64,
        index: u64,
    },
    Settled {
        handle: u64,
        upto: u64,
    },
    Stored {
        handle: u64,
        version: u64,
    },
    Turn {
        handle: u64,
        turn: u64,
    },
    Forked {
        handle: u64,
    },
    Hailed {
        number: u64,
    },
    Challenge,
    /// Asks only to be acknowledged.
    Ping,
}

#[derive(Debug)]
struct Sent {
    at: Time,
    bytes: u64,
    content: Vec<Content>,
}

/// What an acknowledgement or a timer told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) acknowledged: Vec<Content>,
    pub(crate) lost: Vec<Content>,
}

/// The state of one packet number space and its path.
#[derive(Debug)]
pub(crate) struct Recovery {
    sent: BTreeMap<u64, Sent>,
    largest_acknowledged: Option<u64>,
    in_flight: u64,
    window: u64,
    slow_start_threshold: u64,
    /// Losses of packets sent before this are of the same event (RFC 9002, 7.3.2).
    recovering_since: Option<Time>,
    round_trip: Option<RoundTrip>,
    loss_at: Option<Time>,
    last_sent: Time,
    /// Probes since something was heard.
    probes: u32,
}

#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    smoothed: u64,
    variation: u64,
    smallest: u64,
    latest: u64,
}

impl Recovery {
    pub(crate) fn new() -> Recovery {
        Recovery {
            sent: BTreeMap::new(),
            largest_acknowledged: None,
            in_flight: 0,
            window: CONGESTION_WINDOW_INITIAL,
            slow_start_threshold: u64::MAX,
            recovering_since: None,
            round_trip: None,
            loss_at: None,
            last_sent: Time(0),
            probes: 0,
        }
    }

    /// A new packet number space: everything on its way counts as lost. What was measured of the path stays.
    pub(crate) fn restart(&mut self) -> Vec<Content> {
        self.largest_acknowledged = None;
        self.loss_at = None;
        self.in_flight = 0;
        std::mem::take(&mut self.sent).into_values().flat_map(|sent| sent.content).collect()
    }

    /// A new path: nothing is known of it (RFC 9000, 9.4).
    pub(crate) fn path_changed(&mut self) {
        self.round_trip = None;
        self.window = CONGESTION_WINDOW_INITIAL;
        self.slow_start_threshold = u64::MAX;
        self.recovering_since = None;
    }

    /// Whether the congestion window has room for a full datagram.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight + crate::limits::DATAGRAM_BYTES_MAX as u64 <= self.window
    }

    /// Whether something is on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether an acknowledgement of these ranges tells of more than that challenges came.
    pub(crate) fn acknowledges_content(&self, ranges: &[(u64, u64)]) -> bool {
        let mut sent = ranges.iter().flat_map(|(start, end)| self.sent.range(*start..=*end));
        sent.any(|(_, sent)| sent.content.iter().any(|content| *content != Content::Challenge))
    }

    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    /// The peer was heard in some way: its backoff ends.
    pub(crate) fn heard(&mut self) {
        self.probes = 0;
    }

    pub(crate) fn on_sent(&mut self, now: Time, number: u64, bytes: usize, content: Vec<Content>) {
        let bytes = bytes as u64;
        self.in_flight += bytes;
        self.last_sent = now;
        self.sent.insert(number, Sent { at: now, bytes, content });
    }

    /// An acknowledgement of these ranges; the sender of it held it back for `delay`.
    pub(crate) fn on_acknowledged(&mut self, now: Time, ranges: &[(u64, u64)], delay: Span) -> Told {
        let mut told = Told::default();
        let Some((_, largest)) = ranges.first().copied() else { return told };
        let mut newest = None;
        for (start, end) in ranges {
            let numbers: Vec<u64> = self.sent.range(*start..=*end).map(|(number, _)| *number).collect();
            for number in numbers {
                let Some(sent) = self.sent.remove(&number) else { continue };
                self.in_flight -= sent.bytes;
                if number == largest {
                    self.measure(now - sent.at, delay);
                }
                newest = newest.max(Some(sent.at));
                self.grow(&sent);
                told.acknowledged.extend(sent.content);
            }
        }
        if newest.is_some() {
            self.largest_acknowledged = self.largest_acknowledged.max(Some(largest));
            self.probes = 0;
            told.lost = self.detect_losses(now);
        }
        told
    }

    /// RFC 9002, 5.3.
    fn measure(&mut self, latest: Span, delay: Span) {
        let latest = latest.0;
        let Some(known) = &mut self.round_trip else {
            self.round_trip =
                Some(RoundTrip { smoothed: latest, variation: latest / 2, smallest: latest, latest });
            return;
        };
        known.smallest = known.smallest.min(latest);
        known.latest = latest;
        let delay = delay.0.min(ACK_DELAY_MAX.0);
        let adjusted = if latest >= known.smallest + delay { latest - delay } else { latest };
        known.variation = (3 * known.variation + known.smoothed.abs_diff(adjusted)) / 4;
        known.smoothed = (7 * known.smoothed + adjusted) / 8;
    }

    /// RFC 9002, 7.3: exponential below the threshold, one datagram a round trip above; not for what was sent before
    /// the last loss.
    fn grow(&mut self, sent: &Sent) {
        if self.recovering_since.is_some_and(|since| sent.at <= since) {
            return;
        }
        let datagram = crate::limits::DATAGRAM_BYTES_MAX as u64;
        let more = if self.window < self.slow_start_threshold {
            sent.bytes
        } else {
            (datagram * sent.bytes / self.window).max(1)
        };
        self.window = (self.window + more).min(CONGESTION_WINDOW_MAX);
    }

    /// RFC 9002, 6.1: by packets above and by time.
    fn detect_losses(&mut self, now: Time) -> Vec<Content> {
        self.loss_at = None;
        let Some(largest) = self.largest_acknowledged else { return Vec::new() };
        let (smoothed, latest) =
            self.round_trip.map_or((ROUND_TRIP_INITIAL.0, 0), |known| (known.smoothed, known.latest));
        let wait = Span((smoothed.max(latest) * 9 / 8).max(GRANULARITY.0));
        let mut lost = Vec::new();
        for (number, sent) in self.sent.range(..largest) {
            if *number + REORDERING_PACKETS <= largest || sent.at + wait <= now {
                lost.push(*number);
            } else {
                let at = sent.at + wait;
                self.loss_at = Some(self.loss_at.map_or(at, |earlier| earlier.min(at)));
            }
        }
        self.lose(now, &lost)
    }

    fn lose(&mut self, now: Time, numbers: &[u64]) -> Vec<Content> {
        let mut content = Vec::new();
        for number in numbers {
            let Some(sent) = self.sent.remove(number) else { continue };
            self.in_flight -= sent.bytes;
            if self.recovering_since.is_none_or(|since| sent.at > since) {
                self.recovering_since = Some(now);
                self.window = (self.window / 2).max(CONGESTION_WINDOW_MIN);
                self.slow_start_threshold = self.window;
            }
            content.extend(sent.content);
        }
        content
    }

    /// The time after which a probe asks for an acknowledgement (RFC 9002, 6.2.1), doubled each time, bounded.
    pub(crate) fn probe_interval(&self) -> Span {
        let once = self.round_trip.map_or(3 * ROUND_TRIP_INITIAL.0, |known| {
            known.smoothed + (4 * known.variation).max(GRANULARITY.0) + ACK_DELAY_MAX.0
        });
        Span(once.saturating_mul(1 << self.probes.min(20)).min(PROBE_INTERVAL_MAX.0))
    }

    /// When [`Recovery::on_timeout`] is due: nothing is on its way, no timer.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        if self.sent.is_empty() {
            return None;
        }
        let probe_at = self.last_sent + self.probe_interval();
        Some(self.loss_at.map_or(probe_at, |at| at.min(probe_at)))
    }

    /// The timer fired: packets are lost by time, or it is time for a probe; then the content of the oldest packet is
    /// named once more and stays waited for.
    pub(crate) fn on_timeout(&mut self, now: Time) -> Timeout {
        if self.loss_at.is_some_and(|at| at <= now) {
            return Timeout::Lost(self.detect_losses(now));
        }
        if self.sent.is_empty() || now < self.last_sent + self.probe_interval() {
            return Timeout::Nothing;
        }
        self.probes = self.probes.saturating_add(1);
        self.last_sent = now;
        let oldest = self.sent.values().next().map(|sent| sent.content.clone()).unwrap_or_default();
        if self.probes > PROBES_KEEPING_FLIGHT {
            // Nothing of this flight comes back any more: it is not counted twice against the window.
            let numbers: Vec<u64> = self.sent.keys().rev().skip(1).copied().collect();
            let mut lost = self.lose(now, &numbers);
            lost.extend(oldest);
            return Timeout::Probe(lost);
        }
        Timeout::Probe(oldest)
    }
}

/// Probes after which a flight is given up but for its last packet, which keeps the timer alive.
const PROBES_KEEPING_FLIGHT: u32 = 2;

/// What a timer of recovery asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Nothing,
    Lost(Vec<Content>),
    /// A packet goes out even if the congestion window is full.
    Probe(Vec<Content>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(recovery: &mut Recovery, at: u64, number: u64) {
        recovery.on_sent(Time(at), number, 100, vec![Content::Hailed { number }]);
    }

    #[test]
    fn three_packets_above_make_a_loss() {
        let mut recovery = Recovery::new();
        for number in 0..4 {
            ping(&mut recovery, 0, number);
        }
        let told = recovery.on_acknowledged(Time(1000), &[(3, 3)], Span(0));
        assert_eq!(told.lost, [Content::Hailed { number: 0 }]);
        assert!(recovery.next_timeout().is_some(), "numbers 1 and 2 may be lost by time");
        let at = recovery.next_timeout().unwrap();
        let Timeout::Lost(lost) = recovery.on_timeout(at) else { panic!("a loss by time") };
        assert_eq!(lost.len(), 2);
        assert_eq!(recovery.next_timeout(), None);
        assert_eq!(recovery.in_flight, 0);
    }

    #[test]
    fn probes_back_off_to_a_bound_and_hearing_ends_it() {
        let mut recovery = Recovery::new();
        ping(&mut recovery, 0, 0);
        let mut last = Span(0);
        for _ in 0..20 {
            let at = recovery.next_timeout().unwrap();
            assert!(matches!(recovery.on_timeout(at), Timeout::Probe(_)));
            assert!(recovery.probe_interval() >= last);
            last = recovery.probe_interval();
        }
        assert_eq!(last, PROBE_INTERVAL_MAX);
        recovery.heard();
        assert!(recovery.probe_interval() < Span::seconds(2));
    }

    #[test]
    fn a_loss_halves_the_window_once_a_round_trip() {
        let mut recovery = Recovery::new();
        for number in 0..10 {
            ping(&mut recovery, number, number);
        }
        let before = recovery.window;
        recovery.on_acknowledged(Time(1000), &[(6, 6)], Span(0));
        assert_eq!(recovery.window, (before + 100) / 2);
        let halved = recovery.window;
        recovery.on_acknowledged(Time(1001), &[(9, 9)], Span(0));
        assert_eq!(recovery.window, halved);
    }
}
