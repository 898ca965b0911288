//! Hellos of a link: said, answered, accepted, declined; and the card that one needs first.

use std::net::SocketAddr;

use sealing::hello::{Answer, HELLO_OVERHEAD_BYTES, OpenedHello, seal_hello};
use sealing::memo::{HelloCounters, Role};
use sealing::{ADDRESS_TOKEN_BYTES, Run};

use crate::card_fetch::CardFetch;
use crate::datagram::{self, HELLO_PIECE_BYTES_WITH_TOKEN};
use crate::effect::{DownReason, Effect, PeerState};
use crate::epoch::EpochChange;
use crate::frame::{self, Frame};
use crate::hello::{Retry, Said, key_of};
use crate::limits::{
    ADDRESSES_PER_PEER_MAX, ANSWER_INTERVAL_INITIAL, DECLINED_INTERVAL_LONG, GREETING_INTERVAL_LONG,
    HELLO_PIECES_MAX, IDLE_HELLOS_MAX, PROBES_BEFORE_CHANGE, TOKENS_PER_HELLO,
};
use crate::link::{CachedAnswer, Call, Link, Which};
use crate::recovery::Content;
use crate::session::{Session, Standing};
use crate::time::Time;

/// Bytes of first frames that a hello has room for.
const FIRST_FRAMES_BYTES: usize = HELLO_PIECES_MAX * HELLO_PIECE_BYTES_WITH_TOKEN - HELLO_OVERHEAD_BYTES;

/// Reason of a decline: the initiator is not a peer of the responder (§3.5).
pub(crate) const NOT_A_PEER: u8 = 1;
/// Reason of a decline: the hello, or the run of it, is not above what was heard: it is a replay, or the initiator was
/// set back in time (§3.6).
pub(crate) const BEHIND: u8 = 2;

impl Link {
    /// Says a hello unless one is on its way; fetches the card first if it is not held.
    pub(crate) fn greet(&mut self, call: &mut Call<'_>) {
        if self.said.is_some() || self.fetch.is_some() {
            return;
        }
        if self.path.address().is_none() {
            self.down(DownReason::NoAddress, call.effects);
            return;
        }
        if self.card.is_none() {
            match self.card_hash {
                Some(hash) => self.fetch = Some(CardFetch::new(self.node, hash, call.now)),
                None => self.down(DownReason::NoCard, call.effects),
            }
            self.on_fetch_timeout(call);
            return;
        }
        self.say_hello((Retry::due(call.now), 0, false), call);
    }

    fn say_hello(&mut self, (retry, times, is_second): (Retry, u32, bool), call: &mut Call<'_>) {
        let Some(card) = self.card.clone() else { return };
        self.hello_wanted = false;
        let first_frames = self.write_first_frames();
        *call.hello_sequence += 1;
        let (me, sequence) = (call.me, *call.hello_sequence);
        let (bytes, pending) =
            seal_hello(&me.identity, &me.run, sequence, &card, &first_frames, &mut call.keys());
        let key = key_of(&bytes);
        let datagrams = datagram::hello(key, &bytes);
        let said =
            Said { key, bytes, datagrams, tokens: 0, pending, retry, times, is_second, is_declined: false };
        self.said = Some(said);
        self.on_hello_timeout(call);
    }

    /// The first records, if no session carries them already.
    fn write_first_frames(&mut self) -> Vec<u8> {
        let mut frames = Vec::new();
        self.said_contents.clear();
        if self.speaking().is_none() {
            self.conversation.bind(None);
            self.conversation.write_outgoing(&mut frames, FIRST_FRAMES_BYTES, &mut self.said_contents);
        }
        if frames.is_empty() {
            Frame::Ping.encode(&mut frames);
        }
        if self.is_discreet {
            // Zeros are padding.
            frames.resize(FIRST_FRAMES_BYTES, 0);
        }
        frames
    }

    /// Whether there is a way to greet the peer: by a hail under a root of the memo, or by a hello.
    fn can_be_greeted(&self) -> bool {
        let card_to_be_had = self.card.is_some() || self.card_hash.is_some();
        self.path.address().is_some() && (self.speaking().is_some() || card_to_be_had)
    }

    /// A peer that was not met in this process is to be greeted at this time, unless that is under way. Returns whether
    /// it will be.
    pub(crate) fn greet_at(&mut self, at: Time) -> bool {
        let queued = !self.was_met && self.can_be_greeted() && !self.is_greeting();
        if queued {
            self.greet_at = Some(at);
        }
        queued
    }

