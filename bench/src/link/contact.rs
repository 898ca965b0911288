//! `hello_cpu`: a first contact, from a held card to `stored`. `restart_pk`: what asks for public keys after a restart.

use super::load::Load;
use super::network::SECOND;
use super::ours::{address, declaration, endpoint, peer, record};
use super::processor_time;
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use ::link::{Effect, Endpoint, MemoPlace, Time};
use sealing::memo::Memo;
use sealing::{Card, NodeId, Root};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

pub const HELLO_CPU: Declared = Declared {
    name: "hello_cpu",
    unit: "µs/contact",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: None, limit: 250.0 }],
};
pub const RESTART_PK: Declared = Declared {
    name: "restart_pk",
    unit: "operations",
    better: Better::Lower,
    counter: true,
    bars: &[Bar { of: "ours", against: None, limit: 0.0 }],
};

const RECORD_BYTES: usize = 61;
/// Contacts of a trial of `hello_cpu`.
const CONTACTS: usize = 500;
/// Nodes that say hello to one in a second of `restart_pk`: fewer than it opens.
const HELLOS_A_SECOND: u64 = 200;
/// What a restart is given for all links, in virtual time.
const RESTART_SECONDS_MAX: u64 = 600;
const STEP: u64 = SECOND / 100;
/// Kinds of datagrams that are made by public-key operations: a hello's piece, an answer (docs/link.md, 1.1).
const HELLO: u8 = 0x51;
const ANSWER: u8 = 0x52;

/// A node with its address and what it keeps.
struct Node {
    endpoint: Endpoint,
    card: Card,
    address: SocketAddr,
    memos: BTreeMap<NodeId, MemoPlace>,
    /// Records that came, and records of its own that have their outcome.
    heard: u64,
    outcomes: u64,
    /// Datagrams and places that were made by public-key operations.
    operations: u64,
}

impl Node {
    fn new(number: u64) -> Node {
        let (endpoint, card) = endpoint(number, 1);
        Node {
            endpoint,
            card,
            address: address(number),
            memos: BTreeMap::new(),
            heard: 0,
            outcomes: 0,
            operations: 0,
        }
    }

    /// Carries out what it asks for; its datagrams go to `sent`.
    fn carry_out(&mut self, now: Time, load: &Load, sent: &mut VecDeque<Sent>) -> Result<(), BenchError> {
        while let Some(effect) = self.endpoint.poll_effect() {
            match effect {
                Effect::Datagram { to, bytes } => {
                    self.operations += u64::from(matches!(bytes.first(), Some(&(HELLO | ANSWER))));
                    sent.push_back(Sent { from: self.address, to, bytes });
                }
                Effect::SaveMemo { peer, place } => {
                    let before = self.memos.insert(peer, place);
                    self.operations += u64::from(before.is_none_or(|before| root(&before) != root(&place)));
                }
                Effect::Record { peer, declaration, number, payload, .. } => {
                    load.check("our link", number, 0, &payload)?;
                    self.heard += 1;
                    self.endpoint.stored(now, peer, declaration.stream, number, Vec::new());
                }
                Effect::Outcome { peer, stream, upto, .. } => {
                    self.outcomes += 1;
                    self.endpoint.settled(now, peer, stream, upto);
                }
                Effect::ReadMemo { peer } => {
                    let place = self.memos.get(&peer).copied();
                    self.endpoint.place_read(now, peer, place);
                }
                Effect::Misbehaved { fault, .. } => return Err(BenchError::Process(fault.to_string())),
                _ => {}
            }
        }
        Ok(())
    }

    fn say(&mut self, now: Time, to: NodeId, number: u64, load: &Load) -> Result<(), BenchError> {
        let record = record(0, number, Arc::clone(load.payload(number)));
        let sent = self.endpoint.send(now, to, record);
        sent.map_err(|error| BenchError::Process(error.to_string()))
    }
}

fn root(MemoPlace(place): &MemoPlace) -> Option<Root> {
    Memo::decode(place).ok()?.current.map(|held| held.root)
}

/// A datagram on its way.
struct Sent {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

pub fn measure_hello(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |contacts: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        Ok(vec![Box::new(Hello { contacts })])
    };
    let settings = settings(&[("record_bytes", json!(RECORD_BYTES))]);
    let sizes = sizes(extent, 5, CONTACTS, &[]);
    crate::suite::measure(declared, &sizes, |contacts| format!("{contacts} contacts"), contenders, settings)
}

struct Hello {
    contacts: usize,
}

