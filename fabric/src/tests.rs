//! Drivers with real endpoints, sockets and memo files, over loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use link::command::Command;
use link::{Declaration, Effect, Peer, Record, StreamId};
use sealing::memo::PLACE_BYTES;
use sealing::{Identity, NodeId, Run, Tag};

use crate::{Config, Driver, DriverHandle, FabricEvent, MEMO_FILE, bind, local_address};

/// After so long a test that waits for an event has failed. Nothing depends on it being short.
const WATCHDOG: Duration = Duration::from_secs(60);

const STREAM: StreamId = StreamId([5; 16]);

struct Node {
    identity: Arc<Identity>,
    folder: tempfile::TempDir,
    starts: u64,
}

struct Running {
    driver: DriverHandle,
    events: Receiver<FabricEvent>,
    run: Run,
}

impl Node {
    fn new(number: u8) -> Node {
        let folder = tempfile::tempdir().unwrap();
        Node { identity: Arc::new(Identity::from_seed(&[number; 64])), folder, starts: 0 }
    }

    fn id(&self) -> NodeId {
        self.identity.id()
    }

    fn memo_path(&self) -> std::path::PathBuf {
        self.folder.path().join(MEMO_FILE)
    }

    fn start(&mut self, address: SocketAddr) -> Running {
        self.starts += 1;
        let random = self.id().as_bytes()[0] ^ u8::try_from(self.starts).unwrap();
        let run = Run { counter: self.starts, random: [random; 16] };
        let (sender, events) = channel();
        let config = Config {
            identity: Arc::clone(&self.identity),
            card: self.identity.card(1),
            run,
            entropy: [random; 32],
            record_bytes_max: link::RECORD_BYTES_MAX,
            discreet: false,
            socket: bind(address).unwrap(),
            folder: self.folder.path().to_owned(),
        };
        // Whoever does not listen any more is about to stop the driver.
        let driver = Driver::start(config, Box::new(move |event| drop(sender.send(event)))).unwrap();
        Running { driver, events, run }
    }

    fn as_peer(&self, addresses: Vec<SocketAddr>) -> Command {
        let card = self.identity.card(1);
        Command::AddPeer(Box::new(Peer {
            node: self.id(),
            card_hash: Some(card.hash()),
            card: Some(card),
            addresses,
            memo: None,
        }))
    }
}

impl Running {
    fn send(&self, command: Command) {
        self.driver.sender().send(command);
    }

    /// The next event that `wanted` makes something of; that the driver stopped is a failure.
    fn next<T>(&self, mut wanted: impl FnMut(Effect) -> Option<T>) -> T {
        loop {
            match self.events.recv_timeout(WATCHDOG).expect("an event comes, or the test hangs") {
                FabricEvent::Link(effect) => {
                    if let Some(found) = wanted(effect) {
                        return found;
                    }
                }
                FabricEvent::Stopped(error) => panic!("the driver stopped: {error}"),
            }
        }
    }

    fn send_records(&self, peer: NodeId, numbers: std::ops::RangeInclusive<u64>) {
        let tag = self.run.tag();
        for number in numbers {
            let payload = format!("record {number}").into_bytes().into();
            self.send(Command::Send { peer, record: Record { stream: STREAM, number, tag, payload } });
        }
    }

    fn declare(&self, peer: NodeId, oldest: u64, tag_before: Tag, last: u64) {
        let (from_app, to_app) = ("a".to_owned(), "b".to_owned());
        let declaration = Declaration { stream: STREAM, from_app, to_app, oldest, tag_before, last };
        self.send(Command::Declare { peer, declaration });
    }

    /// Takes records until `last` is heard and says `stored` of each, as a core would; what is new, in order.
    fn store_until(&self, peer: NodeId, heard: &mut BTreeMap<u64, Vec<u8>>, last: u64) {
        while !heard.contains_key(&last) {
            let (number, payload) = self.next(|effect| match effect {
                Effect::Record { number, payload, .. } => Some((number, payload)),
                _ => None,
            });
            let before = heard.insert(number, payload.clone());
            assert!(before.is_none_or(|before| before == payload));
            let upto = *heard.last_key_value().unwrap().0;
            self.send(Command::Stored { peer, stream: STREAM, upto, outcomes: Vec::new() });
        }
    }

