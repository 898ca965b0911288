//! How large datagrams may be on a path: probed by padded ones that may be lost (RFC 8899; §7.10).
//!
//! The base is what every path carries. Larger sizes are tried in turn while much is sent anyway.

use crate::limits::{
    DATAGRAM_BYTES_MAX, DATAGRAM_SIZES_BYTES, SIZE_LOSSES_MAX, SIZE_PROBES_MAX, SIZE_RAISE_INTERVAL,
};
use crate::time::Time;

/// The size of datagrams on one path.
#[derive(Debug)]
pub(crate) struct DatagramSize {
    confirmed: usize,
    /// What this end can send.
    most: usize,
    /// A probe of this size is on its way.
    probing: Option<usize>,
    /// Probes of the next size that were lost.
    failures: u32,
    /// No probe before.
    wait_until: Time,
    /// Datagrams above the base that were lost since one of them came.
    losses: u32,
}

impl DatagramSize {
    pub(crate) fn new(most: usize) -> DatagramSize {
        DatagramSize {
            confirmed: DATAGRAM_BYTES_MAX,
            most,
            probing: None,
            failures: 0,
            wait_until: Time(0),
            losses: 0,
        }
    }

    pub(crate) fn confirmed(&self) -> usize {
        self.confirmed
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// The size that is to be tried now.
    pub(crate) fn take_probe(&mut self, now: Time) -> Option<usize> {
        if self.probing.is_some() || now < self.wait_until {
            return None;
        }
        let next = DATAGRAM_SIZES_BYTES.into_iter().find(|size| *size > self.confirmed)?;
        self.probing = Some(next).filter(|size| *size <= self.most);
        self.probing
    }

    /// A datagram of this size came.
    pub(crate) fn on_acknowledged(&mut self, bytes: usize) {
        if bytes > DATAGRAM_BYTES_MAX {
            self.losses = 0;
        }
        if self.probing.is_some_and(|size| size == bytes) {
            self.confirmed = bytes;
            self.probing = None;
            self.failures = 0;
        }
    }

    /// The probe is lost: it is tried again, and then not for long.
    pub(crate) fn on_probe_lost(&mut self, now: Time) {
        self.probing = None;
        self.failures += 1;
        if self.failures >= SIZE_PROBES_MAX {
            self.failures = 0;
            self.wait_until = now + SIZE_RAISE_INTERVAL;
        }
    }

    /// Another datagram is lost. If ever only large ones are, the path carries them no more (RFC 8899, 4.3). Returns
    /// whether the size went back to the base.
    pub(crate) fn on_lost(&mut self, now: Time, bytes: usize) -> bool {
        self.losses += u32::from(bytes > DATAGRAM_BYTES_MAX);
        let vanish = self.losses >= SIZE_LOSSES_MAX;
        if vanish {
            *self = DatagramSize { wait_until: now + SIZE_RAISE_INTERVAL, ..DatagramSize::new(self.most) };
        }
        vanish
    }

    /// Packet numbers begin anew: what was on its way is not heard of any more.
    pub(crate) fn restart(&mut self) {
        self.probing = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that carries so many bytes, probed by an end that can send so many: the size found, and probes sent.
    fn check(carries: usize, most: usize, expected: (usize, u32)) {
        let mut size = DatagramSize::new(most);
        let mut probes = 0;
        while let Some(bytes) = size.take_probe(Time(1)) {
            probes += 1;
            assert!(bytes <= most);
            match bytes <= carries {
                true => size.on_acknowledged(bytes),
                false => size.on_probe_lost(Time(1)),
            }
        }
        assert_eq!((size.confirmed(), probes), expected, "{carries} {most}");
    }

    #[test]
    fn sizes_are_found_in_turn() {
        check(1_472, 1_200, (1_200, 0));
        check(1_200, 9_000, (1_200, SIZE_PROBES_MAX));
        check(1_460, 9_000, (1_452, 2 + SIZE_PROBES_MAX));
        check(1_472, 1_472, (1_472, 3));
        check(65_000, 65_000, (8_952, 4));
    }

    #[test]
    fn a_path_that_lets_large_ones_vanish_is_found_out() {
        let mut size = DatagramSize::new(1_452);
        while let Some(bytes) = size.take_probe(Time(1)) {
            size.on_acknowledged(bytes);
        }
        // Small ones tell nothing, and one that comes shows that they pass.
        for _ in 0..10 {
            assert!(!size.on_lost(Time(2), 1_200));
            assert!(!size.on_lost(Time(2), 1_452));
            size.on_acknowledged(1_452);
        }
        let vanish = (0..SIZE_LOSSES_MAX).filter(|_| size.on_lost(Time(2), 1_452)).count();
        assert_eq!((vanish, size.confirmed()), (1, DATAGRAM_BYTES_MAX));
        assert_eq!(size.take_probe(Time(3)), None);
        assert_eq!(size.take_probe(Time(2) + SIZE_RAISE_INTERVAL), Some(1_372));
    }
}