    /// Whether something goes on until it is answered.
    fn is_greeting(&self) -> bool {
        self.greet_at.is_some()
            || self.said.is_some()
            || self.fetch.is_some()
            || self.hail_in_flight.is_some()
            || self.conversation.recovery.is_waiting()
    }

    pub(crate) fn on_greeting_timeout(&mut self, now: Time) {
        if self.greet_at.take_if(|at| *at <= now).is_none() || self.was_met || self.is_greeting() {
            return;
        }
        match self.speaker().map(|session| session.standing) {
            Some(Standing::Hailing) => self.hail_wanted = true,
            _ => self.hello_wanted = true,
        }
    }

    /// Nothing ends the greeting but that the peer is met; and what waits here waits for no long interval (§4.1.1).
    pub(crate) fn keep_greeting(&mut self, now: Time) {
        if self.was_met {
            self.greet_at = None;
        } else {
            self.greet_at(now + ANSWER_INTERVAL_INITIAL);
        }
        if !self.is_idle() {
            let said = self.said.as_mut().filter(|said| !said.is_declined).map(|said| &mut said.retry);
            let fetch = self.fetch.as_mut().map(|fetch| &mut fetch.retry);
            [said, fetch].into_iter().flatten().for_each(|retry| retry.hasten(now));
        }
    }

    /// Sends the hello again if it is time (§3.1).
    pub(crate) fn on_hello_timeout(&mut self, call: &mut Call<'_>) {
        let idle = self.is_idle();
        let speaking = self.speaking().is_some();
        let Some(said) = &mut self.said else { return };
        if said.retry.at > call.now {
            return;
        }
        if idle && speaking && self.was_met && said.times >= IDLE_HELLOS_MAX {
            self.said = None;
            return;
        }
        let unanswered = said.times;
        said.times = said.times.saturating_add(1);
        said.tokens = 0;
        match (said.is_declined, idle) {
            (true, _) => said.retry.sent_idly(call.now, DECLINED_INTERVAL_LONG),
            (false, true) => said.retry.sent_idly(call.now, GREETING_INTERVAL_LONG),
            (false, false) => said.retry.sent(call.now),
        }
        let (is_long, is_declined) = (said.retry.is_long(), said.is_declined);
        let lost = !speaking || self.conversation.recovery.probes() >= PROBES_BEFORE_CHANGE;
        if unanswered >= PROBES_BEFORE_CHANGE && lost {
            self.path.rotate();
            self.down(DownReason::Silent, call.effects);
        }
        if is_long && !is_declined && !self.was_met {
            self.say_everywhere(call);
        } else {
            self.send_said(call);
        }
    }

    /// Sends the hello that is said to each known address: what goes seldom would else go to where the peer is more seldom
    /// still (§4.1.1).
    fn say_everywhere(&mut self, call: &mut Call<'_>) {
        let first = self.path.address();
        for _ in 0..=ADDRESSES_PER_PEER_MAX {
            self.send_said(call);
            if !self.path.rotate() || self.path.address() == first {
                break;
            }
        }
    }

    /// Sends the hello that is said to the address in use, unless that proved nothing and may not have so much.
    pub(crate) fn send_said(&mut self, call: &mut Call<'_>) {
        let (Some(said), Some(to)) = (&self.said, self.path.address()) else { return };
        let size = said.datagrams.iter().map(Vec::len).sum::<usize>();
        if !self.path.is_trusted() && self.path.allowed_bytes() < size {
            return;
        }
        for bytes in said.datagrams.clone() {
            self.path.on_sent(bytes.len());
            call.effects.push(Effect::Datagram { to, bytes });
        }
    }

    /// The peer wants to know first that this node is where it says: the same hello goes again, with the token (§3.2.1).
    pub(crate) fn on_token(&mut self, key: [u8; 8], token: [u8; ADDRESS_TOKEN_BYTES], call: &mut Call<'_>) {
        let Some(said) = self.said.as_mut().filter(|said| said.key == key) else { return };
        if said.tokens < TOKENS_PER_HELLO {
            said.tokens += 1;
            said.datagrams = datagram::hello_with_token(key, token, &said.bytes);
            self.send_said(call);
        }
    }

