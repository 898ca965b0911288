//! One link: everything that this endpoint keeps for one peer, and the timers of it.
//!
//! How its parts meet: [`greet`](crate::greet) makes sessions by hello, [`receive`](crate::receive) opens what comes and
//! applies it, [`transmit`](crate::transmit) sends what is due. All of it says that work is due, and
//! [`Link::pump`] then does whatever the state asks for; so no part has to know what another one made due. Must not know sockets or other links.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use sealing::memo::{HelloCounters, Memo, PLACE_BYTES, Role};
use sealing::{Card, KeySource, NodeId};

use crate::bucket::Bucket;
use crate::card_fetch::CardFetch;
use crate::command::{Config, Peer};
use crate::conversation::{Bound, Conversation};
use crate::effect::{DownReason, Effect, MemoPlace, PeerState, PeerStatus};
use crate::epoch::{EpochChange, Epochs};
use crate::fault::PeerMisbehaved;
use crate::hello::{Retry, Said};
use crate::limits::{HINTED_HELLO_INTERVAL, HINTED_HELLOS_MAX};
use crate::path::Path;
use crate::recovery::Content;
use crate::rest::{Mark, Waking};
use crate::session::{Session, Standing};
use crate::time::Time;
use std::collections::VecDeque;

/// What a link is handed for one call: the time, who it is, randomness, and where effects go.
pub(crate) struct Call<'a> {
    pub(crate) now: Time,
    pub(crate) me: &'a Config,
    pub(crate) rng: &'a mut ChaCha20Rng,
    pub(crate) effects: &'a mut Vec<Effect>,
    /// The hellos that were said in this run, to anybody: a peer that is removed and added counts on.
    pub(crate) hello_sequence: &'a mut u64,
    /// Fresh secrets are drawn by the cryptographic library, not from `rng`.
    pub(crate) library_keys: bool,
}

impl Call<'_> {
    pub(crate) fn random(&mut self) -> [u8; 8] {
        self.rng.next_u64().to_be_bytes()
    }

    /// Where fresh secrets come from.
    pub(crate) fn keys(&mut self) -> KeySource<'_, ChaCha20Rng> {
        if self.library_keys { KeySource::Library } else { KeySource::Handed(self.rng) }
    }
}

/// Which session of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Current,
    Pending,
}

/// What of the acknowledgement is due in the session that speaks.
#[derive(Debug, Default)]
pub(crate) struct Acknowledging {
    /// At the latest then.
    pub(crate) at: Option<Time>,
    /// With the next packet, which goes at once.
    pub(crate) now: bool,
    pub(crate) unacknowledged: u32,
    pub(crate) largest_at: Time,
}

/// A hail that is on its way (§4.3).
#[derive(Debug)]
pub(crate) struct HailInFlight {
    pub(crate) number: u64,
    pub(crate) contents: Vec<Content>,
    pub(crate) retry: Retry,
    /// Nobody here waits for its answer: it says where this node is.
    pub(crate) is_idle: bool,
}

/// The answer to the last hello that was accepted, for when it comes again.
#[derive(Debug)]
pub(crate) struct CachedAnswer {
    pub(crate) key: [u8; 8],
    pub(crate) datagram: Vec<u8>,
    /// The first frames, if they are to be applied once the hello is confirmed.
    pub(crate) first_frames: Vec<u8>,
}

/// Under which the endpoint finds a link: ids in packets that come, ids in packets that went (for hints), keys of hellos
/// that were said or accepted, and of a card that is asked for.
pub(crate) type Routes = [Option<[u8; 8]>; 7];

