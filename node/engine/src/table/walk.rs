//! Runs over rows as they were when it began.

use super::Slot;
use super::dense::Dense;
use super::sorted::{Sorted, SortedWalk};
use crate::budget::search_operations;
use crate::keyed::{Key, Range};
use std::ops::Bound;
use weft::Value;

#[derive(Debug, Clone)]
pub(crate) struct Walk(Over);

#[derive(Debug, Clone)]
enum Over {
    Nothing,
    Dense { dense: Dense, first: i64, last: i64, here: (i64, u32), backward: bool, ended: bool },
    Sorted(SortedWalk),
}

/// The first and the last key of a range of words; none where there can be none.
fn ends(range: &Range<'_>) -> Option<(i64, i64)> {
    let word = |value: &Value| match value {
        Value::Word(word) => Some(*word),
        _ => None,
    };
    if let [value] = range.equal {
        let word = word(value)?;
        return Some((word, word));
    }
    let first = match range.from {
        Bound::Unbounded => i64::MIN,
        Bound::Included(value) => word(value)?,
        Bound::Excluded(value) => word(value)?.checked_add(1)?,
    };
    let last = match range.upto {
        Bound::Unbounded => i64::MAX,
        Bound::Included(value) => word(value)?,
        Bound::Excluded(value) => word(value)?.checked_sub(1)?,
    };
    (first <= last).then_some((first, last))
}

pub(super) fn dense_count(dense: &Dense, range: &Range<'_>) -> usize {
    let Some((first, last)) = ends(range) else { return 0 };
    let upto = last.checked_add(1).map_or_else(|| dense.len(), |end| dense.rank(end));
    upto - dense.rank(first)
}

impl Walk {
    pub(super) fn nothing() -> Walk {
        Walk(Over::Nothing)
    }

    pub(super) fn dense(dense: &Dense, range: &Range<'_>, backward: bool) -> Walk {
        let Some((first, last)) = ends(range) else { return Walk::nothing() };
        let dense = dense.clone();
        Walk(Over::Dense { dense, first, last, here: (0, 0), backward, ended: false })
    }

    pub(super) fn sorted(walk: SortedWalk) -> Walk {
        Walk(Over::Sorted(walk))
    }

    /// Goes to the next row; whether there is one.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        match &mut self.0 {
            Over::Nothing => false,
            Over::Sorted(walk) => walk.advance(),
            Over::Dense { dense, first, last, here, backward, ended } => {
                if *ended {
                    return false;
                }
                let found = if *backward { dense.at_or_before(*last) } else { dense.at_or_after(*first) };
                let Some(found) = found.filter(|(key, _)| (*first..=*last).contains(key)) else {
                    *ended = true;
                    return false;
                };
                let (place, next) = match backward {
                    true => (last, found.0.checked_sub(1)),
                    false => (first, found.0.checked_add(1)),
                };
                match next {
                    Some(next) => *place = next,
                    None => *ended = true,
                }
                *here = found;
                true
            }
        }
    }

    /// The key of the row that it is at.
    pub(crate) fn key(&self) -> Option<Key> {
        match &self.0 {
            Over::Nothing => None,
            Over::Dense { here, .. } => Some(Key::Word(here.0)),
            Over::Sorted(walk) => walk.key(),
        }
    }

    /// A word of the entry that it is at. Of a list by a plain word the first is the key.
    #[inline]
    pub(crate) fn word(&self, word: usize) -> i64 {
        match &self.0 {
            Over::Nothing => 0,
            Over::Dense { here, .. } => here.0,
            Over::Sorted(walk) => walk.word(word).unwrap_or_default(),
        }
    }

    /// Where the row that it is at stood when the walk began; not in an index.
    pub(crate) fn slot(&self) -> Option<Slot> {
        match &self.0 {
            Over::Nothing => None,
            Over::Dense { here, .. } => Some(Slot(here.1)),
            Over::Sorted(walk) => walk.slot().map(Slot),
        }
    }

    /// Leaves out the other rows whose first so many fields, of what it runs over, are those of the row that it is at.
    pub(crate) fn skip(&mut self, fields: usize) {
        if let Over::Sorted(walk) = &mut self.0 {
            walk.skip(fields);
        }
    }

    /// Whether it is plain to see that the row behind the one that it came to, backward, is another in its first so many
    /// fields; that tells nothing where it is not.
    pub(crate) fn is_alone(&self, fields: usize) -> bool {
        match &self.0 {
            Over::Sorted(walk) => walk.is_alone(fields),
            _ => false,
        }
    }

    /// The key of the next row where it is a plain word; none is no end.
    #[inline]
    pub(crate) fn next_word(&mut self) -> Option<i64> {
        match &mut self.0 {
            Over::Sorted(walk) if walk.by_word() => walk.next_word(),
            Over::Dense { .. } => match self.advance() {
                true => Some(self.word(0)),
                false => None,
            },
            _ => None,
        }
    }

    /// Goes to the next row one of whose fields is as wanted, but looks at no more than so many; how many those were, and
    /// whether the last of them is. None where it must be found step by step.
    #[inline]
    pub(crate) fn seek(
        &mut self,
        field: u16,
        most: usize,
        is: &impl Fn(i64) -> bool,
    ) -> Option<(usize, bool)> {
        match &mut self.0 {
            Over::Sorted(walk) => walk.seek(field, most, is),
            _ => None,
        }
    }

    /// The key of the row that it is at, where that is a plain word.
    #[inline]
    pub(crate) fn key_word(&self) -> Option<i64> {
        match &self.0 {
            Over::Nothing => None,
            Over::Dense { here, .. } => Some(here.0),
            Over::Sorted(walk) => walk.key_word(),
        }
    }

    /// The word of a field in the entry that it is at, where entries are words and have it.
    #[inline]
    pub(crate) fn word_of(&self, field: u16) -> Option<i64> {
        match &self.0 {
            Over::Sorted(walk) => walk.word_of(field),
            _ => None,
        }
    }

    /// The key of the next row.
    pub(crate) fn next(&mut self) -> Option<Key> {
        if self.advance() { self.key() } else { None }
    }

    /// Walks the entries of an index that have one value with a walk of another one.
    #[inline]
    pub(super) fn again(&mut self, index: &Sorted, value: i64) -> bool {
        match &mut self.0 {
            Over::Sorted(walk) => index.walk_again(value, walk),
            _ => false,
        }
    }

    /// Whether it holds nothing of the list, and can be used again.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        matches!(&self.0, Over::Sorted(walk) if walk.is_one())
    }

    /// What its last step cost by the bytes of keys, beside its own operation.
    pub(crate) fn search_operations(&self) -> u64 {
        match &self.0 {
            Over::Sorted(walk) => {
                let (size, count) = walk.sizes();
                // Both ends are found, then the row.
                3 * search_operations(size, count)
            }
            _ => 0,
        }
    }
}
