//! What loops run over. A cursor over rows keeps the list as it was when the loop began.

use crate::state::State;
use crate::table::Walk;
use std::sync::Arc;
use weft::Value;

#[derive(Debug, Default)]
pub(crate) enum Cursor {
    #[default]
    Closed,
    Rows {
        list: u32,
        walk: Walk,
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
    /// What its last step costs by the bytes of keys.
    pub(crate) fn search_operations(&self) -> u64 {
        match self {
            Cursor::Rows { walk, .. } => walk.search_operations(),
            _ => 0,
        }
    }

    pub(crate) fn step(&mut self, state: &State) -> Step {
        match self {
            Cursor::Closed => Step::Done,
            Cursor::Rows { list, walk } => {
                let Some(key) = walk.next() else { return Step::Done };
                let Some(keyed) = state.keyed(*list) else { return Step::Done };
                // The row at a key as it is now.
                match keyed.find(&key) {
                    Some(slot) => Step::Value(Value::Record(keyed.row(slot))),
                    None => Step::Skipped,
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
