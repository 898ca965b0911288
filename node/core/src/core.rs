//! The owner of everything a node must not lose: one input at a time in, effects in order out.
//!
//! Each input changes rows of the open batch and leaves things to be said; both wait there while the batch before is
//! being synced ([`Core::flush`]). What the inputs do to apps and streams is in `events.rs`.

use crate::batch::Batch;
use crate::image::{Image, Kept, numbered};
use crate::inbox::Inbox;
use crate::interface::{Control, ControlError, Effect, Input, Out, Reply, ReplyId};
use crate::outbox::{Mark, Outbox};
use crate::posts::Posts;
use crate::recovery::Start;
use crate::release::Released;
use crate::rows::{self, PeerRow};
use crate::shares::Waits;
use crate::web::{Web, WebRoute};
use engine::App;
use link::{Command, Declaration, DownReason, Outcome, Peer, PeerState, StreamId};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sealing::{Card, NodeId, Run, Ticket};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use store::Synced;
use weft::change::Plan;

/// Peers of a node: each has a place of 256 bytes in the memo file and a row of about 2 KiB.
pub const PEERS_MAX: usize = 65_536;

/// Addresses remembered of a peer: its newest, and the few it comes back to.
const ADDRESSES_PER_PEER_MAX: usize = 8;

/// Nodes shown that are not peers and would talk.
const STRANGERS_MAX: usize = 32;

/// Starts by which a folder may have been set back: more is a peer's lie, which would use up the counter.
const RUNS_SKIPPED_MAX: u64 = 1 << 32;

/// Lines kept for people of what went wrong without anybody asking.
const NOTICES_MAX: usize = 100;

/// A running app.
#[derive(Debug)]
pub(crate) struct Installed {
    /// Its number in the log.
    pub number: u32,
    /// The numbers of its durable lists in the log, by their places in the module.
    pub lists: Vec<u32>,
    /// Module and state.
    pub app: App,
}

/// The rest of something that one batch was too small for.
#[derive(Debug)]
pub(crate) enum Postponed {
    /// Outcomes of a stream of ours.
    Outcome { peer: NodeId, stream: StreamId, upto: u64, outcomes: Vec<(u64, Outcome)> },
    /// The end of a stream of ours.
    End(StreamId),
    /// The outcome of the oldest record of a queue to an address on the web.
    Web { route: WebRoute, number: u64, refusal: Option<String> },
    /// A person gave up the records of these queues up to the number beside them.
    GiveUp { reply: ReplyId, queues: Vec<(WebRoute, u64)> },
}

/// What leaves once its batch is on disk.
#[derive(Debug)]
struct Leaving {
    outs: Vec<Out>,
    /// Streams of ours and the highest number that is on disk by then.
    streams: Vec<(StreamId, Mark)>,
    /// Queues to addresses on the web and their oldest records, which are on disk by then.
    web: Vec<(WebRoute, u64)>,
    /// All rows as they are by then, if a checkpoint is due.
    image: Option<Box<Image>>,
}

impl Leaving {
    fn is_nothing(&self) -> bool {
        self.outs.is_empty() && self.streams.is_empty() && self.web.is_empty()
    }
}

/// What a node says to itself now or never because of one input; of more the newest is dropped.
const SAID_TO_SELF_MAX: usize = 64;

impl Installed {
    /// A delta's list and key as the log has them.
    pub(crate) fn numbered(&self, list: u32, key: Vec<u8>) -> (u64, Vec<u8>) {
        numbered(self.number, &self.lists, list, key)
    }
}

