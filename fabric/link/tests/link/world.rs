//! The network, the clock and the faults of a simulation, all from one seed; and what must hold at each step.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use link::{Effect, Peer, StreamId, Time};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sealing::memo::{Memo, Role};
use sealing::{NodeId, Tag};

use crate::node::{Event, Fate, Node, answer, reason};
use crate::witness::Witness;

pub const SECOND: u64 = 1_000_000;

/// Steps of one world; a usual one has some ten thousand, a day asleep as many more.
const STEPS_MAX: u64 = 300_000;

const DAY: u64 = 24 * 3_600 * SECOND;
const TEN_YEARS: u64 = 3_653 * DAY;

/// Kinds of faults, by number, so that a failing seed can be tried without one.
pub const FAULTS: [&str; 17] = [
    "a node is killed",
    "a node is killed between two effects",
    "a dead node starts",
    "a dead node starts",
    "the weather changes",
    "one way is blocked",
    "all ways are free",
    "a node moves",
    "an app goes",
    "an app comes",
    "a backup is made",
    "a backup is restored",
    "records are written",
    "records are written",
    "records are written",
    "a router forgets a node",
    "a node sleeps for a day",
];

/// What of the faults of a seed is left out, to find out which ones a failure needs.
#[derive(Clone, Debug, Default)]
pub struct Less {
    /// No more than so many.
    pub count: Option<u64>,
    /// None of these kinds.
    pub without: BTreeSet<u32>,
}

enum Happening {
    Arrives { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
    Commits { node: usize, run: u64 },
    Chaos,
}

/// Somebody on the path who sends on all datagrams of everybody, from several ports in turn.
#[derive(Clone, Copy)]
pub struct Forwarder {
    pub ports: u16,
    /// Datagrams in a row from one port.
    pub each: u64,
}

/// The first port of a [`Forwarder`]; nobody else has it.
const FORWARDER_PORT: u16 = 20_000;

/// How bad the network is, in thousandths.
#[derive(Clone, Copy, Default)]
pub struct Weather {
    pub loss: u32,
    pub duplication: u32,
    pub corruption: u32,
    /// What comes back to its sender beside.
    pub reflection: u32,
    pub jitter_microseconds: u32,
    /// Larger datagrams vanish, if there is a bound.
    pub datagram_bytes_max: Option<usize>,
}

pub struct World {
    pub now: Time,
    pub rng: ChaCha20Rng,
    pub nodes: Vec<Node>,
    pub weather: Weather,
    pub blocked: BTreeSet<(usize, usize)>,
    pub reached: BTreeMap<&'static str, u64>,
    pub trace: Vec<String>,
    pub violation: Option<String>,
    pub datagrams: u64,
    kinds: BTreeMap<u8, u64>,
    /// Nodes that were told that their run is behind, and how far.
    pub behind: Vec<(usize, u64)>,
    /// Every datagram that was sent, for somebody who listens.
    pub capture: Option<Vec<Vec<u8>>>,
    pub forwarder: Option<Forwarder>,
    /// Datagrams of a node that somebody on the path takes away: by who sent it and its bytes.
    pub taken: fn(usize, &[u8]) -> bool,
    /// Bytes of datagrams that went to an address.
    pub sent_to: BTreeMap<SocketAddr, u64>,
    /// All effects as they show themselves, for somebody who reads logs.
    pub shown: Option<String>,
    /// Looks at the keys and nonces of all datagrams.
    witness: Witness,
    steps: u64,
    queue: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    routes: BTreeMap<SocketAddr, usize>,
    /// What was ever sent: the truth to compare with.
    truth: BTreeMap<(NodeId, StreamId, u64, Tag), Arc<[u8]>>,
    /// What was said now or never: by whom to whom, in which runs, and whether it was heard.
    said: Vec<(usize, usize, (u64, u64), bool)>,
    backups: BTreeMap<usize, crate::node::Store>,
    pub rollbacks: bool,
    /// The process dies after so many more effects.
    kill_after: Option<(usize, u32)>,
    next_port: u16,
    /// A node that dies and comes back elsewhere, where nobody looks for it, and writes nothing at the end.
    pub wanderer: Option<usize>,
    /// Clocks of nodes begin anywhere, with each start.
    pub clocks_differ: bool,
    /// No timer of this node fires and nothing reaches it.
    asleep: Option<usize>,
    /// Time in which a node slept.
    pub slept: u64,
    /// Nodes whose router forgot them: they are not where anybody knows, until they speak.
    forgotten: BTreeSet<usize>,
    /// Nodes that kept two roots may die at once.
    pub kills_between_epochs: bool,
    /// What of the faults is left out.
    pub less: Less,
    /// The kinds of the faults so far.
    pub faults: Vec<u32>,
}

impl World {
    pub fn new(seed: u64, count: usize) -> World {
        let mut world = World {
            now: Time(SECOND),
            rng: ChaCha20Rng::seed_from_u64(seed),
            nodes: (0..count).map(Node::new).collect(),
            weather: Weather::default(),
            blocked: BTreeSet::new(),
            reached: BTreeMap::new(),
            trace: Vec::new(),
            violation: None,
            datagrams: 0,
            kinds: BTreeMap::new(),
            behind: Vec::new(),
            capture: None,
            forwarder: None,
            taken: |_, _| false,
            sent_to: BTreeMap::new(),
            shown: None,
            witness: Witness::default(),
            steps: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            routes: BTreeMap::new(),
            truth: BTreeMap::new(),
            said: Vec::new(),
            backups: BTreeMap::new(),
            rollbacks: false,
            kill_after: None,
            next_port: 5000,
            wanderer: None,
            clocks_differ: false,
            asleep: None,
            slept: 0,
            forgotten: BTreeSet::new(),
            kills_between_epochs: false,
            less: Less::default(),
            faults: Vec::new(),
        };
        for node in 0..count {
            world.routes.insert(world.nodes[node].home, node);
        }
        world
    }