    pub(crate) fn on_fetch_timeout(&mut self, call: &mut Call<'_>) {
        let idle = self.is_idle();
        let Some(fetch) = self.fetch.as_mut().filter(|fetch| fetch.retry.at <= call.now) else { return };
        let unanswered = fetch.retry.count;
        if idle {
            fetch.retry.sent_idly(call.now, GREETING_INTERVAL_LONG);
        } else {
            fetch.retry.sent(call.now);
        }
        if unanswered >= PROBES_BEFORE_CHANGE {
            self.path.rotate();
            self.down(DownReason::Silent, call.effects);
        }
        let (Some(fetch), Some(to)) = (&self.fetch, self.path.address()) else { return };
        for bytes in fetch.requests() {
            call.effects.push(Effect::Datagram { to, bytes });
        }
    }

    /// A piece of a card came.
    pub(crate) fn on_card(
        &mut self,
        hash: &[u8; 32],
        (index, count): (u8, u8),
        piece: &[u8],
        call: &mut Call<'_>,
    ) {
        let Some(fetch) = &mut self.fetch else { return };
        let Some(card) = fetch.take(hash, index, count, piece) else { return };
        self.fetch = None;
        self.hello_wanted |= !self.was_met;
        self.card = Some(card.clone());
        call.effects.push(Effect::Card { peer: self.node, card });
        self.work_is_due = true;
    }

    /// A hello of this peer opened. It may be a replay until a packet under the pair opens (§3.7).
    pub(crate) fn on_hello(
        &mut self,
        opened: &OpenedHello,
        (key, bytes): ([u8; 8], usize),
        from: SocketAddr,
        call: &mut Call<'_>,
    ) {
        let counters =
            HelloCounters { run_counter: opened.run.counter, hello_sequence: opened.hello_sequence };
        if counters <= self.hello_heard || self.knows_newer_run(opened.run) {
            let bytes = datagram::answer(key, &opened.decline(BEHIND, self.known_run_counter()));
            call.effects.push(Effect::Datagram { to: from, bytes });
            self.path.suggest(from);
            return;
        }
        let mine_wins = call.me.identity.id() < self.node;
        if mine_wins && self.said.as_ref().is_some_and(|said| said.times <= PROBES_BEFORE_CHANGE) {
            // The peer is where this came from, and this node may have said its own to where it was.
            self.path.suggest(from);
            return;
        }
        let (accept, root) = opened.accept(&call.me.run, &mut call.keys());
        self.hello_heard = counters;
        self.epoch = EpochChange::default();
        let session = Session::new(Role::Responder, 1, root, (call.me.run, opened.run), Standing::Told);
        self.pending = Some(session);
        let datagram = datagram::answer(key, &accept);
        self.answer = Some(CachedAnswer { key, datagram: datagram.clone(), first_frames: Vec::new() });
        self.save_memo(call.effects);
        self.told_to = Some(from);
        if let Some(said) = &mut self.said {
            said.retry.heard(call.now);
        }
        if self.speaking() == Some(Which::Pending) {
            self.begin_unconfirmed(opened, bytes, from, call);
            self.path.on_sent(datagram.len());
        } else if let Some(answer) = &mut self.answer {
            answer.first_frames = opened.first_frames.clone();
        }
        call.effects.push(Effect::Datagram { to: from, bytes: datagram });
        self.work_is_due = true;
    }

    /// Nothing else speaks, so the first frames are applied at once: the ledger knows what to do with a replay.
    /// (§3.8, §9.5)
    fn begin_unconfirmed(
        &mut self,
        opened: &OpenedHello,
        bytes: usize,
        from: SocketAddr,
        call: &mut Call<'_>,
    ) {
        let challenge = call.random();
        self.path.moved_to(from, challenge);
        self.path.on_received(from, bytes);
        self.confirm_by = Some(call.now + ANSWER_INTERVAL_INITIAL);
        self.bind();
        self.apply_first_frames(&opened.first_frames, call);
    }

    pub(crate) fn apply_first_frames(&mut self, bytes: &[u8], call: &mut Call<'_>) {
        let Ok(frames) = frame::decode(bytes) else { return };
        let fits = |frame: &Frame<'_>| frame.may_be_in_hello() && self.conversation.check(frame).is_ok();
        if !frames.iter().all(fits) {
            return;
        }
        for frame in &frames {
            self.conversation.apply(self.node, frame, call.effects);
        }
        if frames.iter().any(Frame::carries) {
            self.carried(call.now);
        }
    }

    /// The highest counter of a run of the peer that is known here.
    fn known_run_counter(&self) -> u64 {
        let sessions = [&self.current, &self.pending].into_iter().flatten();
        let of_sessions = sessions.map(|session| session.peer_run.counter).max();
        of_sessions.unwrap_or(0).max(self.hello_heard.run_counter)
    }

