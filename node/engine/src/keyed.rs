//! The rows of one list by their keys, and its indexes. Nobody else knows how they are kept.
//!
//! What shows of a list is in the order of keys. A place ([`Slot`]) is good until the next change of the list.

use crate::budget::{KEY_BYTES_MAX, search_operations};
use crate::codec;
use imbl::OrdMap;
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;
use weft::module::{self, ListKind, Module, Type};

/// A row's fields in the order of its record.
pub(crate) type Row = Arc<[Value]>;

/// A row's key. The keys of one list are all of one kind, and compare as the fields that they stand for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Of a list by one plain word: bool, int, time, duration, enum.
    Word(i64),
    /// Of any other list: its fields as `codec` writes them.
    Bytes(Arc<[u8]>),
}

impl Default for Key {
    fn default() -> Key {
        Key::Bytes(Arc::default())
    }
}

impl Key {
    /// As a register holds it.
    pub(crate) fn of(value: &Value) -> Option<Key> {
        match value {
            Value::Word(word) => Some(Key::Word(*word)),
            Value::Key(bytes) => Some(Key::Bytes(Arc::clone(bytes))),
            _ => None,
        }
    }

    /// For a register.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Key::Word(word) => Value::Word(word),
            Key::Bytes(bytes) => Value::Key(bytes),
        }
    }

    /// How many bytes it has in the log and in an index's entry.
    pub(crate) fn len(&self) -> usize {
        match self {
            Key::Word(_) => size_of::<i64>(),
            Key::Bytes(bytes) => bytes.len(),
        }
    }

    /// As the log has it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.put(&mut bytes);
        bytes
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Key::Word(word) => codec::put_key(&Value::Word(*word), &Type::Int, out),
            Key::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// How the rows of a list look: of which kinds their fields are, and by which they are found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of each field of the record.
    pub(crate) kinds: Vec<Type>,
    /// The key's fields.
    pub(crate) keys: Vec<u16>,
    /// The fields of each index.
    pub(crate) indexes: Vec<Vec<u16>>,
    /// Whether the key is a [`Key::Word`].
    pub(crate) by_word: bool,
}

impl Layout {
    /// A keyed list's layout; an empty one of a variable.
    pub(crate) fn of(list: &module::List, module: &Module) -> Layout {
        let ListKind::Keyed { record, keys, indexes } = &list.kind else {
            return Layout { kinds: Vec::new(), keys: Vec::new(), indexes: Vec::new(), by_word: false };
        };
        let fields = module.records[*record as usize].fields.iter();
        let kinds: Vec<Type> = fields.map(|field| field.kind.clone()).collect();
        let by_word = matches!(keys.as_slice(), [key] if is_plain_word(&kinds[*key as usize]));
        Layout { kinds, keys: keys.clone(), indexes: indexes.clone(), by_word }
    }

    /// A row's key.
    pub(crate) fn key_of(&self, row: &[Value]) -> Key {
        match (self.keys.as_slice(), self.by_word) {
            ([key], true) => match &row[*key as usize] {
                Value::Word(word) => Key::Word(*word),
                _ => Key::default(),
            },
            (keys, _) => {
                let mut bytes = Vec::new();
                self.put_fields(row, keys, &mut bytes);
                Key::Bytes(bytes.into())
            }
        }
    }

    /// The key that the log has as these bytes; none that no row can have.
    pub(crate) fn read_key(&self, bytes: &[u8]) -> Option<Key> {
        if !self.by_word {
            return Some(Key::Bytes(bytes.into()));
        }
        let word = u64::from_be_bytes(bytes.try_into().ok()?) ^ (1 << 63);
        Some(Key::Word(word as i64))
    }

    /// The key field of a list by one int.
    pub(crate) fn int_key(&self) -> Option<u16> {
        match self.keys.as_slice() {
            [key] if self.kinds[*key as usize] == Type::Int => Some(*key),
            _ => None,
        }
    }

    /// Bytes of some fields of a row in a key, without making it.
    pub(crate) fn fields_size(&self, row: &[Value], fields: &[u16]) -> usize {
        fields.iter().map(|field| key_size(&row[*field as usize], &self.kinds[*field as usize])).sum()
    }

