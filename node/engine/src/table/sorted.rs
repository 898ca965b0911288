//! Rows in the order of some fields: of the key, or of an index's fields and then the key.
//!
//! Where all those fields are of a fixed size an entry is a few words, without memory of its own; else it is a string of
//! bytes, as the log has keys.

use super::entries::{Entries, FewWords, Strings, WORDS_MAX, Words};
use super::tree::{Limit, Tree, TreeWalk};
use crate::codec;
use crate::keyed::{Key, Layout, Range, put_end};
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;
use weft::module::Type;
use weft::value::Real;

/// What entries are made of.
#[derive(Debug)]
pub(super) struct Shape {
    /// What rows are sorted by: the index's fields, then the key's.
    fields: Vec<(u16, Type)>,
    /// How many fields are the index's own; none of the list of keys.
    own: usize,
    /// Fields of a plain word that entries have beside.
    covers: Vec<u16>,
    /// Words that the fields take, and those that the index's own take, where all have a fixed size.
    words: Option<(usize, usize)>,
    /// Whether the key is one plain word.
    by_word: bool,
    /// Which word of an entry a key of one word is.
    key_word: usize,
    /// Of each field of the record the word of an entry that it is, [`ABSENT`] of one that is none.
    places: Vec<u8>,
}

/// No word of an entry: more than there are.
const ABSENT: u8 = u8::MAX;

#[derive(Debug, Clone)]
pub(super) struct Sorted {
    pub(super) shape: Arc<Shape>,
    tree: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Words(Tree<Words>),
    Strings(Tree<Strings>),
}

