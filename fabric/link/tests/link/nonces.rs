//! No key and nonce seals twice, whatever happens to folders and processes: restarts, restored folders with their count of
//! starts, copies that run at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use link::{Config, Declaration, Effect, Endpoint, MemoPlace, Peer, Record, StreamId, Time};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sealing::{Identity, NodeId, Run, Tag};

use crate::seeds::number;
use crate::witness::Witness;

/// Packets and hails that a usual run seals; the long form has a million.
const SEALS: u64 = 20_000;

/// One folder and the process on it.
#[derive(Clone, Default)]
struct Folder {
    runs: u64,
    memos: BTreeMap<NodeId, MemoPlace>,
}

struct Copy {
    identity: Arc<Identity>,
    address: SocketAddr,
    folder: Folder,
    backup: Folder,
    endpoint: Option<Endpoint>,
    stream: StreamId,
    next: u64,
}

struct Fabric {
    rng: ChaCha20Rng,
    now: Time,
    /// Two nodes, and a copy of each that runs now and then.
    copies: Vec<Copy>,
    queue: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    witness: Witness,
    reached: BTreeMap<&'static str, u64>,
    /// Records that were heard.
    heard: u64,
}

impl Fabric {
    fn new(seed: u64) -> Fabric {
        let copies = (0..4u8).map(|at| Copy {
            identity: Arc::new(Identity::from_seed(&[at % 2 + 1; 64])),
            address: SocketAddr::from(([10, 0, 0, at + 1], 4000)),
            folder: Folder::default(),
            backup: Folder::default(),
            endpoint: None,
            stream: StreamId([0; 16]),
            next: 1,
        });
        let mut fabric = Fabric {
            rng: ChaCha20Rng::seed_from_u64(seed),
            now: Time(1_000_000),
            copies: copies.collect(),
            queue: Vec::new(),
            witness: Witness::default(),
            reached: BTreeMap::new(),
            heard: 0,
        };
        fabric.start(0);
        fabric.start(1);
        fabric
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound as u64) as usize
    }

    /// A process starts on its folder: the next run, whose count is on disk before anything leaves.
    fn start(&mut self, at: usize) {
        let mut entropy = [0; 32];
        self.rng.fill_bytes(&mut entropy);
        let (other, known) = (1 - at % 2, [self.copies[0].address, self.copies[1].address]);
        let card = self.copies[other].identity.card(1);
        let copy = &mut self.copies[at];
        copy.folder.runs += 1;
        let mut random = [0; 16];
        random.copy_from_slice(&entropy[..16]);
        let run = Run { counter: copy.folder.runs, random };
        let identity = copy.identity.clone();
        self.witness.learn_run(identity.id(), run);
        let own = identity.card(1);
        let record_bytes_max = link::RECORD_BYTES_MAX;
        let mut endpoint = Endpoint::new(Config { identity, card: own, run, entropy, record_bytes_max });
        let node = card.node();
        let memo = copy.folder.memos.get(&node).copied();
        let addresses = vec![known[other]];
        endpoint.add_peer(self.now, Peer { node, card_hash: None, card: Some(card), addresses, memo });
        copy.stream = StreamId(random);
        copy.next = 1;
        let declaration = Declaration {
            stream: copy.stream,
            from_app: "a".into(),
            to_app: "b".into(),
            oldest: 1,
            tag_before: Tag([0; 8]),
            last: 0,
        };
        endpoint.declare(self.now, node, declaration);
        copy.endpoint = Some(endpoint);
        self.settle(at);
    }

    /// Carries effects out: whoever hears a record says `stored`, whoever hears of one settles it.
    fn settle(&mut self, at: usize) {
        let now = self.now;
        let mut behind = None;
        while let Some(effect) = self.copies[at].endpoint.as_mut().and_then(Endpoint::poll_effect) {
            let copy = &mut self.copies[at];
            let Some(endpoint) = &mut copy.endpoint else { return };
            match effect {
                Effect::SaveMemo { peer, place } => {
                    self.witness.learn_place(copy.identity.id(), &place.0);
                    copy.folder.memos.insert(peer, place);
                }
                Effect::Datagram { to, bytes } => {
                    self.witness.see(&bytes).unwrap_or_else(|wrong| panic!("{wrong}: {:?}", self.reached));
                    self.queue.push((copy.address, to, bytes));
                }
                Effect::Record { peer, declaration, number, .. } => {
                    self.heard += 1;
                    endpoint.stored(now, peer, declaration.stream, number, Vec::new());
                }
                Effect::Outcome { peer, stream, upto, .. } => endpoint.settled(now, peer, stream, upto),
                Effect::ReadMemo { peer } => {
                    let place = copy.folder.memos.get(&peer).copied();
                    endpoint.place_read(now, peer, place);
                }
                Effect::Behind { known, .. } => behind = Some(known),
                _ => {}
            }
        }
        if let Some(known) = behind {
            // As a core does: above what is known, once.
            self.reach("a run was behind");
            self.copies[at].folder.runs = self.copies[at].folder.runs.max(known);
            self.start(at);
        }
    }

    fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    fn send(&mut self, at: usize) {
        let (now, node) = (self.now, self.copies[1 - at % 2].identity.id());
        let copy = &mut self.copies[at];
        let record =
            Record { stream: copy.stream, number: copy.next, tag: Tag([1; 8]), payload: vec![7; 900].into() };
        if let Some(endpoint) = &mut copy.endpoint
            && endpoint.send(now, node, record).is_ok()
        {
            copy.next += 1;
        }
        self.settle(at);
    }

    fn deliver(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let at = self.below(self.queue.len().min(8));
        let (from, to, bytes) = match self.below(50) {
            0 => self.queue[at].clone(),
            _ => self.queue.remove(at),
        };
        let lost = self.below(50) == 0;
        let now = self.now;
        if let Some(index) = self.copies.iter().position(|copy| copy.address == to && !lost) {
            if let Some(endpoint) = &mut self.copies[index].endpoint {
                endpoint.handle_datagram(now, from, &bytes);
            }
            self.settle(index);
        }
    }

    fn fault(&mut self) {
        let at = self.below(2);
        match self.below(6) {
            0 | 1 => {
                self.reach("a restart");
                self.start(at);
            }
            2 => self.copies[at].backup = self.copies[at].folder.clone(),
            3 => {
                self.reach("a restored folder");
                self.copies[at].folder = self.copies[at].backup.clone();
                self.start(at);
            }
            4 => {
                self.reach("a copy that runs beside");
                self.copies[at + 2].folder = self.copies[at].folder.clone();
                self.start(at + 2);
            }
            _ => self.copies[at + 2].endpoint = None,
        }
    }

    /// All copies fenced each other: a person ends those beside, removes the peers and adds them anew.
    fn decide(&mut self) {
        self.reach("a person decided");
        self.copies[2..].iter_mut().for_each(|copy| copy.endpoint = None);
        for at in 0..2 {
            self.copies[at].folder.memos.clear();
            self.start(at);
        }
    }

    fn step(&mut self) {
        self.now.0 += 1_000;
        for at in 0..self.copies.len() {
            let now = self.now;
            if let Some(endpoint) = self.copies[at].endpoint.as_mut()
                && endpoint.next_timeout().is_some_and(|due| due <= now)
            {
                endpoint.handle_timeout(now);
                self.settle(at);
            }
        }
        let at = self.below(4);
        self.send(at);
        for _ in 0..6 {
            self.deliver();
        }
        if self.below(600) == 0 {
            self.fault();
        }
    }
}

/// Steps without a record, of a millisecond each, after which none will come: longer than anybody waits for an answer.
const QUIET_STEPS: u64 = 100_000;

/// §9.4.
#[test]
fn no_key_and_nonce_seal_twice() {
    let seals = number("LINK_SEALS").unwrap_or(SEALS);
    let mut fabric = Fabric::new(1);
    let (mut steps, mut heard_at) = (0_u64, 0);
    while fabric.witness.seals < seals {
        let before = fabric.heard;
        fabric.step();
        steps += 1;
        if fabric.heard > before {
            heard_at = steps;
        } else if steps > heard_at + QUIET_STEPS {
            fabric.decide();
            heard_at = steps;
        }
        assert!(steps < 50 * seals, "it fell silent: {} seals, {:?}", fabric.witness.seals, fabric.reached);
    }
    for what in ["a restart", "a restored folder", "a copy that runs beside", "a run was behind"] {
        assert!(fabric.reached.contains_key(what), "{what} was never reached: {:?}", fabric.reached);
    }
}
