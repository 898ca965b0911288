//! What was sent and not acknowledged, and when it counts as lost (RFC 9002 and RFC 8985; docs/link.md, "Recovery").
//!
//! What was in a lost packet is named as [`Content`]; the streams decide from their own state what of it is sent again, so
//! no packet is ever copied. How much may be on its way is the business of [`Congestion`], when it goes that of [`Pacing`].

use std::collections::BTreeMap;

use crate::congestion::Congestion;
use crate::credit::Credit;
use crate::datagram_size::DatagramSize;
use crate::limits::{
    DATAGRAM_BYTES_MAX, LOST_KEPT_MAX, PROBE_INTERVAL_MAX, REORDERING_PACKETS, SIZE_PROBE_FLIGHT, SLEPT,
};
use crate::pacing::{Pacing, Rate};
use crate::reordering::Reordering;
use crate::round_trip::RoundTrip;
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
        start: u64,
        end: u64,
    },
    Settled {
        handle: u64,
        upto: u64,
    },
    Blocked {
        handle: u64,
        number: u64,
    },
    Stored {
        handle: u64,
        version: u64,
    },
    Credit {
        handle: u64,
        credit: Credit,
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
    /// A part of the offer of this key for the next epoch.
    Offer {
        key: [u8; 8],
        index: u8,
    },
    /// The accept of the offer of this key.
    Accept {
        key: [u8; 8],
    },
    Challenge,
    /// Asks only to be acknowledged.
    Ping,
    /// Asks whether a datagram of this size comes.
    SizeProbe,
    /// Says what was received up to this number: once it came, that need not be said again.
    Acknowledgement {
        largest: u64,
    },
}

impl Content {
    /// Whether it tells more than that this end is there: then its epoch carried something (§10.1).
    pub(crate) fn carries(&self) -> bool {
        match self {
            Content::Declaration { .. }
            | Content::Records { .. }
            | Content::Piece { .. }
            | Content::Settled { .. }
            | Content::Blocked { .. }
            | Content::Stored { .. }
            | Content::Credit { .. }
            | Content::Turn { .. }
            | Content::Forked { .. } => true,
            Content::Hailed { .. }
            | Content::Offer { .. }
            | Content::Accept { .. }
            | Content::Challenge
            | Content::Ping
            | Content::SizeProbe
            | Content::Acknowledgement { .. } => false,
        }
    }
}

#[derive(Debug)]
struct Sent {
    at: Time,
    bytes: u64,
    /// The path that it went on, of those of this packet number space.
    path: u32,
    content: Vec<Content>,
}

/// A packet that counts as lost, and may only be late.
#[derive(Debug)]
struct Lost {
    at: Time,
    bytes: u64,
    /// The cut that it made or was part of.
    episode: u64,
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
    lost: BTreeMap<u64, Lost>,
    largest_acknowledged: Option<u64>,
    /// One above the highest number that was sent.
    next_number: u64,
    /// Counts changes of the path. What went on one before says nothing of this one (RFC 9000, 9.4; §7.11).
    path: u32,
    /// Bytes on their way on this path.
    in_flight: u64,
    size: DatagramSize,
    congestion: Congestion,
    pacing: Pacing,
    reordering: Reordering,
    round_trip: RoundTrip,
    loss_at: Option<Time>,
    last_sent: Time,
    /// Probes since something was heard.
    probes: u32,
}

/// Probes after which a flight is given up but for its last packet, which keeps the timer alive, and the window begins
/// anew from the smallest: three times a probe's interval is what RFC 9002, 7.6.1, takes for persistent congestion.
const PROBES_KEEPING_FLIGHT: u32 = 2;

/// What a timer of recovery asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Nothing,
    Lost(Vec<Content>),
    /// A packet goes out even if the congestion window is full.
    Probe(Vec<Content>),
}

impl Recovery {
    pub(crate) fn new() -> Recovery {
        Recovery {
            sent: BTreeMap::new(),
            lost: BTreeMap::new(),
            largest_acknowledged: None,
            next_number: 0,
            path: 0,
            in_flight: 0,
            size: DatagramSize::new(DATAGRAM_BYTES_MAX),
            congestion: Congestion::new(),
            pacing: Pacing::default(),
            reordering: Reordering::default(),
            round_trip: RoundTrip::default(),
            loss_at: None,
            last_sent: Time(0),
            probes: 0,
        }
    }

