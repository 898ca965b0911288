//! Rows in the order of some fields: of the key, or of an index's fields and then the key.
//!
//! Where all those fields are of a fixed size an entry is a few words, without memory of its own; else it is a string of
//! bytes, as the log has keys. An index whose first field is one word is a tree as long as its values are far apart, and
//! runs where they are close together.

use super::entries::{Entries, FewWords, Strings, Words};
use super::runs::Runs;
use super::runs_walk::RunsWalk;
use super::shape::{Shape, behind_key, width};
use super::tree::{Tree, TreeWalk};
use crate::keyed::{Key, Range};
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;

#[derive(Debug, Clone)]
pub(super) struct Sorted {
    pub(super) shape: Arc<Shape>,
    tree: Form,
    /// An index that is a tree of words is looked at again when it has so many entries.
    look_again: usize,
}

#[derive(Debug, Clone)]
enum Form {
    Words(Tree<Words>),
    Runs(Runs),
    Strings(Tree<Strings>),
}

impl Sorted {
    pub(super) fn new(shape: Arc<Shape>) -> Sorted {
        let tree = match shape.words {
            Some((width, _)) => Form::Words(Tree::new(Words::new(width, shape.covers.len()))),
            None => Form::Strings(Tree::new(Strings::default())),
        };
        Sorted { shape, tree, look_again: 0 }
    }

    pub(super) fn clear(&mut self) {
        *self = Sorted::new(Arc::clone(&self.shape));
    }

    /// The same entries of fields that have other numbers.
    pub(super) fn with_shape(&self, shape: Arc<Shape>) -> Sorted {
        Sorted { shape, ..self.clone() }
    }

    /// Adds an entry of an index that is a string.
    pub(super) fn insert_string(&mut self, entry: &[u8]) {
        if let Form::Strings(tree) = &mut self.tree {
            tree.insert(entry, None);
        }
    }

    /// Where the row of a key stands.
    pub(super) fn find(&self, key: &Key) -> Option<u32> {
        match (&self.tree, key) {
            (Form::Words(tree), Key::Word(word)) => tree.find(&[*word]),
            (Form::Words(tree), Key::Bytes(bytes)) => tree.find(self.shape.words_of_bytes(bytes)?.as_slice()),
            (Form::Strings(tree), Key::Bytes(bytes)) => tree.find(bytes),
            // Only an index is made of runs.
            (Form::Strings(_), Key::Word(_)) | (Form::Runs(_), _) => None,
        }
    }

    /// Adds the entry of a row that has none.
    pub(super) fn insert(&mut self, value: &impl Fn(u16) -> Value, slot: Option<u32>) {
        match &mut self.tree {
            Form::Words(tree) if slot.is_some() => tree.insert(self.shape.entry(value).as_slice(), slot),
            Form::Words(_) | Form::Runs(_) => self.insert_words(self.shape.entry(value).as_slice()),
            Form::Strings(tree) => tree.insert(&self.shape.bytes(value), slot),
        }
    }

    /// Adds an entry of an index.
    pub(super) fn insert_words(&mut self, entry: &[i64]) {
        match &mut self.tree {
            Form::Words(tree) => {
                tree.insert(entry, None);
                if self.shape.runs && tree.len() >= self.look_again {
                    self.tree_to_runs();
                }
            }
            Form::Runs(runs) => {
                if !runs.insert(entry) {
                    self.runs_to_tree();
                    self.insert_words(entry);
                }
            }
            Form::Strings(_) => {}
        }
    }

    /// Removes an entry of words.
    fn remove_words(&mut self, key: &[i64]) {
        match &mut self.tree {
            Form::Words(tree) => {
                tree.remove(key);
            }
            Form::Runs(runs) => {
                runs.remove(key);
                if runs.is_thin() {
                    self.runs_to_tree();
                }
            }
            Form::Strings(_) => {}
        }
    }

