//! A list in another shape: columns added, dropped, moved or of another type; other keys, other indexes.
//!
//! What stays the same is shared with the list as it was, so that a column more or less costs nothing a row.

use super::columns::Column;
use super::dense::Dense;
use super::shape::Shape;
use super::sorted::Sorted;
use super::{Keyed, Keys};
use crate::budget::KEY_BYTES_MAX;
use crate::keyed::Layout;
use std::sync::Arc;
use thiserror::Error;
use weft::Value;

/// Where a field of the new shape comes from.
pub(crate) enum Source<'s> {
    /// A field of the same type.
    Field(u16),
    /// The same value for all rows.
    Constant(Value),
    /// A field of another type, each value by itself.
    Mapped(u16, &'s dyn Fn(Value) -> Value),
}

/// Why a list cannot have another shape.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unchangeable {
    /// Two rows would have one key.
    #[error("two rows would have the same key")]
    SameKey,
    /// A key would be too long.
    #[error("a key would be longer than {KEY_BYTES_MAX} bytes")]
    LongKey,
    /// An entry of the index of this number would be too long.
    #[error("an entry of an index, its row's key behind it, would be longer than {KEY_BYTES_MAX} bytes")]
    LongEntry(usize),
    /// Nobody wants it any more.
    #[error("it was given up")]
    GivenUp,
}

/// Rows between two questions whether a change is still wanted: a few milliseconds.
pub(crate) const ROWS_AT_ONCE: usize = 4_096;

impl Keyed {
    /// The same rows in another shape, whose fields come from `sources`; given up when `is_wanted` says no.
    pub(crate) fn changed(
        &self,
        layout: Arc<Layout>,
        sources: &[Source<'_>],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Keyed, Unchangeable> {
        let mut changed = Keyed::new(layout);
        changed.counter = self.counter;
        let mut columns = Vec::with_capacity(sources.len());
        for (kind, source) in changed.layout.kinds.iter().zip(sources) {
            columns.push(match source {
                Source::Field(field) => self.columns[*field as usize].clone(),
                Source::Constant(value) => Column::filled(kind, value, self.len),
                Source::Mapped(field, map) => {
                    let mut column = Column::new(kind);
                    for at in 0..self.len {
                        go_on(at, is_wanted)?;
                        column.push(&map(self.columns[*field as usize].value(at)));
                    }
                    column
                }
            });
        }
        changed.columns = columns;
        // A field's number as it was, where its values are what they were.
        let before = |field: &u16| match sources.get(*field as usize) {
            Some(Source::Field(before)) => Some(*before),
            _ => None,
        };
        let were = |fields: &[u16]| fields.iter().map(before).collect::<Option<Vec<u16>>>();
        let same_keys = were(&changed.layout.keys).is_some_and(|keys| keys == self.layout.keys);
        match same_keys {
            true => changed.keys = self.keys.with_shape(Arc::clone(changed.keys.shape())),
            false => changed.make_keys(self.len, is_wanted)?,
        }
        changed.len = self.len;
        changed.look_again = self.look_again;
        let empty = std::mem::take(&mut changed.indexes);
        for (number, index) in empty.into_iter().enumerate() {
            go_on(0, is_wanted)?;
            let fields = were(&changed.layout.indexes[number]);
            let covers = were(changed.layout.covers.get(number).map_or(&[], Vec::as_slice));
            let same = self.layout.indexes.iter().zip(&self.layout.covers).position(|(old, covered)| {
                same_keys && fields.as_ref() == Some(old) && covers.as_ref() == Some(covered)
            });
            let index = match same {
                Some(same) => self.indexes[same].with_shape(Arc::clone(&index.shape)),
                None => changed.filled(number, index, is_wanted)?,
            };
            changed.indexes.push(index);
        }
        Ok(changed)
    }

    /// Finds all rows by keys that they did not have before.
    fn make_keys(&mut self, rows: usize, is_wanted: &dyn Fn() -> bool) -> Result<(), Unchangeable> {
        for at in 0..rows {
            go_on(at, is_wanted)?;
            let columns = std::mem::take(&mut self.columns);
            let value = |field: u16| columns[field as usize].value(at);
            let key = self.layout.key_by(&value);
            let is_new = self.find(&key).is_none();
            self.columns = columns;
            if !is_new {
                return Err(Unchangeable::SameKey);
            }
            if key.len() > KEY_BYTES_MAX {
                return Err(Unchangeable::LongKey);
            }
            self.len = at + 1;
            self.keys_insert_row(&key, at as u32);
        }
        Ok(())
    }

    /// An index, of this number, with entries of all rows.
    fn filled(
        &self,
        number: usize,
        mut index: Sorted,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Sorted, Unchangeable> {
        let value = |slot: u32, field: u16| self.columns[field as usize].value(slot as usize);
        index.fill(number, self.len as u32, &value, is_wanted)?;
        Ok(index)
    }
}

/// Asks at some rows whether it is to go on.
pub(super) fn go_on(at: usize, is_wanted: &dyn Fn() -> bool) -> Result<(), Unchangeable> {
    if at.is_multiple_of(ROWS_AT_ONCE) && !is_wanted() { Err(Unchangeable::GivenUp) } else { Ok(()) }
}

impl Keys {
    pub(super) fn shape(&self) -> &Arc<Shape> {
        match self {
            Keys::Dense(_, shape) => shape,
            Keys::Sorted(sorted) => &sorted.shape,
        }
    }

    fn with_shape(&self, shape: Arc<Shape>) -> Keys {
        match self {
            Keys::Dense(dense, _) => Keys::Dense(Dense::clone(dense), shape),
            Keys::Sorted(sorted) => Keys::Sorted(sorted.with_shape(shape)),
        }
    }
}
