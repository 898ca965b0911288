//! The sender's side: streams and their unsettled records, each a row until the peer stored it.
//!
//! Everything one app sends to one app of one peer is one stream, in the order of its sends. The outbox knows what is
//! durable (`synced`), what the link was handed, and what the link may be handed next; it must not know apps' code or
//! the network.

use crate::rows::{OutboxRow, StreamRow};
use crate::shares::{OutboxSizes, Shares};
use link::{Declaration, Record, StreamId, WINDOW_BYTES, WINDOW_RECORDS};
use sealing::{NodeId, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes that a record costs beside its arguments, for [`crate::shares::OUTBOX_BYTES_MAX`].
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 128;

/// How the reason begins for which a record waits, if its app has no room for what it would send: nodes know it by this
/// that they wait for each other.
pub(crate) const NO_ROOM: &str = "no room for what it would send: ";

/// Which stream: the peer, the sending app, the receiving app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Who receives.
    pub peer: NodeId,
    /// The app that sends.
    pub from_app: String,
    /// The app that receives.
    pub to_app: String,
}

/// A send that is not settled.
#[derive(Debug, Clone)]
pub struct Unsettled {
    /// The tag of the run that made it.
    pub tag: Tag,
    /// The output's name.
    pub output: String,
    /// Its arguments.
    pub arguments: Arc<[u8]>,
}

/// The sender's side of one stream.
#[derive(Debug)]
pub struct Stream {
    /// Its identity on the wire.
    pub id: StreamId,
    /// From which app to which.
    pub route: Route,
    /// Why all that is unsettled is to be refused, and nothing is sent any more; what is sent on the route next is in
    /// another stream.
    pub ended: Option<String>,
    /// Every number up to this one is settled.
    pub settled: u64,
    settled_tag: Tag,
    /// Records `settled + 1 ..`, without a hole.
    unsettled: VecDeque<Unsettled>,
    /// Records up to this number are on disk.
    synced: u64,
    /// The link was told that records up to this number are settled: its window counts from here. It is told after the
    /// sync, so this may be behind `settled`.
    released: u64,
    /// Records up to this number were handed to the link in this process.
    handed: u64,
    handed_bytes: usize,
    /// Bytes of records `released + 1 ..= handed`.
    handed_sizes: VecDeque<usize>,
    /// The link knows the stream.
    declared: bool,
    /// Why the next record waits, if the peer said so.
    waiting: Option<String>,
}

impl Stream {
    fn new(id: StreamId, route: Route, settled: u64, settled_tag: Tag) -> Stream {
        Stream {
            id,
            route,
            ended: None,
            settled,
            settled_tag,
            unsettled: VecDeque::new(),
            synced: settled,
            released: settled,
            handed: settled,
            handed_bytes: 0,
            handed_sizes: VecDeque::new(),
            declared: false,
            waiting: None,
        }
    }

    /// The highest number allocated.
    pub fn last(&self) -> u64 {
        self.settled + self.unsettled.len() as u64
    }

    /// Unsettled records.
    pub fn len(&self) -> usize {
        self.unsettled.len()
    }