/// Words of a value of a type in an entry; none if they differ.
fn width(kind: &Type) -> Option<usize> {
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
        let (own, by_word, places) = (own.len(), layout.by_word, Vec::new());
        let mut shape = Shape { fields, own, covers, words, by_word, key_word, places };
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
    fn words(&self, value: &impl Fn(u16) -> Value) -> FewWords {
        let mut words = FewWords::default();
        for (field, kind) in &self.fields {
            put_words(&value(*field), kind, &mut words);
        }
        words
    }

    fn entry(&self, value: &impl Fn(u16) -> Value) -> FewWords {
        let mut words = self.words(value);
        for field in &self.covers {
            match value(*field) {
                Value::Word(word) => words.push(word),
                _ => words.push(0),
            }
        }
        words
    }

    fn bytes(&self, value: &impl Fn(u16) -> Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (field, kind) in &self.fields {
            codec::put_key(&value(*field), kind, &mut bytes);
        }
        bytes
    }

    /// The words of a key in bytes; none of one that no row can have.
    fn words_of_bytes(&self, mut bytes: &[u8]) -> Option<FewWords> {
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

    fn word_limits(&self, range: &Range<'_>) -> (Option<Limit<Words>>, Option<Limit<Words>>) {
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

    fn byte_limits(&self, range: &Range<'_>) -> (Option<Limit<Strings>>, Option<Limit<Strings>>) {
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
fn behind_key<'b>(kind: &Type, bytes: &'b [u8]) -> &'b [u8] {
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

impl Sorted {
    pub(super) fn new(shape: Arc<Shape>) -> Sorted {
        let tree = match shape.words {
            Some((width, _)) => Form::Words(Tree::new(Words::new(width, shape.covers.len()))),
            None => Form::Strings(Tree::new(Strings::default())),
        };
        Sorted { shape, tree }
    }

    pub(super) fn clear(&mut self) {
        *self = Sorted::new(Arc::clone(&self.shape));
    }

    /// The same entries of fields that have other numbers.
    pub(super) fn with_shape(&self, shape: Arc<Shape>) -> Sorted {
        Sorted { shape, tree: self.tree.clone() }
    }

    /// Adds the entries of an index's rows, so many, to none; whether each is short enough.
    pub(super) fn fill(&mut self, rows: u32, value: &impl Fn(u32, u16) -> Value, bytes_max: usize) -> bool {
        match &mut self.tree {
            Form::Words(tree) => {
                let entry = |row: u32| self.shape.entry(&|field: u16| value(row, field));
                let mut entries: Vec<FewWords> = (0..rows).map(entry).collect();
                entries.sort_unstable_by(|left, right| left.as_slice().cmp(right.as_slice()));
                entries.iter().for_each(|entry| tree.insert(entry.as_slice(), None));
                true
            }
            Form::Strings(tree) => {
                let bytes = |row: u32| self.shape.bytes(&|field: u16| value(row, field));
                let mut entries: Vec<Vec<u8>> = (0..rows).map(bytes).collect();
                entries.sort_unstable();
                entries.iter().for_each(|entry| tree.insert(entry, None));
                entries.iter().all(|entry| entry.len() <= bytes_max)
            }
        }
    }

    /// Where the row of a key stands.
    pub(super) fn find(&self, key: &Key) -> Option<u32> {
        match (&self.tree, key) {
            (Form::Words(tree), Key::Word(word)) => tree.find(&[*word]),
            (Form::Words(tree), Key::Bytes(bytes)) => tree.find(self.shape.words_of_bytes(bytes)?.as_slice()),
            (Form::Strings(tree), Key::Bytes(bytes)) => tree.find(bytes),
            (Form::Strings(_), Key::Word(_)) => None,
        }
    }

    /// Adds the entry of a row that has none.
    pub(super) fn insert(&mut self, value: &impl Fn(u16) -> Value, slot: Option<u32>) {
        match &mut self.tree {
            Form::Words(tree) => tree.insert(self.shape.entry(value).as_slice(), slot),
            Form::Strings(tree) => tree.insert(&self.shape.bytes(value), slot),
        }
    }

    pub(super) fn remove(&mut self, value: &impl Fn(u16) -> Value) {
        match &mut self.tree {
            Form::Words(tree) => tree.remove(self.shape.words(value).as_slice()),
            Form::Strings(tree) => tree.remove(&self.shape.bytes(value)),
        };
    }

    /// The row of an entry stands elsewhere.
    pub(super) fn move_to(&mut self, value: &impl Fn(u16) -> Value, slot: u32) {
        fn put(slots: &mut [u32], at: usize, slot: u32) {
            if let Some(place) = slots.get_mut(at) {
                *place = slot;
            }
        }
        match &mut self.tree {
            Form::Words(tree) => {
                let words = self.shape.words(value);
                tree.change(words.as_slice(), |_, slots, at| put(slots, at, slot));
            }
            Form::Strings(tree) => {
                tree.change(&self.shape.bytes(value), |_, slots, at| put(slots, at, slot));
            }
        }
    }

    /// Changes the entry of a row, given as it was and as it is.
    pub(super) fn change(&mut self, before: &impl Fn(u16) -> Value, after: &impl Fn(u16) -> Value) {
        match &mut self.tree {
            Form::Words(tree) => {
                let (from, to) = (self.shape.words(before), self.shape.entry(after));
                let width = from.as_slice().len();
                if from.as_slice() != &to.as_slice()[..width] {
                    tree.remove(from.as_slice());
                    return tree.insert(to.as_slice(), None);
                }
                tree.change(from.as_slice(), |entries, _, at| {
                    for (word, value) in to.as_slice()[width..].iter().enumerate() {
                        entries.cover(at, word, *value);
                    }
                });
            }
            Form::Strings(tree) => {
                let (from, to) = (self.shape.bytes(before), self.shape.bytes(after));
                if from != to {
                    tree.remove(&from);
                    tree.insert(&to, None);
                }
            }
        }
    }

    pub(super) fn count(&self, range: &Range<'_>) -> usize {
        match &self.tree {
            Form::Words(tree) => {
                let (from, upto) = self.shape.word_limits(range);
                tree.count(from.as_ref(), upto.as_ref())
            }
            Form::Strings(tree) => {
                let (from, upto) = self.shape.byte_limits(range);
                tree.count(from.as_ref(), upto.as_ref())
            }
        }
    }

    pub(super) fn walk(&self, range: &Range<'_>, backward: bool) -> SortedWalk {
        let shape = Arc::clone(&self.shape);
        let (walk, count) = match &self.tree {
            Form::Words(tree) => {
                let (from, upto) = self.shape.word_limits(range);
                (FormWalk::Words(tree.walk(from, upto, backward)), 0)
            }
            Form::Strings(tree) => {
                let (from, upto) = self.shape.byte_limits(range);
                (FormWalk::Strings(tree.walk(from, upto, backward)), tree.len())
            }
        };
        SortedWalk { shape, walk, count }
    }

    /// The words of the first and the last key, where keys are one word.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        let Form::Words(tree) = &self.tree else { return None };
        Some((*tree.first()?.first()?, *tree.last()?.first()?))
    }

    /// The last key.
    pub(super) fn last(&self) -> Option<Key> {
        match &self.tree {
            Form::Words(tree) => tree.last().map(|last| self.shape.key_of_words(last)),
            Form::Strings(tree) => tree.last().map(|last| self.shape.key_of_bytes(last)),
        }
    }

    pub(super) fn memory(&self) -> usize {
        match &self.tree {
            Form::Words(tree) => tree.memory(),
            Form::Strings(tree) => tree.memory(),
        }
    }
}

/// Runs over some of the rows as they were when it began.
#[derive(Debug, Clone)]
pub(super) struct SortedWalk {
    shape: Arc<Shape>,
    walk: FormWalk,
    /// Strings that there were.
    count: usize,
}

#[derive(Debug, Clone)]
enum FormWalk {
    Words(TreeWalk<Words>),
    Strings(TreeWalk<Strings>),
}

impl SortedWalk {
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        match &mut self.walk {
            FormWalk::Words(walk) => walk.advance(),
            FormWalk::Strings(walk) => walk.advance(),
        }
    }

    /// The key of the row that it is at.
    pub(super) fn key(&self) -> Option<Key> {
        match &self.walk {
            FormWalk::Words(walk) => {
                let (leaf, at) = walk.here()?;
                Some(self.shape.key_of_words(leaf.entries.entry(at)))
            }
            FormWalk::Strings(walk) => {
                let (leaf, at) = walk.here()?;
                Some(self.shape.key_of_bytes(leaf.entries.key(at)))
            }
        }
    }

    /// Whether entries are words and keys one of them.
    #[inline]
    pub(super) fn by_word(&self) -> bool {
        self.shape.by_word && matches!(self.walk, FormWalk::Words(_))
    }

    /// The key of the next row, where it is one word of an entry of words.
    #[inline]
    pub(super) fn next_word(&mut self) -> Option<i64> {
        let FormWalk::Words(walk) = &mut self.walk else { return None };
        if !walk.advance() {
            return None;
        }
        let (leaf, at) = walk.here()?;
        leaf.entries.entry(at).get(self.shape.key_word).copied()
    }

    /// The word of a field in the entry that it is at.
    #[inline]
    pub(super) fn word_of(&self, field: u16) -> Option<i64> {
        let FormWalk::Words(walk) = &self.walk else { return None };
        let word = *self.shape.places.get(field as usize)?;
        let (leaf, at) = walk.here()?;
        leaf.entries.entry(at).get(usize::from(word)).copied()
    }

    /// A word of the entry that it is at; 0 where entries are no words.
    #[inline]
    pub(super) fn word(&self, word: usize) -> i64 {
        match &self.walk {
            FormWalk::Words(walk) => walk
                .here()
                .and_then(|(leaf, at)| leaf.entries.entry(at).get(word).copied())
                .unwrap_or_default(),
            FormWalk::Strings(_) => 0,
        }
    }

    /// Where the row stood when the walk began; not of an index.
    pub(super) fn slot(&self) -> Option<u32> {
        match &self.walk {
            FormWalk::Words(walk) => walk.here().and_then(|(leaf, at)| leaf.slot(at)),
            FormWalk::Strings(walk) => walk.here().and_then(|(leaf, at)| leaf.slot(at)),
        }
    }

    /// Leaves out the other rows whose first so many fields are those of the row that it is at.
    pub(super) fn skip(&mut self, fields: usize) {
        let fields = &self.shape.fields[..fields.min(self.shape.fields.len())];
        match &mut self.walk {
            FormWalk::Words(walk) => {
                let Some((leaf, at)) = walk.here() else { return };
                let width = fields.iter().filter_map(|(_, kind)| width(kind)).sum();
                let key = FewWords::of(&leaf.entries.key(at)[..width]);
                walk.skip(key.as_slice());
            }
            FormWalk::Strings(walk) => {
                let Some((leaf, at)) = walk.here() else { return };
                let (entry, mut rest) = (leaf.entries.key(at), leaf.entries.key(at));
                for (_, kind) in fields {
                    rest = behind_key(kind, rest);
                }
                let key = entry[..entry.len() - rest.len()].to_vec();
                walk.skip(&key);
            }
        }
    }

    /// Whether the entry before the one that it is at, in its leaf, is another in its first so many fields.
    pub(super) fn is_alone(&self, fields: usize) -> bool {
        let FormWalk::Words(walk) = &self.walk else { return false };
        let Some((leaf, at)) = walk.here() else { return false };
        let fields = self.shape.fields.iter().take(fields);
        let width: usize = fields.filter_map(|(_, kind)| width(kind)).sum();
        let begins = |at: usize| &leaf.entries.entry(at)[..width];
        at.checked_sub(1).is_some_and(|before| begins(before) != begins(at))
    }

    /// The bytes of the entry that it is at, where that is a string, and how many there were when it began.
    #[inline]
    pub(super) fn sizes(&self) -> (usize, usize) {
        match &self.walk {
            FormWalk::Words(_) => (0, 0),
            FormWalk::Strings(walk) => {
                let here = walk.here().filter(|(leaf, at)| *at < leaf.entries.len());
                (here.map_or(0, |(leaf, at)| leaf.entries.key(at).len()), self.count)
            }
        }
    }
}
