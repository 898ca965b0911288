//! Where a peer is: the addresses known of it, the one in use, and what may go to an address that proved nothing.

use std::net::SocketAddr;

use crate::limits::{ADDRESSES_PER_PEER_MAX, AMPLIFICATION_MAX};

/// The addresses of a peer and the state of the one in use.
#[derive(Debug, Default)]
pub(crate) struct Path {
    known: Vec<SocketAddr>,
    current: Option<SocketAddr>,
    proven: bool,
    /// Where a hello came from that was declined, since it may be a replay: tried once, before the known ones.
    suggested: Option<SocketAddr>,
    received: u64,
    sent: u64,
    /// What is to come back from the address in use before it is trusted.
    challenge: Option<[u8; 8]>,
    /// Whether the challenge went out since it was made or a probe was due.
    challenge_sent: bool,
}

impl Path {
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.current
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.proven
    }

    /// Newer addresses from the owner stand before what was known; the one in use stays in use while it is proven.
    pub(crate) fn learn(&mut self, addresses: &[SocketAddr]) {
        let mut known: Vec<SocketAddr> = Vec::new();
        let kept = self.current.filter(|_| self.proven);
        for address in kept.iter().chain(addresses).chain(&self.known) {
            if !known.contains(address) && known.len() < ADDRESSES_PER_PEER_MAX {
                known.push(*address);
            }
        }
        self.known = known;
        if !self.proven
            && let Some(first) = self.known.first().copied()
        {
            self.go_to(first);
        }
    }

    /// An address that authenticated packets come from is the one in use at once, and unproven until it answered.
    /// Returns whether it is another one.
    pub(crate) fn moved_to(&mut self, address: SocketAddr, challenge: [u8; 8]) -> bool {
        if self.current == Some(address) {
            return false;
        }
        self.go_to(address);
        self.challenge = Some(challenge);
        self.known.retain(|known| *known != address);
        self.known.insert(0, address);
        self.known.truncate(ADDRESSES_PER_PEER_MAX);
        true
    }

    fn go_to(&mut self, address: SocketAddr) {
        if self.current != Some(address) {
            self.current = Some(address);
            self.proven = false;
            self.received = 0;
            self.sent = 0;
            self.challenge = None;
            self.challenge_sent = false;
        }
    }

    /// The peer may be at this address. One of those known stands for itself.
    pub(crate) fn suggest(&mut self, address: SocketAddr) {
        self.suggested = Some(address).filter(|address| !self.known.contains(address));
    }

    /// The next known address, after probes to this one were not answered. Returns whether there is another one.
    pub(crate) fn rotate(&mut self) -> bool {
        let at = self.known.iter().position(|known| Some(*known) == self.current).map_or(0, |at| at + 1);
        let known = self.known.get(at % self.known.len().max(1)).copied();
        let Some(next) = self.suggested.take().or(known) else { return false };
        let other = self.current != Some(next);
        self.go_to(next);
        other
    }

    pub(crate) fn on_received(&mut self, from: SocketAddr, bytes: usize) {
        if self.current == Some(from) {
            self.received = self.received.saturating_add(bytes as u64);
        }
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Bytes that may still go to the address in use.
    pub(crate) fn allowed_bytes(&self) -> usize {
        let allowed = self.received.saturating_mul(AMPLIFICATION_MAX).saturating_sub(self.sent);
        if self.proven { usize::MAX } else { usize::try_from(allowed).unwrap_or(usize::MAX) }
    }

    /// Asks anew for proof, if there is none.
    pub(crate) fn challenge_again(&mut self, challenge: [u8; 8]) {
        if !self.proven {
            self.challenge.get_or_insert(challenge);
            self.challenge_sent = false;
        }
    }

    /// Whether the address in use proved nothing and was not asked to.
    pub(crate) fn is_unasked(&self) -> bool {
        !self.proven && self.challenge.is_none()
    }

    /// The challenge to be sent now.
    pub(crate) fn challenge_due(&self) -> Option<[u8; 8]> {
        self.challenge.filter(|_| !self.challenge_sent && !self.proven)
    }

    /// What was asked went under keys that are gone: it is asked again.
    pub(crate) fn forget_asking(&mut self) {
        self.challenge_sent = false;
    }

    pub(crate) fn challenge_was_sent(&mut self) {
        self.challenge_sent = true;
    }

    /// The answer to a challenge. Returns whether it proved the address in use.
    pub(crate) fn answered(&mut self, from: SocketAddr, data: [u8; 8]) -> bool {
        self.current == Some(from) && self.challenge == Some(data) && self.prove(from)
    }

    /// This address is proven. Returns whether that is news.
    pub(crate) fn prove(&mut self, address: SocketAddr) -> bool {
        let news = self.current == Some(address) && !self.proven;
        if news {
            self.proven = true;
            self.challenge = None;
        }
        news
    }
}
