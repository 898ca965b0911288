//! Idempotency keys: a post that is repeated with its key gets the first one's answer and changes nothing. Where
//! answers are large, the oldest are forgotten before their keys.

use crate::rows::PostRow;
use std::collections::{BTreeMap, BTreeSet};

/// Keyed posts remembered an app. A client repeats within minutes; this many are hours of a busy one. By count and not
/// by time, so that a clock that is set never forgets one.
pub const POSTS_PER_APP_MAX: usize = 10_000;

/// Bytes of the answers remembered an app; the newest is kept whatever its size. Of more the oldest are forgotten, and their
/// keys are not.
pub const POST_BYTES_PER_APP_MAX: usize = 16 << 20;

/// What stands in a row for an answer that is forgotten: no answer is so, for JSON has no empty text.
const FORGOTTEN: &str = "";

/// The remembered posts of one app.
#[derive(Debug, Default)]
pub struct Posts {
    bytes: usize,
    by_key: BTreeMap<String, PostRow>,
    by_order: BTreeMap<u64, String>,
    /// The orders of those that have an answer.
    answered: BTreeSet<u64>,
}

/// What a repeat is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Repeat<'p> {
    /// The same as the first time.
    Answer(Option<&'p str>),
    /// That it was applied, and its answer is forgotten.
    Forgotten,
    /// That the key is another request's.
    Another,
}

impl Posts {
    /// What a post with this key is told, if there was one before.
    pub fn repeat(&self, key: &str, request: [u8; 16]) -> Option<Repeat<'_>> {
        let row = self.by_key.get(key)?;
        Some(match row.answer.as_deref() {
            _ if row.request != request => Repeat::Another,
            Some(FORGOTTEN) => Repeat::Forgotten,
            answer => Repeat::Answer(answer),
        })
    }

    /// Takes a row from the log, or a new one.
    pub fn insert(&mut self, key: String, row: PostRow) {
        let bytes = row.answer.as_ref().map_or(0, String::len);
        self.bytes += bytes;
        if bytes > 0 {
            self.answered.insert(row.order);
        }
        self.by_order.insert(row.order, key.clone());
        self.by_key.insert(key, row);
    }

    /// The order of the next post.
    pub fn next_order(&self) -> u64 {
        self.by_order.last_key_value().map_or(1, |(order, _)| order + 1)
    }

    /// Forgets the oldest post or the oldest answer if there is one too many: the key, and its row from now on.
    pub fn forget_one(&mut self) -> Option<(String, Option<PostRow>)> {
        if self.by_key.len() > POSTS_PER_APP_MAX {
            let (order, key) = self.by_order.pop_first()?;
            let row = self.by_key.remove(&key)?;
            self.bytes -= row.answer.map_or(0, |answer| answer.len());
            self.answered.remove(&order);
            return Some((key, None));
        }
        if self.bytes <= POST_BYTES_PER_APP_MAX || self.answered.len() <= 1 {
            return None;
        }
        let order = self.answered.pop_first()?;
        let key = self.by_order.get(&order)?.clone();
        let row = self.by_key.get_mut(&key)?;
        self.bytes -= row.answer.replace(FORGOTTEN.to_owned()).map_or(0, |answer| answer.len());
        Some((key, Some(row.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts with answers of so many bytes, or none, under the keys `0`, `1`, …
    fn posted(answers: &[Option<usize>]) -> Posts {
        let mut posts = Posts::default();
        for (number, bytes) in answers.iter().enumerate() {
            let answer = bytes.map(|bytes| "1".repeat(bytes));
            posts.insert(number.to_string(), PostRow { order: posts.next_order(), request: [1; 16], answer });
            while posts.forget_one().is_some() {}
        }
        posts
    }

    #[test]
    fn keys_are_kept_though_answers_are_forgotten() {
        let large = Some(10 << 20);
        for (answers, forgotten) in [
            (&[large][..], &[][..]),
            (&[large, large], &[0]),
            (&[large, None, Some(5), large, None], &[0]),
            (&[Some(5), large, large], &[0, 1]),
            (&[Some(20 << 20)], &[]),
            (&[Some(20 << 20), Some(20 << 20), None], &[0]),
        ] {
            let posts = posted(answers);
            for (number, bytes) in answers.iter().enumerate() {
                let answer = bytes.map(|bytes| "1".repeat(bytes));
                let expected = match forgotten.contains(&number) {
                    true => Repeat::Forgotten,
                    false => Repeat::Answer(answer.as_deref()),
                };
                let key = number.to_string();
                assert!(posts.repeat(&key, [1; 16]) == Some(expected), "{number} of {}", answers.len());
                assert_eq!(posts.repeat(&key, [2; 16]), Some(Repeat::Another));
            }
        }
    }

    #[test]
    fn the_last_keys_are_kept() {
        let posts = posted(&vec![Some(2); POSTS_PER_APP_MAX + 2]);
        assert_eq!(posts.repeat("1", [1; 16]), None);
        assert_eq!(posts.repeat("2", [1; 16]), Some(Repeat::Answer(Some("11"))));
        assert_eq!((posts.bytes, posts.answered.len()), (2 * POSTS_PER_APP_MAX, POSTS_PER_APP_MAX));
    }
}