/// The owner.
#[derive(Debug)]
pub struct Core {
    pub(crate) me: NodeId,
    pub(crate) run: Run,
    pub(crate) now: i64,
    pub(crate) apps: BTreeMap<String, Installed>,
    pub(crate) peers: BTreeMap<NodeId, PeerRow>,
    pub(crate) outbox: Outbox,
    pub(crate) web: Web,
    pub(crate) inbox: Inbox,
    pub(crate) posts: BTreeMap<String, Posts>,
    pub(crate) batch: Batch,
    pub(crate) link_states: BTreeMap<NodeId, PeerState>,
    pub(crate) strangers: VecDeque<NodeId>,
    /// Each with how often it was so.
    pub(crate) notices: VecDeque<(String, u64)>,
    /// What this start changed of what apps keep.
    pub(crate) plans: Vec<Plan>,
    /// Rows that no running app has, as the log has them.
    pub(crate) kept: Kept,
    /// Why the disk has no room for more than there is.
    pub(crate) short: Option<String>,
    /// Apps at which nobody looks: their states are not published.
    unwatched: BTreeSet<String>,
    /// A checkpoint is to be made of the next batch that ends.
    checkpoint_is_due: bool,
    random: ChaCha20Rng,
    next_sequence: u64,
    /// The newest token: what the state was when nothing is open or under way.
    synced: Synced,
    in_flight: Option<(u64, Leaving)>,
    /// What this node says to itself; it needs no link.
    loopback: VecDeque<Command>,
    own_declarations: BTreeMap<StreamId, Arc<Declaration>>,
    /// What this node said to itself now or never since the last input.
    said_to_self: usize,
    /// A peer took packets of this run: it is no run of a copy that was set back.
    confirmed: bool,
    /// Peers with which this copy goes on, as a person said, until they told how far the other copy is.
    resumed: BTreeSet<NodeId>,
    /// What goes on when its app has room again.
    pub(crate) waits: Waits,
    /// What goes on when the open batch has room for it again: at most one of each kind a stream of ours.
    pub(crate) postponed: VecDeque<Postponed>,
    /// Timers wait until then because the outbox was full.
    pub(crate) timers_wait: Option<i64>,
    /// The last [`Effect::WakeAt`].
    wake: Option<i64>,
    effects: VecDeque<Effect>,
}

impl Core {
    pub(crate) fn empty(start: &Start) -> Core {
        Core {
            me: start.me,
            run: start.run,
            now: start.now,
            apps: BTreeMap::new(),
            peers: BTreeMap::new(),
            outbox: Outbox::default(),
            web: Web::default(),
            inbox: Inbox::new(),
            posts: BTreeMap::new(),
            batch: Batch::default(),
            link_states: BTreeMap::new(),
            strangers: VecDeque::new(),
            notices: VecDeque::new(),
            plans: Vec::new(),
            kept: Kept::default(),
            short: None,
            unwatched: BTreeSet::new(),
            checkpoint_is_due: false,
            random: ChaCha20Rng::from_seed(start.entropy),
            next_sequence: start.synced.sequence() + 1,
            synced: start.synced,
            in_flight: None,
            loopback: VecDeque::new(),
            own_declarations: BTreeMap::new(),
            said_to_self: 0,
            confirmed: false,
            resumed: BTreeSet::new(),
            waits: Waits::default(),
            postponed: VecDeque::new(),
            timers_wait: None,
            wake: None,
            effects: VecDeque::new(),
        }
    }

    /// After recovery: the link learns the peers, the views their state, and what is unsettled is sent again.
    pub(crate) fn begin(&mut self) {
        self.batch.apps.extend(self.apps.keys().cloned());
        self.introduce_all();
        self.flush();
        self.tell_wake();
    }

    /// Says when it wants to be woken, if that is another time than before.
    fn tell_wake(&mut self) {
        let due = self.apps.values().filter_map(|installed| installed.app.next_due()).min();
        let wake = due.map(|due| due.max(self.timers_wait.unwrap_or(due)));
        if wake != self.wake {
            self.wake = wake;
            self.effects.push_back(Effect::WakeAt(wake));
        }
    }

    /// A start on a log whose own count of starts is behind the newest run is the run after that.
    pub(crate) fn begin_run(&mut self, newest: Option<u64>) {
        if let Some(newest) = newest.filter(|newest| *newest >= self.run.counter) {
            self.run.counter = newest + 1;
            self.batch.change(rows::RUN, Vec::new(), Some(rows::encode(&self.run.counter)));
        }
    }

    /// Takes one input. `now` is milliseconds since 1970 UTC; a clock set back does not set the core back.
    pub fn handle(&mut self, now: i64, input: Input) {
        self.gather(now, input);
        self.close();
    }