    /// The outputs of the records without an outcome.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.unsettled.iter().map(|unsettled| unsettled.output.as_str())
    }

    /// Why the next record waits, if the peer said so.
    pub fn waiting(&self) -> Option<&str> {
        self.waiting.as_deref()
    }

    /// The oldest record without an outcome.
    pub fn oldest(&self) -> Option<&Unsettled> {
        self.unsettled.front()
    }

    /// The stream's row.
    pub fn row(&self) -> StreamRow {
        StreamRow {
            peer: *self.route.peer.as_bytes(),
            from_app: self.route.from_app.clone(),
            to_app: self.route.to_app.clone(),
            settled: self.settled,
            settled_tag: self.settled_tag.0,
            ended: self.ended.clone(),
        }
    }

    /// The records and declaration that the link may have now: those on disk, as far as its window reaches.
    ///
    /// A declaration comes before the first record.
    pub fn hand_over(&mut self) -> (Option<Declaration>, Vec<Record>) {
        let declaration = (!self.declared && self.synced > self.settled).then(|| Declaration {
            stream: self.id,
            from_app: self.route.from_app.clone(),
            to_app: self.route.to_app.clone(),
            oldest: self.settled + 1,
            tag_before: self.settled_tag,
            last: self.synced,
        });
        self.declared |= declaration.is_some();
        let mut records = Vec::new();
        while self.handed < self.synced && (self.handed - self.released) < WINDOW_RECORDS as u64 {
            let unsettled = &self.unsettled[(self.handed - self.settled) as usize];
            let payload = payload(&unsettled.output, &unsettled.arguments);
            if self.handed > self.released && self.handed_bytes + payload.len() > WINDOW_BYTES {
                break;
            }
            self.handed += 1;
            self.handed_bytes += payload.len();
            self.handed_sizes.push_back(payload.len());
            records.push(Record { stream: self.id, number: self.handed, tag: unsettled.tag, payload });
        }
        (declaration, records)
    }

    /// A batch is on disk in which the stream was at `mark`; the link was told so.
    pub fn mark_synced(&mut self, mark: Mark) {
        self.synced = self.synced.max(mark.last.min(self.last()));
        while self.released < mark.settled {
            self.released += 1;
            self.handed_bytes -= self.handed_sizes.pop_front().unwrap_or_default();
        }
        self.handed = self.handed.max(self.released);
    }

    /// Where the stream is now.
    pub fn mark(&self) -> Mark {
        Mark { last: self.last(), settled: self.settled }
    }

    /// Record `number` was handed over and not taken: it is handed over again, and all behind it.
    pub fn rewind(&mut self, number: u64) {
        let kept = number.saturating_sub(1).max(self.settled).max(self.released);
        while self.handed > kept {
            self.handed -= 1;
            self.handed_bytes -= self.handed_sizes.pop_back().unwrap_or_default();
        }
    }

    /// The link knows nothing of it any more: what is unsettled is declared and handed over again.
    fn begin_anew(&mut self) {
        self.declared = false;
        self.rewind(0);
    }

    /// Takes the oldest record, which now has its outcome.
    fn settle_oldest(&mut self) -> Option<(u64, Unsettled)> {
        let unsettled = self.unsettled.pop_front()?;
        self.settled += 1;
        self.settled_tag = unsettled.tag;
        self.synced = self.synced.max(self.settled);
        if self.handed < self.settled {
            // It ended without having been handed over.
            self.handed = self.settled;
            self.handed_sizes.push_back(0);
        }
        Some((self.settled, unsettled))
    }
}

/// Where a stream is at the end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The highest number allocated.
    pub last: u64,
    /// Every number up to this one is settled.
    pub settled: u64,
}

/// All streams of a node to its peers.
#[derive(Debug, Default)]
pub struct Outbox {
    streams: BTreeMap<StreamId, Stream>,
    /// The stream that what is sent on a route goes into.
    current: BTreeMap<Route, StreamId>,
    /// The sending apps and streams whose peer says that it has no room.
    without_room: BTreeSet<(String, StreamId)>,
    /// What all of it takes.
    pub shares: Shares,
}

impl Outbox {
    /// An outbox without a stream.
    pub fn new(sizes: OutboxSizes) -> Outbox {
        Outbox { shares: Shares::new(sizes), ..Outbox::default() }
    }