    /// Everybody is everybody's peer, some by a card, some by a ticket alone, some with an address that is dead.
    pub fn befriend_all(&mut self) {
        let known: Vec<_> = self.nodes.iter().map(|node| (node.id(), node.card.clone(), node.home)).collect();
        for at in 0..self.nodes.len() {
            for (other, (node, card, home)) in known.iter().enumerate().filter(|(other, _)| *other != at) {
                let by_ticket = (at + other) % 3 == 1;
                let dead = SocketAddr::from(([10, 9, 9, 9], 1));
                let addresses = if (at + other).is_multiple_of(2) { vec![dead, *home] } else { vec![*home] };
                self.nodes[at].peers.push(Peer {
                    node: *node,
                    card_hash: Some(card.hash()),
                    card: (!by_ticket).then(|| card.clone()),
                    addresses,
                    memo: None,
                });
            }
        }
    }

    /// Datagrams of a kind that were sent, by anybody.
    pub fn kinds_sent(&self, kind: u8) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound.max(1)
    }

    pub fn chance(&mut self, thousandths: u32) -> bool {
        self.below(1000) < thousandths
    }

    pub fn reach(&mut self, fault: &'static str) {
        *self.reached.entry(fault).or_default() += 1;
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if self.trace.len() > 20_000 {
            self.trace.drain(..10_000);
        }
        let at = self.now.0;
        self.trace.push(format!("{:>12.6} {}", at as f64 / 1e6, line()));
    }

    pub fn fail(&mut self, what: String) {
        self.note(|| format!("VIOLATION {what}"));
        self.violation.get_or_insert(what);
    }

    fn schedule(&mut self, after: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((Time(self.now.0 + after), self.sequence), happening);
    }

    pub fn schedule_chaos(&mut self, after: u64) {
        self.schedule(after, Happening::Chaos);
    }

    pub fn start(&mut self, node: usize) {
        let mut entropy = [0; 32];
        self.rng.fill_bytes(&mut entropy);
        if self.clocks_differ {
            self.nodes[node].clock_offset = match self.below(3) {
                0 => 0,
                1 => TEN_YEARS,
                _ => u64::from(self.rng.next_u32()) * 1_000,
            };
            self.reach("clocks ten years apart");
        }
        let now = self.clock(node);
        self.nodes[node].start(now, entropy);
        let run = self.nodes[node].run;
        self.witness.learn_run(self.nodes[node].id(), run);
        self.note(|| format!("{node} starts"));
        self.settle_effects(node);
    }

