//! The rows of a list: columns of fields, a way from keys to rows, and indexes; copies share what they have in common.
//!
//! Must not know: modules, budgets, events. `pages` are vectors whose copies share pages, `words` pages of numbers, `columns`
//! what a field has in them; `dense` and `sorted` find rows by key, `sorted` is also what an index is: `shape` says what its entries are made
//! of, `tree` and `entries` are its B+tree, `runs` what an index of numbers close together is, in `piece`s. `change` gives a list
//! another shape, `fill` builds an index of rows that are there, `totals` folds groups of rows.
//!
//! A new row comes behind the others, and where one is removed the last one comes, so that rows lie close together
//! whatever happened to them. Where a row stands never shows: what shows is in the order of keys.

mod change;
mod columns;
mod dense;
mod entries;
mod fill;
mod pages;
mod piece;
mod runs;
mod runs_walk;
mod shape;
mod sorted;
#[cfg(test)]
mod tests;
mod totals;
mod tree;
mod walk;
mod words;

use crate::codec::Words;
use crate::keyed::{Key, Layout, Range, Row};
use columns::Column;
use dense::Dense;
use shape::Shape;
use sorted::Sorted;
use std::sync::Arc;
use thiserror::Error;
use weft::Value;

pub(crate) use change::{ROWS_AT_ONCE, Source, Unchangeable};
pub(crate) use totals::Totals;
pub(crate) use walk::Walk;

/// Where a row stands until one is put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) fn of(number: u32) -> Slot {
        Slot(number)
    }

    /// Below [`ROWS_MAX`].
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Rows that one list may have: a place is a number of 32 bits, and memory ends before.
pub(crate) const ROWS_MAX: usize = 1 << 31;

/// A list has no room for another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the list is full: it has {ROWS_MAX} rows")]
pub(crate) struct Full;

/// A list by key.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    layout: Arc<Layout>,
    columns: Vec<Column>,
    keys: Keys,
    indexes: Vec<Sorted>,
    len: usize,
    /// A tree of words is looked at again when it has so many rows.
    look_again: usize,
    /// Whether it is soon gone.
    loose: bool,
    /// No number up to this is given out by `next_id`.
    pub(crate) counter: i64,
}

/// From keys to rows.
#[derive(Debug, Clone)]
enum Keys {
    Dense(Dense, Arc<Shape>),
    Sorted(Sorted),
}

impl Keyed {
    pub(crate) fn new(layout: Arc<Layout>) -> Keyed {
        Keyed::made(layout, false)
    }

    /// A list of a function's own, gone when that ends: it may take more bytes where they save time.
    pub(crate) fn local(layout: Arc<Layout>) -> Keyed {
        Keyed::made(layout, true)
    }