    /// A stream that recovery found, with its unsettled rows in the order of their numbers.
    ///
    /// Errors: words on what does not fit, for a log that is not this program's.
    pub fn restore(
        &mut self,
        id: StreamId,
        row: StreamRow,
        rows: Vec<(u64, OutboxRow)>,
    ) -> Result<(), String> {
        let route = Route { peer: NodeId(row.peer), from_app: row.from_app, to_app: row.to_app };
        let mut stream = Stream::new(id, route.clone(), row.settled, Tag(row.settled_tag));
        stream.ended = row.ended;
        for (number, row) in rows {
            if number != stream.last() + 1 {
                return Err(format!("a stream's record {} is followed by {number}", stream.last()));
            }
            let unsettled =
                Unsettled { tag: Tag(row.tag), output: row.output, arguments: row.arguments.into() };
            self.shares.occupy(&route.from_app, cost(&unsettled));
            stream.unsettled.push_back(unsettled);
        }
        stream.synced = stream.last();
        if stream.ended.is_none() && self.current.insert(route, id).is_some() {
            return Err("two streams go from one app to another".to_owned());
        }
        self.streams.insert(id, stream);
        Ok(())
    }

    /// Adds a record to the route's stream, which begins with `fresh` as its identity if there is none: the stream's
    /// identity and the record's number.
    pub fn push(&mut self, route: &Route, fresh: StreamId, unsettled: Unsettled) -> (StreamId, u64) {
        self.shares.occupy(&route.from_app, cost(&unsettled));
        let id = *self.current.entry(route.clone()).or_insert(fresh);
        let new = || Stream::new(fresh, route.clone(), 0, Tag([0; 8]));
        let stream = self.streams.entry(id).or_insert_with(new);
        stream.unsettled.push_back(unsettled);
        (id, stream.last())
    }

    /// Takes the oldest record of a stream, which now has its outcome: its number and what it was.
    pub fn settle_oldest(&mut self, id: StreamId) -> Option<(u64, Unsettled)> {
        let stream = self.streams.get_mut(&id)?;
        let (number, unsettled) = stream.settle_oldest()?;
        let app = stream.route.from_app.clone();
        self.shares.vacate(&app, cost(&unsettled));
        Some((number, unsettled))
    }

    /// Ends a stream for a reason: nothing more is sent on it, what is unsettled is to be refused, what its app sends
    /// from now on is in a fresh stream. False if it had ended already.
    pub fn end(&mut self, id: StreamId, reason: &str) -> bool {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.ended.is_none()) else {
            return false;
        };
        stream.ended = Some(reason.to_owned());
        self.current.remove(&stream.route);
        self.set_waiting(id, None);
        true
    }

    /// Forgets an ended stream. Its records were taken before.
    pub fn forget(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            debug_assert!(
                stream.ended.is_some() && stream.len() == 0,
                "no record is forgotten with its stream"
            );
        }
    }

    /// A stream.
    pub fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(&id)
    }

    /// A stream, to be changed.
    pub fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.get_mut(&id)
    }

    /// The peer said why the next record of a stream waits, or took it.
    pub fn set_waiting(&mut self, id: StreamId, reason: Option<String>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let lacks_room = |reason: &Option<String>| reason.as_ref().is_some_and(|r| r.starts_with(NO_ROOM));
        match (lacks_room(&stream.waiting), lacks_room(&reason)) {
            (true, false) => drop(self.without_room.remove(&(stream.route.from_app.clone(), id))),
            (false, true) => drop(self.without_room.insert((stream.route.from_app.clone(), id))),
            _ => {}
        }
        stream.waiting = reason;
    }

    /// Whether what an app, or any app, sent waits at a peer that has no room.
    pub fn waits_without_room(&self, app: Option<&str>) -> bool {
        match app {
            None => !self.without_room.is_empty(),
            Some(app) => {
                let from = (app.to_owned(), StreamId([0; 16]));
                self.without_room.range(from..).next().is_some_and(|(first, _)| first == app)
            }
        }
    }

    /// All streams.
    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values()
    }

    /// The link begins anew: what is unsettled is declared and handed over again.
    pub fn begin_anew(&mut self) {
        self.streams.values_mut().for_each(Stream::begin_anew);
    }

    /// A link forgot these streams: what is unsettled of them is declared and handed over again.
    pub fn begin_anew_of(&mut self, streams: &[StreamId]) {
        for stream in streams {
            if let Some(stream) = self.streams.get_mut(stream) {
                stream.begin_anew();
            }
        }
    }

    /// The streams to a peer.
    pub fn streams_to(&self, peer: NodeId) -> Vec<StreamId> {
        self.streams.values().filter(|stream| stream.route.peer == peer).map(|stream| stream.id).collect()
    }
}

