//! One root and the packet keys of the pair of runs that speak under it.
//!
//! A session seals and opens; it must not know frames or streams. Whatever does not open leaves it as it was.

use sealing::memo::{Held, Role};
use sealing::{Direction, Pair, RUN_BYTES, Root, Run, Toward};

use std::collections::VecDeque;

use crate::datagram::{self, Sealed};
use crate::limits::{HAIL_NUMBER_MAX, PACKET_NUMBER_MAX, SKIPPED_NUMBERS_KEPT};
use crate::received::{Received, expand_packet_number};
use crate::resting::Numbers;
use crate::time::Time;

/// How much is known of what the peer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The peer may not know this node's run: what is sent is a hail.
    Hailing,
    /// The peer was told this run with the accept, or told its own: packets go under the pair, none came yet.
    Told,
    /// A packet under the pair, or a hail that names this run, came: the peer is there, in this pair of runs.
    Proven,
}

/// A root in use.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) role: Role,
    pub(crate) epoch: u64,
    pub(crate) root: Root,
    pub(crate) my_run: Run,
    pub(crate) peer_run: Run,
    pub(crate) standing: Standing,
    /// The id in packets that this node sends, and the one in those that it gets.
    pub(crate) id_out: [u8; 8],
    pub(crate) id_in: [u8; 8],
    seal: Direction,
    open: Direction,
    next_number: u64,
    /// Numbers that were left out, the newest last.
    skipped: VecDeque<u64>,
    pub(crate) received: Received,
    next_hail: u64,
    hails_received: Received,
    /// When it first and last carried something in this process.
    pub(crate) carried: Option<(Time, Time)>,
    /// Of datagrams, in both directions.
    pub(crate) bytes: u64,
}

/// What a hail says once it opened (§1.7).
pub(crate) struct OpenedHail {
    pub(crate) number: u64,
    /// The run of this node that the hailer knows.
    pub(crate) known: Run,
    pub(crate) frames: Vec<u8>,
}

impl Session {
    /// §1.5.
    pub(crate) fn new(
        role: Role,
        epoch: u64,
        root: Root,
        (my_run, peer_run): (Run, Run),
        standing: Standing,
    ) -> Session {
        let ids = root.ids();
        let (id_out, id_in) = match role {
            Role::Initiator => (ids.to_responder, ids.to_initiator),
            Role::Responder => (ids.to_initiator, ids.to_responder),
        };
        let (seal, open) = directions(role, &root, &my_run, &peer_run);
        Session {
            role,
            epoch,
            root,
            my_run,
            peer_run,
            standing,
            id_out,
            id_in,
            seal,
            open,
            next_number: 0,
            skipped: VecDeque::new(),
            received: Received::default(),
            next_hail: 0,
            hails_received: Received::default(),
            carried: None,
            bytes: 0,
        }
    }

    /// A root from the memo: this node's run is new, so the peer does not know it.
    pub(crate) fn restored(held: Held, my_run: Run) -> Session {
        Session::new(held.role, held.epoch, held.root, (my_run, held.peer_run), Standing::Hailing)
    }

    /// The session of a link that was at rest, in the same pair of runs: no number is used again (§10.10).
    pub(crate) fn woken(held: Held, my_run: Run, numbers: Numbers) -> Session {
        let session =
            Session::new(held.role, held.epoch, held.root, (my_run, held.peer_run), Standing::Proven);
        Session {
            next_number: u64::from(numbers.next),
            received: Received::below(u64::from(numbers.received)),
            next_hail: u64::from(numbers.next_hail),
            hails_received: Received::below(u64::from(numbers.hails_received)),
            ..session
        }
    }