    /// Waits for the outcome of all up to `last` and forgets them, as a core does.
    fn settle(&self, peer: NodeId, last: u64) {
        self.next(|effect| matches!(effect, Effect::Outcome { upto, .. } if upto >= last).then_some(()));
        self.send(Command::Settled { peer, stream: STREAM, upto: last });
    }
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn place_count(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks(PLACE_BYTES).filter(|place| place.iter().any(|byte| *byte != 0)).count()
}

fn expected(last: u64) -> BTreeMap<u64, Vec<u8>> {
    (1..=last).map(|number| (number, format!("record {number}").into_bytes())).collect()
}

#[test]
fn a_stopped_driver_gives_back_its_port_and_its_senders_do_nothing() {
    let mut ann = Node::new(1);
    let running = ann.start(any_port());
    let address = running.driver.local_address();
    assert_ne!(address.port(), 0);
    let sender = running.driver.sender();
    running.driver.stop();
    assert_eq!(local_address(&bind(address).unwrap()).unwrap(), address);
    sender.send(Command::Ready { app: "a".to_owned() });
    assert_eq!(sender.status(ann.id()), None);
    assert!(running.events.recv().is_err(), "a driver that was told to stop tells nothing");
}

#[test]
fn noise_of_any_length_changes_nothing() {
    let mut ann = Node::new(1);
    let running = ann.start(any_port());
    let socket = bind(any_port()).unwrap();
    for length in [0, 1, 28, 29, 1_200, 9_000, 65_507] {
        for byte in [0, 0x55, 0xff] {
            socket.send_to(&vec![byte; length], running.driver.local_address()).unwrap();
        }
    }
    assert_eq!(running.driver.sender().status(ann.id()), None);
    running.driver.stop();
    assert!(running.events.recv().is_err(), "noise is no event");
}

/// First contact, then a restart of either end on its folder: every record once more or once, never another, in order.
#[test]
fn records_pass_between_two_drivers_over_restarts_of_both() {
    let (mut ann, mut ben) = (Node::new(1), Node::new(2));
    let (ann_id, ben_id) = (ann.id(), ben.id());
    let mut heard = BTreeMap::new();

    let first_ben = ben.start(any_port());
    let ben_address = first_ben.driver.local_address();
    let first_ann = ann.start(any_port());
    let ann_tag = first_ann.run.tag();
    first_ben.send(ann.as_peer(Vec::new()));
    first_ann.send(ben.as_peer(vec![ben_address]));
    first_ann.declare(ben_id, 1, Tag::default(), 0);
    first_ann.send_records(ben_id, 1..=100);
    first_ben.store_until(ann_id, &mut heard, 100);
    first_ann.settle(ben_id, 100);
    assert_eq!(heard, expected(100));
    assert_eq!((place_count(&ann.memo_path()), place_count(&ben.memo_path())), (1, 1));

    // Ben restarts at the same address, as one whose memo is there.
    first_ben.driver.stop();
    let second_ben = ben.start(ben_address);
    second_ben.send(ann.as_peer(Vec::new()));
    first_ann.send_records(ben_id, 101..=200);
    second_ben.store_until(ann_id, &mut heard, 200);
    first_ann.settle(ben_id, 200);

    // Ann restarts at another address, and without her memo.
    first_ann.driver.stop();
    std::fs::remove_file(ann.memo_path()).unwrap();
    let second_ann = ann.start(any_port());
    second_ann.send(ben.as_peer(vec![ben_address]));
    second_ann.declare(ben_id, 201, ann_tag, 200);
    second_ann.send_records(ben_id, 201..=300);
    second_ben.store_until(ann_id, &mut heard, 300);
    second_ann.settle(ben_id, 300);
    assert_eq!(heard, expected(300));

    // Ann removes ben: his place is gone from the disk.
    second_ann.send(Command::RemovePeer(ben_id));
    second_ann.driver.stop();
    assert_eq!(place_count(&ann.memo_path()), 0);
}

/// A thousand pieces over real sockets. That the largest record of all passes, the link shows in virtual time.
#[test]
fn a_large_record_passes() {
    let (mut ann, mut ben) = (Node::new(1), Node::new(2));
    let running_ben = ben.start(any_port());
    let running_ann = ann.start(any_port());
    running_ben.send(ann.as_peer(Vec::new()));
    running_ann.send(ben.as_peer(vec![running_ben.driver.local_address()]));
    running_ann.declare(ben.id(), 1, Tag::default(), 0);
    let payload: Arc<[u8]> = (0..1_048_576).map(|index| (index % 251) as u8).collect();
    let record =
        Record { stream: STREAM, number: 1, tag: running_ann.run.tag(), payload: Arc::clone(&payload) };
    running_ann.send(Command::Send { peer: ben.id(), record });
    let mut heard = BTreeMap::new();
    running_ben.store_until(ann.id(), &mut heard, 1);
    running_ann.settle(ben.id(), 1);
    assert!(heard[&1][..] == payload[..]);
}

/// A record that does not follow is a fault of this program: the driver says so and stops, and nobody waits for it.
#[test]
fn a_record_out_of_order_stops_the_driver_with_a_word() {
    let (mut ann, ben) = (Node::new(1), Node::new(2));
    let running = ann.start(any_port());
    running.send(ben.as_peer(Vec::new()));
    running.declare(ben.id(), 1, Tag::default(), 0);
    running.send_records(ben.id(), 2..=2);
    let stopped = loop {
        match running.events.recv_timeout(WATCHDOG).unwrap() {
            FabricEvent::Stopped(error) => break error.to_string(),
            FabricEvent::Link(_) => {}
        }
    };
    assert!(stopped.contains("record 2") && stopped.contains("goes on with 1"), "{stopped}");
    assert_eq!(running.driver.sender().status(ben.id()), None);
}