impl Contender for Hello {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let (load, now) = (Load::new(RECORD_BYTES), Time(SECOND));
        let mut spent = 0.0;
        for contact in 0..self.contacts as u64 {
            let (mut one, mut other) = (Node::new(2 * contact), Node::new(2 * contact + 1));
            let (of_one, of_other) =
                (peer(&one.card, one.address, None), peer(&other.card, other.address, None));
            let node = of_other.node;
            other.endpoint.add_peer(now, of_one);
            // It greets of its own only if nobody else does.
            let mut sent = VecDeque::new();
            other.carry_out(now, &load, &mut sent)?;
            sent.clear();
            let before = processor_time();
            one.endpoint.add_peer(now, of_other);
            one.endpoint.declare(now, node, declaration(0));
            one.say(now, node, 1, &load)?;
            one.carry_out(now, &load, &mut sent)?;
            while let (0, Some(Sent { from, to, bytes })) = (one.outcomes, sent.pop_front()) {
                let at = if to == one.address { &mut one } else { &mut other };
                at.endpoint.handle_datagram(now, from, &bytes);
                at.carry_out(now, &load, &mut sent)?;
            }
            spent += (processor_time() - before).as_secs_f64();
            BenchError::unless(
                "a first contact",
                "1 heard, 1 told",
                format!("{} heard, {} told", other.heard, one.outcomes),
            )?;
        }
        Ok(spent * 1e6 / self.contacts as f64)
    }
}

pub fn measure_restart(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |links: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        Ok(vec![Box::new(Restart { links })])
    };
    let settings = settings(&[("record_bytes", json!(RECORD_BYTES))]);
    let sizes = sizes(extent, 20, 10_000, &[]);
    crate::suite::measure(declared, &sizes, |links| format!("{links} links"), contenders, settings)
}

struct Restart {
    links: usize,
}

impl Contender for Restart {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let mut star = Star::new(self.links);
        star.greet_all()?;
        let before = star.operations();
        star.restart_hub()?;
        Ok((star.operations() - before) as f64)
    }
}

/// One node with a link to each of many others.
struct Star {
    now: u64,
    load: Load,
    hub: Node,
    others: Vec<Node>,
    by_address: BTreeMap<SocketAddr, usize>,
}

impl Star {
    fn new(links: usize) -> Star {
        let others: Vec<Node> = (1..=links as u64).map(Node::new).collect();
        let by_address = (0..).zip(&others).map(|(at, node)| (node.address, at)).collect();
        Star { now: SECOND, load: Load::new(RECORD_BYTES), hub: Node::new(0), others, by_address }
    }

    fn operations(&self) -> u64 {
        self.hub.operations + self.others.iter().map(|node| node.operations).sum::<u64>()
    }

    /// Every other one says hello with a record, until all were stored.
    fn greet_all(&mut self) -> Result<(), BenchError> {
        let hub = (self.hub.card.node(), peer(&self.hub.card, self.hub.address, None));
        for at in 0..self.others.len() {
            let now = Time(self.now);
            let other = &mut self.others[at];
            self.hub.endpoint.add_peer(now, peer(&other.card, other.address, None));
            other.endpoint.add_peer(now, hub.1.clone());
            other.endpoint.declare(now, hub.0, declaration(0));
            other.say(now, hub.0, 1, &self.load)?;
            self.step(SECOND / HELLOS_A_SECOND)?;
        }
        self.run_until_told(1)
    }

    /// The hub dies and starts with its memos, and each other one has a record for it.
    fn restart_hub(&mut self) -> Result<(), BenchError> {
        let now = Time(self.now);
        self.hub.endpoint = endpoint(0, 2).0;
        for at in 0..self.others.len() {
            let other = &mut self.others[at];
            let memo = self.hub.memos.get(&other.card.node()).copied();
            self.hub.endpoint.add_peer(now, peer(&other.card, other.address, memo));
            other.say(now, self.hub.card.node(), 2, &self.load)?;
        }
        self.run_until_told(2)
    }

    fn run_until_told(&mut self, outcomes: u64) -> Result<(), BenchError> {
        let end = self.now + RESTART_SECONDS_MAX * SECOND;
        while self.others.iter().any(|node| node.outcomes < outcomes) {
            if self.now >= end {
                let missing = self.others.iter().filter(|node| node.outcomes < outcomes).count();
                return Err(BenchError::Process(format!("{missing} links have no outcome")));
            }
            self.step(STEP)?;
        }
        Ok(())
    }

    /// All timers that are due, and all datagrams, until nothing is on its way; then so much later.
    fn step(&mut self, microseconds: u64) -> Result<(), BenchError> {
        let (now, mut sent) = (Time(self.now), VecDeque::new());
        for node in std::iter::once(&mut self.hub).chain(&mut self.others) {
            if node.endpoint.next_timeout().is_some_and(|at| at <= now) {
                node.endpoint.handle_timeout(now);
            }
            node.carry_out(now, &self.load, &mut sent)?;
        }
        while let Some(Sent { from, to, bytes }) = sent.pop_front() {
            let node = match self.by_address.get(&to) {
                Some(at) => &mut self.others[*at],
                None => &mut self.hub,
            };
            node.endpoint.handle_datagram(now, from, &bytes);
            node.carry_out(now, &self.load, &mut sent)?;
        }
        self.now += microseconds;
        Ok(())
    }
}