fn cost(unsettled: &Unsettled) -> usize {
    unsettled.arguments.len() + unsettled.output.len() + RECORD_OVERHEAD_BYTES
}

/// Bytes of a record that a node sends or takes: a send's arguments with the output's name before them. The link carries
/// larger ones; here what waits for the owner is bounded by it.
pub const RECORD_BYTES_MAX: usize = 256 << 10;
const _: () = assert!(1 + u8::MAX as usize + engine::SEND_BYTES_MAX <= RECORD_BYTES_MAX);
const _: () = assert!(RECORD_BYTES_MAX <= link::RECORD_BYTES_MAX);

/// What a record carries: the length of the output's name in one byte, the name, the arguments.
pub fn payload(output: &str, arguments: &[u8]) -> Arc<[u8]> {
    let name = output.as_bytes();
    let length = u8::try_from(name.len()).expect("the compiler bounds a name to 64 bytes");
    [&[length], name, arguments].concat().into()
}

/// The output's name and its arguments in a record that a peer sent; none if it is not laid out so.
pub fn read_payload(payload: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = payload.split_first()?;
    let (name, arguments) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(name).ok()?, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::{Cause, OUTBOX_RECORDS_MAX};

    fn route() -> Route {
        Route { peer: NodeId([1; 32]), from_app: "a".to_owned(), to_app: "b".to_owned() }
    }

    fn unsettled(tag: u8, bytes: usize) -> Unsettled {
        Unsettled { tag: Tag([tag; 8]), output: "say".to_owned(), arguments: vec![0; bytes].into() }
    }

    fn filled(records: usize, bytes: usize) -> Outbox {
        let mut outbox = Outbox::default();
        for _ in 0..records {
            outbox.push(&route(), StreamId([9; 16]), unsettled(1, bytes));
        }
        outbox
    }

    const ID: StreamId = StreamId([9; 16]);

    fn stream(outbox: &mut Outbox) -> &mut Stream {
        outbox.stream_mut(ID).expect("it was filled")
    }

    /// The numbers that the link is handed now, and whether a declaration came with them.
    fn handed(outbox: &mut Outbox) -> (bool, Vec<u64>) {
        let (declaration, records) = stream(outbox).hand_over();
        (declaration.is_some(), records.iter().map(|record| record.number).collect())
    }

    fn sync(outbox: &mut Outbox) {
        let stream = stream(outbox);
        stream.mark_synced(stream.mark());
    }

    #[test]
    fn only_what_is_on_disk_is_handed_over_and_declared_once() {
        let mut outbox = filled(3, 10);
        assert_eq!(handed(&mut outbox), (false, Vec::new()));
        stream(&mut outbox).mark_synced(Mark { last: 2, settled: 0 });
        assert_eq!(handed(&mut outbox), (true, vec![1, 2]));
        assert_eq!(handed(&mut outbox), (false, Vec::new()));
        sync(&mut outbox);
        assert_eq!(handed(&mut outbox), (false, vec![3]));
    }

    #[test]
    fn the_window_is_kept_in_records_and_in_bytes_until_a_settling_is_on_disk() {
        for (records, bytes, window) in
            [(WINDOW_RECORDS + 10, 10, WINDOW_RECORDS as u64), (10, WINDOW_BYTES / 4, 3)]
        {
            let mut outbox = filled(records, bytes);
            sync(&mut outbox);
            assert_eq!(handed(&mut outbox).1.len() as u64, window);
            outbox.settle_oldest(ID);
            assert!(handed(&mut outbox).1.is_empty(), "the link has not been told yet");
            sync(&mut outbox);
            assert_eq!(handed(&mut outbox).1, vec![window + 1]);
        }
    }

    #[test]
    fn what_was_not_taken_is_handed_over_again() {
        let mut outbox = filled(5, 10);
        sync(&mut outbox);
        assert_eq!(handed(&mut outbox).1.len(), 5);
        outbox.settle_oldest(ID);
        sync(&mut outbox);
        stream(&mut outbox).rewind(3);
        assert_eq!(handed(&mut outbox).1, vec![3, 4, 5]);
        stream(&mut outbox).rewind(1);
        assert_eq!(handed(&mut outbox).1, vec![2, 3, 4, 5]);
    }

    #[test]
    fn what_a_link_forgot_is_declared_again_and_nothing_else_is() {
        const OTHER: StreamId = StreamId([8; 16]);
        let mut outbox = filled(2, 10);
        let to_another = Route { to_app: "c".to_owned(), ..route() };
        outbox.push(&to_another, OTHER, unsettled(1, 10));
        sync(&mut outbox);
        let other = outbox.stream_mut(OTHER).expect("it was pushed");
        other.mark_synced(other.mark());
        assert_eq!(handed(&mut outbox), (true, vec![1, 2]));
        let (declaration, records) = outbox.stream_mut(OTHER).expect("it is there").hand_over();
        assert_eq!((declaration.is_some(), records.len()), (true, 1));
        // That its link went to rest is heard late: the other stream was declared meanwhile.
        outbox.begin_anew_of(&[ID, StreamId([7; 16])]);
        assert_eq!(handed(&mut outbox), (true, vec![1, 2]));
        let (declaration, records) = outbox.stream_mut(OTHER).expect("it is there").hand_over();
        assert_eq!((declaration, records.len()), (None, 0));
    }

    #[test]
    fn room_comes_back_when_records_settle() {
        let mut outbox = filled(2, 100);
        let full = outbox.shares.room("a", Cause::Post);
        let (number, settled) = outbox.settle_oldest(ID).expect("there are two");
        assert_eq!((number, settled.tag), (1, Tag([1; 8])));
        assert_eq!(outbox.shares.room("a", Cause::Post), full + 1);
        assert_eq!(outbox.shares.room("another", Cause::Post), OUTBOX_RECORDS_MAX / 4);
        assert_eq!(outbox.stream(ID).map(|stream| (stream.settled, stream.last())), Some((1, 2)));
    }

    #[test]
    fn what_is_sent_after_the_end_of_a_stream_is_in_another() {
        let mut outbox = filled(2, 10);
        assert!(outbox.end(ID, "restored"));
        assert!(!outbox.end(ID, "again"));
        let fresh = StreamId([8; 16]);
        assert_eq!(outbox.push(&route(), fresh, unsettled(1, 10)), (fresh, 1));
        assert_eq!(outbox.stream(ID).map(Stream::len), Some(2));
    }

    #[test]
    fn a_row_with_a_hole_after_it_is_not_restored() {
        let row = Stream::new(ID, route(), 4, Tag([0; 8])).row();
        let record =
            |number| (number, OutboxRow { tag: [1; 8], output: "say".to_owned(), arguments: vec![] });
        let restore = |rows| Outbox::default().restore(ID, row.clone(), rows);
        assert!(restore(vec![record(5), record(6)]).is_ok());
        assert!(restore(vec![record(5), record(7)]).is_err());
        assert!(restore(vec![record(4)]).is_err());
    }

    #[test]
    fn a_payload_reads_as_it_was_made_and_garbage_does_not() {
        assert_eq!(read_payload(&payload("say", &[1, 2])), Some(("say", &[1, 2][..])));
        for garbage in [&[][..], &[3, b's'], &[1, 0xff]] {
            assert_eq!(read_payload(garbage), None, "{garbage:?}");
        }
    }
}
