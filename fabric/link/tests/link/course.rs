//! A path with a rate, a queue, delay, loss and reordering, and links that carry as much over it as they can: what they
//! deliver in virtual time, against what the path carries. No store and no faults: [`crate::world`] has those.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use link::{Config, Declaration, Effect, Endpoint, Peer, Record, StreamId, Time};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sealing::{Identity, NodeId, Run, Tag};

const SECOND: u64 = 1_000_000;

/// A path, the same in both directions. Its queue is emptied at its rate; then comes the delay.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    pub bits_per_second: u64,
    /// There and back, without the queue and jitter.
    pub round_trip: u64,
    pub queue_bytes: u64,
    /// In ten thousandths.
    pub loss: u32,
    /// Each datagram is up to so many microseconds later, whatever the others are.
    pub jitter: u32,
    /// Streams of each flow, and the bytes of their records.
    pub load: (u8, usize),
    /// Larger datagrams vanish.
    pub datagram_bytes_max: usize,
}

impl Course {
    /// 50 Mbit/s with a queue of one round trip of 40 ms.
    pub fn clean(round_trip_milliseconds: u64) -> Course {
        Course {
            bits_per_second: 50_000_000,
            round_trip: 1_000 * round_trip_milliseconds,
            queue_bytes: 250_000,
            loss: 0,
            jitter: 0,
            load: (16, 800),
            datagram_bytes_max: 1_500,
        }
    }
}

/// What happened on a course.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub datagrams: u64,
    pub lost: u64,
    pub overflowed: u64,
    pub too_large: u64,
    /// Bytes of the largest datagram that came through.
    pub largest: usize,
    pub overtaken: u64,
}

/// A sender that always has something to send, and its receiver, which takes everything at once.
struct Flow {
    sender: Endpoint,
    receiver: Endpoint,
    receiver_node: NodeId,
    streams: Vec<Stream>,
    record_bytes: usize,
    delivered: u64,
}

struct Stream {
    id: StreamId,
    next: u64,
    /// The number that the receiver gets next.
    expected: u64,
}

enum Happening {
    Arrives { flow: usize, at_receiver: bool, bytes: Vec<u8> },
    Starts { flow: usize },
}

/// One direction of the path.
#[derive(Default)]
struct Direction {
    free_at: u64,
    last_arrival: u64,
}

pub struct Track {
    now: Time,
    course: Course,
    rng: ChaCha20Rng,
    flows: Vec<Flow>,
    directions: [Direction; 2],
    queue: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    pub counts: Counts,
}

const TAG: Tag = Tag([3; 8]);

fn address(flow: usize, is_receiver: bool) -> SocketAddr {
    SocketAddr::from(([10, 0, u8::from(is_receiver), flow as u8 + 1], 4000))
}

fn endpoint(seed: u8) -> (Endpoint, sealing::Card) {
    let identity = Arc::new(Identity::from_seed(&[seed; 64]));
    let card = identity.card(1);
    let run = Run { counter: 1, random: [seed; 16] };
    let (entropy, record_bytes_max) = ([seed; 32], link::RECORD_BYTES_MAX);
    (Endpoint::new(Config { identity, card: card.clone(), run, entropy, record_bytes_max }), card)
}

impl Flow {
    fn new(at: usize, streams: u8, record_bytes: usize) -> Flow {
        let ((mut sender, sender_card), (mut receiver, receiver_card)) =
            (endpoint(2 * at as u8 + 1), endpoint(2 * at as u8 + 2));
        sender.set_datagram_bytes_max(65_000);
        let peer = |card: &sealing::Card, is_receiver| Peer {
            node: card.node(),
            card_hash: Some(card.hash()),
            card: Some(card.clone()),
            addresses: vec![address(at, is_receiver)],
            memo: None,
        };
        sender.add_peer(Time(SECOND), peer(&receiver_card, true));
        receiver.add_peer(Time(SECOND), peer(&sender_card, false));
        let streams = (0..streams).map(|stream| Stream { id: StreamId([stream; 16]), next: 1, expected: 1 });
        let receiver_node = receiver_card.node();
        Flow { sender, receiver, receiver_node, streams: streams.collect(), record_bytes, delivered: 0 }
    }
}

