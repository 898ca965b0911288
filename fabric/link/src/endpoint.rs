//! The endpoint: routes datagrams to links, and is the only way in.
//!
//! Getters, commands, `handle_*` and `poll_*`. A call changes the state of a link alone; what that makes due is done, and the
//! link's timer brought up to date, when effects are polled: so many datagrams and commands in a row cost one
//! acknowledgement and fill packets together. What comes from nobody known costs a place in a fixed table or a token of a
//! bucket, and nothing that stays.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sealing::hello::open_hello;
use sealing::memo::PLACE_BYTES;
use sealing::{ADDRESS_TOKEN_BYTES, AddressTokens, NodeId, Run};

use crate::bucket::Bucket;
use crate::card_fetch::key_of_card;
use crate::command::{Config, Declaration, NotTaken, Outcome, Peer, Record, StreamId, Transient};
use crate::credit::Credits;
use crate::datagram::{self, Datagram, Sealed};
use crate::effect::{Effect, MemoPlace, PeerState, PeerStatus};
use crate::epoch::Epochs;
use crate::greet::NOT_A_PEER;
use crate::hello::{Piece, Reassembly, Taken};
use crate::limits::{
    DATAGRAM_BYTES_MAX, GREETINGS_PER_SECOND, HELLOS_OF_OTHERS_PER_SECOND, HELLOS_OF_PEERS_PER_SECOND,
    HELLOS_WITH_TOKEN_PER_SECOND, HINTS_PER_SECOND, KNOWN_ADDRESSES_MAX, STRANGERS_PER_SECOND, TOKEN_SPAN,
    WAKING_LINKS_MAX,
};
use crate::link::{Call, Link};
use crate::receive::Arrival;
use crate::rest::{Cause, Waking};
use crate::resting::{Resting, RestingLinks};
use crate::time::{Span, Time};

/// The links of one node.
pub struct Endpoint {
    config: Config,
    rng: ChaCha20Rng,
    /// Those that are awake.
    links: BTreeMap<NodeId, Link>,
    resting: RestingLinks,
    /// Places that are being read: those of links that wake, or of peers that were removed while at rest.
    reading: usize,
    leaving: BTreeMap<NodeId, Resting>,
    /// Links with a stream of the peer that may wait for an app.
    waiting: BTreeSet<NodeId>,
    /// See [`crate::link::Routes`].
    routes: BTreeMap<[u8; 8], NodeId>,
    timers: BTreeSet<(Time, NodeId)>,
    effects: VecDeque<Effect>,
    /// Links of which something was called since effects were polled, each once, and the time of the last call.
    called: VecDeque<NodeId>,
    now: Time,
    /// Empty between calls, kept for its room.
    scratch: Vec<Effect>,
    reassembly: Reassembly,
    known_addresses: HashSet<SocketAddr>,
    /// Peers removed in this process: a memo of before is not taken again, since this run used its keys.
    removed: BTreeSet<NodeId>,
    hellos_of_peers: Bucket,
    hellos_of_others: Bucket,
    /// Whoever spoofs addresses empties the two above and not these.
    hellos_of_peers_with_token: Bucket,
    hellos_with_token: Bucket,
    tokens: AddressTokens,
    hints: Bucket,
    strangers: Bucket,
    /// When the next peer without a root may be greeted.
    next_greeting: Time,
    hello_sequence: u64,
    /// What the driver can send.
    datagram_bytes_max: usize,
    epochs: Epochs,
    credits: Credits,
    is_discreet: bool,
    library_keys: bool,
}