    /// The numbers that were used so far; none if they are too high for a link at rest.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        Some(Numbers {
            next: u32::try_from(self.next_number).ok()?,
            received: u32::try_from(self.received.expected()).ok()?,
            next_hail: u16::try_from(self.next_hail).ok()?,
            hails_received: u16::try_from(self.hails_received.expected()).ok()?,
        })
    }

    pub(crate) fn held(&self) -> Held {
        Held { role: self.role, epoch: self.epoch, root: self.root.clone(), peer_run: self.peer_run }
    }

    /// Whether one of these numbers was never sent: who acknowledges it acknowledges what it did not get (§1.8).
    pub(crate) fn unsent(&self, ranges: &[(u64, u64)]) -> Option<u64> {
        let largest = ranges.first().map(|(_, largest)| *largest);
        let above = largest.filter(|largest| *largest >= self.next_number);
        let is_skipped = |number: &&u64| ranges.iter().any(|(start, end)| (*start..=*end).contains(*number));
        above.or_else(|| self.skipped.iter().find(is_skipped).copied())
    }

    /// Leaves the next number out (§1.8).
    pub(crate) fn skip_number(&mut self) {
        if self.skipped.len() >= SKIPPED_NUMBERS_KEPT {
            self.skipped.pop_front();
        }
        self.skipped.push_back(self.next_number);
        self.next_number += 1;
    }

    /// A packet of these frames, and its number. None once there is no number left (§1.4).
    pub(crate) fn seal(&mut self, frames: &[u8]) -> Option<(u64, Vec<u8>)> {
        let number = self.next_number;
        if number > PACKET_NUMBER_MAX {
            return None;
        }
        self.next_number += 1;
        let header = datagram::packet_header(self.id_out, number);
        let mut packet = Vec::with_capacity(datagram::PACKET_OVERHEAD_BYTES + frames.len());
        packet.extend_from_slice(&header);
        packet.extend_from_slice(frames);
        self.seal.seal_behind(number, header.len(), &mut packet);
        self.bytes += packet.len() as u64;
        Some((number, packet))
    }

    /// A hail of these frames, and its number. Numbers of hails are not reused in a process, whatever the peer's run.
    /// None once there is none left (§1.4).
    pub(crate) fn seal_hail(&mut self, frames: &[u8]) -> Option<(u64, Vec<u8>)> {
        let number = self.next_hail;
        if number > HAIL_NUMBER_MAX {
            return None;
        }
        self.next_hail += 1;
        let header = datagram::hail_header(self.id_out, number, &self.my_run);
        let body = [&self.peer_run.to_bytes()[..], frames].concat();
        let sealed = self.root.hail(self.toward_peer(), &self.my_run).seal(number, &header, &body);
        Some((number, [header, sealed].concat()))
    }

    /// The number and frames of a packet that opens and was not received before. The caller marks it received (§1.6).
    pub(crate) fn open(&self, sealed: &Sealed<'_>) -> Option<(u64, Vec<u8>)> {
        let number = expand_packet_number(self.received.expected(), sealed.number);
        if !self.received.is_new(number) {
            return None;
        }
        let frames = self.open.open(number, sealed.header, sealed.ciphertext).ok()?;
        Some((number, frames))
    }

    /// A hail that opens, is of no older run than the one known, and was not received before.
    pub(crate) fn open_hail(&self, run: &Run, sealed: &Sealed<'_>) -> Option<OpenedHail> {
        let known_run = *run == self.peer_run;
        if !known_run && run.counter <= self.peer_run.counter {
            return None;
        }
        let number = u64::from(sealed.number);
        if known_run && !self.hails_received.is_new(number) {
            return None;
        }
        let body =
            self.root.hail(self.toward_me(), run).open(number, sealed.header, sealed.ciphertext).ok()?;
        let (known, frames) = body.split_first_chunk::<RUN_BYTES>()?;
        Some(OpenedHail { number, known: Run::from_bytes(known), frames: frames.to_vec() })
    }

    /// The peer has a new run: a new pair of runs, new keys, new packet numbers (§9.4).
    pub(crate) fn learn(&mut self, run: Run) {
        self.peer_run = run;
        (self.seal, self.open) = directions(self.role, &self.root, &self.my_run, &self.peer_run);
        self.next_number = 0;
        self.skipped.clear();
        self.received = Received::default();
        self.hails_received = Received::default();
    }

    pub(crate) fn hail_received(&mut self, number: u64) {
        if self.hails_received.is_new(number) {
            self.hails_received.insert(number);
        }
    }

    fn toward_peer(&self) -> Toward {
        match self.role {
            Role::Initiator => Toward::Responder,
            Role::Responder => Toward::Initiator,
        }
    }

    fn toward_me(&self) -> Toward {
        match self.role {
            Role::Initiator => Toward::Initiator,
            Role::Responder => Toward::Responder,
        }
    }
}