    /// Takes one input with which others come that are there, too: [`Core::handle`] or [`Core::close`] follows the last of
    /// them, and nothing is done before.
    pub fn gather(&mut self, now: i64, input: Input) {
        self.now = self.now.max(now);
        self.batch.count_input();
        self.said_to_self = 0;
        match input {
            Input::Post(post) => self.post(post),
            Input::Control { reply, control } => self.control(reply, control),
            Input::Link(said) => self.heard_of_link(said),
            Input::Web(answer) => self.web_answered(answer),
            Input::Synced(synced) => self.synced(synced),
            Input::Time => self.fire_due(),
            Input::CheckpointDue => self.checkpoint_is_due = true,
            // It is tried again and again.
            Input::CheckpointFailed(why) if self.notices.back().is_some_and(|(line, _)| *line == why) => {}
            Input::CheckpointFailed(why) => self.notice(why),
            Input::Room(lacks) => self.room_changed(lacks),
            Input::Watched { app, is_watched: false } => drop(self.unwatched.insert(app)),
            Input::Watched { app, is_watched: true } => self.watch(app),
        }
    }

    /// What was gathered is all that there was.
    pub fn close(&mut self) {
        self.flush();
        self.tell_wake();
    }

    /// Somebody looks at an app's state: it is published with the open batch, and from then on.
    fn watch(&mut self, app: String) {
        self.unwatched.remove(&app);
        self.batch.apps.insert(app);
    }

    /// Whether the core takes another input but [`Input::Synced`]: the open batch has room.
    pub fn has_room(&self) -> bool {
        self.batch.has_room()
    }

    /// What this start changed of what apps keep.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// This start of the node.
    pub fn run(&self) -> Run {
        self.run
    }