/// Everything kept for one peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    pub(crate) card_hash: Option<[u8; 32]>,
    pub(crate) card: Option<Card>,
    pub(crate) path: Path,
    pub(crate) current: Option<Session>,
    pub(crate) pending: Option<Session>,
    pub(crate) hello_heard: HelloCounters,
    pub(crate) said: Option<Said>,
    /// What the said hello carried of our streams.
    pub(crate) said_contents: Vec<Content>,
    pub(crate) hello_wanted: bool,
    pub(crate) answer: Option<CachedAnswer>,
    pub(crate) fetch: Option<CardFetch>,
    pub(crate) conversation: Conversation,
    pub(crate) epochs: Epochs,
    /// Datagrams are padded, and a move ends the epoch.
    pub(crate) is_discreet: bool,
    pub(crate) epoch: EpochChange,
    pub(crate) acknowledging: Acknowledging,
    pub(crate) hail_in_flight: Option<HailInFlight>,
    pub(crate) hail_wanted: bool,
    pub(crate) hail_to_acknowledge: Option<u64>,
    pub(crate) ping_due: bool,
    /// Probes that may go out whatever the window and the path allow.
    pub(crate) probes_due: u32,
    /// The one address that this run was told to, with an accept or hails.
    pub(crate) told_to: Option<std::net::SocketAddr>,
    pub(crate) causes: VecDeque<[u8; 8]>,
    pub(crate) hinted: Bucket,
    pub(crate) provoked: Bucket,
    pub(crate) memo_due: bool,
    /// Of the place as it was last saved or read.
    pub(crate) memo_saved: Mark,
    /// The link was at rest, and its place is being read: it takes commands and does nothing else.
    pub(crate) waking: Option<Box<Waking>>,
    /// When something of the link was last sent, or of the peer's opened.
    pub(crate) active_at: Time,
    pub(crate) last_heard: Option<Time>,
    pub(crate) fault: Option<PeerMisbehaved>,
    pub(crate) faults_told: Bucket,
    /// The peer was proven to be there once in this process: it knows where this node is.
    pub(crate) was_met: bool,
    /// The owner was told that this run is behind what the peer knows.
    pub(crate) was_behind: bool,
    /// There are two copies of this node, and the peer took the other one: nothing is said or heard on this link (§4.7).
    pub(crate) is_fenced: bool,
    /// When a peer that was not met is greeted, if nothing that greets it is under way.
    pub(crate) greet_at: Option<Time>,
    /// When a hello of ours is said, if the accepted one of the peer is not confirmed and records wait.
    pub(crate) confirm_by: Option<Time>,
    /// When a peer that owes an outcome is asked whether it still is the same run, and the outcomes there were when
    /// asking began: it acknowledged a record and may have forgotten it, or that it waits, in a restart since.
    pub(crate) asking: Option<(u64, Retry)>,
    pub(crate) state: PeerState,
    /// When the endpoint's table of timers has this link.
    pub(crate) armed: Option<Time>,
    /// As the endpoint's table of routes has them.
    pub(crate) routes: Routes,
    /// The endpoint attends to it when effects are polled next.
    pub(crate) was_called: bool,
    /// Something was changed that [`Link::pump`] may have to do something about.
    pub(crate) work_is_due: bool,
}

impl Link {
    pub(crate) fn new(node: NodeId, record_bytes_max: usize) -> Link {
        Link {
            node,
            card_hash: None,
            card: None,
            path: Path::new(),
            current: None,
            pending: None,
            hello_heard: HelloCounters::default(),
            said: None,
            said_contents: Vec::new(),
            hello_wanted: false,
            answer: None,
            fetch: None,
            conversation: Conversation::new(record_bytes_max),
            epochs: Epochs::default(),
            is_discreet: false,
            epoch: EpochChange::default(),
            acknowledging: Acknowledging::default(),
            hail_in_flight: None,
            hail_wanted: false,
            hail_to_acknowledge: None,
            ping_due: false,
            probes_due: 0,
            told_to: None,
            causes: VecDeque::new(),
            hinted: Bucket::new(HINTED_HELLO_INTERVAL, HINTED_HELLOS_MAX),
            provoked: Bucket::new(crate::limits::PROVOKED_HAIL_INTERVAL, 1),
            memo_due: false,
            memo_saved: Mark::default(),
            waking: None,
            active_at: Time(0),
            last_heard: None,
            fault: None,
            faults_told: Bucket::new(crate::limits::FAULT_INTERVAL, 1),
            was_met: false,
            was_behind: false,
            is_fenced: false,
            greet_at: None,
            confirm_by: None,
            asking: None,
            state: PeerState::Quiet,
            armed: None,
            routes: Routes::default(),
            was_called: false,
            work_is_due: false,
        }
    }

