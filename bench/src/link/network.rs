//! A path between two places, in virtual time, and what runs over it: a bottleneck with a queue in each direction, loss,
//! reordering. The same for all contenders.

use crate::BenchError;
use crate::data::Random;
use std::collections::BTreeMap;

/// Microseconds.
pub const SECOND: u64 = 1_000_000;

/// The headers of IPv4 and UDP, which a path carries, too.
pub const HEADERS_BYTES: u64 = 28;

/// A sender that always has something to send, its receiver, and their protocol. Times are microseconds.
pub trait Flow {
    /// What the path carries them begins.
    fn start(&mut self, now: u64) -> Result<(), BenchError>;
    /// A datagram arrives at one of the two ends.
    fn handle(&mut self, now: u64, at_receiver: bool, datagram: Vec<u8>) -> Result<(), BenchError>;
    /// Does what is due, and hands out all datagrams of both ends that may go, with whether they go to the receiver.
    fn transmit(&mut self, now: u64, out: &mut dyn FnMut(bool, Vec<u8>)) -> Result<(), BenchError>;
    /// When one of the two ends wants to be asked next.
    fn next_timeout(&mut self) -> Option<u64>;
    /// That time came.
    fn on_timeout(&mut self, now: u64) -> Result<(), BenchError>;
    /// Records that were handed over at the receiver, each checked.
    fn delivered(&self) -> u64;
}

/// What the path is like.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// Of each direction; none: no bottleneck.
    pub bits_per_second: Option<u64>,
    /// There and back, without queues.
    pub round_trip: u64,
    /// What the bottleneck holds back at most.
    pub queue_bytes: u64,
    /// Of ten thousand datagrams so many vanish.
    pub loss: u64,
    /// Each datagram takes up to so much longer, at random.
    pub jitter: u64,
    /// Larger datagrams vanish, headers of IPv4 and UDP counted.
    pub datagram_bytes_max: u64,
}

struct Arrival {
    flow: usize,
    at_receiver: bool,
    datagram: Vec<u8>,
}

/// The path with all flows over it.
pub struct Network {
    pub now: u64,
    course: Course,
    random: Random,
    flows: Vec<(u64, Box<dyn Flow>)>,
    started: usize,
    free_at: [u64; 2],
    arrivals: BTreeMap<(u64, u64), Arrival>,
    sequence: u64,
    /// Bytes that were sent, headers counted.
    pub bytes: u64,
    pub datagrams: u64,
}

impl Network {
    pub fn new(course: Course, seed: u64) -> Network {
        Network {
            now: SECOND,
            course,
            random: Random::new(seed),
            flows: Vec::new(),
            started: 0,
            free_at: [0; 2],
            arrivals: BTreeMap::new(),
            sequence: 0,
            bytes: 0,
            datagrams: 0,
        }
    }

    /// A flow that begins after so long; not before one that was added earlier.
    pub fn add(&mut self, after: u64, flow: Box<dyn Flow>) {
        self.flows.push((self.now + after, flow));
    }

    pub fn delivered(&self, flow: usize) -> u64 {
        self.flows[flow].1.delivered()
    }

    /// Until so long after the beginning.
    pub fn run_until(&mut self, microseconds: u64) -> Result<(), BenchError> {
        while self.now < SECOND + microseconds && self.step(SECOND + microseconds)? {}
        Ok(())
    }

    /// Until the first flow delivered so many records.
    pub fn run_until_delivered(&mut self, records: u64) -> Result<(), BenchError> {
        while self.delivered(0) < records {
            if !self.step(u64::MAX)? {
                return Err(BenchError::Process("a flow stands still".into()));
            }
        }
        Ok(())
    }

    /// The next moment at which something happens, and all that happens then. Nothing happens after `end`.
    fn step(&mut self, end: u64) -> Result<bool, BenchError> {
        let starts = self.flows.get(self.started).map(|(at, _)| *at);
        let arrives = self.arrivals.first_key_value().map(|((at, _), _)| *at);
        let timers = self.flows[..self.started].iter_mut().filter_map(|(_, flow)| flow.next_timeout()).min();
        let Some(at) = [starts, arrives, timers].into_iter().flatten().min() else { return Ok(false) };
        self.now = self.now.max(at).min(end);
        if at > end {
            return Ok(false);
        }
        if starts.is_some_and(|at| at <= self.now) {
            self.flows[self.started].1.start(self.now)?;
            self.started += 1;
        }
        while let Some(first) = self.arrivals.first_entry().filter(|first| first.key().0 <= self.now) {
            let Arrival { flow, at_receiver, datagram } = first.remove();
            self.flows[flow].1.handle(self.now, at_receiver, datagram)?;
        }
        let (now, mut sent) = (self.now, Vec::new());
        for (at, (_, flow)) in self.flows[..self.started].iter_mut().enumerate() {
            if flow.next_timeout().is_some_and(|at| at <= now) {
                flow.on_timeout(now)?;
            }
            flow.transmit(now, &mut |to_receiver, datagram| sent.push((at, to_receiver, datagram)))?;
        }
        for (flow, at_receiver, datagram) in sent {
            self.carry(Arrival { flow, at_receiver, datagram });
        }
        Ok(true)
    }

    fn carry(&mut self, arrival: Arrival) {
        let Course { bits_per_second, round_trip, queue_bytes, loss, jitter, datagram_bytes_max } =
            self.course;
        let bytes = arrival.datagram.len() as u64 + HEADERS_BYTES;
        self.bytes += bytes;
        self.datagrams += 1;
        let free_at = &mut self.free_at[usize::from(arrival.at_receiver)];
        let mut leaves = self.now;
        if let Some(rate) = bits_per_second {
            let waits = free_at.saturating_sub(self.now);
            if waits * rate / 8 / SECOND + bytes > queue_bytes {
                return;
            }
            leaves = (*free_at).max(self.now) + bytes * 8 * SECOND / rate;
            *free_at = leaves;
        }
        if bytes > datagram_bytes_max || (loss > 0 && self.random.below(10_000) < loss) {
            return;
        }
        let late = if jitter > 0 { self.random.below(jitter) } else { 0 };
        self.sequence += 1;
        self.arrivals.insert((leaves + round_trip / 2 + late, self.sequence), arrival);
    }
}