    /// Bytes of the values that a range is made of, those that are equal first.
    pub(crate) fn ends_size(&self, index: Option<u16>, values: &[Value], equal: u16) -> usize {
        let fields = index.map_or(&self.keys, |index| &self.indexes[index as usize]);
        let size = |(at, value): (usize, &Value)| {
            fields
                .get(at.min(equal as usize))
                .map_or(0, |field| key_size(value, &self.kinds[*field as usize]))
        };
        values.iter().enumerate().map(size).sum()
    }

    fn put_fields(&self, row: &[Value], fields: &[u16], out: &mut Vec<u8>) {
        for field in fields {
            codec::put_key(&row[*field as usize], &self.kinds[*field as usize], out);
        }
    }

    fn entry(&self, index: &[u16], row: &[Value], key: &Key) -> Arc<[u8]> {
        let mut entry = Vec::new();
        self.put_fields(row, index, &mut entry);
        key.put(&mut entry);
        entry.into()
    }
}

/// Whether values of a type are plain words: never none.
pub(crate) fn is_plain_word(kind: &Type) -> bool {
    matches!(kind, Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_))
}

/// Bytes of a value in a key, as [`codec::put_key`] writes it.
pub(crate) fn key_size(value: &Value, kind: &Type) -> usize {
    match (kind, value) {
        (Type::Optional(_), Value::None) => 1,
        (Type::Optional(inner), value) => 1 + key_size(value, inner),
        (_, Value::Word(_) | Value::Real(_)) => 8,
        (_, Value::Node(node)) => node.len(),
        (_, Value::Text(text)) => escaped_size(text.as_bytes()),
        (_, Value::Bytes(bytes)) => escaped_size(bytes),
        _ => 0,
    }
}

/// Each 0 takes two bytes, and two end it. What is too long anyway is not read.
fn escaped_size(bytes: &[u8]) -> usize {
    let zeros = if bytes.len() > KEY_BYTES_MAX { 0 } else { bytes.iter().filter(|byte| **byte == 0).count() };
    bytes.len() + zeros + 2
}

/// Whether two rows of one key have the same entry in an index of these fields.
pub(crate) fn same_fields(before: Option<&Row>, after: Option<&Row>, fields: &[u16]) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    fields.iter().all(|field| before[*field as usize] == after[*field as usize])
}

/// Which rows: those whose first fields, of the key or of an index, equal values, and whose next one is between two
/// ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'v> {
    pub(crate) equal: &'v [Value],
    pub(crate) from: Bound<&'v Value>,
    pub(crate) upto: Bound<&'v Value>,
}

impl Range<'_> {
    /// All rows.
    pub(crate) const ALL: Range<'static> =
        Range { equal: &[], from: Bound::Unbounded, upto: Bound::Unbounded };
}

/// Where a row stands until the next change of its list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'k>(&'k Row);

/// A list by key.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    layout: Arc<Layout>,
    rows: OrdMap<Key, Row>,
    /// Of each index: the indexed fields' bytes, then the key's.
    indexes: Vec<OrdMap<Arc<[u8]>, Key>>,
    /// No number up to this is given out by `next_id`.
    pub(crate) counter: i64,
}