    /// Takes a memo place. A damaged one, or one of another peer, is a lost memo (§4.1).
    pub(crate) fn restore(&mut self, place: &MemoPlace, me: &Config) {
        let Ok(memo) = Memo::decode(&place.0) else { return };
        if memo.peer != self.node {
            return;
        }
        self.memo_saved = Mark::of(&place.0);
        self.current = memo.current.map(|held| Session::restored(held, me.run));
        self.pending = memo.pending.map(|held| Session::restored(held, me.run));
        self.hello_heard = memo.hello_heard;
        if memo.is_fenced {
            self.is_fenced = true;
            self.state = PeerState::Down { why: DownReason::Fenced };
        }
        if let Some(address) = memo.address {
            self.path.learn(&[address]);
        }
        self.bind();
        // What waits there for this node waits for no probe.
        self.hail_wanted = self.speaking().is_some();
    }

    /// Takes what is new of a peer.
    pub(crate) fn update(&mut self, peer: &Peer, now: Time) {
        self.path.learn(&peer.addresses);
        self.card_hash = peer.card_hash.or(self.card_hash);
        if let Some(card) = peer.card.as_ref().filter(|card| card.node() == self.node) {
            let newer = self.card.as_ref().is_none_or(|held| held.sequence() < card.sequence());
            if newer && self.card.replace(card.clone()).is_some() {
                // What was sealed to the older card may not open any more.
                self.said = None;
            }
        }
        self.hasten(now);
    }

    /// The session that speaks: the pending one if this node offered it or there is no other.
    pub(crate) fn speaking(&self) -> Option<Which> {
        match (&self.current, &self.pending) {
            (_, Some(pending)) if pending.role == Role::Initiator => Some(Which::Pending),
            (Some(_), _) => Some(Which::Current),
            (None, Some(_)) => Some(Which::Pending),
            (None, None) => None,
        }
    }

    pub(crate) fn session(&self, which: Which) -> Option<&Session> {
        match which {
            Which::Current => self.current.as_ref(),
            Which::Pending => self.pending.as_ref(),
        }
    }

    pub(crate) fn session_mut(&mut self, which: Which) -> Option<&mut Session> {
        match which {
            Which::Current => self.current.as_mut(),
            Which::Pending => self.pending.as_mut(),
        }
    }

    pub(crate) fn speaker(&self) -> Option<&Session> {
        self.speaking().and_then(|which| self.session(which))
    }

    /// Whether the peer is proven to be there, in the pair of runs that speaks.
    pub(crate) fn is_proven(&self) -> bool {
        self.speaker().is_some_and(|session| session.standing == Standing::Proven)
    }

    /// Whether records may go: the responder of a hello waits until it is confirmed, since it may be a replay.
    pub(crate) fn may_send_records(&self) -> bool {
        self.speaker()
            .is_some_and(|session| session.standing != Standing::Told || session.role == Role::Initiator)
    }

    /// The root that speaks carried something now.
    pub(crate) fn carried(&mut self, now: Time) {
        if let Some(session) = self.speaking().and_then(|which| self.session_mut(which)) {
            session.carried = Some((session.carried.map_or(now, |(first, _)| first), now));
        }
    }

    /// Makes the conversation that of the session that speaks.
    pub(crate) fn bind(&mut self) {
        let bound = self.speaker().map(|session| Bound { id: session.id_out, peer_run: session.peer_run });
        if bound == self.conversation.bound && bound.is_some() {
            return;
        }
        self.conversation.bind(bound);
        self.epoch = EpochChange::default();
        self.path.forget_asking();
        self.acknowledging = Acknowledging::default();
        self.hail_in_flight = None;
        self.hail_wanted = false;
        self.hail_to_acknowledge = None;
        self.ping_due = false;
        self.probes_due = 0;
        self.causes.clear();
    }

