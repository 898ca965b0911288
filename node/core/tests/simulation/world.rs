//! The world of one seed: nodes, their disks, the network between them, and what happens when.

use crate::APP;
use crate::crowd;
use crate::web::{SimulatedWeb, Way};
use engine::Snapshot;
use link::{Command, Config, Effect as LinkEffect, Endpoint, Time};
use node_core::{
    Control, Core, Effect, Input, Out, OutboxSizes, Post, PostError, Recovery, Reply, ReplyId, Source, Start,
    WebAnswer, WebTry,
};
use sealing::{Identity, NodeId, Run};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;
use std::sync::Arc;
use store::{Appended, Checkpoints, Log, Memory, Progress, Sizes, Storage};

/// Nodes of all stories but [`Story::Crowd`].
pub(crate) const NODES: usize = 2;
/// Virtual microseconds in which faults happen.
const STORM: u64 = 20_000_000;
/// Virtual microseconds until all must be settled once the faults ended: a few times the longest wait between probes.
const CALM: u64 = 400_000_000;
/// Posts at once: twice a window.
const BURST: usize = 2 * link::WINDOW_RECORDS;
/// The port at which others look for a node first.
const USUAL_PORT: u16 = 999;

/// Segments as small as a few records, and checkpoints as often.
const SIZES: Sizes = Sizes { first: 256 << 10, most: 256 << 10, checkpoint: 12 << 10 };

/// SplitMix64.
pub(crate) struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Datagram {
        to: SocketAddr,
        from: SocketAddr,
        bytes: Vec<u8>,
    },
    Synced {
        node: usize,
        life: u64,
    },
    /// The next step of a checkpoint.
    Step {
        node: usize,
        life: u64,
    },
    Wake {
        node: usize,
        life: u64,
    },
    Due {
        node: usize,
        life: u64,
    },
    /// A try leaves, if its process is still there.
    Attempt {
        node: usize,
        life: u64,
        attempt: WebTry,
    },
    /// It arrives, whatever became of its process.
    Asked {
        node: usize,
        life: u64,
        attempt: WebTry,
    },
    Answered {
        node: usize,
        life: u64,
        answer: WebAnswer,
    },
    Post {
        node: usize,
    },
    LastWord {
        node: usize,
    },
    /// Many at once: more than a window holds.
    Burst {
        node: usize,
    },
    Kill {
        node: usize,
        power: bool,
    },
    Backup {
        node: usize,
    },
    SetBack {
        node: usize,
    },
    Start {
        node: usize,
    },
}

pub(crate) struct Running {
    pub(crate) core: Core,
    pub(crate) log: Log<Memory>,
    pub(crate) checkpoints: Checkpoints<Memory>,
    pub(crate) endpoint: Endpoint,
    pub(crate) appended: Option<Appended>,
    /// When the core wants to be told the time.
    pub(crate) wake: Option<i64>,
    pub(crate) published: Option<Snapshot>,
    pub(crate) address: SocketAddr,
}

pub(crate) struct Node {
    pub(crate) identity: Arc<Identity>,
    pub(crate) storage: Memory,
    pub(crate) memos: BTreeMap<NodeId, [u8; 256]>,
    pub(crate) running: Option<Running>,
    pub(crate) life: u64,
    pub(crate) next_number: u64,
    /// Numbers whose post was answered.
    pub(crate) answered: BTreeSet<u64>,
    pub(crate) backup: Option<Memory>,
    pub(crate) asked: BTreeMap<ReplyId, u64>,
}

/// What is lived through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    /// Nothing is lost, whatever fails.
    Faults,
    /// Node 1 is once set back to an old copy of its folder: then something may be missing, but never twice and never
    /// without a word.
    SetBack,
    /// More is sent than there is room for.
    Crowd,
}

/// How often each fault was reached.
pub(crate) type Reached = BTreeMap<&'static str, u64>;

pub(crate) const FAULTS: [&str; 17] = [
    "checkpoint",
    "from a checkpoint",
    "timer",
    "lost",
    "doubled",
    "killed",
    "power cut",
    "memo lost",
    "moved",
    "refused",
    "burst",
    "hinted",
    "web lost",
    "web failed",
    "web answer lost",
    "web asked again",
    "answered",
];

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) chance: Chance,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    pub(crate) nodes: Vec<Node>,
    calm: bool,
    pub(crate) web: SimulatedWeb,
    story: Story,
    pub(crate) reached: Reached,
    trace: bool,
}

