//! What the entries of a sorted set of rows are made of: words where all fields are of a fixed size, else bytes as the log
//! has keys. Words compare as the values do that they stand for.

use super::entries::{FewWords, Strings, WORDS_MAX, Words};
use super::tree::Limit;
use crate::codec;
use crate::keyed::{Key, Layout, Range, is_plain_word, put_end};
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;
use weft::module::Type;
use weft::value::Real;

/// What entries are made of.
#[derive(Debug)]
pub(super) struct Shape {
    /// What rows are sorted by: the index's fields, then the key's.
    pub(super) fields: Vec<(u16, Type)>,
    /// How many fields are the index's own; none of the list of keys.
    own: usize,
    /// Fields of a plain word that entries have beside.
    pub(super) covers: Vec<u16>,
    /// Words that the fields take, and those that the index's own take, where all have a fixed size.
    pub(super) words: Option<(usize, usize)>,
    /// Whether the key is one plain word.
    pub(super) by_word: bool,
    /// Which word of an entry a key of one word is.
    pub(super) key_word: usize,
    /// Whether it is an index's whose first field is one plain word, which may be made of runs.
    pub(super) runs: bool,
    /// Of each field of the record the word of an entry that it is, [`ABSENT`] of one that is none.
    pub(super) places: Vec<u8>,
}

/// No word of an entry: more than there are.
const ABSENT: u8 = u8::MAX;

/// Words of a value of a type in an entry; none if they differ.
pub(super) fn width(kind: &Type) -> Option<usize> {
    match kind {
        Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_) | Type::Real => Some(1),
        Type::Node => Some(4),
        Type::Optional(inner) => Some(1 + width(inner)?),
        _ => None,
    }
}

/// Appends a value so that words compare as values do.
fn put_words(value: &Value, kind: &Type, out: &mut FewWords) {
    match (kind, value) {
        (Type::Optional(inner), Value::None) => {
            for _ in 0..=width(inner).unwrap_or_default() {
                out.push(0);
            }
        }
        (Type::Optional(inner), value) => {
            out.push(1);
            put_words(value, inner, out);
        }
        (_, Value::Word(word)) => out.push(*word),
        (_, Value::Real(real)) => out.push(turned(real.get().to_bits() as i64)),
        (_, Value::Node(node)) => {
            for part in node.as_chunks().0 {
                out.push((u64::from_be_bytes(*part) ^ (1 << 63)) as i64);
            }
        }
        // The checker lets nothing else be of a fixed size.
        _ => out.push(0),
    }
}

/// The bits of a real as a word that is in its order, and back.
fn turned(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// A value from its words, and those behind it.
fn read_words<'w>(kind: &Type, words: &'w [i64]) -> Option<(Value, &'w [i64])> {
    let (word, rest) = words.split_first()?;
    match kind {
        Type::Optional(inner) if *word == 0 => Some((Value::None, rest.get(width(inner)?..)?)),
        Type::Optional(inner) => read_words(inner, rest),
        Type::Real => Some((Value::Real(Real::new(f64::from_bits(turned(*word) as u64))?), rest)),
        Type::Node => {
            let (parts, rest) = words.split_at_checked(4)?;
            let mut node = [0; 32];
            for (bytes, part) in node.as_chunks_mut().0.iter_mut().zip(parts) {
                *bytes = (*part as u64 ^ (1 << 63)).to_be_bytes();
            }
            Some((Value::Node(Arc::new(node)), rest))
        }
        _ => Some((Value::Word(*word), rest)),
    }
}

impl Shape {
    /// Of the keys of a list.
    pub(super) fn of_keys(layout: &Layout) -> Shape {
        Shape::new(layout, &[], &[])
    }

    /// Of an index.
    pub(super) fn of_index(layout: &Layout, number: usize) -> Shape {
        let covers = layout.covers.get(number).map_or(&[][..], Vec::as_slice);
        Shape::new(layout, &layout.indexes[number], covers)
    }

