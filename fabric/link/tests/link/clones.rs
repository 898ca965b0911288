//! Two copies of one node that run at once, and the peer that both speak to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use link::{
    Config, Declaration, DownReason, Effect, Endpoint, MemoPlace, Peer, PeerState, Record, StreamId, Time,
};
use sealing::{Identity, NodeId, Run, Tag};

const SECOND: u64 = 1_000_000;
const ONE_WAY: u64 = 5_000;

/// A process of a node at an address: its own, whoever else has its keys.
struct Process {
    identity: Arc<Identity>,
    endpoint: Endpoint,
    address: SocketAddr,
    /// Its folder's memo places and count of starts.
    memos: BTreeMap<NodeId, MemoPlace>,
    starts: u64,
    behind: Vec<u64>,
    /// Records that were handed over here, and those that it heard to be stored.
    got: u64,
    stored: u64,
    sent: u64,
}

struct Net {
    now: Time,
    processes: Vec<Process>,
    peers: Vec<Peer>,
    queue: BTreeMap<(Time, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    sequence: u64,
}

fn identity(seed: u8) -> Arc<Identity> {
    Arc::new(Identity::from_seed(&[seed; 64]))
}

fn address(at: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1_000 + at as u16))
}

fn endpoint(identity: &Arc<Identity>, counter: u64, at: usize) -> Endpoint {
    let random = [counter as u8 ^ at as u8; 16];
    Endpoint::new(Config {
        card: identity.card(1),
        identity: Arc::clone(identity),
        run: Run { counter, random },
        entropy: [at as u8 + 16 * counter as u8; 32],
        record_bytes_max: 1_000,
    })
}

impl Net {
    /// Ann at one address, and ben who knows it.
    fn new() -> Net {
        let nodes = [identity(1), identity(2)];
        let peer = |(at, node): (usize, &Arc<Identity>)| Peer {
            node: node.id(),
            card_hash: None,
            card: Some(node.card(1)),
            addresses: vec![address(at)],
            memo: None,
        };
        let peers = nodes.iter().enumerate().map(peer).collect();
        let mut net =
            Net { now: Time(SECOND), processes: Vec::new(), peers, queue: BTreeMap::new(), sequence: 0 };
        nodes.into_iter().for_each(|node| net.begin(node, BTreeMap::new(), 0));
        net
    }

    /// Another process with the keys, places and count of starts of a folder.
    fn begin(&mut self, identity: Arc<Identity>, memos: BTreeMap<NodeId, MemoPlace>, starts: u64) {
        let at = self.processes.len();
        let endpoint = endpoint(&identity, starts + 1, at);
        self.processes.push(Process {
            identity,
            endpoint,
            address: address(at),
            memos,
            starts,
            behind: Vec::new(),
            got: 0,
            stored: 0,
            sent: 0,
        });
        self.start(at, starts + 1);
    }

    /// The process starts again, as the run of this counter.
    fn start(&mut self, at: usize, counter: u64) {
        let process = &mut self.processes[at];
        process.starts = counter;
        process.endpoint = endpoint(&process.identity, counter, at);
        let me = process.identity.id();
        for peer in self.peers.iter().filter(|peer| peer.node != me) {
            let memo = process.memos.get(&peer.node).copied();
            process.endpoint.add_peer(self.now, Peer { memo, ..peer.clone() });
        }
        self.settle();
    }

    /// A folder is copied as it is, and the copy is started at another address.
    fn copy(&mut self, of: usize) -> usize {
        let Process { identity, memos, starts, .. } = &self.processes[of];
        let (identity, memos, starts) = (Arc::clone(identity), memos.clone(), *starts);
        self.begin(identity, memos, starts);
        self.processes.len() - 1
    }

    /// Sends a record in a stream of the process's own.
    fn send(&mut self, at: usize, to: NodeId) {
        let process = &mut self.processes[at];
        let mut stream = [at as u8; 16];
        stream[1] = process.starts as u8;
        let stream = StreamId(stream);
        process.sent += 1;
        let number = process.sent;
        let (from_app, to_app) = ("a".to_owned(), "b".to_owned());
        let (oldest, tag_before, last) = (number, Tag([0; 8]), number - 1);
        let declaration = Declaration { stream, from_app, to_app, oldest, tag_before, last };
        process.endpoint.declare(self.now, to, declaration);
        let record = Record { stream, number, tag: Tag([1; 8]), payload: Arc::from([7; 10]) };
        assert_eq!(process.endpoint.send(self.now, to, record), Ok(()));
        self.settle();
    }

    fn state(&self, at: usize, peer: NodeId) -> PeerState {
        self.processes[at].endpoint.peer_status(peer).unwrap().state
    }

