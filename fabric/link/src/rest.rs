//! How a link goes to rest, and wakes (§10.8).
//!
//! It rests when no stream was declared in this pair of runs (so the initiator ended the epoch before, if that carried
//! something), nothing is waited for on either side, and it was silent for a while. Nothing of streams needs to be kept
//! then, and the keys are in the memo place. To wake, the place is read: until it was, the link takes commands and does nothing else. Must not
//! know the other links.

use std::fmt;
use std::net::SocketAddr;

use sealing::hello::OpenedHello;
use sealing::memo::{Memo, PLACE_BYTES, Role};

use crate::command::Config;
use crate::conversation::Bound;
use crate::datagram::{self, Datagram};
use crate::effect::{Effect, MemoPlace, PeerState};
use crate::link::{Call, Link};
use crate::receive::Arrival;
use crate::resting::Resting;
use crate::session::{Session, Standing};
use crate::time::Time;

/// What tells a memo place from another one: the checksum at its end. It is of secrets, so it is not shown (§9.6).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark([u8; 16]);

impl Mark {
    pub(crate) fn of(place: &[u8; PLACE_BYTES]) -> Mark {
        let mut mark = Mark::default();
        let length = mark.0.len();
        mark.0.copy_from_slice(&place[PLACE_BYTES - length..]);
        mark
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mark")
    }
}

/// What came from the network for a link at rest.
#[derive(Debug)]
pub(crate) enum Cause {
    /// A packet or a hail with its id.
    Datagram { from: SocketAddr, bytes: Vec<u8> },
    /// A hello that the peer signed, with its key and how many bytes it has.
    Hello { opened: Box<OpenedHello>, size: ([u8; 8], usize), from: SocketAddr },
}

/// A link whose place is being read.
#[derive(Debug)]
pub(crate) struct Waking {
    pub(crate) resting: Resting,
    /// If there is none, somebody here wants something of the link.
    pub(crate) cause: Option<Cause>,
}

impl Link {
    /// A link that was at rest, until its place is read.
    pub(crate) fn waking(mut self, waking: Waking) -> Link {
        self.was_met = true;
        self.state = PeerState::Up;
        self.last_heard = Some(waking.resting.heard());
        self.waking = Some(Box::new(waking));
        self
    }

    /// When the link goes to rest, if nothing happens before (§10.8).
    pub(crate) fn rests_at(&self) -> Option<Time> {
        let session = self.current.as_ref().filter(|_| self.pending.is_none() && self.waking.is_none())?;
        let epoch_is_over = session.role == Role::Responder || session.carried.is_none();
        let is_known = self.was_met
            && session.standing == Standing::Proven
            && self.state == PeerState::Up
            && self.path.is_proven();
        let owes_nothing = self.acknowledging.unacknowledged == 0
            && self.hail_to_acknowledge.is_none()
            && self.said.is_none()
            && self.fetch.is_none()
            && self.answer.is_none()
            && self.hail_in_flight.is_none()
            && !self.hello_wanted
            && self.probes_due == 0
            && !self.was_behind
            && self.epoch.is_still();
        let rests = epoch_is_over
            && is_known
            && owes_nothing
            && !self.has_work()
            && !self.conversation.recovery.is_waiting()
            && self.conversation.is_untouched()
            && session.numbers().is_some();
        rests.then(|| self.active_at + self.epochs.rest_after)
    }

    /// What is kept of the link from now on, if it goes to rest now. Its place is as it is to be read when it wakes.
    pub(crate) fn rest(&mut self, call: &mut Call<'_>) -> Option<Resting> {
        self.rests_at().filter(|at| *at <= call.now)?;
        let session = self.current.as_ref()?;
        let resting = Resting::new(self.node, session.id_in, session.numbers()?, self.last_heard);
        if self.memo_saved != Mark::of(&self.memo().encode()) {
            self.save_memo(call.effects);
        }
        let streams = self.conversation.own_streams();
        if !streams.is_empty() {
            call.effects.push(Effect::Rested { peer: self.node, streams });
        }
        Some(resting)
    }

    /// The place was read: the link goes on where it was, or goes to rest again if what came shows nothing (§10.10).
    /// A place that is lost, or of another root, is a lost memo.
    pub(crate) fn wake(&mut self, place: Option<MemoPlace>, call: &mut Call<'_>) -> Option<Resting> {
        let Waking { resting, cause } = *self.waking.take()?;
        let is_wanted =
            cause.is_none() || !self.conversation.is_untouched() || self.conversation.has_transients();
        let found = place.is_some_and(|place| self.resume(&place, &resting, call.me));
        if !found {
            self.set_state(PeerState::Quiet, call.effects);
        }
        self.last_heard = None;
        match cause {
            None => {}
            Some(Cause::Datagram { from, bytes }) => {
                let arrival = Arrival { from, bytes: bytes.len() };
                match datagram::parse(&bytes) {
                    Ok(Datagram::Packet(sealed)) => self.on_packet(&sealed, arrival, call),
                    Ok(Datagram::Hail { run, sealed }) => self.on_hail(run, &sealed, arrival, call),
                    _ => {}
                }
            }
            Some(Cause::Hello { opened, size, from }) => self.on_hello(&opened, size, from, call),
        }
        let came = self.last_heard.is_some() || self.fault.is_some() || self.pending.is_some();
        if self.last_heard.is_none() {
            self.last_heard = Some(resting.heard());
        }
        if found && !came && !is_wanted {
            return Some(resting);
        }
        self.active_at = call.now;
        call.effects.push(Effect::Woke { peer: self.node });
        self.work_is_due = true;
        None
    }

    /// What tells the peer that the link ends, though it was at rest.
    pub(crate) fn farewell(&mut self, place: &MemoPlace, resting: &Resting, me: &Config) -> Option<Effect> {
        let mut effects = Vec::new();
        if self.resume(place, resting, me) {
            self.close(self.node, &mut effects);
        }
        effects.into_iter().find(|effect| matches!(effect, Effect::Datagram { .. }))
    }

    /// Takes up the session of the place, if it is the one that went to rest.
    fn resume(&mut self, place: &MemoPlace, resting: &Resting, me: &Config) -> bool {
        let memo =
            Memo::decode(&place.0).ok().filter(|memo| memo.peer == self.node && memo.pending.is_none());
        let Some(Memo { current: Some(held), hello_heard, address: Some(address), is_fenced: false, .. }) =
            memo
        else {
            return false;
        };
        let session = Session::woken(held, me.run, resting.numbers);
        if session.id_in != resting.id {
            return false;
        }
        self.conversation.bound = Some(Bound { id: session.id_out, peer_run: session.peer_run });
        self.current = Some(session);
        self.hello_heard = hello_heard;
        self.memo_saved = Mark::of(&place.0);
        self.path.return_to(address);
        true
    }
}