impl Keyed {
    pub(crate) fn new(layout: Arc<Layout>) -> Keyed {
        let indexes = vec![OrdMap::new(); layout.indexes.len()];
        Keyed { layout, rows: OrdMap::new(), indexes, counter: 0 }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn clear(&mut self) {
        *self = Keyed::new(Arc::clone(&self.layout));
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Slot<'_>> {
        self.rows.get(key).map(Slot)
    }

    /// A row's field.
    pub(crate) fn value(&self, slot: Slot<'_>, field: u16) -> Value {
        slot.0[field as usize].clone()
    }

    /// The whole row.
    pub(crate) fn row(&self, slot: Slot<'_>) -> Row {
        Arc::clone(slot.0)
    }

    /// Puts a row where its key says, and keeps the indexes; the row that was there.
    pub(crate) fn put(&mut self, key: Key, row: Row) -> Option<Row> {
        let before = self.rows.insert(key.clone(), Arc::clone(&row));
        self.reindex(&key, before.as_ref(), Some(&row));
        before
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Row> {
        let before = self.rows.remove(key)?;
        self.reindex(key, Some(&before), None);
        Some(before)
    }

    /// Changes a field, never one of the key, and keeps the indexes; the value that was there.
    pub(crate) fn set(&mut self, key: &Key, field: u16, value: Value) -> Option<Value> {
        let mut changed = self.rows.get(key)?.to_vec();
        let before = std::mem::replace(&mut changed[field as usize], value);
        self.put(key.clone(), changed.into());
        Some(before)
    }

    /// The rows of a range of the key, as they are now, in key order or the other way round.
    pub(crate) fn walk(&self, range: &Range<'_>, backward: bool) -> Walk {
        let over = match self.key_window(range) {
            Some((from, end)) => Over::Rows(self.rows.clone(), Window { from, end, last: None }),
            None => Over::Nothing,
        };
        Walk { over, backward }
    }

    /// The rows of a range of an index, in the order of its fields and then of keys, or the other way round.
    pub(crate) fn walk_index(&self, number: u16, range: &Range<'_>, backward: bool) -> Walk {
        let over = match (self.indexes.get(number as usize), self.index_window(number, range)) {
            (Some(index), Some((from, end))) => {
                Over::Index(index.clone(), Window { from: Some(from), end, last: None })
            }
            _ => Over::Nothing,
        };
        Walk { over, backward }
    }

    /// How many rows a range of the key has.
    #[cfg_attr(not(test), expect(dead_code, reason = "queries count so from the next step on"))]
    pub(crate) fn count(&self, range: &Range<'_>) -> usize {
        let Some((from, end)) = self.key_window(range) else { return 0 };
        let window = Window { from, end, last: None };
        window.rest(false).map_or(0, |bounds| self.rows.range::<_, Key>(bounds).count())
    }

    /// How many rows a range of an index has.
    #[cfg_attr(not(test), expect(dead_code, reason = "queries count so from the next step on"))]
    pub(crate) fn count_index(&self, number: u16, range: &Range<'_>) -> usize {
        let Some(index) = self.indexes.get(number as usize) else { return 0 };
        let Some((from, end)) = self.index_window(number, range) else { return 0 };
        let window = Window { from: Some(from), end, last: None };
        window.rest(false).map_or(0, |bounds| index.range::<_, Arc<[u8]>>(bounds).count())
    }

    /// The greatest number that the key has or had, of a list by one int.
    pub(crate) fn greatest(&self) -> i64 {
        match self.rows.get_max() {
            Some((Key::Word(word), _)) => self.counter.max(*word),
            _ => self.counter,
        }
    }

    fn reindex(&mut self, key: &Key, before: Option<&Row>, after: Option<&Row>) {
        for (entries, fields) in self.indexes.iter_mut().zip(&self.layout.indexes) {
            if same_fields(before, after, fields) {
                continue;
            }
            if let Some(before) = before {
                entries.remove(&self.layout.entry(fields, before, key));
            }
            if let Some(after) = after {
                entries.insert(self.layout.entry(fields, after, key), key.clone());
            }
        }
    }

    /// The first key that may be in a range, and the first after it that may not; nothing where none can be.
    fn key_window(&self, range: &Range<'_>) -> Option<(Option<Key>, Option<Key>)> {
        if !self.layout.by_word {
            let (from, end) = self.layout.window(&self.layout.keys, range)?;
            return Some((Some(Key::Bytes(from)), end.map(Key::Bytes)));
        }
        let word = |value: &Value| match value {
            Value::Word(word) => Some(*word),
            _ => None,
        };
        if let [value] = range.equal {
            let word = word(value)?;
            return Some((Some(Key::Word(word)), word.checked_add(1).map(Key::Word)));
        }
        let from = match range.from {
            Bound::Unbounded => None,
            Bound::Included(value) => Some(word(value)?),
            Bound::Excluded(value) => Some(word(value)?.checked_add(1)?),
        };
        let end = match range.upto {
            Bound::Unbounded => None,
            Bound::Included(value) => word(value)?.checked_add(1),
            Bound::Excluded(value) => Some(word(value)?),
        };
        Some((from.map(Key::Word), end.map(Key::Word)))
    }

    fn index_window(&self, number: u16, range: &Range<'_>) -> Option<Ends> {
        self.layout.window(self.layout.indexes.get(number as usize)?, range)
    }
}

/// The first bytes that may be in a range, and the first after it that may not.
type Ends = (Arc<[u8]>, Option<Arc<[u8]>>);

impl Layout {
    /// The first bytes that may be in a range over some fields, and the first after it that may not.
    fn window(&self, fields: &[u16], range: &Range<'_>) -> Option<Ends> {
        let mut prefix = Vec::new();
        for (value, field) in range.equal.iter().zip(fields) {
            put_end(value, &self.kinds[*field as usize], &mut prefix);
        }
        let next = fields.get(range.equal.len());
        let with = |value: &Value| {
            let mut bytes = prefix.clone();
            if let Some(field) = next {
                put_end(value, &self.kinds[*field as usize], &mut bytes);
            }
            bytes
        };
        let from = match range.from {
            Bound::Unbounded => prefix.clone(),
            Bound::Included(value) => with(value),
            Bound::Excluded(value) => after_prefix(&with(value))?,
        };
        let end = match range.upto {
            Bound::Unbounded => after_prefix(&prefix),
            Bound::Included(value) => after_prefix(&with(value)),
            Bound::Excluded(value) => Some(with(value)),
        };
        Some((from.into(), end.map(Arc::from)))
    }
}

/// Appends the end of a range. Of what is longer than any key only the beginning: no key begins so.
fn put_end(value: &Value, kind: &Type, out: &mut Vec<u8>) {
    let inner = match kind {
        Type::Optional(inner) => inner,
        other => other,
    };
    let shortened = match value {
        Value::Text(text) if text.len() > KEY_BYTES_MAX => {
            Value::Bytes(text.as_bytes()[..=KEY_BYTES_MAX].into())
        }
        Value::Bytes(bytes) if bytes.len() > KEY_BYTES_MAX => Value::Bytes(bytes[..=KEY_BYTES_MAX].into()),
        _ => return codec::put_key(value, kind, out),
    };
    if inner != kind {
        out.push(1);
    }
    codec::put_key(&shortened, inner, out);
}

/// The least bytes that are above all that begin with a prefix; none if there are none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 255)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Runs over the keys of a list as it was when it began.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    over: Over,
    backward: bool,
}

#[derive(Debug, Clone)]
enum Over {
    Nothing,
    Rows(OrdMap<Key, Row>, Window<Key>),
    Index(OrdMap<Arc<[u8]>, Key>, Window<Arc<[u8]>>),
}

/// What is left to run over.
#[derive(Debug, Clone)]
struct Window<K> {
    /// The first that may be.
    from: Option<K>,
    /// The first that may not be any more.
    end: Option<K>,
    /// Where it is.
    last: Option<K>,
}

impl<K: Ord> Window<K> {
    /// What is left; nothing where there can be nothing, so that no range is ever upside down.
    fn rest(&self, backward: bool) -> Option<(Bound<&K>, Bound<&K>)> {
        let passed = |here: bool| self.last.as_ref().filter(|_| here);
        let lower = match passed(!backward) {
            Some(last) => Bound::Excluded(last),
            None => self.from.as_ref().map_or(Bound::Unbounded, Bound::Included),
        };
        let upper = passed(backward).or(self.end.as_ref());
        if let (Bound::Included(lowest) | Bound::Excluded(lowest), Some(end)) = (lower, upper)
            && end <= lowest
        {
            return None;
        }
        Some((lower, upper.map_or(Bound::Unbounded, Bound::Excluded)))
    }
}

/// The next entry of a map, forward or backward.
fn step<K: Ord + Clone, V: Clone>(
    map: &OrdMap<K, V>,
    window: &mut Window<K>,
    backward: bool,
) -> Option<(K, V)> {
    let mut range = map.range::<_, K>(window.rest(backward)?);
    let (key, value) = if backward { range.next_back()? } else { range.next()? };
    let found = (key.clone(), value.clone());
    window.last = Some(found.0.clone());
    Some(found)
}

impl Walk {
    /// The next key.
    pub(crate) fn next(&mut self) -> Option<Key> {
        match &mut self.over {
            Over::Nothing => None,
            Over::Rows(rows, window) => step(rows, window, self.backward).map(|(key, _)| key),
            Over::Index(entries, window) => step(entries, window, self.backward).map(|(_, key)| key),
        }
    }