fn address(node: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8 + 1], port))
}

fn node_at(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(v4) => usize::from(v4.ip().octets()[3] - 1),
        SocketAddr::V6(_) => unreachable!("the network is IPv4"),
    }
}

impl World {
    pub(crate) fn new(seed: u64, story: Story) -> World {
        let mut chance = Chance(seed);
        let nodes = (0..if story == Story::Crowd { crowd::NODES } else { NODES })
            .map(|_| Node {
                identity: Arc::new(Identity::from_seed(&chance.bytes())),
                storage: Memory::new(chance.next()),
                memos: BTreeMap::new(),
                running: None,
                life: 0,
                next_number: 1,
                answered: BTreeSet::new(),
                backup: None,
                asked: BTreeMap::new(),
            })
            .collect();
        World {
            seed,
            chance,
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            nodes,
            calm: false,
            web: SimulatedWeb::default(),
            story,
            reached: Reached::new(),
            trace: std::env::var("SELVEDGE_SEED").is_ok(),
        }
    }

    fn plan(&mut self, after: u64, happening: Happening) {
        self.order += 1;
        self.queue.push(Reverse((self.now + after, self.order, happening)));
    }

    pub(crate) fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].running.is_some() {
            return;
        }
        let mut port = USUAL_PORT;
        // The others stay: of two that both moved neither knows where the other is, and nobody can help them.
        if node == 1 && self.chance.one_in(3) {
            self.reach("moved");
            port = 1000 + self.chance.below(1000) as u16;
        }
        if self.chance.one_in(6) && !self.nodes[node].memos.is_empty() {
            self.reach("memo lost");
            self.nodes[node].memos.clear();
        }
        let running = self.recover(node, address(node, port));
        self.nodes[node].life += 1;
        self.nodes[node].running = Some(running);
        self.introduce(node);
        self.carry_out(node);
    }

    fn recover(&mut self, node: usize, address: SocketAddr) -> Running {
        let seed = self.seed;
        let (texts, settings, sizes) = match self.story {
            Story::Crowd => (&[crowd::APP, crowd::STUCK][..], Vec::new(), crowd::SIZES),
            Story::Faults | Story::SetBack => {
                let settings = vec![("hook".to_owned(), "\"https://hook.example/\"".to_owned())];
                (&[APP][..], settings, OutboxSizes::default())
            }
        };
        let source = |text: &&str| {
            let module = weft::compile(text, "a.weft").unwrap_or_else(|errors| panic!("{errors}"));
            Source { text: (*text).to_owned(), module, settings: settings.clone(), allow_loss: false }
        };
        let apps = texts.iter().map(source).collect();
        let mut recovery = Recovery::default();
        let storage = self.nodes[node].storage.clone();
        let entropy = self.chance.bytes();
        let (log, opened) = Log::open_sized(storage, SIZES, entropy, &mut |change| recovery.change(change))
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        if opened.checkpoint.is_some() {
            self.reach("from a checkpoint");
        }
        let run = Run { counter: opened.run, random: self.chance.bytes() };
        let identity = Arc::clone(&self.nodes[node].identity);
        let me = identity.id();
        let start = Start {
            me,
            run,
            entropy: self.chance.bytes(),
            now: 0,
            synced: opened.synced,
            apps,
            notices: Vec::new(),
        };
        let core = recovery.start_sized(start, sizes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let card = identity.card(1);
        let run = core.run();
        let (entropy, record_bytes_max) = (self.chance.bytes(), node_core::RECORD_BYTES_MAX);
        let endpoint = Endpoint::new(Config { identity, card, run, entropy, record_bytes_max });
        let checkpoints = log.checkpoints();
        Running { core, log, checkpoints, endpoint, appended: None, wake: None, published: None, address }
    }

    /// Each start is given the others' tickets again, as a person might; the first time it is needed.
    fn introduce(&mut self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let ticket = self.nodes[other].identity.ticket(1, &[address(other, USUAL_PORT)]);
            let control = Control::AddPeer { ticket, name: format!("node {other}"), addresses: Vec::new() };
            self.handle(node, Input::Control { reply: ReplyId(u64::MAX), control });
        }
    }

    pub(crate) fn handle(&mut self, node: usize, input: Input) {
        let now = (self.now / 1000) as i64;
        if let Some(running) = &mut self.nodes[node].running {
            running.core.handle(now, input);
        }
    }

    /// Carries out what core and endpoint ask, until they ask nothing more.
    pub(crate) fn carry_out(&mut self, node: usize) {
        while let Some(running) = &mut self.nodes[node].running {
            if let Some(effect) = running.core.poll_effect() {
                self.carry_out_core(node, effect);
            } else if let Some(effect) = running.endpoint.poll_effect() {
                self.carry_out_link(node, effect);
            } else {
                break;
            }
        }
        let life = self.nodes[node].life;
        let due = self.nodes[node].running.as_ref().and_then(|running| running.endpoint.next_timeout());
        if let Some(Time(at)) = due {
            self.plan(at.saturating_sub(self.now), Happening::Wake { node, life });
        }
    }

    fn carry_out_core(&mut self, node: usize, effect: Effect) {
        let (now, seed, life) = (Time(self.now), self.seed, self.nodes[node].life);
        let this = &mut self.nodes[node];
        let Some(running) = &mut this.running else { return };
        match effect {
            Effect::Append { sequence, changes } => {
                let appended = running.log.append(sequence, &changes);
                running.appended = Some(appended.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
                let after = 100 + self.chance.below(10_000);
                self.plan(after, Happening::Synced { node, life });
            }
            Effect::Checkpoint { synced, image } => {
                running.checkpoints.begin(synced, Box::new(image.into_rows()));
                let after = self.chance.below(5_000);
                self.plan(after, Happening::Step { node, life });
            }
            Effect::WakeAt(wake) => {
                running.wake = wake;
                if let Some(at) = wake {
                    let at = (at.max(0) as u64).saturating_mul(1000);
                    self.plan(at.saturating_sub(self.now), Happening::Due { node, life });
                }
            }
            Effect::Out(released) => match released.into_inner() {
                Out::Publish { app, .. } if app == "stuck" => {}
                Out::Publish { snapshot, .. } => running.published = Some(snapshot),
                Out::Outdate { .. } => running.published = None,
                Out::Link(mut command) => {
                    if let Command::AddPeer(peer) = &mut command {
                        peer.memo = this.memos.get(&peer.node).copied().map(link::MemoPlace);
                    }
                    running.endpoint.command(now, command).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
                }
                Out::Web(attempt) => {
                    let after = attempt.after_milliseconds * 1000;
                    self.plan(after, Happening::Attempt { node, life, attempt });
                }
                Out::Reply { reply: Reply::Sends(sends), .. } => crowd::check_bound(seed, &sends),
                Out::Reply { reply: Reply::Refused(PostError::Refused(_)), .. } => self.reach("full"),
                Out::Reply { to, reply } => {
                    if let (Some(number), Reply::Applied(_)) = (this.asked.remove(&to), reply) {
                        this.answered.insert(number);
                    }
                }
            },
        }
    }

    fn carry_out_link(&mut self, node: usize, effect: LinkEffect) {
        match effect {
            LinkEffect::SaveMemo { peer, place } => {
                self.nodes[node].memos.insert(peer, place.0);
            }
            LinkEffect::ReadMemo { peer } => {
                let place = self.nodes[node].memos.get(&peer).copied().map(link::MemoPlace);
                let now = Time(self.now);
                if let Some(running) = &mut self.nodes[node].running {
                    running.endpoint.place_read(now, peer, place);
                }
            }
            LinkEffect::Datagram { to, bytes } => self.send(node, to, bytes),
            LinkEffect::Waiting { ref reason, .. }
                if reason.starts_with("no room for what it would send") =>
            {
                self.reach("held");
                self.handle(node, Input::Link(effect));
            }
            LinkEffect::Forked { peer, stream } if self.story != Story::SetBack => {
                panic!("seed {}: {peer} says forked {stream:?}", self.seed)
            }
            effect => self.handle(node, Input::Link(effect)),
        }
    }

    fn send(&mut self, node: usize, to: SocketAddr, bytes: Vec<u8>) {
        let Some(running) = &self.nodes[node].running else { return };
        let from = running.address;
        let copies = match (self.calm, self.chance.below(20)) {
            (true, _) | (false, 4..) => 1,
            (false, 3) => 2,
            (false, _) => 0,
        };
        match copies {
            0 => self.reach("lost"),
            2 => self.reach("doubled"),
            _ => {}
        }
        for _ in 0..copies {
            let after = 1_000 + self.chance.below(20_000);
            self.plan(after, Happening::Datagram { to, from, bytes: bytes.clone() });
        }
    }

    fn happen(&mut self, happening: Happening) {
        if self.trace {
            match &happening {
                Happening::Datagram { to, from, bytes } => {
                    eprintln!("{:>12} {from} -> {to}: {} bytes", self.now, bytes.len());
                }
                other => eprintln!("{:>12} {other:?}", self.now),
            }
        }
        match happening {
            Happening::Datagram { to, from, bytes } => {
                let (node, now) = (node_at(to), Time(self.now));
                if let Some(running) = self.nodes[node].running.as_mut().filter(|r| r.address == to) {
                    running.endpoint.handle_datagram(now, from, &bytes);
                    self.carry_out(node);
                }
            }
            Happening::Synced { node, life } => self.sync(node, life),
            Happening::Step { node, life } => self.step(node, life),
            Happening::Wake { node, life } => self.wake(node, life),
            Happening::Due { node, life } => self.due(node, life),
            Happening::Attempt { node, life, attempt } => {
                if self.nodes[node].life == life {
                    let after = 1_000 + self.chance.below(20_000);
                    self.plan(after, Happening::Asked { node, life, attempt });
                }
            }
            Happening::Asked { node, life, attempt } => self.ask_web(node, life, attempt),
            Happening::Answered { node, life, answer } => self.hear_web(node, life, answer),
            Happening::Post { node } if self.story == Story::Crowd => self.fill(node),
            Happening::Post { node } => self.post(node, None),
            Happening::LastWord { node } => {
                (0..NODES).filter(|to| *to != node).for_each(|to| self.post(node, Some(to)));
            }
            Happening::Burst { node } => {
                let to = self.chance.below(NODES as u64) as usize;
                self.reach("burst");
                for _ in 0..BURST {
                    self.post(node, Some(to));
                }
            }
            Happening::Kill { node, power } => self.kill(node, power),
            Happening::Backup { node } => self.nodes[node].backup = Some(self.copy_of_folder(node)),
            Happening::SetBack { node } => self.set_back(node),
            Happening::Start { node } => self.start(node),
        }
    }

    fn ask_web(&mut self, node: usize, life: u64, attempt: WebTry) {
        let way = Way::by(&mut self.chance, self.calm);
        let (outcome, after, reached) = self.web.ask(node, &attempt, way, &mut self.chance);
        reached.into_iter().for_each(|what| self.reach(what));
        let answer = WebAnswer { route: attempt.route, number: attempt.number, outcome };
        self.plan(after, Happening::Answered { node, life, answer });
    }

    fn hear_web(&mut self, node: usize, life: u64, answer: WebAnswer) {
        let this = &self.nodes[node];
        let Some(running) = this.running.as_ref().filter(|_| this.life == life) else { return };
        if !running.core.has_room() {
            return self.plan(1_000, Happening::Answered { node, life, answer });
        }
        self.handle(node, Input::Web(answer));
        self.carry_out(node);
    }

    /// As a person copies a folder: what a process would read there now.
    fn copy_of_folder(&mut self, node: usize) -> Memory {
        let mut storage = self.nodes[node].storage.clone();
        let copy = Memory::new(self.chance.next());
        for name in storage.list().expect("the folder is there") {
            copy.put(&name, storage.contents(&name).expect("it was listed"));
        }
        copy
    }

    fn set_back(&mut self, node: usize) {
        self.kill(node, false);
        if let Some(backup) = self.nodes[node].backup.take() {
            self.reach("set back");
            self.nodes[node].storage = backup;
            self.nodes[node].answered.clear();
        }
    }

    fn wake(&mut self, node: usize, life: u64) {
        let now = Time(self.now);
        if self.nodes[node].life == life
            && let Some(running) = &mut self.nodes[node].running
            && running.endpoint.next_timeout().is_some_and(|at| at <= now)
        {
            running.endpoint.handle_timeout(now);
            self.carry_out(node);
        }
    }

    fn due(&mut self, node: usize, life: u64) {
        let now = (self.now / 1000) as i64;
        let this = &self.nodes[node];
        let running = this.running.as_ref().filter(|_| this.life == life);
        let running = running.filter(|running| running.wake.is_some_and(|at| at <= now));
        let Some(running) = running else { return };
        let (wake, has_room) = (running.wake, running.core.has_room());
        if has_room {
            self.reach("timer");
            self.handle(node, Input::Time);
            self.carry_out(node);
        }
        // While a batch is full its owner takes nothing but the sync.
        if self.nodes[node].running.as_ref().is_some_and(|running| running.wake == wake) {
            self.plan(1_000, Happening::Due { node, life });
        }
    }

    fn sync(&mut self, node: usize, life: u64) {
        let this = &mut self.nodes[node];
        let Some(running) = this.running.as_mut().filter(|_| this.life == life) else { return };
        let Some(appended) = running.appended.take() else { return };
        let synced = running.log.sync(appended).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let due = running.log.checkpoint_is_due() && !running.checkpoints.is_busy();
        self.handle(node, Input::Synced(synced));
        if due {
            self.handle(node, Input::CheckpointDue);
        }
        self.carry_out(node);
    }

    fn step(&mut self, node: usize, life: u64) {
        let this = &mut self.nodes[node];
        let Some(running) = this.running.as_mut().filter(|_| this.life == life) else { return };
        match running.checkpoints.step().unwrap_or_else(|error| panic!("seed {}: {error}", self.seed)) {
            Some(Progress::More) => {
                let after = 100 + self.chance.below(5_000);
                self.plan(after, Happening::Step { node, life });
            }
            Some(Progress::Done(installed)) => {
                running.log.checkpointed(installed);
                self.reach("checkpoint");
            }
            None => {}
        }
    }

    fn post(&mut self, node: usize, to: Option<usize>) {
        let to = to.unwrap_or_else(|| self.chance.below(NODES as u64) as usize);
        let to = self.nodes[to].identity.id();
        let this = &mut self.nodes[node];
        if this.running.is_none() {
            return;
        }
        let number = this.next_number;
        this.next_number += 1;
        let reply = ReplyId(number);
        this.asked.insert(reply, number);
        let post = Post {
            reply,
            app: "echo".to_owned(),
            input: "write".to_owned(),
            body: format!(r#"{{"to":"{to}","number":{number}}}"#).into_bytes(),
            by: "local".to_owned(),
            idempotency_key: None,
        };
        // As the process around it does, posts wait while the batch is full: here they are not taken.
        if this.running.as_ref().is_some_and(|running| running.core.has_room()) {
            self.handle(node, Input::Post(post));
            self.carry_out(node);
        }
    }

    fn kill(&mut self, node: usize, power: bool) {
        let this = &mut self.nodes[node];
        if this.running.take().is_none() {
            return;
        }
        this.life += 1;
        this.asked.clear();
        if power {
            this.storage.power_cut();
        }
        this.storage.restart();
        self.reach(if power { "power cut" } else { "killed" });
        let after = self.chance.below(500_000);
        self.plan(after, Happening::Start { node });
    }

    pub(crate) fn run(&mut self) {
        for node in 0..self.nodes.len() {
            self.start(node);
            for _ in 0..25 {
                let at = self.chance.below(STORM);
                self.plan(at, Happening::Post { node });
            }
            if self.story != Story::Crowd && self.chance.one_in(4) {
                let at = self.chance.below(STORM);
                self.plan(at, Happening::Burst { node });
            }
            for _ in 0..self.chance.below(6) {
                let (at, power) = (self.chance.below(STORM), self.chance.one_in(2));
                self.plan(at, Happening::Kill { node, power });
            }
        }
        if self.story == Story::SetBack {
            // A last word each way: what is missing is named when the sender speaks next.
            for node in 0..NODES {
                self.plan(STORM + CALM / 2, Happening::LastWord { node });
            }
            let backup_at = self.chance.below(STORM / 2);
            let set_back_at = backup_at + self.chance.below(STORM - backup_at);
            self.plan(backup_at, Happening::Backup { node: 1 });
            self.plan(set_back_at, Happening::SetBack { node: 1 });
        }
        while let Some(Reverse((at, _, happening))) = self.queue.pop() {
            if at > STORM + CALM {
                break;
            }
            self.now = at;
            if at > STORM && !self.calm {
                self.calm = true;
                (0..self.nodes.len()).for_each(|node| self.start(node));
            }
            self.happen(happening);
        }
        match self.story {
            Story::Faults => (0..NODES).for_each(|from| self.check(from)),
            Story::SetBack => (0..NODES).for_each(|from| self.check_set_back(from)),
            Story::Crowd => self.check_crowd(),
        }
    }
}