impl Endpoint {
    /// An endpoint without peers. The start count in `config.run` is synced by then.
    pub fn new(config: Config) -> Endpoint {
        let mut rng = ChaCha20Rng::from_seed(config.entropy);
        let (mut secret, mut hash_secret) = ([0; 32], [0; 8]);
        rng.fill_bytes(&mut secret);
        rng.fill_bytes(&mut hash_secret);
        Endpoint {
            rng,
            config,
            links: BTreeMap::new(),
            resting: RestingLinks::new(hash_secret),
            reading: 0,
            leaving: BTreeMap::new(),
            waiting: BTreeSet::new(),
            routes: BTreeMap::new(),
            timers: BTreeSet::new(),
            effects: VecDeque::new(),
            called: VecDeque::new(),
            now: Time(0),
            scratch: Vec::new(),
            reassembly: Reassembly::default(),
            known_addresses: HashSet::new(),
            removed: BTreeSet::new(),
            hellos_of_peers: Bucket::per_second(HELLOS_OF_PEERS_PER_SECOND),
            hellos_of_others: Bucket::per_second(HELLOS_OF_OTHERS_PER_SECOND),
            hellos_of_peers_with_token: Bucket::per_second(HELLOS_WITH_TOKEN_PER_SECOND),
            hellos_with_token: Bucket::per_second(HELLOS_WITH_TOKEN_PER_SECOND),
            tokens: AddressTokens::new(secret),
            hints: Bucket::per_second(HINTS_PER_SECOND),
            strangers: Bucket::per_second(STRANGERS_PER_SECOND),
            next_greeting: Time(0),
            hello_sequence: 0,
            datagram_bytes_max: DATAGRAM_BYTES_MAX,
            epochs: Epochs::default(),
            credits: Credits::default(),
            is_discreet: false,
            library_keys: false,
        }
    }

    /// Whether datagrams are padded to a few lengths and a move ends the epoch. To be said before there are peers.
    pub fn set_discreet(&mut self, is_discreet: bool) {
        self.is_discreet = is_discreet;
    }

    /// Whether fresh secrets are drawn by the cryptographic library, which is several times faster, and not made of the
    /// entropy that is handed in: then what an endpoint does cannot be replayed.
    pub fn set_library_keys(&mut self, library_keys: bool) {
        self.library_keys = library_keys;
    }

    /// How much is given to who sends. To be said before there are peers.
    pub fn set_credits(&mut self, credits: Credits) {
        self.credits = credits;
    }

    /// When epochs end. To be said before there are peers.
    pub fn set_epochs(&mut self, epochs: Epochs) {
        self.epochs = epochs;
    }

    /// The driver can send datagrams of this size, and none of its are fragmented on the way: links try how large ones
    /// pass. To be said before there are peers; otherwise they have at most [`DATAGRAM_BYTES_MAX`] bytes.
    pub fn set_datagram_bytes_max(&mut self, bytes: usize) {
        self.datagram_bytes_max = bytes.max(DATAGRAM_BYTES_MAX);
    }

    /// Begins anew as another run of the same node, without peers. The counter in `run` is synced by then. What is to be
    /// done for the run before is dropped.
    pub fn restart(&mut self, run: Run) {
        let mut entropy = [0; 32];
        self.rng.fill_bytes(&mut entropy);
        let (identity, card) = (Arc::clone(&self.config.identity), self.config.card.clone());
        let (datagram_bytes_max, record_bytes_max) = (self.datagram_bytes_max, self.config.record_bytes_max);
        let (epochs, credits) = (self.epochs, self.credits);
        let (is_discreet, library_keys) = (self.is_discreet, self.library_keys);
        let config = Config { identity, card, run, entropy, record_bytes_max };
        let fresh = Endpoint::new(config);
        *self = Endpoint { datagram_bytes_max, epochs, credits, is_discreet, library_keys, ..fresh };
    }

