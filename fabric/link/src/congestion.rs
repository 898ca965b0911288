//! How much may be on its way: CUBIC (RFC 9438) behind a slow start that ends by delay (RFC 9406), with cuts that are
//! taken back when all losses that made them turn out to be none.
//!
//! It must not know packets: it is told of bytes, of when they were sent, and of losses by the number of their episode.
//! §7.5, §7.6.

use crate::limits::{CONGESTION_WINDOW_INITIAL, CONGESTION_WINDOW_MAX, DATAGRAM_BYTES_MAX};
use crate::slow_start::{Growth, SlowStart};
use crate::time::{Span, Time};

/// C of RFC 9438, 5.1, in tenths.
const C_TENTHS: i128 = 4;

/// The cube of a second in microseconds.
const CUBE_OF_A_SECOND: i128 = 1_000_000_000_000_000_000;

/// The longest time that the cubic function is asked of: any window is at its maximum long before.
const CUBIC_MICROSECONDS_MAX: i128 = 10_000_000_000;

/// The window as far as a cut changes it and taking a cut back restores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    window: u64,
    threshold: u64,
    /// The window that was too much before the last cut (W_max).
    too_much: u64,
    avoidance: Option<Avoidance>,
}

/// Growth since a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Avoidance {
    since: Time,
    /// After so many microseconds the cubic function is at `Shape::too_much` (K).
    plateau: u64,
    /// What Reno would have (W_est).
    reno: u64,
}

/// The losses of one round trip, which cut the window once (RFC 9002, 7.3.2).
#[derive(Debug, Clone, Copy)]
struct Episode {
    began: Time,
    before: Shape,
    lost: u64,
    spurious: u64,
}

/// The congestion window of one path.
#[derive(Debug)]
pub(crate) struct Congestion {
    shape: Shape,
    slow_start: SlowStart,
    episode: Option<Episode>,
    /// Counts episodes: the number of the last one.
    episodes: u64,
    /// The most that was on its way since the window last changed: one that is not used does not grow.
    fullest: u64,
    last_acknowledged: Option<Time>,
    datagram: u64,
}

impl Congestion {
    pub(crate) fn new() -> Congestion {
        let window = CONGESTION_WINDOW_INITIAL;
        Congestion {
            shape: Shape { window, threshold: u64::MAX, too_much: 0, avoidance: None },
            slow_start: SlowStart::default(),
            episode: None,
            episodes: 0,
            fullest: 0,
            last_acknowledged: None,
            datagram: DATAGRAM_BYTES_MAX as u64,
        }
    }

    pub(crate) fn window(&self) -> u64 {
        self.shape.window
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.shape.window < self.shape.threshold
    }

    /// The smallest window (RFC 9002, 7.2).
    fn smallest(&self) -> u64 {
        2 * self.datagram
    }

    pub(crate) fn on_sent(&mut self, in_flight: u64) {
        self.fullest = self.fullest.max(in_flight);
    }

    /// A packet was measured that this was the `acknowledged` number of; the next one to be sent is `next`.
    pub(crate) fn on_round_trip(&mut self, latest: Span, acknowledged: u64, next: u64) {
        if self.is_slow_start() && self.slow_start.on_round_trip(latest, acknowledged, next) == Growth::Ends {
            self.shape.threshold = self.shape.window;
            self.shape.too_much = self.shape.window;
        }
    }

    /// Whether a packet that was sent then lets the window grow: not one sent before the last cut.
    pub(crate) fn counts(&self, sent: Time) -> bool {
        self.episode.is_none_or(|episode| sent > episode.began)
    }

    /// So many bytes that count were acknowledged at once.
    pub(crate) fn on_acknowledged(&mut self, now: Time, bytes: u64, round_trip: Span) {
        let before = self.last_acknowledged.replace(now).unwrap_or(now);
        let fullest = std::mem::take(&mut self.fullest);
        if self.is_slow_start() {
            if 2 * fullest >= self.shape.window {
                let more = self.slow_start.growth(bytes);
                self.shape.window = (self.shape.window + more).min(CONGESTION_WINDOW_MAX);
            }
            return;
        }
        let plateau = self.plateau();
        let Shape { window, too_much, .. } = self.shape;
        let begun = Avoidance { since: now, plateau, reno: window };
        let avoidance = self.shape.avoidance.get_or_insert(begun);
        if fullest + 3 * self.datagram < window {
            // Time in which the window was not used does not count (RFC 9438, 5.8).
            avoidance.since = (avoidance.since + (now - before)).min(now);
            return;
        }
        // Until it is where it was, Reno's part grows slower than Reno does (RFC 9438, 4.3): 3 (1 − β) / (1 + β) = 9/17.
        let (part, of) = if avoidance.reno < too_much { (9, 17) } else { (1, 1) };
        avoidance.reno += part * self.datagram * bytes / (of * window);
        let elapsed = (now - avoidance.since).0;
        let at = |microseconds| cubic(microseconds, avoidance.plateau, too_much, self.datagram);
        let grown = if at(elapsed) < avoidance.reno {
            avoidance.reno
        } else {
            let target = at(elapsed + round_trip.0).clamp(window, window + window / 2);
            // Less than a byte adds up to one.
            window + ((target - window) * bytes).div_ceil(window)
        };
        self.shape.window = grown.max(window).min(CONGESTION_WINDOW_MAX);
    }