    /// Whether the peer had a run after this one, or another one of the same number.
    fn knows_newer_run(&self, run: Run) -> bool {
        let is_newer =
            |known: Run| known.counter > run.counter || (known.counter == run.counter && known != run);
        let mut sessions = [&self.current, &self.pending].into_iter().flatten();
        self.hello_heard.run_counter > run.counter || sessions.any(|session| is_newer(session.peer_run))
    }

    /// The accepted hello came again: so does its answer (§3.3).
    pub(crate) fn on_hello_again(
        &mut self,
        (key, bytes): ([u8; 8], usize),
        from: SocketAddr,
        call: &mut Call<'_>,
    ) {
        // The key may be that of the hello which this node said, come back by a mirror.
        let Some(answer) = self.answer.as_ref().filter(|answer| answer.key == key) else { return };
        self.path.on_received(from, bytes);
        call.effects.push(Effect::Datagram { to: from, bytes: answer.datagram.clone() });
    }

    /// An answer to the hello that this node said.
    pub(crate) fn on_answer(&mut self, key: [u8; 8], bytes: &[u8], from: SocketAddr, call: &mut Call<'_>) {
        let Some(said) = self.said.as_mut().filter(|said| said.key == key) else { return };
        match said.pending.open_answer(bytes) {
            Err(_) => {}
            Ok(Answer::Declined { reason: BEHIND, known_run }) => self.on_behind(known_run, call),
            Ok(Answer::Declined { .. }) => {
                said.is_declined = true;
                self.last_heard = Some(call.now);
                self.set_state(PeerState::Declined, call.effects);
            }
            // Of a node that was set back, or of a copy: its own hello is told so (§3.9).
            Ok(Answer::Accepted { responder_run, .. }) if self.knows_newer_run(responder_run) => {}
            Ok(Answer::Accepted { root, responder_run }) => {
                self.said = None;
                self.hello_wanted = false;
                // Of two hellos at once the lower id's wins: it gives up the other's, the higher one keeps both until
                // a packet shows which one lives.
                let runs = (call.me.run, responder_run);
                let session = Session::new(Role::Initiator, 1, root, runs, Standing::Told);
                self.heard(call.now);
                self.begin_accepted(session, from, call);
            }
        }
    }

    /// The responder heard this hello before and forgot its answer: another one is said in its place, no sooner than
    /// this one would have been. If that is behind too, it is the run that is, unless
    /// the peer met it and knows no higher one (§3.6).
    fn on_behind(&mut self, known: u64, call: &mut Call<'_>) {
        self.last_heard = Some(call.now);
        let Some(said) = self.said.take() else { return };
        // A peer that met this run and knows none after it forgot its answer once more, as when both said hello at once.
        let forgot_again = self.was_met && known <= call.me.run.counter;
        if said.is_second && !forgot_again {
            self.set_state(PeerState::Down { why: DownReason::Behind }, call.effects);
            if !std::mem::replace(&mut self.was_behind, true) {
                call.effects.push(Effect::Behind { peer: self.node, known });
            }
            // A run that was proven here has a copy: which of them is to go on, a person says.
            if self.was_met {
                return self.fence(call.effects);
            }
        }
        self.say_hello(Said::retry_of(&said), call);
    }

    /// §3.9.
    fn begin_accepted(&mut self, session: Session, from: SocketAddr, call: &mut Call<'_>) {
        let crossing = self
            .pending
            .take()
            .filter(|other| other.role == Role::Responder && call.me.identity.id() > self.node);
        self.answer = self.answer.take().filter(|_| crossing.is_some());
        let contents = std::mem::take(&mut self.said_contents);
        let carried = self.conversation.bound.is_none() && !contents.is_empty();
        // Two places hold three roots: the older current one gives way to the crossing one.
        if crossing.is_some() {
            self.current = Some(session);
            self.pending = crossing;
        } else {
            self.pending = Some(session);
        }
        if carried {
            self.adopt(&contents);
            self.carried(call.now);
        } else {
            self.bind();
        }
        self.save_memo(call.effects);
        let challenge = call.random();
        self.path.moved_to(from, challenge);
        self.prove_address(from, call);
        self.set_state(PeerState::Up, call.effects);
        // The responder waits for a packet under the pair.
        self.ping_due = true;
        self.work_is_due = true;
    }

    /// What the hello carried began this conversation: it arrived with it.
    fn adopt(&mut self, contents: &[Content]) {
        let bound = self
            .speaker()
            .map(|session| crate::conversation::Bound { id: session.id_out, peer_run: session.peer_run });
        self.conversation.bound = bound;
        self.conversation.acknowledged(contents);
    }
}
