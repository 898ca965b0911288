//! What the rows of a list are found by: keys, and ranges of them or of an index. `table` keeps the rows.

use crate::budget::KEY_BYTES_MAX;
use crate::codec;
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

    /// Appends it as the log has it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Key::Word(word) => out.extend_from_slice(&codec::word_key(*word)),
            Key::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// How the rows of a list look: of which kinds their fields are, and by which they are found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of each field of the record.
    pub(crate) kinds: Vec<Type>,
    /// The key's fields.
    pub(crate) keys: Vec<u16>,
    /// The fields of each index.
    pub(crate) indexes: Vec<Vec<u16>>,
    /// Of each index, the fields of a plain word that its entries have beside.
    pub(crate) covers: Vec<Vec<u16>>,
    /// Whether the key is a [`Key::Word`].
    pub(crate) by_word: bool,
}

impl Layout {
    /// A keyed list's layout; an empty one of a variable.
    pub(crate) fn of(list: &module::List, module: &Module) -> Layout {
        let ListKind::Keyed { record, keys, indexes } = &list.kind else {
            return Layout::default();
        };
        let fields = module.records[*record as usize].fields.iter();
        let kinds: Vec<Type> = fields.map(|field| field.kind.clone()).collect();
        let by_word = matches!(keys.as_slice(), [key] if is_plain_word(&kinds[*key as usize]));
        let covers = list.covers.clone();
        Layout { kinds, keys: keys.clone(), indexes: indexes.clone(), covers, by_word }
    }

    /// The key of a row whose fields are given one by one.
    pub(crate) fn key_by(&self, value: &impl Fn(u16) -> Value) -> Key {
        if let ([key], true) = (self.keys.as_slice(), self.by_word) {
            return Key::of(&value(*key)).unwrap_or_default();
        }
        let mut bytes = Vec::new();
        for field in &self.keys {
            codec::put_key(&value(*field), &self.kinds[*field as usize], &mut bytes);
        }
        Key::Bytes(bytes.into())
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

    /// Whether each field of a row is of its type, its parts not looked at: what a column of words does not hold would be
    /// another value in it.
    #[inline]
    pub(crate) fn holds(&self, row: &[Value]) -> bool {
        self.kinds.len() == row.len()
            && self.kinds.iter().zip(row).all(|(kind, value)| codec::is_of(value, kind))
    }

    /// The key that the log has as these bytes; none that no row can have.
    pub(crate) fn read_key(&self, bytes: &[u8]) -> Option<Key> {
        if !self.by_word {
            return Some(Key::Bytes(bytes.into()));
        }
        let word = u64::from_be_bytes(bytes.try_into().ok()?) ^ (1 << 63);
        Some(Key::Word(word as i64))
    }

    /// The field that a key of one word is, and its word.
    #[inline(always)]
    pub(crate) fn word_of(&self, key: &Key) -> Option<(u16, i64)> {
        match (key, self.keys.first()) {
            (Key::Word(word), Some(field)) => Some((*field, *word)),
            _ => None,
        }
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
pub(crate) fn same_fields(before: Option<&[Value]>, after: Option<&[Value]>, fields: &[u16]) -> bool {
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

/// Appends the end of a range. Of what is longer than any key only the beginning: no key begins so.
pub(crate) fn put_end(value: &Value, kind: &Type, out: &mut Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