impl Track {
    pub fn new(course: Course, seed: u64) -> Track {
        Track {
            now: Time(SECOND),
            course,
            rng: ChaCha20Rng::seed_from_u64(seed),
            flows: Vec::new(),
            directions: Default::default(),
            queue: BTreeMap::new(),
            sequence: 0,
            counts: Counts::default(),
        }
    }

    /// A flow that begins after so many microseconds, with records of this size in so many streams.
    pub fn add_flow(&mut self, after: u64, streams: u8, record_bytes: usize) {
        let flow = self.flows.len();
        self.flows.push(Flow::new(flow, streams, record_bytes));
        self.schedule(after, Happening::Starts { flow });
    }

    fn schedule(&mut self, after: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((Time(self.now.0 + after), self.sequence), happening);
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound.max(1)
    }

    /// Payload bytes that a flow delivered so far.
    pub fn delivered(&self, flow: usize) -> u64 {
        self.flows[flow].delivered
    }

    /// Bits of payload a second that a flow delivers from `from` to `to` seconds after the start.
    pub fn goodput(&mut self, flow: usize, from: u64, to: u64) -> u64 {
        self.run_until(from);
        let before = self.delivered(flow);
        self.run_until(to);
        8 * (self.delivered(flow) - before) / (to - from)
    }

    pub fn run_until(&mut self, seconds: u64) {
        let end = Time((seconds + 1) * SECOND);
        while self.now < end && self.step() {}
    }

    fn step(&mut self) -> bool {
        let timers = self.flows.iter().enumerate().flat_map(|(at, flow)| {
            let [sender, receiver] = [&flow.sender, &flow.receiver].map(Endpoint::next_timeout);
            [sender.map(|time| (time, at, false)), receiver.map(|time| (time, at, true))]
        });
        let timer = timers.flatten().min();
        let first = self.queue.first_key_value().map(|((time, _), _)| *time);
        let (flow, is_receiver) = match (timer, first) {
            (None, None) => return false,
            (Some((time, flow, is_receiver)), first) if first.is_none_or(|first| time < first) => {
                self.now = self.now.max(time);
                let now = self.now;
                self.endpoint(flow, is_receiver).handle_timeout(now);
                (flow, is_receiver)
            }
            _ => {
                let Some(((time, _), happening)) = self.queue.pop_first() else { return false };
                self.now = self.now.max(time);
                self.happen(happening)
            }
        };
        self.carry_out(flow, is_receiver);
        true
    }

    fn endpoint(&mut self, flow: usize, is_receiver: bool) -> &mut Endpoint {
        let flow = &mut self.flows[flow];
        if is_receiver { &mut flow.receiver } else { &mut flow.sender }
    }

    fn happen(&mut self, happening: Happening) -> (usize, bool) {
        let now = self.now;
        match happening {
            Happening::Starts { flow } => {
                self.fill(flow);
                (flow, false)
            }
            Happening::Arrives { flow, at_receiver, bytes } => {
                let from = address(flow, !at_receiver);
                self.endpoint(flow, at_receiver).handle_datagram(now, from, &bytes);
                (flow, at_receiver)
            }
        }
    }

    /// Sends records until the windows of all streams are full.
    fn fill(&mut self, flow: usize) {
        let now = self.now;
        let Flow { sender, receiver_node, streams, record_bytes, .. } = &mut self.flows[flow];
        let peer = *receiver_node;
        for stream in streams {
            if stream.next == 1 {
                let declaration = Declaration {
                    stream: stream.id,
                    from_app: "a".into(),
                    to_app: "b".into(),
                    oldest: 1,
                    tag_before: Tag([0; 8]),
                    last: 0,
                };
                sender.declare(now, peer, declaration);
            }
            loop {
                let payload = vec![stream.next as u8; *record_bytes].into();
                let record = Record { stream: stream.id, number: stream.next, tag: TAG, payload };
                if sender.send(now, peer, record).is_err() {
                    break;
                }
                stream.next += 1;
            }
        }
    }

