//! A state in memory: what the changes of a log come to.

use std::collections::BTreeMap;

use crate::checkpoint::Rows;
use crate::{Change, Row};

/// All rows of a state, by list and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    rows: BTreeMap<(u64, Vec<u8>), Vec<u8>>,
    bytes: u64,
}

impl State {
    /// Takes a change, as [`read`](crate::read) hands it out.
    pub fn change(&mut self, Change { list, key, row }: Change) {
        let length = |key: usize, row: &Vec<u8>| (key + row.len()) as u64;
        let key_bytes = key.len();
        let before = match row {
            Some(row) => {
                self.bytes += length(key_bytes, &row);
                self.rows.insert((list, key), row)
            }
            None => self.rows.remove(&(list, key)),
        };
        self.bytes -= before.map_or(0, |row| length(key_bytes, &row));
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Bytes of their keys and their rows.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The rows in ascending order of list and key, as a checkpoint is made of them.
    #[must_use]
    pub fn into_rows(self) -> Rows {
        Box::new(self.rows.into_iter().map(|((list, key), row)| Row { list, key, row }))
    }
}
