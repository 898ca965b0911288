//! The open batch: the rows changed since the last append, and what leaves once they are on disk.

use crate::web::WebRoute;
use crate::{Reply, ReplyId};
use indexmap::IndexMap;
use link::{Command, StreamId, Transient};
use sealing::NodeId;
use std::collections::BTreeSet;
use std::hash::{BuildHasherDefault, DefaultHasher};
use store::Change;

/// Inputs a batch takes before the core asks for no more: one frame's worth of work, so that an answer's wait is bounded.
pub const BATCH_INPUTS_MAX: usize = 4_096;

/// Bytes of changed rows a batch takes before the core asks for no more.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

// A batch that has room takes one more event, with its outbox rows, its number heard and its idempotency key.
const _: () = assert!(BATCH_BYTES_MAX + engine::EVENT_BYTES_MAX + (2 << 20) < store::FRAME_BYTES_MAX);

/// Bytes of a row in a frame beside its key and value, at most: list, two lengths, kind.
const ROW_OVERHEAD_BYTES: usize = 24;

/// What is said now or never in a batch, to all peers: four links' worth. Of more the newest is dropped.
const TRANSIENTS_MAX: usize = 256;

/// The same in each run: who posts could make keys that collide, and a batch has few.
type Hashing = BuildHasherDefault<DefaultHasher>;

/// The open batch. A row changed twice is written once, as it is at the end.
#[derive(Debug, Default)]
pub struct Batch {
    changes: IndexMap<(u64, Vec<u8>), Option<Vec<u8>>, Hashing>,
    bytes: usize,
    inputs: usize,
    /// Apps whose state changed: their snapshots are published.
    pub apps: BTreeSet<String>,
    /// Peers' streams that are told `stored`.
    pub heard: BTreeSet<(NodeId, StreamId)>,
    /// Our streams with new records or a wider window.
    pub streams: BTreeSet<StreamId>,
    /// Queues to addresses on the web with new records, or whose oldest is to be tried.
    pub web: BTreeSet<WebRoute>,
    /// Answers to whoever posted.
    pub replies: Vec<(ReplyId, Reply)>,
    /// Whatever else the link is told.
    pub commands: Vec<Command>,
    transients: usize,
}

impl Batch {
    /// A row's new value, or its end.
    pub fn change(&mut self, list: u64, key: Vec<u8>, row: Option<Vec<u8>>) {
        self.bytes += ROW_OVERHEAD_BYTES + key.len() + row.as_ref().map_or(0, Vec::len);
        self.changes.insert((list, key), row);
    }

    /// The link is told something that is worth something now or never.
    pub fn say(&mut self, peer: NodeId, transient: Transient) {
        if self.transients < TRANSIENTS_MAX {
            self.transients += 1;
            self.commands.push(Command::Transient { peer, transient });
        }
    }

    /// Counts one input.
    pub fn count_input(&mut self) {
        self.inputs += 1;
    }

    /// Whether the batch takes another input.
    pub fn has_room(&self) -> bool {
        self.inputs < BATCH_INPUTS_MAX && self.bytes < BATCH_BYTES_MAX
    }

    /// Whether the batch takes another piece of something large: half of it is left to everybody else.
    pub fn has_room_for_pieces(&self) -> bool {
        self.inputs < BATCH_INPUTS_MAX / 2 && self.bytes < BATCH_BYTES_MAX / 2
    }

    /// Whether a row changed.
    pub fn changes_rows(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The changed rows, by list, for a frame says a list once where its changes stand together.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let changes = std::mem::take(&mut self.changes).into_iter();
        let mut changes: Vec<Change> = changes.map(|((list, key), row)| Change { list, key, row }).collect();
        changes.sort_by_key(|change| change.list);
        changes
    }

    /// An app's state changed: its snapshot is published.
    pub fn touch(&mut self, app: &str) {
        if !self.apps.contains(app) {
            self.apps.insert(app.to_owned());
        }
    }
}