    fn new(layout: &Layout, own: &[u16], covers: &[u16]) -> Shape {
        let kind = |field: &u16| (*field, layout.kinds[*field as usize].clone());
        let fields: Vec<(u16, Type)> = own.iter().chain(&layout.keys).map(kind).collect();
        let sum = |fields: &[(u16, Type)]| fields.iter().map(|(_, kind)| width(kind)).sum::<Option<usize>>();
        let words = sum(&fields).filter(|width| *width <= WORDS_MAX);
        let words = words.and_then(|width| Some((width, sum(&fields[..own.len()])?)));
        let room = words.map_or(0, |(width, _)| WORDS_MAX - width);
        let covers = covers.iter().copied().take(room).collect();
        let key_word = words.map_or(0, |(_, own)| own);
        let runs =
            words.is_some() && own.first().is_some_and(|field| is_plain_word(&layout.kinds[*field as usize]));
        let (own, by_word, places) = (own.len(), layout.by_word, Vec::new());
        let mut shape = Shape { fields, own, covers, words, by_word, key_word, runs, places };
        let place = |field| shape.word_of(field).and_then(|word| u8::try_from(word).ok()).unwrap_or(ABSENT);
        let places = (0..layout.kinds.len() as u16).map(place).collect();
        shape.places = places;
        shape
    }

    /// Whether a change of this field changes an entry.
    pub(super) fn has(&self, field: u16) -> bool {
        self.fields[..self.own].iter().any(|(own, _)| *own == field) || self.covers.contains(&field)
    }

    /// Which word of an entry is a field's, where it is a plain word.
    pub(super) fn word_of(&self, field: u16) -> Option<usize> {
        let (width, _) = self.words?;
        let mut at = 0;
        for (here, kind) in &self.fields {
            if *here == field {
                return matches!(self.width_of(kind), 1).then_some(at).filter(|_| *kind != Type::Real);
            }
            at += self.width_of(kind);
        }
        self.covers.iter().position(|covered| *covered == field).map(|at| width + at)
    }

    fn width_of(&self, kind: &Type) -> usize {
        width(kind).unwrap_or_default()
    }

    /// A row's entry, without what it covers.
    pub(super) fn words(&self, value: &impl Fn(u16) -> Value) -> FewWords {
        let mut words = FewWords::default();
        for (field, kind) in &self.fields {
            put_words(&value(*field), kind, &mut words);
        }
        words
    }

    pub(super) fn entry(&self, value: &impl Fn(u16) -> Value) -> FewWords {
        let mut words = self.words(value);
        for field in &self.covers {
            match value(*field) {
                Value::Word(word) => words.push(word),
                _ => words.push(0),
            }
        }
        words
    }

    pub(super) fn bytes(&self, value: &impl Fn(u16) -> Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (field, kind) in &self.fields {
            codec::put_key(&value(*field), kind, &mut bytes);
        }
        bytes
    }

    /// The words of a key in bytes; none of one that no row can have.
    pub(super) fn words_of_bytes(&self, mut bytes: &[u8]) -> Option<FewWords> {
        let mut words = FewWords::default();
        for (_, kind) in &self.fields {
            bytes = self.word_of_bytes(kind, bytes, &mut words)?;
        }
        bytes.is_empty().then_some(words)
    }