    /// Makes runs of a tree whose values are close together.
    fn tree_to_runs(&mut self) {
        let Form::Words(tree) = &self.tree else { return };
        let count = tree.len();
        self.look_again = count + count / 4 + 64;
        let ends = tree.first().and_then(<[i64]>::first).zip(tree.last().and_then(<[i64]>::first));
        if !ends.is_some_and(|(first, last)| Runs::would_hold(count, *first, *last)) {
            return;
        }
        let (width, _) = self.shape.words.unwrap_or_default();
        let mut runs = Runs::new(width, self.shape.covers.len());
        let mut walk = tree.walk(None, None, false);
        while walk.advance() {
            let Some((leaf, at)) = walk.here() else { return };
            if !runs.insert(leaf.entries.entry(at)) {
                return;
            }
        }
        self.tree = Form::Runs(runs);
    }

    fn runs_to_tree(&mut self) {
        let Form::Runs(runs) = &self.tree else { return };
        let (width, _) = self.shape.words.unwrap_or_default();
        let mut tree = Tree::new(Words::new(width, self.shape.covers.len()));
        let mut walk = runs.walk(None, None, false);
        while walk.advance() {
            let Some(entry) = walk.entry() else { break };
            tree.insert(entry.as_slice(), None);
        }
        self.look_again = tree.len() + tree.len() / 4 + 64;
        self.tree = Form::Words(tree);
    }

