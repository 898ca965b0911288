//! What a log must hold, kept beside it: every acknowledged frame, and at most one that nobody knows of.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use store::{Change, Log, Memory, Opened, Row, Sizes, StoreError};

/// As small as segments can be, so that a short log has many.
pub const SMALL: Sizes = Sizes { first: 128 << 10, most: 128 << 10, checkpoint: 256 << 10 };

/// SplitMix64, so that a seed replays a test.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn entropy(&mut self) -> [u8; 32] {
        let mut entropy = [0; 32];
        for chunk in entropy.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        entropy
    }

    /// The changes of one frame, of a few keys: small ones mostly, sometimes some pages of them.
    pub fn changes(&mut self) -> Vec<Change> {
        let bytes = match self.below(8) {
            0 => 3 * 4096 + self.below(4096),
            1 => 4096 - 72 - 5 + self.below(3),
            _ => self.below(200),
        };
        let mut changes: Vec<Change> =
            (0..self.below(3)).map(|_| Change { list: self.below(4), key: self.key(), row: None }).collect();
        let byte = self.next().to_le_bytes()[0];
        let (list, key) = (self.below(4), self.key());
        changes.push(Change { list, key, row: Some(vec![byte; bytes as usize]) });
        changes
    }

    fn key(&mut self) -> Vec<u8> {
        vec![self.below(7).to_le_bytes()[0]]
    }
}

/// Opens with small segments and collects what is replayed.
pub fn open(memory: &Memory, entropy: [u8; 32]) -> Result<(Log<Memory>, Opened, Vec<Change>), StoreError> {
    let mut replayed = Vec::new();
    let (log, opened) = Log::open_sized(memory.clone(), SMALL, entropy, &mut |change| replayed.push(change))?;
    Ok((log, opened, replayed))
}

/// Appends and syncs frames of changes that the seed decides; what was written.
pub fn fill(log: &mut Log<Memory>, opened: &Opened, random: &mut Random, frames: u64) -> Vec<Change> {
    let mut all = Vec::new();
    for sequence in opened.next_sequence..opened.next_sequence + frames {
        let changes = random.changes();
        let appended = log.append(sequence, &changes).expect("append");
        assert_eq!(log.sync(appended).expect("sync").sequence(), sequence);
        all.extend(changes);
    }
    all
}

/// Rows by list and key.
pub type State = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

/// What changes make of a state.
pub fn apply(state: &mut State, changes: impl IntoIterator<Item = Change>) {
    for Change { list, key, row } in changes {
        match row {
            Some(row) => state.insert((list, key), row),
            None => state.remove(&(list, key)),
        };
    }
}

/// The rows of a state, as a checkpoint takes them.
pub fn rows(state: &State) -> Box<dyn Iterator<Item = Row> + Send> {
    let rows = state.clone().into_iter();
    Box::new(rows.map(|((list, key), row)| Row { list, key, row }))
}

/// What was acknowledged, and the frame whose outcome is unknown.
#[derive(Default)]
pub struct Model {
    pub acknowledged: State,
    pub unknown: Option<Vec<Change>>,
    pub run: u64,
}

impl Model {
    /// Judges what an opened log replayed, and goes on from there. Whether the unknown frame was kept.
    pub fn opened(&mut self, opened: &Opened, replayed: Vec<Change>) -> bool {
        let mut state = State::new();
        apply(&mut state, replayed);
        let mut with_unknown = self.acknowledged.clone();
        apply(&mut with_unknown, self.unknown.take().unwrap_or_default());
        let kept = state != self.acknowledged;
        assert!(
            !kept || state == with_unknown,
            "neither what was acknowledged nor that and the unknown frame"
        );
        assert!(opened.run > self.run, "run {} came after run {}", opened.run, self.run);
        *self = Self { acknowledged: state, unknown: None, run: opened.run };
        kept
    }

    /// A frame was synced.
    pub fn acknowledge(&mut self, changes: Vec<Change>) {
        apply(&mut self.acknowledged, changes);
    }
}