    /// The next thing to be done.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// 32 fresh bytes.
    pub(crate) fn entropy(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    pub(crate) fn reply(&mut self, to: ReplyId, reply: Reply) {
        self.batch.replies.push((to, reply));
    }

    pub(crate) fn notice(&mut self, line: String) {
        let same = self.notices.iter().position(|(known, _)| *known == line);
        let times = same.and_then(|at| self.notices.remove(at)).map_or(0, |(_, times)| times);
        self.notices.push_back((line, times + 1));
        if self.notices.len() > NOTICES_MAX {
            self.notices.pop_front();
        }
    }

    /// Whether records are exchanged with this node. One is one's own peer.
    pub(crate) fn is_peer(&self, node: NodeId) -> bool {
        node == self.me || self.peers.get(&node).is_some_and(|row| !row.removed)
    }

    fn heard_of_link(&mut self, said: link::Effect) {
        match said {
            link::Effect::Record { peer, declaration, number, tag, payload } => {
                self.record(peer, &declaration, number, tag, &payload);
            }
            link::Effect::Transient { peer, transient } => self.hear(peer, &transient),
            link::Effect::Outcome { peer, stream, upto, outcomes } => {
                self.outcome(peer, stream, upto, outcomes)
            }
            link::Effect::Waiting { peer, stream, number, reason } => {
                self.peer_waits(peer, stream, number, reason)
            }
            link::Effect::Settled { peer, stream, upto } => self.peer_settled(peer, stream, upto),
            link::Effect::Forked { peer, stream } => self.forked(peer, stream),
            link::Effect::Card { peer, card } => self.learn_card(peer, &card),
            link::Effect::Address { peer, address } => self.learn_address(peer, address),
            link::Effect::Behind { peer, known } => self.behind(peer, known),
            link::Effect::Misbehaved { peer, fault } => {
                self.notice(format!("{peer} broke the protocol, and what it sent was ignored: {fault}"));
            }
            link::Effect::Peer { node, state } => {
                if state == PeerState::Up {
                    self.confirmed = true;
                    self.resumed.remove(&node);
                }
                self.link_states.insert(node, state);
            }
            link::Effect::Stranger { node } => self.stranger(node),
            link::Effect::Rested { streams, .. } => {
                self.outbox.begin_anew_of(&streams);
                self.batch.streams.extend(streams);
            }
            link::Effect::Woke { peer } => {
                let known = self.peers.get(&peer).filter(|row| !row.removed);
                self.batch.commands.extend(known.map(|row| add_peer(peer, row)));
            }
            link::Effect::SaveMemo { .. } | link::Effect::Datagram { .. } | link::Effect::ReadMemo { .. } => {
            }
        }
    }

    fn control(&mut self, reply: ReplyId, control: Control) {
        let answer = match control {
            Control::AddPeer { ticket, name, addresses } => self.add_peer(&ticket, name, addresses),
            Control::RemovePeer(node) => self.remove_peer(node),
            Control::Resume(node) => self.resume(node),
            Control::GiveUp(endpoint) => match self.give_up(reply, &endpoint) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Control::Barrier => Ok(Reply::Done),
            Control::Status => Ok(Reply::Status(Box::new(self.status()))),
            Control::Sends(app) => Ok(Reply::Sends(self.sends(&app))),
        };
        self.reply(reply, answer.unwrap_or_else(Reply::NotDone));
    }

    fn add_peer(
        &mut self,
        ticket: &Ticket,
        name: String,
        addresses: Vec<SocketAddr>,
    ) -> Result<Reply, ControlError> {
        if let Some(why) = self.short.clone() {
            return Err(ControlError::NoRoom(why));
        }
        let node = ticket.node();
        if node == self.me {
            return Err(ControlError::OwnTicket);
        }
        let peers = self.peers.values().filter(|row| !row.removed).count();
        if !self.is_peer(node) && peers >= PEERS_MAX {
            return Err(ControlError::TooManyPeers(PEERS_MAX));
        }
        if let Some(other) = self.called(&name).filter(|other| *other != node) {
            return Err(ControlError::NameTaken { name, node: other });
        }
        // What it was called before it was removed may be another one's name by now.
        let before = self.peers.get(&node).map(|row| row.name.clone());
        let before = before.filter(|name| self.called(name).is_none_or(|other| other == node));
        let old = self.peers.remove(&node);
        let mut addresses = if addresses.is_empty() { ticket.addresses().to_vec() } else { addresses };
        addresses.extend(old.iter().flat_map(|row| row.addresses.iter().copied()));
        let card = old.as_ref().and_then(|row| row.card_beside(ticket));
        let row = PeerRow {
            name: if name.is_empty() { before.unwrap_or_default() } else { name },
            card_hash: card.as_ref().map_or(ticket.card_hash(), Card::hash),
            card: card.map(|card| card.bytes().to_vec()),
            addresses: newest_first(addresses),
            removed: false,
        };
        self.batch.commands.push(add_peer(node, &row));
        self.write_peer(node, row);
        self.strangers.retain(|stranger| *stranger != node);
        self.batch.streams.extend(self.outbox.streams_to(node));
        Ok(Reply::Done)
    }

    /// A person decided between two copies of this node: this one goes on with the peer, above the other one's run.
    fn resume(&mut self, node: NodeId) -> Result<Reply, ControlError> {
        if !self.is_peer(node) {
            return Err(ControlError::NoSuchPeer(node));
        }
        if self.link_states.get(&node) != Some(&PeerState::Down { why: DownReason::Fenced }) {
            return Err(ControlError::NotFenced(node));
        }
        self.resumed.insert(node);
        self.batch.commands.push(Command::Resume(node));
        Ok(Reply::Done)
    }

    /// The peer of a name.
    fn called(&self, name: &str) -> Option<NodeId> {
        let is = |(_, row): &(&NodeId, &PeerRow)| !row.removed && !name.is_empty() && row.name == name;
        self.peers.iter().find(is).map(|(node, _)| *node)
    }

    /// The disk has room again, or none.
    fn room_changed(&mut self, lacks: Option<String>) {
        if lacks.is_some() == self.short.is_some() {
            return;
        }
        self.notice(match &lacks {
            Some(why) => {
                format!("the disk has no room: what makes the state larger is refused until it has ({why})")
            }
            None => "the disk has room again".to_owned(),
        });
        self.short = lacks;
        if self.short.is_none() {
            self.timers_wait = None;
            self.waits.apps().iter().for_each(|app| self.ask_again_for(app));
        }
    }

    fn remove_peer(&mut self, node: NodeId) -> Result<Reply, ControlError> {
        // A node that is no peer, or no more, but for which sends wait, is removed too: they are refused.
        let waits = !self.outbox.streams_to(node).is_empty() && node != self.me;
        if !waits && self.peers.get(&node).is_none_or(|row| row.removed) {
            return Err(ControlError::NoSuchPeer(node));
        }
        let row = PeerRow { removed: true, ..self.peers.get(&node).cloned().unwrap_or_default() };
        self.write_peer(node, row);
        self.link_states.remove(&node);
        self.batch.commands.push(Command::RemovePeer(node));
        // What was sent until now is refused, as soon as the app that hears it runs. What is sent from now on begins a stream
        // and waits, as for a node that was never added.
        for stream in self.outbox.streams_to(node) {
            self.end_stream(stream, "the peer was removed; arrival unknown");
        }
        Ok(Reply::Done)
    }

    fn write_peer(&mut self, node: NodeId, row: PeerRow) {
        self.batch.change(rows::PEERS, node.as_bytes().to_vec(), Some(rows::encode(&row)));
        self.peers.insert(node, row);
    }

    fn learn_card(&mut self, peer: NodeId, card: &Card) {
        if let Some(row) = self.peers.get(&peer).filter(|row| row.card.as_deref() != Some(card.bytes())) {
            let row = PeerRow { card: Some(card.bytes().to_vec()), ..row.clone() };
            self.write_peer(peer, row);
        }
    }

    fn learn_address(&mut self, peer: NodeId, address: SocketAddr) {
        let news = |row: &&PeerRow| !row.removed && row.addresses.first() != Some(&address);
        if let Some(row) = self.peers.get(&peer).filter(news) {
            let addresses = [address].into_iter().chain(row.addresses.iter().copied()).collect();
            let row = PeerRow { addresses: newest_first(addresses), ..row.clone() };
            self.write_peer(peer, row);
        }
    }

    /// This folder was set back to an older copy: as long as nobody has taken this run for the newest, it becomes the one
    /// after the newest that is known. A run that was confirmed stays: then there are two copies, and a person decides.
    fn behind(&mut self, peer: NodeId, known: u64) {
        if known < self.run.counter {
            return;
        }
        // Between copies a person decides, and may have.
        let stays = self.confirmed && !self.resumed.remove(&peer);
        if stays || known - self.run.counter > RUNS_SKIPPED_MAX {
            return self.notice(format!(
                "{peer} knows of a later start of this node: another copy of its folder runs somewhere. Stop one of them; \
                 for this one to go on: selvedge peer resume"
            ));
        }
        self.notice(format!(
            "{peer} knew of a later start of this node, whose folder was set back: it goes on after that"
        ));
        let mut random = [0; 16];
        random.copy_from_slice(&self.entropy()[..16]);
        self.run = Run { counter: known + 1, random };
        self.confirmed = false;
        self.batch.change(rows::RUN, Vec::new(), Some(rows::encode(&self.run.counter)));
        self.batch.commands.push(Command::Restart { run: self.run });
        self.link_states.clear();
        self.introduce_all();
    }

    /// The link learns the peers, and what is unsettled is handed over.
    fn introduce_all(&mut self) {
        let peers = self.peers.iter().filter(|(_, row)| !row.removed);
        self.batch.commands.extend(peers.map(|(node, row)| add_peer(*node, row)));
        self.batch.streams.extend(self.outbox.iter().map(|stream| stream.id));
        self.batch.web.extend(self.web.iter().map(|(route, _)| route.clone()));
    }

    fn stranger(&mut self, node: NodeId) {
        if self.is_peer(node) {
            return;
        }
        self.strangers.retain(|known| *known != node);
        self.strangers.push_back(node);
        if self.strangers.len() > STRANGERS_MAX {
            self.strangers.pop_front();
        }
    }

    fn synced(&mut self, synced: Synced) {
        let (sequence, leaving) = self.in_flight.take().expect("a sync answers the one append under way");
        assert_eq!(sequence, synced.sequence(), "the store syncs what was appended");
        self.synced = synced;
        if let Some(image) = leaving.image {
            self.effects.push_back(Effect::Checkpoint { synced, image });
        }
        self.release(Leaving { image: None, ..leaving });
    }

    /// Appends the open batch, or lets go what changed no row; not while another batch is being synced. Then goes on
    /// with what was postponed, as far as the batch has room.
    fn flush(&mut self) {
        loop {
            self.close_batches();
            if !self.batch.has_room_for_pieces() {
                return;
            }
            match self.postponed.pop_front() {
                Some(Postponed::Outcome { peer, stream, upto, outcomes }) => {
                    self.outcome(peer, stream, upto, outcomes);
                }
                Some(Postponed::End(stream)) => self.refuse_unsettled(stream),
                Some(Postponed::Web { route, number, refusal }) => self.hear_web(route, number, refusal),
                Some(Postponed::GiveUp { reply, queues }) => self.give_up_queues(reply, queues),
                None => return,
            }
        }
    }

    fn close_batches(&mut self) {
        while self.in_flight.is_none() {
            while self.batch.has_room()
                && let Some(command) = self.loopback.pop_front()
            {
                self.batch.count_input();
                self.loop_back(command);
            }
            if self.batch.changes_rows() {
                return self.append();
            }
            if let Some(image) = self.image_if_due() {
                // Nothing that was changed is not durable: the state is that of the last batch.
                self.effects.push_back(Effect::Checkpoint { synced: self.synced, image });
            }
            let leaving = self.close_batch();
            if leaving.is_nothing() {
                return;
            }
            self.release(leaving);
        }
    }

    fn append(&mut self) {
        self.batch.change(rows::CLOCK, Vec::new(), Some(rows::encode(&self.now)));
        for (name, installed) in &self.apps {
            if !installed.app.module().everies.is_empty() {
                let ticks = rows::encode(&installed.app.ticks());
                self.batch.change(rows::TICKED, name.clone().into_bytes(), Some(ticks));
            }
        }
        let changes = self.batch.take_changes();
        self.kept.take(&changes);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let image = self.image_if_due();
        let leaving = self.close_batch();
        self.in_flight = Some((sequence, Leaving { image, ..leaving }));
        self.effects.push_back(Effect::Append { sequence, changes });
    }

    /// All rows as they are at the end of the open batch, if they are asked for.
    fn image_if_due(&mut self) -> Option<Box<Image>> {
        std::mem::take(&mut self.checkpoint_is_due)
            .then(|| Box::new(Image::of(&self.kept, self.apps.values())))
    }

    /// Ends the open batch: snapshots first, so that who hears of an event also sees it.
    fn close_batch(&mut self) -> Leaving {
        let batch = std::mem::take(&mut self.batch);
        let publishes = batch.apps.into_iter().filter_map(|app| {
            let installed = self.apps.get(&app)?;
            Some(match self.unwatched.contains(&app) {
                true => Out::Outdate { app },
                false => Out::Publish { snapshot: installed.app.snapshot(), app },
            })
        });
        let stored = batch.heard.into_iter().filter_map(|(peer, stream)| {
            let heard = &self.inbox.get(&(peer, stream))?.heard;
            let outcomes = heard.outcomes.iter().map(|(number, one)| (*number, one.clone())).collect();
            Some(Out::Link(Command::Stored { peer, stream, upto: heard.number, outcomes }))
        });
        let replies = batch.replies.into_iter().map(|(to, reply)| Out::Reply { to, reply });
        let outs =
            publishes.chain(batch.commands.into_iter().map(Out::Link)).chain(stored).chain(replies).collect();
        let streams = batch.streams.into_iter().filter_map(|id| Some((id, self.outbox.stream(id)?.mark())));
        let web = batch.web.into_iter().filter_map(|route| Some((self.web.oldest(&route)?, route)));
        let web = web.map(|(oldest, route)| (route, oldest)).collect();
        Leaving { outs, streams: streams.collect(), web, image: None }
    }

    fn release(&mut self, leaving: Leaving) {
        for out in leaving.outs {
            self.let_out(out);
        }
        for (stream, mark) in leaving.streams {
            if let Some(own) = self.outbox.stream_mut(stream) {
                own.mark_synced(mark);
                self.hand_over(stream);
            }
        }
        for (route, oldest) in leaving.web {
            if let Some(next) = self.try_next(&route, oldest) {
                self.leave(Out::Web(next));
            }
        }
    }

    fn let_out(&mut self, out: Out) {
        match out {
            // Two handlers that answer each other this way change nothing that waits for a sync: they end here.
            Out::Link(Command::Transient { peer, .. })
                if peer == self.me && self.said_to_self >= SAID_TO_SELF_MAX => {}
            Out::Link(command @ Command::Transient { peer, .. }) if peer == self.me => {
                self.said_to_self += 1;
                self.loopback.push_back(command);
            }
            Out::Link(command) if command.stream_peer() == Some(self.me) => self.loopback.push_back(command),
            Out::Link(Command::Restart { .. }) => {
                // Not before: what leaves until then still goes to the run before.
                self.outbox.begin_anew();
                self.leave(out);
            }
            out => self.leave(out),
        }
    }

    fn leave(&mut self, out: Out) {
        let released = Released::new(out, self.next_sequence - 1, &self.synced);
        self.effects.push_back(Effect::Out(released));
    }

    /// Gives the link what it may have of a stream. What is for an unknown peer waits, and so does what an app sent
    /// that does not run now.
    fn hand_over(&mut self, stream: StreamId) {
        let Some(route) = self.outbox.stream(stream).map(|own| own.route.clone()) else { return };
        if !self.apps.contains_key(&route.from_app) {
            return;
        }
        if self.outbox.stream(stream).is_some_and(|own| own.ended.is_some()) {
            return self.refuse_unsettled(stream);
        }
        let peer = route.peer;
        if !self.is_peer(peer) {
            return;
        }
        let Some(own) = self.outbox.stream_mut(stream) else { return };
        let (declaration, records) = own.hand_over();
        if let Some(declaration) = declaration {
            self.let_out(Out::Link(Command::Declare { peer, declaration }));
        }
        for record in records {
            self.let_out(Out::Link(Command::Send { peer, record }));
        }
    }

    /// A perfect link to oneself: each command is what the other end would be told.
    fn loop_back(&mut self, command: Command) {
        match command {
            Command::Declare { declaration, .. } => {
                self.own_declarations.insert(declaration.stream, Arc::new(declaration));
            }
            Command::Send { peer, record } => {
                if let Some(declaration) = self.own_declarations.get(&record.stream).cloned() {
                    self.record(peer, &declaration, record.number, record.tag, &record.payload);
                }
            }
            Command::Transient { peer, transient } => self.hear(peer, &transient),
            Command::Stored { peer, stream, upto, outcomes } => self.outcome(peer, stream, upto, outcomes),
            Command::Waiting { peer, stream, number, reason } => {
                self.peer_waits(peer, stream, number, reason);
                if let Some(own) = self.outbox.stream_mut(stream) {
                    own.rewind(number);
                }
            }
            Command::Settled { peer, stream, upto } => self.peer_settled(peer, stream, upto),
            Command::Forked { peer, stream } => self.forked(peer, stream),
            Command::AddPeer(_)
            | Command::RemovePeer(_)
            | Command::Resume(_)
            | Command::Taken { .. }
            | Command::Ready { .. }
            | Command::Restart { .. } => {}
        }
    }
}

fn add_peer(node: NodeId, row: &PeerRow) -> Command {
    Command::AddPeer(Box::new(Peer {
        node,
        card_hash: Some(row.card_hash),
        card: row.card.as_ref().and_then(|bytes| Card::verify(bytes).ok()),
        addresses: row.addresses.clone(),
        memo: None,
    }))
}

/// Without repeats, the first ones.
fn newest_first(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut kept: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !kept.contains(&address) && kept.len() < ADDRESSES_PER_PEER_MAX {
            kept.push(address);
        }
    }
    kept
}
