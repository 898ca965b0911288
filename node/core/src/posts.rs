//! Idempotency keys: a post that is repeated with its key gets the first one's answer and changes nothing.

use crate::rows::PostRow;
use std::collections::BTreeMap;

/// Keyed posts remembered an app. A client repeats within minutes; this many are hours of a busy one. By count and not
/// by time, so that a clock that is set never forgets one.
pub const POSTS_PER_APP_MAX: usize = 10_000;

/// Bytes of the answers remembered an app; the newest is kept whatever its size.
pub const POST_BYTES_PER_APP_MAX: usize = 16 << 20;

/// The remembered posts of one app.
#[derive(Debug, Default)]
pub struct Posts {
    bytes: usize,
    by_key: BTreeMap<String, PostRow>,
    by_order: BTreeMap<u64, String>,
}

impl Posts {
    /// What the post with this key was.
    pub fn get(&self, key: &str) -> Option<&PostRow> {
        self.by_key.get(key)
    }

    /// Takes a row from the log, or a new one.
    pub fn insert(&mut self, key: String, row: PostRow) {
        self.bytes += row.answer.as_ref().map_or(0, String::len);
        self.by_order.insert(row.order, key.clone());
        self.by_key.insert(key, row);
    }

    /// The order of the next post.
    pub fn next_order(&self) -> u64 {
        self.by_order.last_key_value().map_or(1, |(order, _)| order + 1)
    }

    /// Takes out the oldest post if there is one too many; its key.
    pub fn evict(&mut self) -> Option<String> {
        let too_many = self.by_key.len() > POSTS_PER_APP_MAX;
        if !too_many && (self.bytes <= POST_BYTES_PER_APP_MAX || self.by_key.len() == 1) {
            return None;
        }
        let (_, key) = self.by_order.pop_first()?;
        let row = self.by_key.remove(&key)?;
        self.bytes -= row.answer.map_or(0, |answer| answer.len());
        Some(key)
    }
}