    /// Runs `act` on the link of a peer; what that makes due is done when effects are polled.
    fn on_link<T>(
        &mut self,
        now: Time,
        node: NodeId,
        act: impl FnOnce(&mut Link, &mut Call<'_>) -> T,
    ) -> Option<T> {
        self.now = now;
        let link = self.links.get_mut(&node)?;
        if !link.was_called {
            link.was_called = true;
            self.called.push_back(node);
        }
        let mut effects = std::mem::take(&mut self.scratch);
        let mut call = Call {
            now,
            me: &self.config,
            rng: &mut self.rng,
            effects: &mut effects,
            hello_sequence: &mut self.hello_sequence,
            library_keys: self.library_keys,
        };
        let result = act(link, &mut call);
        for effect in &effects {
            if let Effect::Address { address, .. } = effect {
                remember(&mut self.known_addresses, *address);
            }
        }
        self.effects.extend(effects.drain(..));
        self.scratch = effects;
        Some(result)
    }

    /// As [`Endpoint::on_link`], for what may begin or end a session.
    fn with<T>(
        &mut self,
        now: Time,
        node: NodeId,
        act: impl FnOnce(&mut Link, &mut Call<'_>) -> T,
    ) -> Option<T> {
        let result = self.on_link(now, node, act);
        self.refresh_routes(node);
        result
    }

    fn refresh_routes(&mut self, node: NodeId) {
        let Some(link) = self.links.get_mut(&node) else { return };
        let routes = link.routes();
        if link.routes != routes {
            for route in link.routes.iter().flatten() {
                self.routes.remove(route);
            }
            for route in routes.iter().flatten() {
                self.routes.insert(*route, node);
            }
            link.routes = routes;
        }
    }

    /// As [`Endpoint::with`], for what comes from the network: a fenced link hears nothing, nor one whose place is read.
    fn hear(&mut self, now: Time, node: NodeId, act: impl FnOnce(&mut Link, &mut Call<'_>)) {
        if self.links.get(&node).is_some_and(|link| !link.is_fenced && link.waking.is_none()) {
            self.with(now, node, act);
        }
    }

    /// Does what calls made due of one link, and brings its timer up to date. False if there is none.
    fn attend(&mut self) -> bool {
        let Some(node) = self.called.pop_front() else { return false };
        // A removed one may be gone, or back and here twice. This call is none that it is to be attended to again for.
        let Some(link) = self.links.get_mut(&node) else { return true };
        link.was_called = true;
        self.with(self.now, node, |link, call| {
            if std::mem::take(&mut link.work_is_due) {
                link.pump(call);
            }
        });
        self.refresh_timer(node);
        true
    }

    fn refresh_timer(&mut self, node: NodeId) {
        let Some(link) = self.links.get_mut(&node) else { return };
        link.was_called = false;
        let at = link.next_timeout();
        if link.armed != at {
            if let Some(before) = link.armed {
                self.timers.remove(&(before, node));
            }
            if let Some(at) = at {
                self.timers.insert((at, node));
            }
            link.armed = at;
        }
    }

    #[cfg(fuzzing)]
    pub(crate) fn link_mut(&mut self, node: NodeId) -> Option<&mut Link> {
        self.links.get_mut(&node)
    }

    /// Takes a link out of all tables.
    fn forget(&mut self, node: NodeId) -> Option<Link> {
        let link = self.links.remove(&node)?;
        if let Some(at) = link.armed {
            self.timers.remove(&(at, node));
        }
        for route in link.routes.iter().flatten() {
            self.routes.remove(route);
        }
        self.waiting.remove(&node);
        Some(link)
    }

    fn new_link(&self, node: NodeId) -> Link {
        let mut link = Link::new(node, self.config.record_bytes_max);
        link.epochs = self.epochs;
        link.conversation.set_credits(self.credits);
        link.is_discreet = self.is_discreet;
        link.conversation.recovery.set_datagram_bytes_most(self.datagram_bytes_max);
        link
    }

    /// A link goes to rest: of it nothing is left but this.
    fn put_to_rest(&mut self, resting: Resting) {
        if self.resting.insert(resting) {
            self.forget(resting.node);
        }
    }

    /// Wakes a link that is at rest, if it is: its place is asked for. What came from the network goes to it once it was
    /// read (§10.9).
    fn wake(&mut self, node: NodeId, cause: Option<Cause>) {
        if cause.is_some() && self.reading >= WAKING_LINKS_MAX {
            return;
        }
        let Some(resting) = self.resting.take(node) else { return };
        let link = self.new_link(node).waking(Waking { resting, cause });
        self.links.insert(node, link);
        self.refresh_routes(node);
        self.refresh_timer(node);
        self.read_place(node);
    }

    fn read_place(&mut self, peer: NodeId) {
        self.reading += 1;
        self.effects.push_back(Effect::ReadMemo { peer });
    }

    /// The place that [`Effect::ReadMemo`] asked for; none if there is none. A damaged one counts as none.
    pub fn place_read(&mut self, now: Time, peer: NodeId, place: Option<MemoPlace>) {
        self.reading = self.reading.saturating_sub(1);
        if let Some(resting) = self.leaving.remove(&peer) {
            let mut link = self.new_link(peer).waking(Waking { resting, cause: None });
            if let Some(datagram) = place.and_then(|place| link.farewell(&place, &resting, &self.config)) {
                self.effects.push_back(datagram);
            }
        } else if let Some(Some(resting)) = self.with(now, peer, |link, call| link.wake(place, call)) {
            self.put_to_rest(resting);
        }
    }

    /// Adds a peer, or takes newer addresses or a newer card of one that is there. A memo counts only the first time. One
    /// at rest takes nothing: it is told all again after [`Effect::Woke`].
    pub fn add_peer(&mut self, now: Time, peer: Peer) {
        let node = peer.node;
        if node == self.config.identity.id() {
            return;
        }
        for address in &peer.addresses {
            remember(&mut self.known_addresses, *address);
        }
        if self.resting.contains(node) {
            // It is told again once it woke.
            return;
        }
        if !self.links.contains_key(&node) {
            let mut link = self.new_link(node);
            if let Some(place) = peer.memo.as_ref().filter(|_| !self.removed.contains(&node)) {
                link.restore(place, &self.config);
            }
            self.links.insert(node, link);
        }
        let slot = self.next_greeting.max(now);
        let queued = self.with(now, node, |link, call| {
            link.update(&peer, call.now);
            if link.is_fenced {
                let state = link.state.clone();
                call.effects.push(Effect::Peer { node, state });
            }
            // Until it is met it is greeted, in its turn if there is no root to hail under.
            let queued = !link.hail_wanted && link.greet_at(slot);
            link.work_is_due = true;
            queued
        });
        if queued == Some(true) {
            self.next_greeting = slot + Span(1_000_000 / GREETINGS_PER_SECOND);
        }
    }

    /// Ends the link to a peer at once and forgets it.
    pub fn remove_peer(&mut self, node: NodeId) {
        if let Some(resting) = self.resting.take(node) {
            // It is told, too, with the keys of its place, which is empty from then on.
            self.leaving.insert(node, resting);
            self.read_place(node);
            self.effects.push_back(Effect::SaveMemo { peer: node, place: MemoPlace([0; PLACE_BYTES]) });
        } else {
            let Some(mut link) = self.forget(node) else { return };
            let mut effects = Vec::new();
            link.close(node, &mut effects);
            self.effects.extend(effects);
        }
        self.removed.insert(node);
    }

    /// A person decided that this copy of the node goes on with a peer that took another one: a fenced link says hello again.
    /// If this run is not above the other copy's, [`Effect::Behind`] says once more how far to go (§4.7).
    pub fn resume(&mut self, now: Time, node: NodeId) {
        self.with(now, node, |link, call| link.lift_fence(call));
    }

    /// Names a stream of ours before its first record in this process, and since [`Effect::Rested`]. Wakes a link at rest. A stream
    /// that is declared already stays as it is.
    pub fn declare(&mut self, now: Time, peer: NodeId, declaration: Declaration) {
        self.wake(peer, None);
        self.on_link(now, peer, |link, _| link.conversation.declare(declaration));
    }

    /// Sends a record of a declared stream.
    ///
    /// # Errors
    /// [`NotTaken`]: nothing was taken.
    pub fn send(&mut self, now: Time, peer: NodeId, record: Record) -> Result<(), NotTaken> {
        self.on_link(now, peer, |link, _| {
            link.conversation.send(record)?;
            link.work_is_due = true;
            Ok(())
        })
        .unwrap_or_else(|| {
            let is_resting = self.resting.contains(peer);
            Err(if is_resting { NotTaken::NotDeclared } else { NotTaken::NoPeer })
        })
    }

    /// All of a peer's stream up to `upto` is committed and synced here; `outcomes` are the
    /// refusals and answers of it not settled yet.
    /// A number above what was handed over in this pair of runs is ignored: what is meant was not compared yet.
    pub fn stored(
        &mut self,
        now: Time,
        peer: NodeId,
        stream: StreamId,
        upto: u64,
        outcomes: Vec<(u64, Outcome)>,
    ) {
        self.on_link(now, peer, |link, call| {
            link.conversation.stored(peer, stream, upto, outcomes, call.effects);
            link.work_is_due = true;
        });
    }

    /// All of a peer's stream up to `upto` was here before, and `stored` says nothing of it yet: what came of it is held no
    /// more, so the sender gets as much more credit.
    pub fn taken(&mut self, now: Time, peer: NodeId, stream: StreamId, upto: u64) {
        self.on_link(now, peer, |link, call| {
            link.conversation.taken(peer, stream, upto, call.effects);
            link.work_is_due = true;
        });
    }

    /// Record `number` of a peer's stream cannot be taken now: the receive cursor goes back to it.
    pub fn waiting(&mut self, now: Time, peer: NodeId, stream: StreamId, number: u64, reason: String) {
        let known = self.on_link(now, peer, |link, _| {
            link.conversation.waiting(stream, number, reason);
            link.work_is_due = true;
        });
        if known.is_some() {
            self.waiting.insert(peer);
        }
    }

    /// An app came, or came back: streams that wait for it are asked for again.
    pub fn ready(&mut self, now: Time, app: &str) {
        for node in self.waiting.clone() {
            let waits = self.on_link(now, node, |link, _| {
                if link.conversation.ready(app) {
                    link.work_is_due = true;
                }
                link.conversation.waits()
            });
            if waits != Some(true) {
                self.waiting.remove(&node);
            }
        }
    }

    /// The sender of a stream was set back in time: nothing of it is applied any more, and it is told so once it is
    /// proven to be there.
    pub fn forked(&mut self, now: Time, peer: NodeId, stream: StreamId) {
        self.on_link(now, peer, |link, _| {
            link.conversation.forked(stream);
            link.work_is_due = true;
        });
    }

    /// Says what is worth something now or never, if the peer is there: it is sent once, and nobody hears whether it came.
    pub fn transient(&mut self, now: Time, peer: NodeId, transient: Transient) {
        self.wake(peer, None);
        self.on_link(now, peer, |link, _| {
            if link.is_proven() || link.waking.is_some() {
                link.conversation.say(transient);
                link.work_is_due = true;
            }
        });
    }

    /// Our rows of a stream are gone up to `upto`, the events that told the app committed.
    pub fn settled(&mut self, now: Time, peer: NodeId, stream: StreamId, upto: u64) {
        self.on_link(now, peer, |link, _| {
            link.conversation.settled(stream, upto);
            link.work_is_due = true;
        });
    }

    /// A datagram came. Any bytes do.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        let Ok(parsed) = datagram::parse(bytes) else { return };
        let arrival = Arrival { from, bytes: bytes.len() };
        match parsed {
            Datagram::Hello { key, index, count, token, piece } => {
                let has_token = token.is_some();
                if token.is_none_or(|token| self.is_token(now, from, &key, token)) {
                    let piece = Piece { from, key, index, count, has_token, bytes: piece };
                    self.on_hello_piece(now, &piece, bytes.len());
                } else {
                    self.ask_for_token(now, from, key, bytes.len());
                }
            }
            Datagram::Token { key, token } => {
                if let Some(node) = self.routes.get(&key).copied() {
                    self.hear(now, node, |link, call| link.on_token(key, token, call));
                }
            }
            Datagram::Answer { key, bytes } => self.on_answer(now, key, bytes, from),
            Datagram::Packet(sealed) => match self.routes.get(&sealed.id).copied() {
                Some(node) => {
                    self.hear(now, node, |link, call| link.on_packet(&sealed, arrival, call));
                }
                None => self.for_one_at_rest(now, &sealed, from, bytes),
            },
            Datagram::Hail { run, sealed } => match self.routes.get(&sealed.id).copied() {
                Some(node) => {
                    self.hear(now, node, |link, call| link.on_hail(run, &sealed, arrival, call));
                }
                None => self.for_one_at_rest(now, &sealed, from, bytes),
            },
            Datagram::Hint { id, cause } => {
                if let Some(node) = self.routes.get(&id).copied() {
                    self.hear(now, node, |link, call| link.on_hint(id, cause, call));
                }
            }
            Datagram::CardRequest { hash, index } => self.on_card_request(hash, index, from),
            Datagram::CardAnswer { hash, index, count, piece } => {
                self.on_card_answer(now, &hash, (index, count), piece);
            }
        }
    }

    /// A packet or hail of a link that is not awake.
    fn for_one_at_rest(&mut self, now: Time, sealed: &Sealed<'_>, from: SocketAddr, bytes: &[u8]) {
        match self.resting.node_of(sealed.id) {
            Some(node) => self.wake(node, Some(Cause::Datagram { from, bytes: bytes.to_vec() })),
            None => self.hint(now, sealed, from),
        }
    }

    /// Tells the sender of a packet that its link is not known here: with less than it sent, and not too often.
    fn hint(&mut self, now: Time, sealed: &Sealed<'_>, from: SocketAddr) {
        if let Some(bytes) = datagram::hint(sealed)
            && self.hints.take(now)
        {
            self.effects.push_back(Effect::Datagram { to: from, bytes });
        }
    }

    /// Whether this token was made for this address and hello, now or in the span before.
    fn is_token(&self, now: Time, from: SocketAddr, key: &[u8; 8], token: [u8; ADDRESS_TOKEN_BYTES]) -> bool {
        let span = now.0 / TOKEN_SPAN.0;
        [Some(span), span.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|span| self.tokens.token(from, key, span) == token)
    }

    /// Nothing is kept of who is told one, and it is smaller than its cause (§3.2.1).
    fn ask_for_token(&mut self, now: Time, from: SocketAddr, key: [u8; 8], cause_bytes: usize) {
        let token = self.tokens.token(from, &key, now.0 / TOKEN_SPAN.0);
        if let Some(bytes) = datagram::token(key, token, cause_bytes) {
            self.effects.push_back(Effect::Datagram { to: from, bytes });
        }
    }

    fn on_hello_piece(&mut self, now: Time, piece: &Piece<'_>, bytes: usize) {
        let (from, key) = (piece.from, piece.key);
        let hello = match self.reassembly.take(now, piece, &mut self.rng) {
            Taken::Whole(hello) => hello,
            Taken::Part => return,
            Taken::NeedsToken => return self.ask_for_token(now, from, key, bytes),
        };
        if let Some(node) = self.routes.get(&key).copied() {
            self.hear(now, node, |link, call| link.on_hello_again((key, hello.len()), from, call));
            return;
        }
        let bucket = match (piece.has_token, self.known_addresses.contains(&from)) {
            (true, true) => &mut self.hellos_of_peers_with_token,
            (true, false) => &mut self.hellos_with_token,
            (false, true) => &mut self.hellos_of_peers,
            (false, false) => &mut self.hellos_of_others,
        };
        if !bucket.take(now) {
            if !piece.has_token {
                self.ask_for_token(now, from, key, bytes);
            }
            return;
        }
        let Ok(opened) = open_hello(&self.config.identity, &self.config.card, &hello) else { return };
        if self.links.contains_key(&opened.node) {
            let size = (key, hello.len());
            self.hear(now, opened.node, |link, call| link.on_hello(&opened, size, from, call));
            return;
        }
        if self.resting.contains(opened.node) {
            let (node, size) = (opened.node, (key, hello.len()));
            return self.wake(node, Some(Cause::Hello { opened: Box::new(opened), size, from }));
        }
        let bytes = datagram::answer(key, &opened.decline(NOT_A_PEER, 0));
        self.effects.push_back(Effect::Datagram { to: from, bytes });
        if self.strangers.take(now) {
            self.effects.push_back(Effect::Stranger { node: opened.node });
        }
    }

    fn on_answer(&mut self, now: Time, key: [u8; 8], bytes: &[u8], from: SocketAddr) {
        if let Some(node) = self.routes.get(&key).copied() {
            self.hear(now, node, |link, call| link.on_answer(key, bytes, from, call));
        }
    }

    /// Anybody who has the ticket may have the card; nothing is kept of the request.
    fn on_card_request(&mut self, hash: [u8; 32], index: u8, from: SocketAddr) {
        let card = &self.config.card;
        if card.hash() == hash
            && let Some(bytes) = datagram::card_answer(hash, index, card.bytes())
        {
            self.effects.push_back(Effect::Datagram { to: from, bytes });
        }
    }

    fn on_card_answer(&mut self, now: Time, hash: &[u8; 32], place: (u8, u8), piece: &[u8]) {
        if let Some(node) = self.routes.get(&key_of_card(hash)).copied() {
            self.hear(now, node, |link, call| link.on_card(hash, place, piece, call));
        }
    }

    /// The time of `next_timeout` came.
    pub fn handle_timeout(&mut self, now: Time) {
        let due: Vec<NodeId> =
            self.timers.iter().take_while(|(at, _)| *at <= now).map(|(_, node)| *node).collect();
        for node in due {
            let resting = self.with(now, node, |link, call| {
                link.handle_timeout(call);
                link.rest(call)
            });
            if let Some(Some(resting)) = resting {
                self.put_to_rest(resting);
            }
        }
    }

    /// The next effect, in order: a memo is on disk before any later effect is carried out. What calls made due is done
    /// now, so effects are to be polled after calls until there is none.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            if !self.attend() {
                return None;
            }
        }
    }

    /// When `handle_timeout` is to be called, if nothing else comes before; at once as long as effects were not polled.
    pub fn next_timeout(&self) -> Option<Time> {
        match self.called.is_empty() {
            true => self.timers.first().map(|(at, _)| *at),
            false => Some(self.now),
        }
    }

    /// Links that are at rest.
    pub fn links_at_rest(&self) -> usize {
        self.resting.len()
    }

    /// What people may know of the link to a peer. Of one at rest the address is in its memo place alone.
    pub fn peer_status(&self, node: NodeId) -> Option<PeerStatus> {
        let resting = self.resting.get(node).map(|resting| PeerStatus {
            state: PeerState::Up,
            address: None,
            last_heard: Some(resting.heard()),
            waits_for_credit: false,
            fault: None,
        });
        self.links.get(&node).map(Link::status).or(resting)
    }
}

/// All that is kept for peers: what whoever has no key must not change. It shows no secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("node", &self.config.identity.id())
            .field("run", &self.config.run)
            .field("links", &self.links)
            .field("resting", &self.resting)
            .field("routes", &self.routes)
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}

/// Addresses of peers have a bucket of their own for hellos; a full table is forgotten, which costs precedence alone.
fn remember(known: &mut HashSet<SocketAddr>, address: SocketAddr) {
    if known.len() >= KNOWN_ADDRESSES_MAX {
        known.clear();
    }
    known.insert(address);
}
