//! What loops run over. A cursor over rows keeps the list as it was when the loop began.

use crate::budget::search_operations;
use crate::state::{Key, Keyed, State};
use imbl::{OrdMap, OrdSet};
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;

#[derive(Debug, Default)]
pub(crate) enum Cursor {
    #[default]
    Closed,
    Rows {
        list: u32,
        rows: OrdMap<Key, crate::state::Row>,
        window: Window,
    },
    Index {
        list: u32,
        entries: OrdSet<Key>,
        /// How many bytes of an entry are the indexed fields'; its row's key follows.
        indexed: usize,
        window: Window,
    },
    List {
        values: Arc<Vec<Value>>,
        at: usize,
    },
    Range {
        next: i64,
        last: i64,
        done: bool,
    },
}

/// One step of a cursor.
pub(crate) enum Step {
    Value(Value),
    /// A row that was removed since.
    Skipped,
    Done,
}

impl Step {
    /// The row at a key as it is now.
    fn of(state: &State, list: u32, key: &[u8]) -> Step {
        match state.row(list, key) {
            Some(row) => Step::Value(Value::Record(Arc::clone(row))),
            None => Step::Skipped,
        }
    }
}

/// Two ends of a range of keys.
type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// What is left of the keys that a cursor runs over.
#[derive(Debug)]
pub(crate) struct Window {
    /// The first that may be.
    from: Key,
    /// The first that may not be any more; none: all may be.
    end: Option<Key>,
    /// Where it is.
    last: Option<Key>,
    /// From the end to the beginning.
    backward: bool,
}

impl Window {
    /// The keys that are left; none where there can be none, so that no range is ever upside down.
    fn rest(&self) -> Option<Bounds<'_>> {
        let from = if self.backward { None } else { self.last.as_deref() };
        let end =
            if self.backward { self.last.as_deref().or(self.end.as_deref()) } else { self.end.as_deref() };
        let lowest = from.unwrap_or(&self.from);
        if end.is_some_and(|end| end <= lowest) {
            return None;
        }
        let lower = from.map_or(Bound::Included(&*self.from), Bound::Excluded);
        Some((lower, end.map_or(Bound::Unbounded, Bound::Excluded)))
    }
}

impl Window {
    /// What finding the next of so many keys costs beside its own operation: both ends are looked up, then the row.
    fn search_operations(&self, keys: usize) -> u64 {
        let longest = self.last.as_ref().map_or(0, |last| last.len()).max(self.from.len());
        3 * search_operations(longest, keys)
    }
}

/// The least bytes that are above all that begin with a prefix; none if there are none.
fn after_prefix(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|byte| *byte != 255)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

impl Cursor {
    pub(crate) fn rows(
        list: u32,
        keyed: &Keyed,
        prefix: Key,
        (from, upto): (Option<Key>, Option<Key>),
        backward: bool,
    ) -> Cursor {
        let end = after_prefix(upto.as_ref().unwrap_or(&prefix));
        let window = Window { from: from.unwrap_or(prefix), end, last: None, backward };
        Cursor::Rows { list, rows: keyed.rows.clone(), window }
    }

    pub(crate) fn index(list: u32, keyed: &Keyed, index: u16, prefix: Key, backward: bool) -> Cursor {
        let Some(entries) = keyed.indexes.get(index as usize) else { return Cursor::Closed };
        let indexed = prefix.len();
        let window = Window { end: after_prefix(&prefix), from: prefix, last: None, backward };
        Cursor::Index { list, entries: entries.clone(), indexed, window }
    }

    /// What its last step costs by the bytes of keys.
    pub(crate) fn search_operations(&self) -> u64 {
        match self {
            Cursor::Rows { rows, window, .. } => window.search_operations(rows.len()),
            Cursor::Index { entries, window, .. } => window.search_operations(entries.len()),
            _ => 0,
        }
    }

    pub(crate) fn step(&mut self, state: &State) -> Step {
        match self {
            Cursor::Closed => Step::Done,
            Cursor::Rows { list, rows, window } => {
                let Some(bounds) = window.rest() else { return Step::Done };
                let mut range = rows.range::<_, [u8]>(bounds);
                let next = if window.backward { range.next_back() } else { range.next() };
                let Some((key, _)) = next else { return Step::Done };
                window.last = Some(Arc::clone(key));
                Step::of(state, *list, key)
            }
            Cursor::Index { list, entries, indexed, window } => {
                let Some(bounds) = window.rest() else { return Step::Done };
                let mut range = entries.range::<_, [u8]>(bounds);
                let next = if window.backward { range.next_back() } else { range.next() };
                let Some(entry) = next else { return Step::Done };
                window.last = Some(Arc::clone(entry));
                Step::of(state, *list, &entry[*indexed..])
            }
            Cursor::List { values, at } => match values.get(*at) {
                Some(value) => {
                    *at += 1;
                    Step::Value(value.clone())
                }
                None => Step::Done,
            },
            Cursor::Range { next, last, done } => {
                if *done || *next > *last {
                    return Step::Done;
                }
                let value = *next;
                match next.checked_add(1) {
                    Some(following) => *next = following,
                    None => *done = true,
                }
                Step::Value(Value::Word(value))
            }
        }
    }
}
