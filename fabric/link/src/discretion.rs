//! What a bystander is not to see, where it is asked for: how long what is said is, and that a node that moved is the same.
//!
//! Datagrams are padded to a few lengths, and a move ends the epoch, so that the link has other ids. It costs bytes and
//! key exchanges, so it is a choice of the node.

use sealing::memo::Role;

use crate::limits::{AMPLIFICATION_MAX, DATAGRAM_BYTES_MAX, PADDED_BYTES};
use crate::link::Link;
use crate::receive::Arrival;
use crate::session::Standing;

/// The length to which a datagram of so many bytes is padded, if it may have `most`: the next of a few, or the full one.
/// One that is not allowed stays as it is.
fn padded(bytes: usize, full: usize, most: usize) -> usize {
    let next = PADDED_BYTES.into_iter().find(|padded| *padded >= bytes).unwrap_or(full);
    if next <= most { next.max(bytes) } else { bytes }
}

impl Link {
    /// Pads the frames of a packet to the address in use (§6.5).
    pub(crate) fn pad_packet(&self, frames: &mut Vec<u8>, overhead: usize) {
        let full = self.conversation.recovery.datagram_bytes();
        self.pad(frames, overhead, full, self.path.allowed_bytes());
    }

    /// Pads the frames of a datagram that is answered to where another one came from.
    pub(crate) fn pad_answer(&self, frames: &mut Vec<u8>, overhead: usize, arrival: Arrival) {
        self.pad(frames, overhead, DATAGRAM_BYTES_MAX, arrival.bytes * AMPLIFICATION_MAX as usize);
    }

    /// Pads frames that may make a datagram of `most` bytes, to one of a few lengths up to `full`.
    pub(crate) fn pad(&self, frames: &mut Vec<u8>, overhead: usize, full: usize, most: usize) {
        if self.is_discreet {
            frames.resize(padded(frames.len() + overhead, full, most) - overhead, 0);
        }
    }

    /// One of the two is elsewhere: the link is to have other ids (§10.7).
    pub(crate) fn moved(&mut self) {
        let offers = |role, standing| role == Role::Initiator && standing == Standing::Proven;
        let may_offer = self.speaker().is_some_and(|session| offers(session.role, session.standing));
        self.epoch.is_over |= self.is_discreet && may_offer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_few_and_none_is_more_than_allowed() {
        let full = 1_372;
        for (bytes, most, expected) in [
            (30, usize::MAX, 64),
            (64, usize::MAX, 64),
            (65, usize::MAX, 128),
            (1_000, usize::MAX, 1_024),
            (1_025, usize::MAX, 1_372),
            (1_372, usize::MAX, 1_372),
            (1_400, usize::MAX, 1_400),
            (100, 127, 100),
            (100, 128, 128),
            (100, 0, 100),
        ] {
            assert_eq!(padded(bytes, full, most), expected, "{bytes} of {most}");
        }
    }
}