    /// K of RFC 9438, 4.2, in microseconds.
    fn plateau(&self) -> u64 {
        let missing = i128::from(self.shape.too_much.saturating_sub(self.shape.window));
        let cube = missing * CUBE_OF_A_SECOND * 10 / (C_TENTHS * i128::from(self.datagram));
        cube_root(cube)
    }

    /// A packet that was sent then is lost. Returns the episode that the loss belongs to.
    pub(crate) fn on_lost(&mut self, now: Time, sent: Time) -> u64 {
        if self.counts(sent) {
            self.episode = Some(Episode { began: now, before: self.shape, lost: 0, spurious: 0 });
            self.episodes += 1;
            self.cut();
        }
        if let Some(episode) = &mut self.episode {
            episode.lost += 1;
        }
        self.episodes
    }

    /// To seven tenths (RFC 9438, 4.6), and a window below the one before gives way to others (4.7).
    fn cut(&mut self) {
        let Shape { window, too_much, .. } = self.shape;
        let reached = if window < too_much { window * 17 / 20 } else { window };
        let window = (window * 7 / 10).max(self.smallest());
        self.shape = Shape { window, threshold: window, too_much: reached, avoidance: None };
        self.fullest = 0;
    }

    /// A loss of this episode was none. When all of the last one were none its cut is taken back, and not before: one
    /// true loss among them is what the cut was for (§7.5).
    pub(crate) fn on_spurious(&mut self, episode: u64) {
        let Some(last) = self.episode.as_mut().filter(|_| episode == self.episodes) else { return };
        last.spurious += 1;
        if last.spurious == last.lost {
            let window = self.shape.window.max(last.before.window);
            self.shape = Shape { window, ..last.before };
            self.episode = None;
        }
    }

    /// Nothing came back for three probes (RFC 9002, 7.6).
    pub(crate) fn collapse(&mut self) {
        self.shape.window = self.smallest();
        self.shape.avoidance = None;
        self.slow_start = SlowStart::default();
    }

    /// Datagrams have another size.
    pub(crate) fn set_datagram(&mut self, bytes: usize) {
        self.datagram = bytes as u64;
        self.shape.window = self.shape.window.max(self.smallest());
    }

    /// Packet numbers begin anew.
    pub(crate) fn restart_numbers(&mut self) {
        self.slow_start.restart();
    }
}

/// W_cubic of RFC 9438, 4.2, in bytes.
fn cubic(elapsed: u64, plateau: u64, too_much: u64, datagram: u64) -> u64 {
    let from_plateau =
        (i128::from(elapsed) - i128::from(plateau)).clamp(-CUBIC_MICROSECONDS_MAX, CUBIC_MICROSECONDS_MAX);
    let grown = C_TENTHS * i128::from(datagram) * from_plateau.pow(3) / (10 * CUBE_OF_A_SECOND);
    u64::try_from(i128::from(too_much) + grown).unwrap_or(if grown < 0 { 0 } else { u64::MAX })
}

