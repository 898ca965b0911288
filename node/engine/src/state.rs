//! The state of an app: persistent ordered maps, so that a copy is a copy of their roots.

use crate::codec;
use imbl::{OrdMap, OrdSet};
use std::ops::Bound;
use std::sync::Arc;
use weft::module::{ListKind, Module, Type};
use weft::{Value, module};

/// The list number of deltas that keep which numbers `next_id` has given out; the key is the list's number.
pub const COUNTERS: u32 = u32::MAX;

pub(crate) type Key = Arc<[u8]>;
pub(crate) type Row = Arc<[Value]>;

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) lists: Vec<List>,
}

#[derive(Debug, Clone)]
pub(crate) enum List {
    Keyed(Keyed),
    Variable(Value),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Keyed {
    pub(crate) rows: OrdMap<Key, Row>,
    /// Of each index: the indexed fields' bytes, then the key's.
    pub(crate) indexes: Vec<OrdSet<Key>>,
    /// No number up to this is given out by `next_id`.
    pub(crate) counter: i64,
}

impl State {
    pub(crate) fn new(module: &Module) -> State {
        let lists = module
            .lists
            .iter()
            .map(|list| match &list.kind {
                ListKind::Keyed { indexes, .. } => {
                    List::Keyed(Keyed { indexes: vec![OrdSet::new(); indexes.len()], ..Keyed::default() })
                }
                ListKind::Variable { initial, .. } => List::Variable(initial.clone()),
            })
            .collect();
        State { lists }
    }

    pub(crate) fn keyed(&self, list: u32) -> Option<&Keyed> {
        match self.lists.get(list as usize) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }

    pub(crate) fn keyed_mut(&mut self, list: u32) -> Option<&mut Keyed> {
        match self.lists.get_mut(list as usize) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }

    pub(crate) fn row(&self, list: u32, key: &[u8]) -> Option<&Row> {
        self.keyed(list)?.rows.get(key)
    }

    /// Puts a row where its key says, and keeps the indexes.
    pub(crate) fn put(&mut self, list: u32, key: Key, row: Row, module: &Module) {
        let Some(keyed) = self.keyed_mut(list) else { return };
        let before = keyed.rows.insert(Arc::clone(&key), Arc::clone(&row));
        keyed.reindex(list, &key, before.as_ref(), Some(&row), module);
    }

    pub(crate) fn remove(&mut self, list: u32, key: &[u8], module: &Module) -> Option<Row> {
        let keyed = self.keyed_mut(list)?;
        let before = keyed.rows.remove(key)?;
        keyed.reindex(list, key, Some(&before), None, module);
        Some(before)
    }
}

impl Keyed {
    fn reindex(&mut self, list: u32, key: &[u8], before: Option<&Row>, after: Option<&Row>, module: &Module) {
        let ListKind::Keyed { record, indexes, .. } = &module.lists[list as usize].kind else { return };
        for (set, fields) in self.indexes.iter_mut().zip(indexes) {
            let entry = |row: &Row| {
                let mut entry = Vec::new();
                codec::put_fields(row, *record, fields, module, &mut entry);
                entry.extend_from_slice(key);
                Key::from(entry)
            };
            let (before, after) = (before.map(entry), after.map(entry));
            if before == after {
                continue;
            }
            if let Some(before) = before {
                set.remove(&*before);
            }
            if let Some(after) = after {
                set.insert(after);
            }
        }
    }

    /// The greatest number that the key has or had, of a list by one int.
    pub(crate) fn greatest(&self, key_field: u16) -> i64 {
        let greatest = self.rows.get_max().map(|(_, row)| &row[key_field as usize]);
        match greatest {
            Some(Value::Word(word)) => self.counter.max(*word),
            _ => self.counter,
        }
    }
}

/// The first key after another one, or the first of all with a prefix.
pub(crate) fn bounds<'k>(after: Option<&'k [u8]>, prefix: &'k [u8]) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    match after {
        Some(after) => (Bound::Excluded(after), Bound::Unbounded),
        None => (Bound::Included(prefix), Bound::Unbounded),
    }
}

/// The key field of a list by one int.
pub(crate) fn int_key(list: &module::List, module: &Module) -> Option<u16> {
    let ListKind::Keyed { record, keys, .. } = &list.kind else { return None };
    match keys.as_slice() {
        [key] if module.records[*record as usize].fields[*key as usize].kind == Type::Int => Some(*key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_an_entry_for_each_row_and_no_other() {
        let source = "app a\nrecord R { id: int, kind: text }\nstate l: list of R by id index kind";
        let module = weft::compile(source, "a.weft").expect("the source is right");
        let mut state = State::new(&module);
        let row = |id: i64, kind: &str| Row::from([Value::Word(id), Value::Text(kind.into())]);
        let mut put = |id: i64, kind: &str| {
            let row = row(id, kind);
            state.put(0, codec::key_of(&row, 0, &module), row, &module);
            entries(&state)
        };
        assert_eq!(put(1, "a"), 1);
        assert_eq!(put(2, "a"), 2);
        assert_eq!(put(1, "b"), 2, "the entry moves with the row");
        assert_eq!(put(1, "b"), 2);
        let key = codec::key_of(&row(1, "b"), 0, &module);
        state.remove(0, &key, &module);
        assert_eq!(entries(&state), 1);
    }

    fn entries(state: &State) -> usize {
        state.keyed(0).map_or(0, |keyed| keyed.indexes[0].len())
    }
}