    /// Whether anything is to be said.
    pub(crate) fn has_work(&self) -> bool {
        self.has_words() || self.epoch.wants()
    }

    /// Whether anything is to be said, epochs aside: for them nobody waits.
    fn has_words(&self) -> bool {
        self.ping_due
            || self.hail_wanted
            || self.conversation.has_outgoing()
            || self.conversation.has_answers(self.is_proven())
    }

    /// Whether nobody here waits for the peer.
    pub(crate) fn is_idle(&self) -> bool {
        let carried = !self.said_contents.is_empty()
            || self.hail_in_flight.as_ref().is_some_and(|hail| !hail.contents.is_empty());
        !self.has_words() && !carried && !self.conversation.awaits_outcome()
    }

    pub(crate) fn memo(&self) -> Memo {
        Memo {
            peer: self.node,
            current: self.current.as_ref().map(Session::held),
            pending: self.pending.as_ref().map(Session::held),
            hello_heard: self.hello_heard,
            address: self.path.address().filter(|_| self.path.is_proven()),
            is_fenced: self.is_fenced,
        }
    }

    pub(crate) fn save_memo(&mut self, effects: &mut Vec<Effect>) {
        self.memo_due = false;
        let place = self.memo().encode();
        self.memo_saved = Mark::of(&place);
        effects.push(Effect::SaveMemo { peer: self.node, place: MemoPlace(place) });
    }

    /// Under which this link is to be found.
    pub(crate) fn routes(&self) -> Routes {
        if let Some(waking) = &self.waking {
            return [Some(waking.resting.id), None, None, None, None, None, None];
        }
        let (current, pending) = (self.current.as_ref(), self.pending.as_ref());
        [
            current.map(|session| session.id_in),
            current.map(|session| session.id_out),
            pending.map(|session| session.id_in),
            pending.map(|session| session.id_out),
            self.answer.as_ref().map(|answer| answer.key),
            self.said.as_ref().map(|said| said.key),
            self.fetch.as_ref().map(CardFetch::key),
        ]
    }

    pub(crate) fn set_state(&mut self, state: PeerState, effects: &mut Vec<Effect>) {
        if self.state != state {
            self.state = state.clone();
            effects.push(Effect::Peer { node: self.node, state });
        }
    }

    pub(crate) fn down(&mut self, why: DownReason, effects: &mut Vec<Effect>) {
        if self.state != PeerState::Declined {
            self.set_state(PeerState::Down { why }, effects);
        }
    }

    pub(crate) fn status(&self) -> PeerStatus {
        PeerStatus {
            state: self.state.clone(),
            address: self.path.address(),
            last_heard: self.last_heard,
            waits_for_credit: self.conversation.waits_for_credit(),
            fault: self.fault,
        }
    }

    /// The peer was heard under a key that it alone has: all backoff ends.
    pub(crate) fn heard(&mut self, now: Time) {
        self.last_heard = Some(now);
        self.active_at = now;
        self.conversation.recovery.heard();
        self.epoch.heard();
        self.hasten(now);
    }

    /// Whatever is not answered is tried again soon.
    fn hasten(&mut self, now: Time) {
        let retries = [
            self.said.as_mut().map(|said| &mut said.retry),
            self.hail_in_flight.as_mut().map(|hail| &mut hail.retry),
            self.fetch.as_mut().map(|fetch| &mut fetch.retry),
        ];
        retries.into_iter().flatten().for_each(|retry| retry.heard(now));
    }