    /// A new packet number space: everything on its way counts as lost. What was measured of the path stays.
    pub(crate) fn restart(&mut self) -> Vec<Content> {
        self.largest_acknowledged = None;
        self.next_number = 0;
        self.loss_at = None;
        self.in_flight = 0;
        self.lost.clear();
        self.congestion.restart_numbers();
        self.size.restart();
        std::mem::take(&mut self.sent).into_values().flat_map(|sent| sent.content).collect()
    }

    /// A new path: nothing is known of it, and nothing is on its way there (RFC 9000, 9.4).
    pub(crate) fn path_changed(&mut self) {
        self.path = self.path.wrapping_add(1);
        self.in_flight = 0;
        self.pacing = Pacing::default();
        self.round_trip = RoundTrip::default();
        self.reordering = Reordering::default();
        self.congestion = Congestion::new();
        self.size = DatagramSize::new(self.size.most());
        // What is lost of the path before says nothing of this one.
        self.lost.clear();
    }

    /// Bytes of a full datagram.
    pub(crate) fn datagram_bytes(&self) -> usize {
        self.size.confirmed()
    }

    /// What this end can send. Only before anything was sent on this path.
    pub(crate) fn set_datagram_bytes_most(&mut self, most: usize) {
        self.size = DatagramSize::new(most);
    }

    /// The size of which a datagram is to be tried now, if much is on its way and there is room for it.
    pub(crate) fn take_size_probe(&mut self, now: Time) -> Option<usize> {
        let much = self.in_flight >= SIZE_PROBE_FLIGHT * DATAGRAM_BYTES_MAX as u64;
        if much && self.in_flight < self.congestion.window() { self.size.take_probe(now) } else { None }
    }

    /// Whether a full datagram may go now: the window has room, and its turn has come.
    pub(crate) fn has_room(&mut self, now: Time) -> bool {
        let datagram = self.size.confirmed() as u64;
        if self.in_flight + datagram > self.congestion.window() {
            self.pacing.until = None;
            return false;
        }
        let Some(span) = self.round_trip.smoothed() else { return true };
        // As much as makes the window full in slow start, and a little more than it after that (RFC 9002, 7.7).
        let window = self.congestion.window();
        let bytes = if self.congestion.is_slow_start() { 2 * window } else { window + window / 4 };
        self.pacing.allows(now, Rate { bytes, span }, datagram)
    }

    /// Whether something is on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether something is on its way on this path.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether all that is on its way is of this kind.
    pub(crate) fn carries_only(&self, kind: impl Fn(&Content) -> bool) -> bool {
        self.sent.values().flat_map(|sent| &sent.content).all(kind)
    }

    /// What is on its way is waited for no more.
    pub(crate) fn abandon(&mut self) {
        self.sent.clear();
        self.in_flight = 0;
        self.loss_at = None;
    }

    /// Whether an acknowledgement of these ranges tells of more than that challenges came.
    pub(crate) fn acknowledges_content(&self, ranges: &[(u64, u64)]) -> bool {
        let mut sent = ranges.iter().flat_map(|(start, end)| self.sent.range(*start..=*end));
        let is_of_path =
            |content: &Content| matches!(content, Content::Challenge | Content::Acknowledgement { .. });
        sent.any(|(_, sent)| !sent.content.iter().all(is_of_path))
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
        self.next_number = number + 1;
        self.congestion.on_sent(self.in_flight);
        self.pacing.on_sent(bytes);
        self.sent.insert(number, Sent { at: now, bytes, path: self.path, content });
    }

    /// An acknowledgement of these ranges; the sender of it held it back for `delay`.
    pub(crate) fn on_acknowledged(&mut self, now: Time, ranges: &[(u64, u64)], delay: Span) -> Told {
        let mut told = Told::default();
        let Some((_, largest)) = ranges.first().copied() else { return told };
        let slept = self.next_timeout().is_some_and(|at| at + SLEPT < now);
        // What is on its way uses the window, whether or not anything was sent since the acknowledgement before.
        self.congestion.on_sent(self.in_flight);
        let expected = self.round_trip.expected();
        let (mut is_news, mut bytes, mut late) = (false, 0, None);
        for (start, end) in ranges {
            self.take_back(now, (*start, *end), expected, &mut late, &mut told.acknowledged);
            while let Some((number, _)) = self.sent.range(*start..=*end).next() {
                let number = *number;
                let Some(sent) = self.sent.remove(&number) else { break };
                is_news = true;
                told.acknowledged.extend(sent.content);
                if sent.path != self.path {
                    continue;
                }
                self.in_flight -= sent.bytes;
                self.size.on_acknowledged(sent.bytes as usize);
                if self.largest_acknowledged.is_some_and(|before| number < before) {
                    late = late.max(Some((now - sent.at).minus(expected)));
                }
                if self.congestion.counts(sent.at) {
                    bytes += sent.bytes;
                }
                if number == largest && !slept {
                    self.round_trip.measure(now - sent.at, delay);
                    self.congestion.on_round_trip(now - sent.at, number, self.next_number);
                }
            }
        }
        if let (Some(by), false) = (late, slept) {
            self.reordering.on_late(by);
        }
        if is_news {
            self.largest_acknowledged = self.largest_acknowledged.max(Some(largest));
            self.probes = 0;
            self.congestion.set_datagram(self.size.confirmed());
            let round_trip = self.round_trip.smoothed().unwrap_or_default();
            if bytes > 0 {
                self.congestion.on_acknowledged(now, bytes, round_trip);
            }
            told.lost = self.detect_losses(now);
        }
        told
    }

