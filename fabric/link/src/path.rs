//! Where a peer is: the addresses known of it, the one in use, and what may go to an address that proved nothing.

use std::net::SocketAddr;

use crate::bucket::Bucket;
use crate::limits::{
    ADDRESSES_PER_PEER_MAX, AMPLIFICATION_MAX, CHALLENGE_INTERVAL, CHALLENGES_MAX, MOVE_INTERVAL, MOVES_MAX,
};
use crate::time::Time;

/// The addresses of a peer and the state of the one in use.
#[derive(Debug)]
pub(crate) struct Path {
    known: Vec<SocketAddr>,
    /// Those of the known ones that packets came from and that proved nothing: anybody on the path can name them (§6.1).
    strange: Vec<SocketAddr>,
    current: Option<SocketAddr>,
    proven: bool,
    /// Where a hello came from that was declined or let lie, since it may be a replay: tried once, before the known ones.
    suggested: Option<SocketAddr>,
    received: u64,
    sent: u64,
    /// What is to come back from the address in use before it is trusted.
    challenge: Option<[u8; 8]>,
    /// Whether the challenge went out since it was made or a probe was due.
    challenge_sent: bool,
    /// Whether the challenge was acknowledged: it came, and its response is still on its way or lost.
    challenge_came: bool,
    /// Somebody on the path can make datagrams come from ever other addresses without any key: moves are counted.
    moves: Bucket,
    challenges: Bucket,
    /// When a challenge that is due may go, if the bucket had none for it.
    challenge_at: Option<Time>,
}

impl Path {
    pub(crate) fn new() -> Path {
        Path {
            known: Vec::new(),
            strange: Vec::new(),
            current: None,
            proven: false,
            suggested: None,
            received: 0,
            sent: 0,
            challenge: None,
            challenge_sent: false,
            challenge_came: false,
            moves: Bucket::new(MOVE_INTERVAL, MOVES_MAX),
            challenges: Bucket::new(CHALLENGE_INTERVAL, CHALLENGES_MAX),
            challenge_at: None,
        }
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.current
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.proven
    }

    /// The peer is where it was proven to be before the link went to rest.
    pub(crate) fn return_to(&mut self, address: SocketAddr) {
        self.moved_to(address, [0; 8]);
        self.prove(address);
    }

    /// Newer addresses from the owner stand before what was known; the one in use stays in use while it is proven.
    pub(crate) fn learn(&mut self, addresses: &[SocketAddr]) {
        self.strange.retain(|strange| !addresses.contains(strange));
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

    /// Follows the peer to where its newest packet came from, unless it moved too often: then the address in use stays.
    /// Returns whether it is another one (§6.4).
    pub(crate) fn follow(&mut self, now: Time, address: SocketAddr, challenge: [u8; 8]) -> bool {
        let stays = self.current == Some(address);
        let is_first = self.current.is_none();
        !stays && (is_first || self.moves.take(now)) && self.moved_to(address, challenge)
    }

    /// An address that authenticated packets come from is the one in use at once, and unproven until it answered.
    /// Returns whether it is another one.
    pub(crate) fn moved_to(&mut self, address: SocketAddr, challenge: [u8; 8]) -> bool {
        if self.current == Some(address) {
            return false;
        }
        self.go_to(address);
        self.challenge = Some(challenge);
        if !self.known.contains(&address) {
            self.strange.push(address);
        }
        self.known.retain(|known| *known != address);
        self.known.insert(0, address);
        self.known.truncate(ADDRESSES_PER_PEER_MAX);
        self.strange.retain(|strange| self.known.contains(strange));
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
            self.challenge_came = false;
        }
    }

    /// The peer may be at this address. One of those known stands for itself.
    pub(crate) fn suggest(&mut self, address: SocketAddr) {
        self.suggested = Some(address).filter(|address| !self.known.contains(address));
    }

    /// The next known address, after probes to this one were not answered. Returns whether there is another one.
    /// (§6.3)
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

    /// Whether the address in use is proven or was given by the owner: then a probe may go there whatever came from it
    /// (§6.1).
    pub(crate) fn is_trusted(&self) -> bool {
        self.proven || self.current.is_some_and(|current| !self.strange.contains(&current))
    }

