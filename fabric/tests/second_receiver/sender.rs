//! Our real driver as the sender of a stream, over a path on loopback that loses, doubles and delays, and over restarts in
//! the middle of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use fabric::{Config, Driver, DriverHandle, FabricEvent, bind};
use link::command::Command;
use link::{Declaration, Effect, Outcome, Peer, Record, StreamId};
use sealing::{Card, Identity, NodeId, Run, Tag};

use crate::relay::{Relay, Weather};

/// Records on their way: far below the window, so that none is sent that is not taken.
const RECORDS_AT_ONCE: u64 = 64;
/// Their bytes, but one record goes at any length.
const BYTES_AT_ONCE: usize = 512 * 1024;

const STREAM: StreamId = StreamId([0x5e; 16]);

/// Who takes the records.
pub struct Destination {
    pub node: NodeId,
    /// The hash in its ticket: its card is fetched by it where `card` is not there.
    pub card_hash: Option<[u8; 32]>,
    pub card: Option<Card>,
    pub address: SocketAddr,
}

/// What is sent, and what the path does to it.
pub struct Course {
    pub identity: Arc<Identity>,
    pub records: u64,
    /// Lengths of records, in turn.
    pub sizes: Vec<usize>,
    /// How often the sender starts anew on its folder, with equally many records between.
    pub restarts: u64,
    pub weather: Weather,
    /// After so long without an outcome of all it has failed.
    pub patience: Duration,
}

/// What became of a record.
pub type Fate = (u64, Option<Outcome>);

/// The bytes of a record: others in each place and each record.
pub fn payload(number: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|index| ((index * 31 + index / 251 + number * 7) % 256) as u8).collect()
}

impl Course {
    pub fn payload(&self, number: u64) -> Vec<u8> {
        let turn = usize::try_from(number - 1).unwrap_or(0) % self.sizes.len();
        payload(number, self.sizes[turn])
    }

    /// Sends all records and says what became of each, in order; or what went wrong.
    pub fn run(&self, folder: &Path, to: &Destination) -> Result<Vec<Fate>, String> {
        let relay = Relay::start(to.address, self.weather).map_err(|error| format!("relay: {error}"))?;
        let until = Instant::now() + self.patience;
        let mut fates = Vec::new();
        let mut sender = Sender { last: 0, tag_before: Tag::default(), tags: Vec::new() };
        for start in 1..=self.restarts + 1 {
            let process = Process::start(self, folder, start, to, relay.address())?;
            // A process is stopped with records on their way.
            let enough = self.records * start / (self.restarts + 1);
            sender.live(self, &process, to.node, enough, until, &mut fates)?;
            process.driver.stop();
        }
        Ok(fates)
    }
}

/// What the sender's store holds.
struct Sender {
    last: u64,
    tag_before: Tag,
    /// Of each record, from the first.
    tags: Vec<Tag>,
}

impl Sender {
    /// From a start on, until so many records have an outcome.
    fn live(
        &mut self,
        course: &Course,
        process: &Process,
        peer: NodeId,
        enough: u64,
        until: Instant,
        fates: &mut Vec<Fate>,
    ) -> Result<(), String> {
        let oldest = fates.len() as u64 + 1;
        let (from_app, to_app) = ("sender".to_owned(), "receiver".to_owned());
        let declaration = Declaration {
            stream: STREAM,
            from_app,
            to_app,
            oldest,
            tag_before: self.tag_before,
            last: self.last,
        };
        process.send(Command::Declare { peer, declaration });
        for number in oldest..=self.last {
            self.send(course, process, peer, number);
        }
        loop {
            let heard = fates.len() as u64;
            while self.last < course.records && self.has_room(course, heard) {
                self.last += 1;
                self.tags.push(process.run.tag());
                self.send(course, process, peer, self.last);
            }
            if heard >= enough {
                return Ok(());
            }
            let (upto, outcomes) = process.outcome(until, heard)?;
            for number in heard + 1..=upto {
                let told = outcomes.iter().find(|(of, _)| *of == number).map(|(_, outcome)| outcome.clone());
                self.tag_before = self.tags[usize::try_from(number - 1).unwrap_or(0)];
                fates.push((number, told));
            }
            process.send(Command::Settled { peer, stream: STREAM, upto });
        }
    }

    fn has_room(&self, course: &Course, heard: u64) -> bool {
        let next = course.payload(self.last + 1).len();
        let bytes: usize = (heard + 1..=self.last).map(|number| course.payload(number).len()).sum();
        self.last - heard < RECORDS_AT_ONCE && (self.last == heard || bytes + next <= BYTES_AT_ONCE)
    }

    fn send(&self, course: &Course, process: &Process, peer: NodeId, number: u64) {
        let tag = self.tags[usize::try_from(number - 1).unwrap_or(0)];
        let payload = course.payload(number).into();
        process.send(Command::Send { peer, record: Record { stream: STREAM, number, tag, payload } });
    }
}

/// One start of the sender.
struct Process {
    driver: DriverHandle,
    events: Receiver<FabricEvent>,
    run: Run,
}

impl Process {
    fn start(
        course: &Course,
        folder: &Path,
        start: u64,
        to: &Destination,
        address: SocketAddr,
    ) -> Result<Process, String> {
        // A sender that is run again on the same folder is a later start of the same node.
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since_1970.map_err(|error| error.to_string())?.as_nanos();
        let counter = u64::try_from(nanoseconds / 1_000).map_err(|error| error.to_string())?;
        let run = Run { counter, random: [start as u8; 16] };
        let mut entropy = [start as u8; 32];
        entropy[..16].copy_from_slice(&nanoseconds.to_be_bytes());
        let (sender, events) = channel();
        let config = Config {
            identity: Arc::clone(&course.identity),
            card: course.identity.card(1),
            run,
            entropy,
            record_bytes_max: link::RECORD_BYTES_MAX,
            discreet: false,
            socket: bind(([127, 0, 0, 1], 0).into()).map_err(|error| error.to_string())?,
            folder: folder.to_owned(),
        };
        let driver = Driver::start(config, Box::new(move |event| drop(sender.send(event))));
        let process = Process { driver: driver.map_err(|error| error.to_string())?, events, run };
        let (card_hash, card) = (to.card_hash, to.card.clone());
        let peer = Peer { node: to.node, card_hash, card, addresses: vec![address], memo: None };
        process.send(Command::AddPeer(Box::new(peer)));
        Ok(process)
    }

    fn send(&self, command: Command) {
        self.driver.sender().send(command);
    }

    /// The next outcome above a number.
    fn outcome(&self, until: Instant, heard: u64) -> Result<(u64, Vec<(u64, Outcome)>), String> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let late = |_| format!("no outcome of record {} in time", heard + 1);
            match self.events.recv_timeout(left).map_err(late)? {
                FabricEvent::Link(Effect::Outcome { upto, outcomes, .. }) if upto > heard => {
                    return Ok((upto, outcomes));
                }
                FabricEvent::Link(Effect::Misbehaved { fault, .. }) => {
                    return Err(format!("the receiver misbehaves: {fault}"));
                }
                FabricEvent::Link(Effect::Forked { .. }) => return Err("the receiver says `forked`".into()),
                FabricEvent::Link(Effect::Waiting { number, reason, .. }) => {
                    return Err(format!("the receiver lets record {number} wait: {reason}"));
                }
                FabricEvent::Link(_) => {}
                FabricEvent::Stopped(error) => return Err(format!("the driver stopped: {error}")),
            }
        }
    }
}