    /// What its last step cost by the bytes of keys, beside its own operation.
    pub(crate) fn search_operations(&self) -> u64 {
        let (longest, count) = match &self.over {
            Over::Nothing => (0, 0),
            Over::Rows(rows, window) => {
                let longest = window.last.iter().chain(&window.from).map(Key::len).max();
                (longest.unwrap_or(0), rows.len())
            }
            Over::Index(entries, window) => {
                let longest = window.last.iter().chain(&window.from).map(|entry| entry.len()).max();
                (longest.unwrap_or(0), entries.len())
            }
        };
        // Both ends are found, then the row.
        3 * search_operations(longest, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "app a\nrecord R { id: int, kind: text, n: int }\nstate l: list of R by id index kind";

    fn list() -> Keyed {
        let module = weft::compile(SOURCE, "a.weft").expect("the source is right");
        Keyed::new(Arc::new(Layout::of(&module.lists[0], &module)))
    }

    fn put(list: &mut Keyed, id: i64, kind: &str, n: i64) {
        let row = Row::from([Value::Word(id), Value::Text(kind.into()), Value::Word(n)]);
        list.put(list.layout().key_of(&row), row);
    }

    #[test]
    fn an_index_has_an_entry_for_each_row_and_no_other() {
        let mut list = list();
        let mut entries = |id: i64, kind: &str| {
            put(&mut list, id, kind, 0);
            list.count_index(0, &Range::ALL)
        };
        assert_eq!(entries(1, "a"), 1);
        assert_eq!(entries(2, "a"), 2);
        assert_eq!(entries(1, "b"), 2, "the entry moves with the row");
        assert_eq!(entries(1, "b"), 2);
        list.remove(&Key::Word(1));
        assert_eq!(list.count_index(0, &Range::ALL), 1);
        assert_eq!(list.count(&Range::ALL), 1);
    }

    #[test]
    fn a_change_beside_an_index_leaves_it_alone() {
        let mut list = list();
        put(&mut list, 1, "a", 1);
        let first = list.indexes[0].clone();
        put(&mut list, 1, "a", 2);
        assert!(list.indexes[0].ptr_eq(&first), "the index is the very same");
        list.set(&Key::Word(1), 2, Value::Word(3));
        assert!(list.indexes[0].ptr_eq(&first), "the index is the very same");
        put(&mut list, 1, "b", 2);
        assert!(!list.indexes[0].ptr_eq(&first) && list.indexes[0].len() == 1);
    }

    #[test]
    fn a_size_is_that_of_the_bytes() {
        let optional = Type::Optional(Arc::new(Type::Text));
        for (value, kind) in [
            (Value::Word(-1), Type::Int),
            (Value::Real(weft::value::Real::ZERO), Type::Real),
            (Value::Node([7; 32].into()), Type::Node),
            (Value::Text("".into()), Type::Text),
            (Value::Text("a\0b\0".into()), Type::Text),
            (Value::Bytes([0, 255, 0].as_slice().into()), Type::Bytes),
            (Value::None, optional.clone()),
            (Value::Text("ann".into()), optional),
        ] {
            let mut bytes = Vec::new();
            codec::put_key(&value, &kind, &mut bytes);
            assert_eq!(key_size(&value, &kind), bytes.len(), "{value:?}");
        }
    }
}