    /// The peer knows a later start of this node, and had confirmed this one: which of the two copies goes on here, a
    /// person decides. Kept over starts, so that the two do not take turns (§4.7).
    pub(crate) fn fence(&mut self, effects: &mut Vec<Effect>) {
        self.is_fenced = true;
        self.said = None;
        self.fetch = None;
        self.set_state(PeerState::Down { why: DownReason::Fenced }, effects);
        self.save_memo(effects);
    }

    /// A person decided that this copy goes on: the peer is greeted as one that was never met. What the two copies shared is
    /// not used any more (§4.7).
    pub(crate) fn lift_fence(&mut self, call: &mut Call<'_>) {
        if !std::mem::take(&mut self.is_fenced) {
            return;
        }
        (self.current, self.pending, self.answer) = (None, None, None);
        (self.was_met, self.was_behind, self.hello_wanted) = (false, false, true);
        self.bind();
        self.set_state(PeerState::Quiet, call.effects);
        self.save_memo(call.effects);
        self.pump(call);
    }

    /// Ends the link's sessions and starts its streams anew; its place is emptied.
    pub(crate) fn forget_sessions(&mut self, effects: &mut Vec<Effect>) {
        self.current = None;
        self.pending = None;
        self.answer = None;
        self.bind();
        self.memo_saved = Mark::default();
        effects.push(Effect::SaveMemo { peer: self.node, place: MemoPlace([0; PLACE_BYTES]) });
    }

    /// §7.1.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        if self.is_fenced || self.waking.is_some() {
            return None;
        }
        [
            self.said.as_ref().map(|said| said.retry.at),
            self.hail_in_flight.as_ref().map(|hailed| hailed.retry.at),
            self.fetch.as_ref().map(|fetch| fetch.retry.at),
            self.greet_at,
            self.acknowledging.at,
            self.asking.as_ref().map(|(_, retry)| retry.at),
            self.confirm_by.filter(|_| self.conversation.has_outgoing()),
            self.conversation.recovery.next_timeout(),
            self.conversation
                .recovery
                .paced_until()
                .filter(|_| self.has_work() || self.conversation.has_transients()),
            self.path.challenge_at().filter(|_| self.has_work()),
            self.epoch_ends_at(),
            self.rests_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(crate) fn handle_timeout(&mut self, call: &mut Call<'_>) {
        if self.acknowledging.at.is_some_and(|at| at <= call.now) {
            // If nothing may go to an unproven address now, it goes once more came from there.
            self.acknowledging.at = None;
            self.acknowledging.now = true;
        }
        if self.confirm_by.is_some_and(|at| at <= call.now) {
            self.confirm_by = None;
            self.hello_wanted = self.conversation.has_outgoing();
        }
        if let Some((_, retry)) = self.asking.as_mut().filter(|(_, retry)| retry.at <= call.now) {
            retry.sent(call.now);
            self.ping_due = true;
        }
        self.path.on_timeout(call.now);
        self.on_greeting_timeout(call.now);
        self.on_hello_timeout(call);
        self.on_fetch_timeout(call);
        self.on_hail_timeout(call);
        self.on_recovery_timeout(call);
        self.work_is_due = true;
    }

    /// Does whatever the state asks for.
    pub(crate) fn pump(&mut self, call: &mut Call<'_>) {
        if self.is_fenced || self.waking.is_some() {
            return;
        }
        if self.hello_wanted || (self.speaking().is_none() && self.has_work()) {
            self.greet(call);
        }
        self.end_epoch(call);
        self.transmit(call);
        self.ask_for_outcomes(call.now);
        self.keep_greeting(call.now);
        if self.memo_due && self.is_proven() {
            self.save_memo(call.effects);
        }
    }

    /// Begins to ask when a record awaits its outcome, anew after each outcome, and ends when all have theirs (§7.2).
    fn ask_for_outcomes(&mut self, now: Time) {
        let outcomes = self.conversation.outcomes();
        if !self.conversation.awaits_outcome() {
            self.asking = None;
        } else if self.asking.as_ref().is_none_or(|(before, _)| *before != outcomes) {
            self.asking = Some((outcomes, Retry::after(now)));
        }
    }
}