    fn made(layout: Arc<Layout>, loose: bool) -> Keyed {
        let columns = layout.kinds.iter().map(Column::new).collect();
        let shape = Arc::new(Shape::of_keys(&layout));
        let keys = match layout.by_word {
            true => Keys::Dense(Dense::new(loose), shape),
            false => Keys::Sorted(Sorted::new(shape)),
        };
        let index = |number| Sorted::new(Arc::new(Shape::of_index(&layout, number)));
        let indexes = (0..layout.indexes.len()).map(index).collect();
        Keyed { layout, columns, keys, indexes, len: 0, look_again: 0, counter: 0, loose }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        self.columns.iter_mut().for_each(Column::clear);
        self.indexes.iter_mut().for_each(Sorted::clear);
        self.keys = match (&self.keys, self.layout.by_word) {
            (Keys::Dense(_, shape), _) => Keys::Dense(Dense::new(self.loose), Arc::clone(shape)),
            (Keys::Sorted(sorted), true) => Keys::Dense(Dense::new(self.loose), Arc::clone(&sorted.shape)),
            (Keys::Sorted(sorted), false) => Keys::Sorted(Sorted::new(Arc::clone(&sorted.shape))),
        };
        self.len = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<Slot> {
        match (&self.keys, key) {
            (Keys::Dense(dense, _), Key::Word(word)) => dense.find(*word),
            (Keys::Dense(..), Key::Bytes(_)) => None,
            (Keys::Sorted(sorted), key) => sorted.find(key),
        }
        .map(Slot)
    }

    /// Whether a key has a row.
    #[inline]
    pub(crate) fn has(&self, key: &Key) -> bool {
        match (&self.keys, key) {
            (Keys::Dense(dense, _), Key::Word(word)) => dense.has(*word),
            _ => self.find(key).is_some(),
        }
    }

    /// A field of a plain word.
    #[inline]
    pub(crate) fn word(&self, Slot(slot): Slot, field: u16) -> i64 {
        self.columns.get(field as usize).map_or(0, |column| column.word(slot as usize))
    }

    pub(crate) fn value(&self, Slot(slot): Slot, field: u16) -> Value {
        self.columns.get(field as usize).map_or(Value::None, |column| column.value(slot as usize))
    }

    pub(crate) fn row(&self, Slot(slot): Slot) -> Row {
        self.columns.iter().map(|column| column.value(slot as usize)).collect()
    }

    /// The key of a row.
    #[cfg(test)]
    pub(crate) fn key(&self, slot: Slot) -> Key {
        self.layout.key_by(&|field| self.value(slot, field))
    }

    /// The greatest key.
    pub(crate) fn last(&self) -> Option<Key> {
        match &self.keys {
            Keys::Dense(dense, _) => dense.last().map(Key::Word),
            Keys::Sorted(sorted) => sorted.last(),
        }
    }

    /// The greatest number that the key has or had, of a list by one int.
    pub(crate) fn greatest(&self) -> i64 {
        match self.last() {
            Some(Key::Word(word)) => self.counter.max(word),
            _ => self.counter,
        }
    }

    /// Puts a row where its key says; the row that was there.
    pub(crate) fn put(&mut self, key: &Key, row: &[Value]) -> Result<Option<Row>, Full> {
        if self.len >= ROWS_MAX && self.find(key).is_none() {
            return Err(Full);
        }
        Ok(self.put_back(key, row))
    }

    /// Puts a row that was there before, whatever came in its place meanwhile: an event that is undone has more than
    /// [`ROWS_MAX`] for a moment, if it removed a row and added another one, and a place is counted further than that.
    pub(crate) fn put_back(&mut self, key: &Key, row: &[Value]) -> Option<Row> {
        let after = |field: u16| row.get(field as usize).cloned().unwrap_or_default();
        if let Some(Slot(slot)) = self.find(key) {
            let replaced = self.columns.iter_mut().zip(row);
            let before: Row =
                replaced.map(|(column, value)| column.replace(slot as usize, value.clone())).collect();
            let was = |field: u16| before[field as usize].clone();
            for index in &mut self.indexes {
                index.change(&was, &after);
            }
            return Some(before);
        }
        self.append(key, row);
        None
    }

    /// Puts a row of a key that no row has; where it stands.
    pub(crate) fn add(&mut self, key: &Key, row: &[Value]) -> Result<Slot, Full> {
        if self.len >= ROWS_MAX {
            return Err(Full);
        }
        Ok(self.append(key, row))
    }

    fn append(&mut self, key: &Key, row: &[Value]) -> Slot {
        let slot = self.len as u32;
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
        self.len += 1;
        self.keys_insert_row(key, slot);
        let after = |field: u16| row.get(field as usize).cloned().unwrap_or_default();
        for index in &mut self.indexes {
            index.insert(&after, None);
        }
        Slot(slot)
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Row> {
        let Slot(slot) = self.find(key)?;
        let at = slot as usize;
        let row: Row = self.columns.iter_mut().map(|column| column.swap_remove(at)).collect();
        self.len -= 1;
        let was = |field: u16| row[field as usize].clone();
        for index in &mut self.indexes {
            index.remove(&was);
        }
        let columns = &self.columns;
        let moved = |field: u16| columns[field as usize].value(at);
        match (&mut self.keys, key) {
            (Keys::Dense(dense, _), Key::Word(word)) => {
                dense.remove(*word);
                if at < self.len
                    && let Some(key) = self.layout.keys.first()
                {
                    dense.replace(columns[*key as usize].word(at), slot);
                }
            }
            (Keys::Sorted(sorted), _) => {
                sorted.remove(&was);
                if at < self.len {
                    sorted.move_to(&moved, slot);
                }
            }
            (Keys::Dense(..), Key::Bytes(_)) => {}
        }
        if let Keys::Dense(dense, _) = &self.keys
            && dense.is_thin()
        {
            self.keys_to_tree();
        }
        Some(row)
    }

    /// Changes a field of the row of a key, never one of the key; the value that was there.
    pub(crate) fn set(&mut self, (key, Slot(slot)): (&Key, Slot), field: u16, value: Value) -> Value {
        let at = slot as usize;
        let Some(column) = self.columns.get_mut(field as usize) else { return Value::None };
        let before = column.replace(at, value);
        let columns = &self.columns;
        // What the row says of its key stands elsewhere in memory.
        let known = self.layout.word_of(key);
        let after = |field: u16| match known {
            Some((known, word)) if known == field => Value::Word(word),
            _ => columns[field as usize].value(at),
        };
        for index in self.indexes.iter_mut().filter(|index| index.shape.has(field)) {
            let was = |other: u16| if other == field { before.clone() } else { after(other) };
            index.change(&was, &after);
        }
        before
    }

    /// A field of a plain word: none if it is of another type.
    #[inline]
    pub(crate) fn plain_word(&self, Slot(slot): Slot, field: u16) -> Option<i64> {
        self.columns.get(field as usize)?.plain_word(slot as usize)
    }

    /// Writes the first fields of a row as far as they are plain words; how many. A key of one word is not looked up.
    #[inline(always)]
    pub(crate) fn put_words(&self, Slot(slot): Slot, key: &Key, out: &mut Words<'_>) -> usize {
        let known = self.layout.word_of(key);
        for (number, column) in self.columns.iter().enumerate() {
            let word = match known {
                Some((field, word)) if usize::from(field) == number => Some(word),
                _ => column.plain_word(slot as usize),
            };
            match word {
                Some(word) => out.put(word),
                None => return number,
            }
        }
        self.columns.len()
    }

    /// Puts a word into a field of plain words that no index has; `false`, and nothing done, if it is another one.
    #[inline(always)]
    pub(crate) fn put_plain(&mut self, Slot(slot): Slot, field: u16, word: i64) -> bool {
        if self.indexes.iter().any(|index| index.shape.has(field)) {
            return false;
        }
        let column = self.columns.get_mut(field as usize);
        column.and_then(|column| column.replace_plain(slot as usize, word)).is_some()
    }

    /// Finds the row at a place by its key from now on.
    fn keys_insert_row(&mut self, key: &Key, slot: u32) {
        match (&mut self.keys, key) {
            (Keys::Dense(dense, _), Key::Word(word)) => {
                if !dense.insert(*word, slot) {
                    self.keys_to_tree();
                }
            }
            (Keys::Sorted(sorted), _) => {
                sorted.insert(&|field: u16| self.columns[field as usize].value(slot as usize), Some(slot));
                if self.layout.by_word && self.len >= self.look_again {
                    self.look_again = self.len + self.len / 4 + 64;
                    if sorted.ends().is_some_and(|(first, last)| Dense::would_hold(self.len, first, last)) {
                        self.keys_to_dense();
                    }
                }
            }
            (Keys::Dense(..), Key::Bytes(_)) => {}
        }
    }

    /// Makes a tree of the keys, from the rows.
    fn keys_to_tree(&mut self) {
        let mut sorted = Sorted::new(Arc::clone(self.keys.shape()));
        let mut slots: Vec<u32> = (0..self.len as u32).collect();
        if let Some(key) = self.layout.keys.first().map(|key| &self.columns[*key as usize]) {
            slots.sort_unstable_by_key(|slot| key.word(*slot as usize));
        }
        for slot in slots {
            sorted.insert(&|field: u16| self.columns[field as usize].value(slot as usize), Some(slot));
        }
        self.keys = Keys::Sorted(sorted);
        self.look_again = self.len + self.len / 4 + 64;
    }

    fn keys_to_dense(&mut self) {
        let Some(key) = self.layout.keys.first().map(|key| &self.columns[*key as usize]) else { return };
        let mut slots: Vec<u32> = (0..self.len as u32).collect();
        slots.sort_unstable_by_key(|slot| key.word(*slot as usize));
        let mut dense = Dense::new(self.loose);
        if slots.iter().all(|slot| dense.insert(key.word(*slot as usize), *slot)) {
            self.keys = Keys::Dense(dense, Arc::clone(self.keys.shape()));
        }
    }

    /// The rows of a range of the key, in key order or the other way round.
    pub(crate) fn walk(&self, range: &Range<'_>, backward: bool) -> Walk {
        match &self.keys {
            Keys::Dense(dense, _) => Walk::dense(dense, range, backward),
            Keys::Sorted(sorted) => Walk::sorted(sorted.walk(range, backward)),
        }
    }

    /// The rows of a range of an index, in the order of its fields and then of keys, or the other way round.
    pub(crate) fn walk_index(&self, number: u16, range: &Range<'_>, backward: bool) -> Walk {
        match self.indexes.get(number as usize) {
            Some(index) => Walk::sorted(index.walk(range, backward)),
            None => Walk::nothing(),
        }
    }

    /// Walks the rows of an index that have one value of its first field with a walk of another one that is at its end;
    /// `false`, and nothing done, where that cannot be used again.
    #[inline]
    pub(crate) fn walk_index_again(&self, number: u16, value: i64, walk: &mut Walk) -> bool {
        self.indexes.get(number as usize).is_some_and(|index| walk.again(index, value))
    }

    /// How many rows a range of the key has.
    pub(crate) fn count(&self, range: &Range<'_>) -> usize {
        match &self.keys {
            Keys::Dense(dense, _) => walk::dense_count(dense, range),
            Keys::Sorted(sorted) => sorted.count(range),
        }
    }

    /// How many rows a range of an index has.
    pub(crate) fn count_index(&self, number: u16, range: &Range<'_>) -> usize {
        self.indexes.get(number as usize).map_or(0, |index| index.count(range))
    }

    /// Where the rows of keys that are close together stand.
    #[inline]
    pub(crate) fn places(&self) -> Option<&Dense> {
        match &self.keys {
            Keys::Dense(dense, _) => Some(dense),
            Keys::Sorted(_) => None,
        }
    }

    /// Bytes of the pages by which rows are found, where keys are close together.
    pub(crate) fn page_bytes(&self) -> usize {
        match &self.keys {
            Keys::Dense(dense, _) => dense.page_bytes(),
            Keys::Sorted(_) => 0,
        }
    }

    /// Bytes that it takes, not counting what values share (texts, bytes, lists, records).
    pub(crate) fn memory(&self) -> usize {
        let keys = match &self.keys {
            Keys::Dense(dense, _) => dense.memory(),
            Keys::Sorted(sorted) => sorted.memory(),
        };
        let columns: usize = self.columns.iter().map(Column::memory).sum();
        keys + columns + self.indexes.iter().map(Sorted::memory).sum::<usize>()
    }
}