    fn word_of_bytes<'b>(&self, kind: &Type, bytes: &'b [u8], out: &mut FewWords) -> Option<&'b [u8]> {
        match kind {
            Type::Optional(inner) => match bytes.split_first()? {
                (0, rest) => {
                    put_words(&Value::None, kind, out);
                    Some(rest)
                }
                (1, rest) => {
                    out.push(1);
                    self.word_of_bytes(inner, rest, out)
                }
                _ => None,
            },
            _ => {
                let mut rest = bytes;
                for _ in 0..self.width_of(kind) {
                    let (word, behind) = rest.split_first_chunk()?;
                    // A real's bytes are turned as its word is.
                    out.push((u64::from_be_bytes(*word) ^ (1 << 63)) as i64);
                    rest = behind;
                }
                Some(rest)
            }
        }
    }

    /// The key of the row of an entry.
    pub(super) fn key_of_words(&self, entry: &[i64]) -> Key {
        let (width, own) = self.words.unwrap_or_default();
        if self.by_word {
            return Key::Word(entry.get(own).copied().unwrap_or_default());
        }
        let mut words = entry.get(own..width).unwrap_or_default();
        let mut bytes = Vec::new();
        for (_, kind) in &self.fields[self.own..] {
            let Some((value, rest)) = read_words(kind, words) else { break };
            codec::put_key(&value, kind, &mut bytes);
            words = rest;
        }
        Key::Bytes(bytes.into())
    }

    /// The same of bytes.
    pub(super) fn key_of_bytes(&self, entry: &[u8]) -> Key {
        let mut rest = entry;
        for (_, kind) in &self.fields[..self.own] {
            rest = behind_key(kind, rest);
        }
        match (self.by_word, rest.first_chunk()) {
            (true, Some(word)) => Key::Word((u64::from_be_bytes(*word) ^ (1 << 63)) as i64),
            _ => Key::Bytes(rest.into()),
        }
    }

    pub(super) fn word_limits(&self, range: &Range<'_>) -> (Option<Limit<Words>>, Option<Limit<Words>>) {
        let mut prefix = FewWords::default();
        for (value, (_, kind)) in range.equal.iter().zip(&self.fields) {
            put_words(value, kind, &mut prefix);
        }
        let with = |value: &Value| {
            let mut words = prefix;
            if let Some((_, kind)) = self.fields.get(range.equal.len()) {
                put_words(value, kind, &mut words);
            }
            words
        };
        limits(range, prefix, with, |words, above| Limit::new(words.as_slice(), above))
    }

    pub(super) fn byte_limits(&self, range: &Range<'_>) -> (Option<Limit<Strings>>, Option<Limit<Strings>>) {
        let mut prefix = Vec::new();
        for (value, (_, kind)) in range.equal.iter().zip(&self.fields) {
            put_end(value, kind, &mut prefix);
        }
        let with = |value: &Value| {
            let mut bytes = prefix.clone();
            if let Some((_, kind)) = self.fields.get(range.equal.len()) {
                put_end(value, kind, &mut bytes);
            }
            bytes
        };
        limits(range, prefix.clone(), with, |bytes: &Vec<u8>, above| Limit::new(bytes.as_slice(), above))
    }
}

/// The two ends of a range whose equal fields are `prefix`; none where it goes to the end of all.
fn limits<K, L>(
    range: &Range<'_>,
    prefix: K,
    with: impl Fn(&Value) -> K,
    limit: impl Fn(&K, bool) -> L,
) -> (Option<L>, Option<L>) {
    let all = |above| (!range.equal.is_empty()).then(|| limit(&prefix, above));
    let from = match range.from {
        Bound::Unbounded => all(false),
        Bound::Included(value) => Some(limit(&with(value), false)),
        Bound::Excluded(value) => Some(limit(&with(value), true)),
    };
    let upto = match range.upto {
        Bound::Unbounded => all(true),
        Bound::Included(value) => Some(limit(&with(value), true)),
        Bound::Excluded(value) => Some(limit(&with(value), false)),
    };
    (from, upto)
}

/// What comes behind a field in a key.
pub(super) fn behind_key<'b>(kind: &Type, bytes: &'b [u8]) -> &'b [u8] {
    let at = match kind {
        Type::Optional(inner) => match bytes.split_first() {
            Some((1, rest)) => return behind_key(inner, rest),
            _ => 1,
        },
        _ => match width(kind) {
            Some(words) => 8 * words,
            None => {
                // A 0 that ends a text is followed by another one.
                let mut at = 0;
                while let Some(zero) =
                    bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == 0))
                {
                    at += zero + 2;
                    if bytes.get(at - 1) == Some(&0) {
                        break;
                    }
                }
                at
            }
        },
    };
    bytes.get(at..).unwrap_or_default()
}