    /// Packets of this range that counted as lost came after all (§7.5).
    fn take_back(
        &mut self,
        now: Time,
        (start, end): (u64, u64),
        expected: Span,
        late: &mut Option<Span>,
        acknowledged: &mut Vec<Content>,
    ) {
        while let Some((number, _)) = self.lost.range(start..=end).next() {
            let number = *number;
            let Some(lost) = self.lost.remove(&number) else { break };
            *late = (*late).max(Some((now - lost.at).minus(expected)));
            self.congestion.on_spurious(lost.episode);
            self.size.on_acknowledged(lost.bytes as usize);
            acknowledged.extend(lost.content);
        }
    }

    /// By packets above as long as no reordering was seen, and by time (RFC 9002, 6.1; RFC 8985, 6.2) (§7.3).
    fn detect_losses(&mut self, now: Time) -> Vec<Content> {
        self.loss_at = None;
        let Some(largest) = self.largest_acknowledged else { return Vec::new() };
        let wait = Span(self.round_trip.expected().0 + self.reordering.window(&self.round_trip).0);
        let counts = !self.reordering.was_seen();
        let mut lost = Vec::new();
        for (number, sent) in self.sent.range(..largest) {
            let overdue = sent.at + wait;
            if (counts && *number + REORDERING_PACKETS <= largest) || overdue <= now {
                lost.push(*number);
            } else {
                self.loss_at = Some(self.loss_at.map_or(overdue, |earlier| earlier.min(overdue)));
            }
        }
        self.lose(now, &lost)
    }

    fn lose(&mut self, now: Time, numbers: &[u64]) -> Vec<Content> {
        let mut content = Vec::new();
        for number in numbers {
            let Some(sent) = self.sent.remove(number) else { continue };
            if sent.path != self.path {
                content.extend(sent.content);
                continue;
            }
            self.in_flight -= sent.bytes;
            if sent.content == [Content::SizeProbe] {
                // It may have been too large: no sign of congestion (RFC 8899, 3).
                self.size.on_probe_lost(now);
                continue;
            }
            if self.size.on_lost(now, sent.bytes as usize) {
                self.congestion.set_datagram(self.size.confirmed());
            }
            if self.congestion.counts(sent.at) {
                self.reordering.on_episode();
            }
            let episode = self.congestion.on_lost(now, sent.at);
            content.extend(sent.content.iter().cloned());
            if self.lost.len() >= LOST_KEPT_MAX {
                self.lost.pop_first();
            }
            self.lost
                .insert(*number, Lost { at: sent.at, bytes: sent.bytes, episode, content: sent.content });
        }
        content
    }

