//! The state of an app: persistent ordered maps, so that a copy is a copy of their roots.

use crate::codec;
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;
use weft::module::{ListKind, Module, SCRATCH, Type};
use weft::{Value, module};

/// The list number of deltas that keep when timers are due; the key is the timer and its arguments.
pub const TIMERS: u32 = u32::MAX - 1;

/// Timers pending in one app: each takes about 200 bytes of memory, and the log keeps them.
pub(crate) const TIMERS_MAX: usize = 1 << 20;

/// The list number of deltas that keep which numbers `next_id` has given out; the key is the list's number.
pub const COUNTERS: u32 = u32::MAX;

pub(crate) type Key = Arc<[u8]>;
pub(crate) type Row = Arc<[Value]>;

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) lists: Vec<List>,
    pub(crate) timers: Timers,
    /// In the order of the module.
    pub(crate) settings: Arc<Vec<Value>>,
    /// Keyed lists of functions, empty between events.
    scratch: Vec<Keyed>,
}

/// Pending timers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    due: OrdMap<Key, i64>,
    order: OrdSet<(i64, Key)>,
}

impl Timers {
    /// Begins, moves or ends one.
    pub(crate) fn set(&mut self, key: &Key, due: Option<i64>) {
        let before = match due {
            Some(due) => self.due.insert(Arc::clone(key), due),
            None => self.due.remove(key),
        };
        if let Some(before) = before {
            self.order.remove(&(before, Arc::clone(key)));
        }
        if let Some(due) = due {
            self.order.insert((due, Arc::clone(key)));
        }
    }

    pub(crate) fn due(&self, key: &Key) -> Option<i64> {
        self.due.get(key).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn first(&self) -> Option<&(i64, Key)> {
        self.order.get_min()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &i64)> {
        self.due.iter()
    }
}

/// The key of a timer: its name's length in one byte, its name, its arguments as a send has them. So it stays what it
/// is when a module changes.
pub(crate) fn timer_key(name: &str, arguments: &[u8]) -> Key {
    let length = name.len().min(255);
    [&[length as u8], &name.as_bytes()[..length], arguments].concat().into()
}

/// A timer's name and arguments; none if the key is not laid out so.
pub(crate) fn read_timer_key(key: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = key.split_first()?;
    let (name, arguments) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(name).ok()?, arguments))
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
                ListKind::Keyed { .. } => List::Keyed(Keyed::of(list)),
                ListKind::Variable { initial, .. } => List::Variable(initial.clone()),
            })
            .collect();
        let scratch = module.scratch.iter().map(Keyed::of).collect();
        let settings = module.settings.iter().map(|setting| setting.default.clone().unwrap_or_default());
        State { lists, timers: Timers::default(), settings: Arc::new(settings.collect()), scratch }
    }

    /// Empties a local list.
    pub(crate) fn clear(&mut self, list: u32, module: &Module) {
        if let Some(keyed) = self.keyed_mut(list) {
            *keyed = Keyed::of(module.list(list));
        }
    }

    /// Empties all local lists.
    pub(crate) fn end_event(&mut self, module: &Module) {
        for (keyed, list) in self.scratch.iter_mut().zip(&module.scratch) {
            *keyed = Keyed::of(list);
        }
    }

    /// Takes over the local lists of another state of the same module.
    pub(crate) fn keep_local_lists_of(&mut self, other: State) {
        self.scratch = other.scratch;
    }

    pub(crate) fn keyed(&self, list: u32) -> Option<&Keyed> {
        if let Some(local) = list.checked_sub(SCRATCH) {
            return self.scratch.get(local as usize);
        }
        match self.lists.get(list as usize) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }

    pub(crate) fn keyed_mut(&mut self, list: u32) -> Option<&mut Keyed> {
        if let Some(local) = list.checked_sub(SCRATCH) {
            return self.scratch.get_mut(local as usize);
        }
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
    fn of(list: &module::List) -> Keyed {
        let indexes = match &list.kind {
            ListKind::Keyed { indexes, .. } => indexes.len(),
            ListKind::Variable { .. } => 0,
        };
        Keyed { indexes: vec![OrdSet::new(); indexes], ..Keyed::default() }
    }

    fn reindex(&mut self, list: u32, key: &[u8], before: Option<&Row>, after: Option<&Row>, module: &Module) {
        let ListKind::Keyed { record, indexes, .. } = &module.list(list).kind else { return };
        for (set, fields) in self.indexes.iter_mut().zip(indexes) {
            if same_fields(before, after, fields) {
                continue;
            }
            let entry = |row: &Row| {
                let mut entry = Vec::new();
                codec::put_fields(row, *record, fields, module, &mut entry);
                entry.extend_from_slice(key);
                Key::from(entry)
            };
            if let Some(before) = before.map(entry) {
                set.remove(&*before);
            }
            if let Some(after) = after.map(entry) {
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

/// Whether two rows of one key have the same entry in an index of these fields.
pub(crate) fn same_fields(before: Option<&Row>, after: Option<&Row>, fields: &[u16]) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    fields.iter().all(|field| before[*field as usize] == after[*field as usize])
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

    #[test]
    fn a_change_beside_an_index_leaves_it_alone() {
        let source = "app a\nrecord R { id: int, kind: text, n: int }\nstate l: list of R by id index kind";
        let module = weft::compile(source, "a.weft").expect("the source is right");
        let mut state = State::new(&module);
        let mut put = |kind: &str, n: i64| {
            let row = Row::from([Value::Word(1), Value::Text(kind.into()), Value::Word(n)]);
            state.put(0, codec::key_of(&row, 0, &module), row, &module);
            state.keyed(0).expect("it is a keyed list").indexes[0].clone()
        };
        let first = put("a", 1);
        assert!(put("a", 2).ptr_eq(&first), "the index is the very same");
        let moved = put("b", 2);
        assert!(!moved.ptr_eq(&first) && moved.len() == 1);
    }

    fn entries(state: &State) -> usize {
        state.keyed(0).map_or(0, |keyed| keyed.indexes[0].len())
    }
}