    fn carry_out(&mut self, flow: usize, is_receiver: bool) {
        while let Some(effect) = self.endpoint(flow, is_receiver).poll_effect() {
            let now = self.now;
            match effect {
                Effect::Datagram { bytes, .. } => self.transmit(flow, !is_receiver, bytes),
                Effect::Record { peer, declaration, number, payload, .. } => {
                    let Flow { receiver, streams, record_bytes, delivered, .. } = &mut self.flows[flow];
                    let at = usize::from(declaration.stream.0[0]);
                    assert_eq!((number, payload.len()), (streams[at].expected, *record_bytes));
                    assert!(payload.iter().all(|byte| *byte == number as u8));
                    streams[at].expected += 1;
                    *delivered += payload.len() as u64;
                    receiver.stored(now, peer, declaration.stream, number, Vec::new());
                }
                Effect::Outcome { peer, stream, upto, .. } => {
                    self.flows[flow].sender.settled(now, peer, stream, upto);
                    self.fill(flow);
                }
                Effect::Misbehaved { fault, .. } => panic!("{fault}"),
                _ => {}
            }
        }
    }

    fn transmit(&mut self, flow: usize, at_receiver: bool, bytes: Vec<u8>) {
        self.counts.datagrams += 1;
        let Course { bits_per_second, round_trip, queue_bytes, loss, jitter, datagram_bytes_max, .. } =
            self.course;
        // The headers of IP and UDP, too.
        let size = bytes.len() as u64 + 28;
        let direction = &mut self.directions[usize::from(at_receiver)];
        let waits = direction.free_at.saturating_sub(self.now.0);
        if bytes.len() + 28 > datagram_bytes_max {
            self.counts.too_large += 1;
            return;
        }
        if waits * bits_per_second / 8 / SECOND + size > queue_bytes {
            self.counts.overflowed += 1;
            return;
        }
        self.counts.largest = self.counts.largest.max(bytes.len());
        direction.free_at = direction.free_at.max(self.now.0) + size * 8 * SECOND / bits_per_second;
        let leaves = direction.free_at;
        if self.below(10_000) < loss {
            self.counts.lost += 1;
            return;
        }
        let arrives = leaves + round_trip / 2 + u64::from(self.below(jitter));
        let direction = &mut self.directions[usize::from(at_receiver)];
        self.counts.overtaken += u64::from(arrives < direction.last_arrival);
        direction.last_arrival = direction.last_arrival.max(arrives);
        self.schedule(arrives - self.now.0, Happening::Arrives { flow, at_receiver, bytes });
    }
}

/// One flow over this course: from the second second to the last one it has this goodput in kbit/s, and the queue
/// overflows for at most a fiftieth of what is sent.
fn check(course: Course, seconds: u64, kilobits: std::ops::RangeInclusive<u64>) -> Counts {
    let mut track = Track::new(course, 1);
    let (streams, record_bytes) = course.load;
    track.add_flow(0, streams, record_bytes);
    let goodput = track.goodput(0, 2, seconds) / 1_000;
    assert!(kilobits.contains(&goodput), "{course:?}: {goodput} kbit/s, {:?}", track.counts);
    let overflowed = track.counts.overflowed;
    assert!(50 * overflowed <= track.counts.datagrams, "{course:?}: {:?}", track.counts);
    track.counts
}

/// What 800 bytes of payload may be of a path: their frame, packet, UDP and IP headers beside them.
const SHARE: u64 = 46;

#[test]
fn a_clean_path_is_filled() {
    check(Course::clean(20), 3, SHARE * 950..=SHARE * 1_000);
    let long = Course { bits_per_second: 20_000_000, queue_bytes: 100_000, ..Course::clean(100) };
    check(long, 6, SHARE * 380..=SHARE * 400);
}

