//! What loops run over. A cursor over rows keeps the list as it was when the loop began.

use crate::state::{Key, Keyed, State, bounds};
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;
use weft::Value;

#[derive(Debug, Default)]
pub(crate) enum Cursor {
    #[default]
    Closed,
    Rows {
        list: u32,
        rows: OrdMap<Key, crate::state::Row>,
        prefix: Key,
        /// Where it begins: the prefix, or a longer one.
        from: Key,
        /// No key above this that does not begin with it.
        upto: Option<Key>,
        last: Option<Key>,
    },
    Index {
        list: u32,
        entries: OrdSet<Key>,
        prefix: Key,
        last: Option<Key>,
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

impl Cursor {
    pub(crate) fn rows(
        list: u32,
        keyed: &Keyed,
        prefix: Key,
        (from, upto): (Option<Key>, Option<Key>),
    ) -> Cursor {
        let from = from.unwrap_or_else(|| Arc::clone(&prefix));
        Cursor::Rows { list, rows: keyed.rows.clone(), prefix, from, upto, last: None }
    }

    pub(crate) fn index(list: u32, keyed: &Keyed, index: u16, prefix: Key) -> Cursor {
        match keyed.indexes.get(index as usize) {
            Some(entries) => Cursor::Index { list, entries: entries.clone(), prefix, last: None },
            None => Cursor::Closed,
        }
    }

    pub(crate) fn step(&mut self, state: &State) -> Step {
        match self {
            Cursor::Closed => Step::Done,
            Cursor::Rows { list, rows, prefix, from, upto, last } => {
                let next = rows.range::<_, [u8]>(bounds(last.as_deref(), from)).next();
                let is_in = |key: &Key| {
                    let is_below = |upto: &Key| key <= upto || key.starts_with(upto);
                    key.starts_with(prefix) && upto.as_ref().is_none_or(is_below)
                };
                match next.map(|(key, _)| Arc::clone(key)).filter(is_in) {
                    Some(key) => {
                        let row = state.row(*list, &key);
                        let step =
                            row.map_or(Step::Skipped, |row| Step::Value(Value::Record(Arc::clone(row))));
                        *last = Some(key);
                        step
                    }
                    None => Step::Done,
                }
            }
            Cursor::Index { list, entries, prefix, last } => {
                let next = entries.range::<_, [u8]>(bounds(last.as_deref(), prefix)).next();
                match next.cloned().filter(|entry| entry.starts_with(prefix)) {
                    Some(entry) => {
                        let row = state.row(*list, &entry[prefix.len()..]);
                        let step =
                            row.map_or(Step::Skipped, |row| Step::Value(Value::Record(Arc::clone(row))));
                        *last = Some(entry);
                        step
                    }
                    None => Step::Done,
                }
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