/// The keys to seal and to open with.
fn directions(role: Role, root: &Root, my_run: &Run, peer_run: &Run) -> (Direction, Direction) {
    match role {
        Role::Initiator => {
            let Pair { to_responder, to_initiator } = root.pair(my_run, peer_run);
            (to_responder, to_initiator)
        }
        Role::Responder => {
            let Pair { to_responder, to_initiator } = root.pair(peer_run, my_run);
            (to_initiator, to_responder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::Datagram;

    const INITIATOR: Run = Run { counter: 1, random: [1; 16] };
    const RESPONDER: Run = Run { counter: 1, random: [2; 16] };

    /// Two ends of one root.
    fn ends() -> (Session, Session) {
        let mut rng = <rand_chacha::ChaCha20Rng as rand_core::SeedableRng>::from_seed([7; 32]);
        let (ann, ben) = (sealing::Identity::from_seed(&[1; 64]), sealing::Identity::from_seed(&[2; 64]));
        let card = ben.card(1);
        let (hello, pending) = sealing::hello::seal_hello(&ann, &INITIATOR, 1, &card, &[], &mut rng);
        let opened = sealing::hello::open_hello(&ben, &card, &hello).expect("it is for ben");
        let (accept, there) = opened.accept(&RESPONDER, &mut rng);
        let Ok(sealing::hello::Answer::Accepted { root, .. }) = pending.open_answer(&accept) else {
            panic!("it was accepted")
        };
        let session = |role, root, mine, theirs| Session::new(role, 1, root, (mine, theirs), Standing::Told);
        (
            session(Role::Initiator, root, INITIATOR, RESPONDER),
            session(Role::Responder, there, RESPONDER, INITIATOR),
        )
    }

    fn opens(session: &mut Session, bytes: &[u8]) -> Option<u64> {
        match datagram::parse(bytes).expect("it was made here") {
            Datagram::Packet(sealed) => {
                let (number, _) = session.open(&sealed)?;
                session.received.insert(number);
                Some(number)
            }
            Datagram::Hail { run, sealed } => {
                let number = session.open_hail(&run, &sealed)?.number;
                session.hail_received(number);
                Some(number)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Over the end of the low half numbers go on; at the end of all numbers nothing is sealed any more, and no number
    /// comes twice.
    #[test]
    fn numbers_end_and_never_begin_anew() {
        let (mut ann, mut ben) = ends();
        for start in [u64::from(u32::MAX) - 1, (1 << 40) - 2, PACKET_NUMBER_MAX - 3] {
            ann.next_number = start;
            ben.received.insert(start - 1);
            for number in start..start + 4 {
                let (sealed, bytes) = ann.seal(b"frames").expect("numbers are left");
                assert_eq!((sealed, opens(&mut ben, &bytes)), (number, Some(number)));
                assert_eq!(opens(&mut ben, &bytes), None, "it came twice");
            }
        }
        for _ in 0..3 {
            assert_eq!(ann.seal(b"frames"), None);
        }
        ann.next_hail = HAIL_NUMBER_MAX;
        let (_, bytes) = ann.seal_hail(b"frames").expect("one is left");
        assert_eq!(opens(&mut ben, &bytes), Some(HAIL_NUMBER_MAX));
        assert_eq!((ann.seal_hail(b"frames"), opens(&mut ben, &bytes)), (None, None));
    }

    #[test]
    fn who_acknowledges_what_was_never_sent_is_found() {
        let (mut ann, _) = ends();
        for number in 0..40 {
            if number % 4 == 3 {
                ann.skip_number();
            } else {
                assert_eq!(ann.seal(b"frames").map(|(sealed, _)| sealed), Some(number));
            }
        }
        for (ranges, expected) in [
            (vec![(0, 2)], None),
            (vec![(36, 38), (32, 34), (0, 0)], None),
            (vec![(36, 40)], Some(40)),
            (vec![(36, 38), (30, 34)], Some(31)),
            (vec![(39, 39)], Some(39)),
        ] {
            assert_eq!(ann.unsent(&ranges), expected, "{ranges:?}");
        }
        for _ in 0..2 * SKIPPED_NUMBERS_KEPT {
            ann.skip_number();
        }
        assert_eq!(ann.skipped.len(), SKIPPED_NUMBERS_KEPT);
    }
}