    pub(super) fn remove(&mut self, value: &impl Fn(u16) -> Value) {
        match &mut self.tree {
            Form::Words(_) | Form::Runs(_) => self.remove_words(self.shape.words(value).as_slice()),
            Form::Strings(tree) => {
                tree.remove(&self.shape.bytes(value));
            }
        }
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
            Form::Runs(_) => {}
        }
    }

    /// Changes the entry of a row, given as it was and as it is.
    pub(super) fn change(&mut self, before: &impl Fn(u16) -> Value, after: &impl Fn(u16) -> Value) {
        match &mut self.tree {
            Form::Words(_) | Form::Runs(_) => {
                let (from, to) = (self.shape.words(before), self.shape.entry(after));
                let width = from.as_slice().len();
                if from.as_slice() != &to.as_slice()[..width] {
                    self.remove_words(from.as_slice());
                    return self.insert_words(to.as_slice());
                }
                self.cover(to.as_slice(), width);
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

    /// Writes what an entry covers behind what it is found by.
    fn cover(&mut self, entry: &[i64], width: usize) {
        match &mut self.tree {
            Form::Words(tree) => tree.change(&entry[..width], |entries, _, at| {
                for (word, value) in entry[width..].iter().enumerate() {
                    entries.cover(at, word, *value);
                }
            }),
            Form::Runs(runs) => runs.cover(entry),
            Form::Strings(_) => {}
        }
    }

    pub(super) fn count(&self, range: &Range<'_>) -> usize {
        match &self.tree {
            Form::Runs(runs) => {
                let (from, upto) = self.shape.word_limits(range);
                runs.count(from.as_ref(), upto.as_ref())
            }
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
            Form::Runs(runs) => match range {
                Range { equal: [Value::Word(value)], from: Bound::Unbounded, upto: Bound::Unbounded } => {
                    (FormWalk::Runs(runs.walk_one(*value, backward)), 0)
                }
                _ => {
                    let (from, upto) = self.shape.word_limits(range);
                    (FormWalk::Runs(runs.walk(from, upto, backward)), 0)
                }
            },
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

    /// Walks the entries of another value with a walk of one that is at its end; `false`, and nothing done, if it is none
    /// of this index.
    #[inline]
    pub(super) fn walk_again(&self, value: i64, walk: &mut SortedWalk) -> bool {
        match (&self.tree, &mut walk.walk) {
            (Form::Runs(runs), FormWalk::Runs(again)) if Arc::ptr_eq(&self.shape, &walk.shape) => {
                runs.walk_again(value, again)
            }
            _ => false,
        }
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
            Form::Runs(_) => None,
            Form::Strings(tree) => tree.last().map(|last| self.shape.key_of_bytes(last)),
        }
    }

    #[cfg(test)]
    pub(super) fn is_runs(&self) -> bool {
        matches!(self.tree, Form::Runs(_))
    }

    pub(super) fn memory(&self) -> usize {
        match &self.tree {
            Form::Words(tree) => tree.memory(),
            Form::Runs(runs) => runs.memory(),
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
    Runs(RunsWalk),
    Strings(TreeWalk<Strings>),
}

impl SortedWalk {
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        match &mut self.walk {
            FormWalk::Words(walk) => walk.advance(),
            FormWalk::Runs(walk) => walk.advance(),
            FormWalk::Strings(walk) => walk.advance(),
        }
    }

    /// Whether it holds nothing of the list.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        matches!(&self.walk, FormWalk::Runs(walk) if walk.is_one())
    }

    /// The key of the row that it is at.
    pub(super) fn key(&self) -> Option<Key> {
        match &self.walk {
            FormWalk::Words(walk) => {
                let (leaf, at) = walk.here()?;
                Some(self.shape.key_of_words(leaf.entries.entry(at)))
            }
            FormWalk::Runs(walk) => Some(self.shape.key_of_words(walk.entry()?.as_slice())),
            FormWalk::Strings(walk) => {
                let (leaf, at) = walk.here()?;
                Some(self.shape.key_of_bytes(leaf.entries.key(at)))
            }
        }
    }

    /// Whether entries are words and keys one of them.
    #[inline]
    pub(super) fn by_word(&self) -> bool {
        self.shape.by_word && !matches!(self.walk, FormWalk::Strings(_))
    }

    /// The key of the row that it is at, where it is one word of an entry of words.
    #[inline]
    pub(super) fn key_word(&self) -> Option<i64> {
        if self.shape.by_word { self.word(self.shape.key_word) } else { None }
    }

    /// The key of the next row, where it is one word of an entry of words.
    #[inline]
    pub(super) fn next_word(&mut self) -> Option<i64> {
        if self.advance() { self.word(self.shape.key_word) } else { None }
    }

    /// The word of a field in the entry that it is at.
    #[inline]
    pub(super) fn word_of(&self, field: u16) -> Option<i64> {
        self.word(usize::from(*self.shape.places.get(field as usize)?))
    }

    /// Goes to the next entry of a run one of whose fields is as wanted, but looks at no more than so many; how many those
    /// were, and whether the last of them is. None where entries are no run of rows by one word, or have no such field.
    #[inline]
    pub(super) fn seek(
        &mut self,
        field: u16,
        most: usize,
        is: &impl Fn(i64) -> bool,
    ) -> Option<(usize, bool)> {
        let FormWalk::Runs(walk) = &mut self.walk else { return None };
        if !self.shape.by_word {
            return None;
        }
        walk.seek(usize::from(*self.shape.places.get(field as usize)?), most, is)
    }

    /// A word of the entry that it is at, where that is made of words.
    #[inline]
    pub(super) fn word(&self, word: usize) -> Option<i64> {
        match &self.walk {
            FormWalk::Words(walk) => {
                let (leaf, at) = walk.here()?;
                leaf.entries.entry(at).get(word).copied()
            }
            FormWalk::Runs(walk) => walk.word(word),
            FormWalk::Strings(_) => None,
        }
    }

    /// Where the row stood when the walk began; not of an index.
    pub(super) fn slot(&self) -> Option<u32> {
        match &self.walk {
            FormWalk::Words(walk) => walk.here().and_then(|(leaf, at)| leaf.slot(at)),
            FormWalk::Runs(_) => None,
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
            FormWalk::Runs(walk) => walk.skip(fields.iter().filter_map(|(_, kind)| width(kind)).sum()),
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
        let fields = self.shape.fields.iter().take(fields);
        let width: usize = fields.filter_map(|(_, kind)| width(kind)).sum();
        match &self.walk {
            FormWalk::Words(walk) => walk.is_alone(width),
            FormWalk::Runs(walk) => walk.is_alone(width),
            FormWalk::Strings(_) => false,
        }
    }

    /// The bytes of the entry that it is at, where that is a string, and how many there were when it began.
    #[inline]
    pub(super) fn sizes(&self) -> (usize, usize) {
        match &self.walk {
            FormWalk::Words(_) | FormWalk::Runs(_) => (0, 0),
            FormWalk::Strings(walk) => {
                let here = walk.here().filter(|(leaf, at)| *at < leaf.entries.len());
                (here.map_or(0, |(leaf, at)| leaf.entries.key(at).len()), self.count)
            }
        }
    }
}