    /// The time after which a probe asks for an acknowledgement (RFC 9002, 6.2.1), doubled each time, bounded.
    pub(crate) fn probe_interval(&self) -> Span {
        let once = self.round_trip.probe_after().0;
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

    /// When what waits for its turn may go.
    pub(crate) fn paced_until(&self) -> Option<Time> {
        self.pacing.until
    }

    /// The timer fired: packets are lost by time, or it is time for a probe; then the content of the oldest packet is
    /// named once more and stays waited for (§7.8).
    pub(crate) fn on_timeout(&mut self, now: Time) -> Timeout {
        self.pacing.on_timeout(now);
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
            let flight = self.sent.iter().rev().skip(1);
            let is_of_path = flight.clone().any(|(_, sent)| sent.path == self.path);
            let numbers: Vec<u64> = flight.map(|(number, _)| *number).collect();
            let mut lost = self.lose(now, &numbers);
            if is_of_path {
                self.congestion.collapse();
            }
            lost.extend(oldest);
            return Timeout::Probe(lost);
        }
        Timeout::Probe(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(recovery: &mut Recovery, at: u64, number: u64) {
        recovery.on_sent(Time(at), number, 100, vec![Content::Hailed { number }]);
    }

    fn of(numbers: impl IntoIterator<Item = u64>) -> Vec<Content> {
        numbers.into_iter().map(|number| Content::Hailed { number }).collect()
    }

    #[test]
    fn three_packets_above_make_a_loss() {
        let mut recovery = Recovery::new();
        for number in 0..4 {
            ping(&mut recovery, 0, number);
        }
        let told = recovery.on_acknowledged(Time(1000), &[(3, 3)], Span(0));
        assert_eq!(told.lost, of([0]));
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
    fn a_late_packet_takes_the_cut_back_and_makes_patient() {
        let mut recovery = Recovery::new();
        let round_trip = 20_000;
        for number in 0..10 {
            ping(&mut recovery, number, number);
        }
        let before = recovery.congestion.window();
        // 0 is missing while 1 to 5 came: lost, as far as anybody knows.
        let told = recovery.on_acknowledged(Time(round_trip + 5), &[(1, 5)], Span(0));
        assert_eq!((told.lost, recovery.congestion.window() < before), (of([0]), true));
        // It was 4 ms late.
        let told = recovery.on_acknowledged(Time(round_trip + 4_000), &[(0, 6)], Span(0));
        assert_eq!(told.acknowledged, of([0, 6]));
        assert!(recovery.congestion.window() >= before);
        // From now on as late a packet is waited for, however many came before it.
        let start = 100_000;
        for number in 10..30 {
            ping(&mut recovery, start + number, number);
        }
        let told = recovery.on_acknowledged(Time(start + round_trip), &[(11, 29), (0, 9)], Span(0));
        assert_eq!(told.lost, []);
        let told = recovery.on_acknowledged(Time(start + round_trip + 3_900), &[(0, 29)], Span(0));
        assert_eq!((told.acknowledged, told.lost), (of([10]), vec![]));
    }

    #[test]
    fn the_oldest_flight_collapses_the_window_and_its_late_answer_restores_it() {
        let mut recovery = Recovery::new();
        for number in 0..10 {
            ping(&mut recovery, number, number);
        }
        let before = recovery.congestion.window();
        for _ in 0..3 {
            let at = recovery.next_timeout().unwrap();
            assert!(matches!(recovery.on_timeout(at), Timeout::Probe(_)));
        }
        assert_eq!(recovery.congestion.window(), 2 * DATAGRAM_BYTES_MAX as u64);
        recovery.on_acknowledged(Time(10_000_000), &[(0, 9)], Span(0));
        assert!(recovery.congestion.window() >= before);
    }

    #[test]
    fn what_went_on_the_path_before_says_nothing_of_this_one() {
        let mut recovery = Recovery::new();
        for number in 0..20 {
            recovery.on_sent(Time(0), number, DATAGRAM_BYTES_MAX, vec![Content::Hailed { number }]);
        }
        recovery.path_changed();
        let (fresh, unknown) = (recovery.congestion.window(), recovery.probe_interval());
        assert!(recovery.has_room(Time(1_000)), "nothing is on its way there");
        ping(&mut recovery, 1_000, 20);
        let told = recovery.on_acknowledged(Time(5_000), &[(4, 9)], Span(0));
        assert_eq!((told.acknowledged, told.lost), (of(4..10), of(0..4)));
        assert_eq!((recovery.in_flight, recovery.probe_interval()), (100, unknown));
        assert_eq!(recovery.congestion.window(), fresh);
        // Those of this path do.
        let told = recovery.on_acknowledged(Time(21_000), &[(20, 20)], Span(0));
        assert_eq!((told.acknowledged, told.lost), (of([20]), of(10..18)));
        assert_eq!((recovery.in_flight, recovery.congestion.window()), (0, fresh));
        assert_eq!(recovery.round_trip.smoothed(), Some(Span::milliseconds(20)));
    }

    #[test]
    fn a_machine_that_slept_measures_nothing() {
        let mut recovery = Recovery::new();
        ping(&mut recovery, 0, 0);
        recovery.on_acknowledged(Time(20_000), &[(0, 0)], Span(0));
        let known = recovery.probe_interval();
        ping(&mut recovery, 30_000, 1);
        recovery.on_acknowledged(Time(86_400_000_000), &[(0, 1)], Span(0));
        assert_eq!(recovery.probe_interval(), known);
    }
}
