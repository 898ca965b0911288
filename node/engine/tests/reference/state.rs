//! Rows by key, variables, timers. Copied whole for each event.

use super::kinds::{Field, Kind, Program, Stored};
use super::value::{Value, put_key, put_row, put_word};
use engine::{Delta, TIMERS};
use std::collections::BTreeMap;

/// The most bytes of a row's key, and of its indexed fields together with its key.
pub const KEY_BYTES_MAX: usize = 4096;

/// Entries from which on an index of numbers close together is surely what the engine makes of such.
const CLOSE_ENTRIES: usize = 400;

/// How many bytes a key has.
pub fn key_size<'v>(key: impl IntoIterator<Item = &'v Value>) -> usize {
    let mut bytes = Vec::new();
    key.into_iter().for_each(|part| put_key(part, &mut bytes));
    bytes.len()
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    pub name: String,
    pub keys: Vec<String>,
    /// Indexes only bound what a row may be.
    pub indexes: Vec<Vec<String>>,
    pub rows: BTreeMap<Vec<Value>, Value>,
    /// The greatest number that a key of one int ever had, or that was given out.
    pub greatest: i64,
}

impl Rows {
    pub fn key_of(&self, row: &Value) -> Vec<Value> {
        self.keys.iter().map(|key| row.field(key).clone()).collect()
    }

    /// The index of which a row's entry would be too long.
    pub fn long_entry(&self, row: &Value, record: &[Field]) -> Option<&[String]> {
        let size = |name: &String| {
            let kind = record.iter().find(|field| field.name == *name).map(|field| &field.kind);
            let marked = usize::from(matches!(kind, Some(Kind::Optional(_))));
            marked + if *row.field(name) == Value::None { 0 } else { key_size([row.field(name)]) }
        };
        let key = key_size(&self.key_of(row));
        let long =
            self.indexes.iter().find(|index| key + index.iter().map(size).sum::<usize>() > KEY_BYTES_MAX);
        long.map(Vec::as_slice)
    }

    /// Whether an index of numbers close together has many entries: the engine finds those in another way.
    pub fn has_close_index(&self) -> bool {
        let is_fixed = |value: &Value| {
            matches!(
                value,
                Value::Int(_) | Value::Duration(_) | Value::Bool(_) | Value::Time(_) | Value::Case(..)
            )
        };
        let is_close = |index: &Vec<String>| {
            let number = |row: &Value| match row.field(&index[0]) {
                Value::Int(number) | Value::Duration(number) => Some(*number),
                _ => None,
            };
            let numbers: Option<Vec<i64>> = self.rows.values().map(number).collect();
            let numbers = numbers.unwrap_or_default();
            let span = numbers.iter().max().zip(numbers.iter().min());
            span.is_some_and(|(most, least)| most.abs_diff(*least) < numbers.len() as u64 / 4)
                && self
                    .rows
                    .values()
                    .all(|row| index.iter().chain(&self.keys).all(|name| is_fixed(row.field(name))))
        };
        self.rows.len() >= CLOSE_ENTRIES && self.indexes.iter().any(is_close)
    }

    pub fn put(&mut self, row: Value) {
        let key = self.key_of(&row);
        if let [Value::Int(number)] = key.as_slice() {
            self.greatest = self.greatest.max(*number);
        }
        self.rows.insert(key, row);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum List {
    Keyed(Rows),
    Variable(Value),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub name: String,
    pub arguments: Vec<Value>,
    pub due: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub lists: Vec<List>,
    /// By the bytes of their keys, which is the order of those that are due at once.
    pub timers: BTreeMap<Vec<u8>, Timer>,
}

impl State {
    pub fn of(program: &Program) -> State {
        let lists = program.states.iter().map(|state| match &state.stored {
            Stored::Keyed { keys, indexes, .. } => List::Keyed(Rows {
                name: state.name.clone(),
                keys: keys.clone(),
                indexes: indexes.clone(),
                ..Rows::default()
            }),
            Stored::Variable { initial, .. } => List::Variable(initial.clone()),
        });
        State { lists: lists.collect(), timers: BTreeMap::new() }
    }

    /// What the log keeps of it, but for the numbers of `next_id`.
    pub fn rows(&self, program: &Program) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
        let mut rows = BTreeMap::new();
        for (number, (state, list)) in (0..).zip(program.states.iter().zip(&self.lists)) {
            if state.transient {
                continue;
            }
            match (list, &state.stored) {
                (List::Variable(value), Stored::Variable { kind, .. }) => {
                    let mut bytes = Vec::new();
                    put_row(value, kind, program, &mut bytes);
                    rows.insert((number, Vec::new()), bytes);
                }
                (List::Keyed(keyed), Stored::Keyed { record, .. }) => {
                    for (key, row) in &keyed.rows {
                        let (mut key_bytes, mut bytes) = (Vec::new(), Vec::new());
                        key.iter().for_each(|part| put_key(part, &mut key_bytes));
                        put_row(row, &Kind::Record(record.clone()), program, &mut bytes);
                        rows.insert((number, key_bytes), bytes);
                    }
                }
                _ => unreachable!("a state is what it was declared"),
            }
        }
        for (key, timer) in &self.timers {
            let mut bytes = Vec::new();
            put_word(timer.due, &mut bytes);
            rows.insert((TIMERS, key.clone()), bytes);
        }
        rows
    }

    /// The rows that differ from an earlier state, in order of list and key.
    pub fn deltas(&self, before: &State, program: &Program) -> Vec<Delta> {
        let (old, new) = (before.rows(program), self.rows(program));
        let mut places: Vec<_> = old.keys().chain(new.keys()).collect();
        places.sort();
        places.dedup();
        let changed = places.into_iter().filter(|place| old.get(*place) != new.get(*place));
        changed
            .map(|place| Delta { list: place.0, key: place.1.clone(), row: new.get(place).cloned() })
            .collect()
    }
}
