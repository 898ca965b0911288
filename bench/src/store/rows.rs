//! The rows that all contenders of this suite keep: 72 bytes as machine words, a key and eight ints, each of which takes eight
//! bytes in every contender's own form. What a row holds follows from its key and how often it was written.

use crate::data::Random;

/// Ints of a row beside its key.
pub const FIELDS: usize = 8;
/// Bytes of a row: the measure of what is written for it.
pub const ROW_BYTES: u64 = 72;

/// A row's ints, all between 2^53 and 2^54: eight bytes as our numbers, as SQLite's and as plain ones.
pub fn fields(key: usize, version: u64) -> [i64; FIELDS] {
    let mut random = Random::new(key as u64 ^ version << 32);
    std::array::from_fn(|_| ((1 << 53) + random.below(1 << 53)) as i64)
}

/// One row written once more.
#[derive(Debug, Clone, Copy)]
pub struct Update {
    pub key: usize,
    pub version: u64,
}

/// How often each row was written: the model that every contender is compared with.
#[derive(Debug, Clone)]
pub struct Model {
    versions: Vec<u64>,
}

impl Model {
    /// All rows as they are loaded.
    pub fn new(rows: usize) -> Model {
        Model { versions: vec![0; rows] }
    }

    pub fn rows(&self) -> usize {
        self.versions.len()
    }

    /// The ints that a row has now.
    pub fn fields(&self, key: usize) -> [i64; FIELDS] {
        fields(key, self.versions[key])
    }

    /// How often a row was written.
    pub fn version(&self, key: usize) -> u64 {
        self.versions[key]
    }

    /// So many updates of rows at random.
    pub fn updates(&mut self, random: &mut Random, count: usize) -> Vec<Update> {
        let rows = self.versions.len() as u64;
        let update = |_| {
            let key = random.below(rows) as usize;
            self.versions[key] += 1;
            Update { key, version: self.versions[key] }
        };
        (0..count).map(update).collect()
    }

    /// Rows at random, to be compared.
    pub fn sample(&self, random: &mut Random, count: usize) -> Vec<usize> {
        (0..count).map(|_| random.below(self.versions.len() as u64) as usize).collect()
    }
}