/// The largest number whose cube is not above this one.
fn cube_root(cube: i128) -> u64 {
    let (mut low, mut high) = (0i128, CUBIC_MICROSECONDS_MAX);
    while low < high {
        let middle = (low + high + 1) / 2;
        if middle.pow(3) <= cube { low = middle } else { high = middle - 1 }
    }
    u64::try_from(low).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Span = Span::milliseconds(100);

    /// Runs one round trip after the other, each with a full window; the windows after each.
    fn rounds(congestion: &mut Congestion, from: Time, count: u64) -> Vec<u64> {
        let mut windows = Vec::new();
        for round in 0..count {
            let (now, window) = (from + ROUND_TRIP.times(round), congestion.window());
            congestion.on_sent(window);
            congestion.on_acknowledged(now, window, ROUND_TRIP);
            windows.push(congestion.window());
        }
        windows
    }

    #[test]
    fn slow_start_doubles_and_a_cut_leaves_seven_tenths() {
        let mut congestion = Congestion::new();
        let windows = rounds(&mut congestion, Time(1), 3);
        assert_eq!(windows, [2, 4, 8].map(|times| times * CONGESTION_WINDOW_INITIAL));
        congestion.on_lost(Time(500_000), Time(400_000));
        assert_eq!(congestion.window(), 8 * CONGESTION_WINDOW_INITIAL * 7 / 10);
        // Sent before the cut: the same episode.
        congestion.on_lost(Time(510_000), Time(450_000));
        assert_eq!(congestion.window(), 8 * CONGESTION_WINDOW_INITIAL * 7 / 10);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut congestion = Congestion::new();
        congestion.on_sent(CONGESTION_WINDOW_INITIAL / 3);
        congestion.on_acknowledged(Time(1), CONGESTION_WINDOW_INITIAL / 3, ROUND_TRIP);
        assert_eq!(congestion.window(), CONGESTION_WINDOW_INITIAL);
        congestion.on_lost(Time(20), Time(10));
        let cut = congestion.window();
        for second in 1..1000 {
            congestion.on_sent(cut / 3);
            congestion.on_acknowledged(Time(second * 1_000_000), cut / 3, ROUND_TRIP);
        }
        assert_eq!(congestion.window(), cut);
        // And then it does not jump.
        let grown = rounds(&mut congestion, Time(1_000_100_000), 1)[0];
        assert!(grown > cut && grown < cut + 4 * congestion.datagram, "{cut} {grown}");
    }

    /// W_max 1,000 datagrams: K = cube root of 300 / 0.4 = 9.086 s (RFC 9438, 4.2).
    #[test]
    fn the_window_is_back_after_k_and_flat_around_it() {
        let datagram = DATAGRAM_BYTES_MAX as u64;
        let mut congestion = Congestion::new();
        congestion.shape.window = 1_000 * datagram;
        congestion.on_lost(Time(20), Time(10));
        let windows = rounds(&mut congestion, Time(30), 130);
        let in_datagrams = |tenths: usize| windows[tenths] / datagram;
        assert!((695..=720).contains(&in_datagrams(0)), "{}", in_datagrams(0));
        assert!((960..=1_000).contains(&in_datagrams(70)), "{}", in_datagrams(70));
        assert!((995..=1_002).contains(&in_datagrams(91)), "{}", in_datagrams(91));
        assert!((1_005..=1_060).contains(&in_datagrams(125)), "{}", in_datagrams(125));
    }

    /// With a short round trip and a small window it grows as Reno does (RFC 9438, 4.3).
    #[test]
    fn a_small_window_grows_as_reno_does() {
        let datagram = DATAGRAM_BYTES_MAX as u64;
        let mut congestion = Congestion::new();
        congestion.shape.window = 20 * datagram;
        congestion.on_lost(Time(20), Time(10));
        let short = Span::milliseconds(10);
        for round in 0..30 {
            let window = congestion.window();
            congestion.on_sent(window);
            congestion.on_acknowledged(Time(30) + short.times(round), window, short);
        }
        // From 14, by 9/17 a round trip up to 20 and by one from there: 11 and 19 round trips.
        let reached = congestion.window() / datagram;
        assert!((36..=40).contains(&reached), "{reached}");
    }

    #[test]
    fn a_cut_is_taken_back_only_when_all_of_its_losses_were_none() {
        let mut congestion = Congestion::new();
        rounds(&mut congestion, Time(1), 3);
        let before = congestion.window();
        let first = congestion.on_lost(Time(500_000), Time(400_000));
        assert_eq!(first, congestion.on_lost(Time(500_001), Time(400_001)));
        congestion.on_spurious(first);
        assert!(congestion.window() < before);
        congestion.on_spurious(first);
        assert_eq!(congestion.window(), before);
        assert!(congestion.is_slow_start());
        // One of an older episode says nothing of the newer one.
        let second = congestion.on_lost(Time(600_000), Time(590_000));
        let third = congestion.on_lost(Time(700_000), Time(690_000));
        let cut_twice = congestion.window();
        congestion.on_spurious(second);
        assert_eq!(congestion.window(), cut_twice);
        congestion.on_spurious(third);
        assert!(congestion.window() > cut_twice && congestion.window() < before);
    }

    #[test]
    fn times_and_windows_of_any_size_are_borne() {
        assert_eq!(cube_root(26), 2);
        assert_eq!(cube_root(27), 3);
        for elapsed in [0, 1 << 20, 1 << 40, u64::MAX] {
            for plateau in [0, 1 << 20, 1 << 40, u64::MAX] {
                for too_much in [0, CONGESTION_WINDOW_MAX] {
                    cubic(elapsed, plateau, too_much, 65_535);
                }
            }
        }
    }
}