    /// Carries out what all processes ask for.
    fn settle(&mut self) {
        for process in &mut self.processes {
            while let Some(effect) = process.endpoint.poll_effect() {
                match effect {
                    Effect::SaveMemo { peer, place } => {
                        process.memos.insert(peer, place);
                    }
                    Effect::Datagram { to, bytes } => {
                        self.sequence += 1;
                        let key = (Time(self.now.0 + ONE_WAY), self.sequence);
                        self.queue.insert(key, (process.address, to, bytes));
                    }
                    Effect::Record { peer, declaration, number, .. } => {
                        process.got += 1;
                        process.endpoint.stored(self.now, peer, declaration.stream, number, Vec::new());
                    }
                    Effect::Outcome { peer, stream, upto, .. } => {
                        process.stored += 1;
                        process.endpoint.settled(self.now, peer, stream, upto);
                    }
                    Effect::ReadMemo { peer } => {
                        let place = process.memos.get(&peer).copied();
                        process.endpoint.place_read(self.now, peer, place);
                    }
                    Effect::Woke { peer } => {
                        let known = self.peers.iter().filter(|known| known.node == peer);
                        known.for_each(|known| process.endpoint.add_peer(self.now, known.clone()));
                    }
                    Effect::Behind { known, .. } => process.behind.push(known),
                    Effect::Misbehaved { fault, .. } => panic!("{fault}"),
                    _ => {}
                }
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = Time(self.now.0 + seconds * SECOND);
        loop {
            let arrives = self.queue.first_key_value().map(|((at, _), _)| *at);
            let timers = self.processes.iter().filter_map(|process| process.endpoint.next_timeout());
            let Some(next) = timers.chain(arrives).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if arrives == Some(next) {
                let (_, (from, to, bytes)) = self.queue.pop_first().unwrap();
                let to = self.processes.iter_mut().find(|process| process.address == to);
                if let Some(process) = to {
                    process.endpoint.handle_datagram(self.now, from, &bytes);
                }
            } else {
                let now = self.now;
                let is_due = |process: &&mut Process| process.endpoint.next_timeout() == Some(next);
                self.processes
                    .iter_mut()
                    .filter(is_due)
                    .for_each(|process| process.endpoint.handle_timeout(now));
            }
            self.settle();
        }
        self.now = end;
    }
}

const FENCED: PeerState = PeerState::Down { why: DownReason::Fenced };

/// §4.7.
#[test]
fn of_two_copies_one_is_fenced_until_a_person_decides() {
    let (ann, ben) = (0, 1);
    let mut net = Net::new();
    let [ann_id, ben_id] = [ann, ben].map(|at| net.processes[at].identity.id());
    net.send(ann, ben_id);
    net.send(ben, ann_id);
    net.run(10);
    assert_eq!((net.processes[ann].got, net.processes[ann].stored), (1, 1));
    let copy = net.copy(ann);
    net.send(copy, ben_id);
    net.run(10);
    assert_eq!(net.processes[copy].stored, 1);
    // The first one does not know of the other before it speaks again.
    net.send(ann, ben_id);
    net.run(60);
    assert_eq!((net.state(ann, ben_id), net.processes[ann].stored), (FENCED, 1));
    assert_eq!(net.processes[ann].behind.len(), 1, "people are told");
    assert_eq!(net.state(copy, ben_id), PeerState::Up);
    // Nothing is said there, nor after a start that would be above the other one's.
    let starts = net.processes[copy].starts;
    net.start(ann, starts + 1);
    assert_eq!(net.state(ann, ben_id), FENCED);
    net.send(ben, ann_id);
    net.send(copy, ben_id);
    net.run(600);
    assert_eq!((net.processes[copy].stored, net.processes[copy].got), (2, 1));
    assert_eq!((net.processes[ann].endpoint.next_timeout(), net.processes[ann].got), (None, 1));
    // A person says that this one goes on. It is told how far the other is, and goes on above that.
    let now = net.now;
    net.processes[ann].endpoint.resume(now, ben_id);
    net.settle();
    net.run(10);
    assert_eq!(net.state(ann, ben_id), PeerState::Up);
    // The other one is fenced as soon as it speaks.
    net.send(copy, ben_id);
    net.run(60);
    assert_eq!((net.state(copy, ben_id), net.state(ann, ben_id)), (FENCED, PeerState::Up));
    net.send(ben, ann_id);
    net.run(120);
    assert_eq!(net.state(ann, ben_id), PeerState::Up);
    assert_eq!((net.processes[ann].got, net.processes[ben].stored), (2, 3));
}

/// A run that no peer has confirmed is no copy but a restored folder: nothing is fenced, and it is told how far to go.
#[test]
fn a_restored_folder_is_not_fenced() {
    let (ann, ben) = (0, 1);
    let mut net = Net::new();
    let ben_id = net.processes[ben].identity.id();
    net.send(ann, ben_id);
    net.run(10);
    for counter in 2..5 {
        net.start(ann, counter);
        net.run(10);
    }
    net.start(ann, 2);
    net.run(60);
    assert_eq!(net.processes[ann].behind, [4]);
    assert_eq!(net.state(ann, ben_id), PeerState::Down { why: DownReason::Behind });
    net.start(ann, 5);
    net.run(60);
    assert_eq!(net.state(ann, ben_id), PeerState::Up);
}