/// Records in pieces fill a path as small ones do, in one stream, and their datagrams are full.
#[test]
fn large_records_fill_a_path() {
    for (record_bytes, loss, jitter, kilobits) in [
        (1_024, 0, 0, 9_000..=9_600),
        (16_384, 0, 0, 9_000..=9_600),
        (16_384, 0, 5_000, 8_500..=9_600),
        (16_384, 100, 0, 5_000..=9_600),
        (900_000, 0, 0, 5_000..=9_600),
    ] {
        let load = (1, record_bytes);
        check(
            Course {
                bits_per_second: 10_000_000,
                queue_bytes: 50_000,
                load,
                loss,
                jitter,
                ..Course::clean(20)
            },
            6,
            kilobits,
        );
    }
}

/// The largest record, alone, over a path that loses and reorders.
#[test]
fn the_largest_record_comes_whole() {
    let load = (1, link::RECORD_BYTES_MAX);
    let course = Course { bits_per_second: 200_000_000, load, loss: 5, jitter: 1_000, ..Course::clean(5) };
    let mut track = Track::new(course, 1);
    track.add_flow(0, 1, link::RECORD_BYTES_MAX);
    track.run_until(2);
    assert!(track.delivered(0) >= link::RECORD_BYTES_MAX as u64, "{} {:?}", track.delivered(0), track.counts);
}

#[test]
fn reordering_is_no_loss() {
    let counts = check(Course { jitter: 5_000, ..Course::clean(20) }, 3, SHARE * 850..=SHARE * 1_000);
    assert!(counts.overtaken * 2 > counts.datagrams);
}

/// 1 % and 5 %, without and with reordering: what one Reno-friendly flow may have of datagrams with 800 bytes.
#[test]
fn losses_cut_the_window_and_no_more() {
    for (loss, jitter, kilobits) in [
        (100, 0, 4_500..=9_000),
        (500, 0, 1_400..=3_000),
        (100, 5_000, 3_800..=9_000),
        (500, 5_000, 1_200..=3_000),
    ] {
        let counts = check(Course { loss, jitter, ..Course::clean(20) }, 8, kilobits);
        assert!(counts.lost > 0);
    }
}

/// The largest datagram that a sender comes to on a path that carries so many bytes with the headers of IP and UDP.
fn check_size(carries: usize, expected: usize) {
    let load = (1, 16_384);
    let mut track = Track::new(Course { datagram_bytes_max: carries, load, ..Course::clean(20) }, 1);
    track.add_flow(0, 1, 16_384);
    track.run_until(1);
    let Counts { too_large, largest, .. } = track.counts;
    assert_eq!((largest, too_large > 0), (expected, expected < 8_952), "{carries}: {:?}", track.counts);
}

#[test]
fn datagrams_become_as_large_as_the_path_carries() {
    check_size(1_228, 1_200);
    check_size(1_400, 1_372);
    check_size(1_500, 1_472);
    check_size(9_000, 8_952);
}

/// The path gets narrower while it is in use: large datagrams vanish and nobody says so.
#[test]
fn a_path_that_gets_narrower_is_found_out() {
    let course = Course { bits_per_second: 10_000_000, load: (1, 16_384), ..Course::clean(20) };
    let mut track = Track::new(course, 1);
    track.add_flow(0, 1, 16_384);
    track.run_until(2);
    track.course.datagram_bytes_max = 1_228;
    let before = track.delivered(0);
    track.run_until(6);
    let goodput = 8 * (track.delivered(0) - before) / 4_000;
    assert!(goodput > 7_000, "{goodput} kbit/s {:?}", track.counts);
}

#[test]
fn two_flows_share_a_path() {
    let course = Course { bits_per_second: 10_000_000, queue_bytes: 50_000, ..Course::clean(20) };
    let mut track = Track::new(course, 1);
    track.add_flow(0, 16, 800);
    track.add_flow(1_500_000, 16, 800);
    track.run_until(10);
    let before = [0, 1].map(|flow| track.delivered(flow));
    track.run_until(20);
    let [first, second] = [0, 1].map(|flow| track.delivered(flow) - before[flow]);
    let share = 1_000 * first / (first + second);
    assert!((400..=600).contains(&share), "{first} and {second}");
}