    /// What the clock of a node shows.
    fn clock(&self, node: usize) -> Time {
        Time(self.now.0 + self.nodes[node].clock_offset)
    }

    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
        self.note(|| format!("{node} is killed"));
    }

    pub fn index_of(&self, id: NodeId) -> usize {
        self.nodes.iter().position(|node| node.id() == id).expect("a node of this world")
    }

    /// The app of a node sends a record.
    pub fn write(&mut self, from: usize, to: usize, bytes: usize) {
        if self.nodes[from].endpoint.is_none() {
            return;
        }
        let mut payload = vec![0; bytes];
        self.rng.fill_bytes(&mut payload);
        let payload: Arc<[u8]> = payload.into();
        let (me, peer) = (self.nodes[from].id(), self.nodes[to].id());
        if let Some((stream, number, tag)) = self.nodes[from].write(peer, payload.clone()) {
            self.note(|| format!("{from} writes {number} of {bytes} bytes to {to}"));
            self.truth.insert((me, stream, number, tag), payload);
        }
        self.settle_effects(from);
    }

    /// The app of a node says something that is worth something now or never.
    pub fn say(&mut self, from: usize, to: usize) {
        let peer = self.nodes[to].id();
        let runs = (self.nodes[from].runs, self.nodes[to].runs);
        let payload = self.said.len().to_be_bytes();
        self.said.push((from, to, runs, false));
        let (from_app, to_app) = ("a".to_owned(), "b".to_owned());
        let transient = link::Transient { from_app, to_app, payload: Arc::from(payload) };
        self.on_endpoint(from, |endpoint, now| endpoint.transient(now, peer, transient));
    }

    /// At most once, from who said it, in the runs in which it was said.
    fn hear(&mut self, node: usize, peer: NodeId, transient: &link::Transient) {
        let from = self.index_of(peer);
        let at = transient.payload[..].try_into().map_or(usize::MAX, usize::from_be_bytes);
        let now = (self.nodes[from].runs, self.nodes[node].runs);
        let Some((said_by, said_to, said_in, heard)) = self.said.get_mut(at) else {
            return self.fail(format!("{node} hears from {from} what nobody said"));
        };
        // Who said it may have died since; who hears it may not.
        let right = (*said_by, *said_to, said_in.1) == (from, node, now.1);
        if !right || std::mem::replace(heard, true) {
            self.fail(format!("{node} hears {at} of {from} wrongly or again, in runs {now:?}"));
        }
        self.reach("something said now or never came");
    }

    pub fn on_endpoint(&mut self, node: usize, act: impl FnOnce(&mut link::Endpoint, Time)) {
        let now = self.clock(node);
        if let Some(endpoint) = &mut self.nodes[node].endpoint {
            act(endpoint, now);
        }
        self.settle_effects(node);
    }

    /// Carries out effects in order until there are none, or the node dies between two of them.
    fn settle_effects(&mut self, node: usize) {
        for turns in 0.. {
            if turns > STEPS_MAX {
                self.fail("effects without end".into());
                return;
            }
            if let Some((dying, left)) = &mut self.kill_after
                && *dying == node
            {
                if *left == 0 {
                    self.kill_after = None;
                    self.reach("killed between two effects");
                    self.kill(node);
                    return;
                }
                *left -= 1;
            }
            let Some(effect) = self.nodes[node].endpoint.as_mut().and_then(link::Endpoint::poll_effect)
            else {
                break;
            };
            if let Some(shown) = &mut self.shown {
                shown.push_str(&format!("{effect:?}\n"));
            }
            self.carry_out(node, effect);
        }
        let at = &self.nodes[node];
        let waits = |peer: &Peer| {
            at.endpoint.as_ref().and_then(|e| e.peer_status(peer.node)).is_some_and(|s| s.waits_for_credit)
        };
        if at.peers.iter().any(waits) {
            self.reach("a sender waited for credit");
        }
        if self.nodes[node].begin_commit() {
            let (run, delay) = (self.nodes[node].runs, u64::from(self.below(20_000)));
            self.schedule(delay, Happening::Commits { node, run });
        }
    }

    fn carry_out(&mut self, node: usize, effect: Effect) {
        let mut events = Vec::new();
        let now = self.clock(node);
        let at = &mut self.nodes[node];
        match effect {
            Effect::SaveMemo { peer, place } => {
                let before = at.memos.insert(peer, place.0).unwrap_or([0; 256]);
                at.memos_before.insert(peer, before);
                self.witness.learn_place(at.id(), &place.0);
                self.on_memo(node, &before, &place.0);
            }
            Effect::Datagram { to, bytes } => self.transmit(node, to, bytes),
            Effect::ReadMemo { peer } => {
                let place = at.memos.get(&peer).copied().map(link::MemoPlace);
                if let Some(endpoint) = &mut at.endpoint {
                    endpoint.place_read(now, peer, place);
                }
            }
            Effect::Rested { streams, .. } => {
                at.on_rested(&streams);
                self.reach("a link with streams went to rest");
            }
            Effect::Woke { peer } => {
                at.on_woke(now, peer);
                self.reach("a link woke");
            }
            Effect::Record { peer, declaration, number, tag, payload } => {
                let (from, heard) =
                    (self.index_of(peer), self.nodes[node].store.heard.get(&(peer, declaration.stream)));
                let line =
                    format!("{node} gets {number} of {from}, heard {:?}", heard.map(|heard| heard.number));
                self.note(|| line);
                let at = &mut self.nodes[node];
                at.on_record(now, peer, &declaration, (number, tag), payload, &mut events);
            }
            Effect::Outcome { peer, stream, upto, outcomes } => {
                at.on_outcome(peer, stream, upto, &outcomes, &mut events);
            }
            Effect::Transient { peer, transient } => self.hear(node, peer, &transient),
            Effect::Waiting { .. } => self.reach("the sender was told to wait"),
            Effect::Settled { peer, stream, upto } => at.on_settled(peer, stream, upto),
            Effect::Forked { peer, stream } => at.on_forked(peer, stream, &mut events),
            Effect::Card { peer, card } => {
                for known in at.peers.iter_mut().filter(|known| known.node == peer) {
                    known.card = Some(card.clone());
                }
                self.reach("a card was fetched");
            }
            Effect::Address { peer, address } => {
                at.keep_address(peer, address);
                self.reach("an address was proven");
            }
            Effect::Misbehaved { peer, fault } => {
                let peer = self.index_of(peer);
                self.fail(format!("{node} finds that {peer} misbehaved: {fault}"));
            }
            Effect::Behind { known, .. } => self.behind.push((node, known)),
            Effect::Stranger { .. } => self.reach("a stranger said hello"),
            Effect::Peer { node: peer, state } => {
                let peer = self.index_of(peer);
                self.note(|| format!("{node} sees {peer} {state}"));
            }
        }
        for event in events {
            self.judge(node, event);
        }
    }

    /// Where the next datagram of a node seems to come from.
    fn source(&mut self, node: usize) -> SocketAddr {
        let address = self.nodes[node].address;
        let Some(Forwarder { ports, each }) = self.forwarder else { return address };
        let turn = (self.datagrams / each) % u64::from(ports);
        let seen = SocketAddr::new(address.ip(), FORWARDER_PORT + turn as u16);
        self.routes.insert(seen, node);
        seen
    }

    fn transmit(&mut self, node: usize, to: SocketAddr, bytes: Vec<u8>) {
        self.datagrams += 1;
        *self.kinds.entry(bytes[0]).or_default() += 1;
        if let Some(capture) = &mut self.capture {
            capture.push(bytes.clone());
        }
        assert!(bytes.len() <= self.nodes[node].datagram_bytes_max);
        *self.sent_to.entry(to).or_default() += bytes.len() as u64;
        if let Err(wrong) = self.witness.see(&bytes) {
            self.fail(format!("{node}: {wrong}"));
        }
        let from = self.source(node);
        let target = self.routes.get(&to).copied();
        let kind = bytes[0];
        let length = bytes.len();
        if target.is_some_and(|target| self.blocked.contains(&(node, target))) {
            self.reach("one-way partition");
            return;
        }
        if bytes.len() > link::limits::DATAGRAM_BYTES_MAX {
            self.reach("a datagram above 1,200 bytes");
        }
        if self.weather.datagram_bytes_max.is_some_and(|most| bytes.len() > most) {
            self.reach("too large for the path");
            return;
        }
        if (self.taken)(node, &bytes) {
            self.reach("taken away");
            return;
        }
        let lost = self.chance(self.weather.loss);
        self.note(|| format!("{node} → {target:?} {kind:#x} {length}{}", if lost { " lost" } else { "" }));
        if lost {
            self.reach("loss");
            return;
        }
        if self.weather.reflection > 0 && self.chance(self.weather.reflection) {
            self.reach("reflection");
            self.schedule(10_000, Happening::Arrives { from: to, to: from, bytes: bytes.clone() });
        }
        let copies = if self.chance(self.weather.duplication) { 2 } else { 1 };
        for _ in 1..copies {
            self.reach("duplication");
        }
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.chance(self.weather.corruption) {
                self.reach("corruption");
                let at = self.below(bytes.len() as u32) as usize;
                bytes[at] ^= 1 << self.below(8);
            }
            let jitter = self.weather.jitter_microseconds;
            let delay = 5_000 + u64::from(self.below(jitter));
            if jitter > 5_000 {
                self.reach("delay and reordering");
            }
            self.schedule(delay, Happening::Arrives { from, to, bytes });
        }
    }

    /// What a memo says of epochs: they are counted, and a node that just kept two roots may die of it.
    fn on_memo(&mut self, node: usize, before: &[u8; 256], place: &[u8; 256]) {
        let Ok(memo) = Memo::decode(place) else { return };
        let had_next = Memo::decode(before).is_ok_and(|memo| memo.pending.is_some_and(|held| held.epoch > 1));
        match (memo.current, memo.pending) {
            (Some(current), None) if current.epoch > 1 && had_next => self.reach("an epoch ended"),
            (Some(_), Some(next)) if next.epoch > 1 && self.kills_between_epochs => {
                self.die_soon(node, next.role);
            }
            _ => {}
        }
    }

    fn die_soon(&mut self, node: usize, role: Role) {
        if self.kill_after.is_some() || !self.chance(300) {
            return;
        }
        self.kill_after = Some((node, self.rng.next_u32() % 3));
        self.reach(match role {
            Role::Initiator => "the initiator killed with two roots",
            Role::Responder => "the responder killed with two roots",
        });
    }

    /// What must hold of what a node says to its app.
    fn judge(&mut self, node: usize, event: Event) {
        match event {
            Event::Applied { peer, stream, number, tag, payload } => {
                let from = self.index_of(peer);
                self.note(|| format!("{node} applies {number} of {from}"));
                if self.truth.get(&(peer, stream, number, tag)).is_none_or(|sent| sent[..] != payload[..]) {
                    self.fail(format!("{node} applied {number} that {from} never sent like this"));
                }
                self.check_order(node, peer, stream);
            }
            Event::Gap => {
                self.reach("gap");
                if !self.nodes[node].was_rolled_back {
                    self.fail(format!("{node} saw a gap and was never set back"));
                }
            }
            Event::Forked => self.reach("the receiver found a fork"),
            Event::ToldForked => {
                self.reach("the sender was told that it forked");
                if !self.nodes[node].was_rolled_back {
                    self.fail(format!("{node} was told that it forked and was never set back"));
                }
            }
            Event::Waited => self.reach("a record had to wait"),
            Event::Duplicate => self.reach("a record came again"),
            Event::Outcome { peer, stream, number, tag, fate } => {
                self.check_outcome(node, peer, (stream, number, tag), &fate);
            }
        }
    }

    /// Each record at most once, in order: one above the one before, or behind a named gap.
    fn check_order(&mut self, node: usize, peer: NodeId, stream: StreamId) {
        let store = &self.nodes[node].store;
        let numbers: Vec<u64> = store
            .applied
            .iter()
            .rev()
            .filter(|(from, of, ..)| *from == peer && *of == stream)
            .take(2)
            .map(|(_, _, number, ..)| *number)
            .collect();
        let before = numbers.get(1).copied().unwrap_or(0);
        let named = (before + 1..numbers[0]).all(|missing| store.gaps.contains(&(peer, stream, missing)));
        if numbers[0] <= before || !named {
            self.fail(format!("{node} applied {} after {before}", numbers[0]));
        }
    }

    /// What is said to be delivered or refused is committed so at the receiver, unless that was set back since.
    fn check_outcome(&mut self, node: usize, peer: NodeId, record: (StreamId, u64, Tag), fate: &Fate) {
        let (stream, number, tag) = record;
        let me = self.nodes[node].id();
        let receiver = self.index_of(peer);
        let there = &self.nodes[receiver];
        let was_rolled_back = there.was_rolled_back;
        let applied = there
            .disk
            .applied
            .iter()
            .find(|(from, of, at, with, _)| (*from, *of, *at, *with) == (me, stream, number, tag))
            .map(|(.., refused)| *refused);
        let payload = self.truth.get(&(me, stream, number, tag)).map_or(&[][..], |payload| payload);
        let expected = applied.map(|refused| match refused {
            false => Fate::Delivered(answer(payload)),
            true => Fate::Refused(cut(reason(payload))),
        });
        // A sender that was set back hears once more of what it had settled: that its answer is forgotten, not that it
        // never came.
        let is_forgotten = self.nodes[node].was_rolled_back && *fate == Fate::Delivered(None);
        let expected = if is_forgotten && matches!(expected, Some(Fate::Delivered(_))) {
            Some(Fate::Delivered(None))
        } else {
            expected
        };
        self.note(|| format!("{node} is told of {number} to {receiver}: {fate:?}"));
        if expected.as_ref() != Some(fate) && !was_rolled_back {
            self.fail(format!("{node} was told {fate:?} of {number} to {receiver}, it is {expected:?}"));
        }
        if matches!(fate, Fate::Refused(_)) {
            self.reach("a refusal arrived");
        }
        if matches!(fate, Fate::Delivered(Some(_))) {
            self.reach("an answer arrived");
        }
    }

    /// The next timer of a node that is awake, in the world's time.
    fn next_timer(&self) -> Option<(Time, usize)> {
        let timer = |node: &Node| {
            let at = node.endpoint.as_ref().filter(|_| self.asleep != Some(node.name))?.next_timeout()?;
            Some((Time(at.0.saturating_sub(node.clock_offset)), node.name))
        };
        self.nodes.iter().filter_map(timer).min()
    }

    /// A node dies after it carried out so many effects more.
    pub fn kill_after(&mut self, node: usize, effects: u32) {
        self.kill_after = Some((node, effects));
    }

    /// Whether nothing will ever happen by itself.
    pub fn is_at_rest(&self) -> bool {
        self.next_timer().is_none() && self.queue.is_empty()
    }

    /// One step: the next arrival, commit or timer. False if nothing will ever happen.
    pub fn step(&mut self, chaos: &mut dyn FnMut(&mut World)) -> bool {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            self.fail(format!("{STEPS_MAX} steps are not enough: something turns round and round"));
            return false;
        }
        let (wake, first) = (self.next_timer(), self.queue.first_key_value().map(|(key, _)| *key));
        match (wake, first) {
            (None, None) => return false,
            (Some((at, node)), first) if first.is_none_or(|(next, _)| at < next) => {
                self.now = self.now.max(at);
                self.on_endpoint(node, |endpoint, now| endpoint.handle_timeout(now));
                return true;
            }
            _ => {}
        }
        let Some(((at, _), happening)) = self.queue.pop_first() else { return false };
        self.now = self.now.max(at);
        match happening {
            Happening::Arrives { from, to, bytes } => {
                if let Some(node) = self.routes.get(&to).copied().filter(|node| self.asleep != Some(*node)) {
                    self.on_endpoint(node, |endpoint, now| endpoint.handle_datagram(now, from, &bytes));
                }
            }
            Happening::Commits { node, run } => {
                if self.nodes[node].runs == run && self.nodes[node].endpoint.is_some() {
                    let now = self.clock(node);
                    self.nodes[node].end_commit(now);
                    self.settle_effects(node);
                }
            }
            Happening::Chaos => chaos(self),
        }
        true
    }

    /// Runs without faults of the world's own until this time or until nothing will happen.
    pub fn run_until(&mut self, end: Time) {
        let is_over = |world: &World| {
            let timer = world.next_timer().map(|(at, _)| at);
            let first = world.queue.first_key_value().map(|((at, _), _)| *at);
            [timer, first].into_iter().flatten().min().is_none_or(|at| at > end)
        };
        while self.now < end && !is_over(self) && self.violation.is_none() && self.step(&mut |_| {}) {}
    }

    pub fn is_settled(&self) -> bool {
        self.nodes.iter().all(|node| {
            !node.dirty
                && node.committing.is_none()
                && node.store.outboxes.values().all(|outbox| outbox.rows.is_empty())
        })
    }

    /// Records that their sender believes delivered and their receiver never applied.
    pub fn falsely_delivered(&self) -> usize {
        let applied = |record: &(NodeId, StreamId, u64, Tag), me: NodeId| {
            let there = &self.nodes[self.index_of(record.0)].store.applied;
            there.iter().any(|(from, stream, number, tag, _)| {
                (*from, *stream, *number, *tag) == (me, record.1, record.2, record.3)
            })
        };
        let told = self.nodes.iter().flat_map(|node| node.store.fates.iter().map(|fate| (node.id(), fate)));
        told.filter(|(me, (record, fate))| matches!(fate, Fate::Delivered(_)) && !applied(record, *me))
            .count()
    }

    /// Notes what is not settled, for a trace that a person reads.
    pub fn note_unsettled(&mut self) {
        let mut lines = Vec::new();
        for node in &self.nodes {
            for (peer, outbox) in node.store.outboxes.iter().filter(|(_, outbox)| !outbox.rows.is_empty()) {
                let to = self.index_of(*peer);
                let heard =
                    self.nodes[to].store.heard.get(&(node.id(), outbox.stream)).map(|heard| heard.number);
                let status = node.endpoint.as_ref().and_then(|endpoint| endpoint.peer_status(*peer));
                let (from, oldest, last) = (node.name, outbox.oldest, outbox.last);
                lines.push(format!("{from} to {to}: {oldest}..={last} open, heard {heard:?}; {status:?}"));
            }
        }
        lines.into_iter().for_each(|line| self.note(|| line));
    }

    /// One fault of the world.
    pub fn fault(&mut self) {
        let node = self.below(self.nodes.len() as u32) as usize;
        let kind = self.below(FAULTS.len() as u32);
        let is_over = self.less.count.is_some_and(|count| self.faults.len() as u64 >= count);
        self.faults.push(kind);
        if is_over || self.less.without.contains(&kind) {
            return;
        }
        self.note(|| format!("{}: {node}", FAULTS[kind as usize]));
        match kind {
            0 => self.die(node),
            1 => self.kill_after = Some((node, self.rng.next_u32() % 12)),
            2 | 3 => self.revive(node),
            4 => self.weather = self.bad_weather(),
            5 => {
                let other = self.below(self.nodes.len() as u32) as usize;
                self.blocked.insert((node, other));
            }
            6 => self.blocked.clear(),
            7 if self.wanderer == Some(node) => self.wander(node),
            7 => self.move_away(node),
            8 => self.set_absent(node, true),
            9 => self.set_absent(node, false),
            10 => {
                self.backups.entry(node).or_insert_with(|| self.nodes[node].disk.clone());
            }
            11 if self.rollbacks => self.roll_back(node),
            15 if self.wanderer != Some(node) => self.forget_mapping(node),
            16 if self.chance(10) => self.sleep(node),
            _ => {
                let other = (node + 1 + self.below(self.nodes.len() as u32 - 1) as usize) % self.nodes.len();
                for _ in 0..self.below(12) {
                    let bytes = match self.below(12) {
                        0 if self.chance(100) => 100_000 + self.below(300_000),
                        0 => 801 + self.below(20_000),
                        1 => 0,
                        _ => self.below(900),
                    };
                    self.write(node, other, bytes as usize);
                    self.say(node, other);
                }
            }
        }
    }

    /// The router before a node maps it to another port, and the one before is nobody's. The node knows nothing of it.
    fn forget_mapping(&mut self, node: usize) {
        self.leave_home(node);
        self.forgotten.insert(node);
        self.reach("NAT rebinding");
    }

    /// A node sleeps for a day while the others go on. Its clock goes on, too.
    fn sleep(&mut self, node: usize) {
        self.reach("a pause of a day");
        self.asleep = Some(node);
        let start = self.now;
        let end = Time(start.0 + DAY);
        self.run_until(end);
        self.now = self.now.max(end);
        self.slept += self.now.0 - start.0;
        self.asleep = None;
        self.note(|| format!("{node} wakes"));
    }

    fn die(&mut self, node: usize) {
        if self.nodes[node].endpoint.is_some() {
            if self.nodes[node].committing.is_some() {
                self.reach("killed during a commit");
            }
            self.kill(node);
        }
    }

    fn bad_weather(&mut self) -> Weather {
        Weather {
            loss: self.below(300),
            duplication: self.below(100),
            corruption: self.below(50),
            reflection: self.below(50),
            jitter_microseconds: self.below(200_000),
            datagram_bytes_max: [None, Some(1_200), Some(1_400)][self.below(3) as usize],
        }
    }

    /// Starts a dead node again: with its memo, without it, with a damaged one, or with the one before the last save.
    pub fn revive(&mut self, node: usize) {
        if self.nodes[node].endpoint.is_some() {
            return;
        }
        match self.below(6) {
            0 => {
                self.reach("memo lost");
                self.nodes[node].memos.clear();
            }
            1 => {
                self.reach("memo rolled back");
                self.nodes[node].memos = self.nodes[node].memos_before.clone();
            }
            2 => {
                self.reach("memo damaged");
                let at = self.below(256) as usize;
                self.nodes[node].memos.values_mut().for_each(|place| place[at] ^= 4);
            }
            _ => self.reach("restart with the memo"),
        }
        self.start(node);
    }

    pub fn move_away(&mut self, node: usize) {
        self.next_port += 1;
        let (old, home) = (self.nodes[node].address, self.nodes[node].home);
        let new = SocketAddr::new(home.ip(), self.next_port);
        if old != home {
            self.routes.remove(&old);
        }
        self.routes.insert(new, node);
        self.nodes[node].address = new;
        self.reach("address change");
        self.note(|| format!("{node} moves to {new}"));
    }

    /// The process ends and starts again at another address; nothing goes to where it was.
    fn wander(&mut self, node: usize) {
        self.die(node);
        self.leave_home(node);
        self.revive(node);
    }

    /// A dead node will be at another address, and no more at any where it was.
    pub fn leave_home(&mut self, node: usize) {
        self.move_away(node);
        let (new, home) = (self.nodes[node].address, self.nodes[node].home);
        self.routes.retain(|address, at| *at != node || *address == new);
        assert_ne!(new, home);
        self.reach("left home");
    }

    pub fn set_absent(&mut self, node: usize, absent: bool) {
        self.nodes[node].absent = absent;
        if !absent {
            self.on_endpoint(node, |endpoint, now| endpoint.ready(now, "messenger"));
        }
    }

    /// Takes the disk of a node back to its backup. Runs go on counting.
    pub fn roll_back(&mut self, node: usize) {
        let Some(backup) = self.backups.remove(&node) else { return };
        self.reach("store rolled back");
        self.kill(node);
        self.nodes[node].disk = backup;
        self.nodes[node].was_rolled_back = true;
        self.start(node);
    }

    pub fn back_up(&mut self, node: usize) {
        self.backups.insert(node, self.nodes[node].disk.clone());
    }

    /// The network and all nodes are well again.
    pub fn heal(&mut self) {
        self.weather = Weather::default();
        self.blocked.clear();
        self.kill_after = None;
        self.kills_between_epochs = false;
        for node in std::mem::take(&mut self.forgotten) {
            // Who is at rest and not where anybody knows is found when it speaks: after its start it does.
            self.die(node);
            let home = self.nodes[node].home;
            self.routes.insert(home, node);
        }
        for node in 0..self.nodes.len() {
            self.set_absent(node, false);
            self.revive(node);
        }
        self.note(|| "the world is healed".into());
    }
}

fn cut(mut reason: String) -> String {
    reason.truncate(link::limits::REASON_BYTES_MAX);
    reason
}