    /// Asks anew for proof, if there is none.
    pub(crate) fn challenge_again(&mut self, challenge: [u8; 8]) {
        if !self.proven {
            self.challenge.get_or_insert(challenge);
            self.challenge_sent = false;
            self.challenge_came = false;
        }
    }

    /// Whether the address in use proved nothing, and no challenge is on its way.
    pub(crate) fn is_unasked(&self) -> bool {
        !self.proven && (self.challenge.is_none() || self.challenge_came)
    }

    /// The challenge was acknowledged. If its response does not come it is asked again once there is something to say.
    pub(crate) fn challenge_came(&mut self) {
        self.challenge_came |= self.challenge_sent;
    }

    /// The challenge to be sent now, which counts as sent.
    pub(crate) fn take_challenge(&mut self, now: Time) -> Option<[u8; 8]> {
        let due = self.challenge.filter(|_| !self.challenge_sent && !self.proven)?;
        if !self.challenges.take(now) {
            self.challenge_at = Some(self.challenges.next_at());
            return None;
        }
        self.challenge_sent = true;
        self.challenge_at = None;
        Some(due)
    }

    /// When a challenge that had to wait may go.
    pub(crate) fn challenge_at(&self) -> Option<Time> {
        self.challenge_at
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.challenge_at = self.challenge_at.filter(|at| *at > now);
    }

    /// What was asked went under keys that are gone: it is asked again.
    pub(crate) fn forget_asking(&mut self) {
        self.challenge_sent = false;
        self.challenge_came = false;
    }

    /// The answer to a challenge. It proves the address in use, wherever it came from: the challenge went there alone
    /// (RFC 9000, 8.2.3). Returns that address if it is news (§6.2).
    pub(crate) fn answered(&mut self, data: [u8; 8]) -> Option<SocketAddr> {
        let asked = self.current.filter(|_| self.challenge == Some(data))?;
        self.prove(asked).then_some(asked)
    }

    /// This address is proven. Returns whether that is news.
    pub(crate) fn prove(&mut self, address: SocketAddr) -> bool {
        let news = self.current == Some(address) && !self.proven;
        if news {
            self.strange.retain(|strange| *strange != address);
            self.proven = true;
            self.challenge = None;
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_port(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// Many packets a second, each from another address than the one before: those at once, and one more each interval.
    #[test]
    fn moves_are_counted_and_the_address_in_use_stays_beyond() {
        let mut path = Path::new();
        assert!(path.follow(Time(0), at_port(1), [0; 8]), "the first address is no move");
        let mut moved = |now: Time| {
            let other = if path.address() == Some(at_port(1)) { at_port(2) } else { at_port(1) };
            let moves = path.follow(now, other, [1; 8]);
            assert_eq!(path.address() == Some(other), moves);
            moves
        };
        let moves = (0..1000).filter(|_| moved(Time(0))).count() as u64;
        assert_eq!(moves, MOVES_MAX);
        assert!(!moved(Time(MOVE_INTERVAL.0 - 1)) && moved(Time(MOVE_INTERVAL.0)));
    }

    #[test]
    fn challenges_are_counted_and_one_that_waits_has_its_time() {
        let mut path = Path::new();
        path.moved_to(at_port(1), [1; 8]);
        let mut asked = 0;
        while path.take_challenge(Time(0)).is_some() {
            asked += 1;
            path.challenge_again([2; 8]);
        }
        assert_eq!((asked, path.challenge_at()), (CHALLENGES_MAX, Some(Time(CHALLENGE_INTERVAL.0))));
        path.on_timeout(Time(CHALLENGE_INTERVAL.0));
        assert_eq!(path.challenge_at(), None);
        assert_eq!(path.take_challenge(Time(CHALLENGE_INTERVAL.0)), Some([1; 8]));
    }

    #[test]
    fn a_challenge_that_came_is_asked_again_only_when_there_is_something_to_say() {
        let mut path = Path::new();
        path.moved_to(at_port(1), [1; 8]);
        assert!(path.take_challenge(Time(0)).is_some() && !path.is_unasked());
        path.challenge_came();
        assert_eq!(path.take_challenge(Time(0)), None);
        assert!(path.is_unasked());
        assert_eq!(path.answered([9; 8]), None);
        assert_eq!(path.answered([1; 8]), Some(at_port(1)));
        assert!(!path.is_unasked());
    }
}
