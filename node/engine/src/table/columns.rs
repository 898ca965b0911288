//! The values of one field in all rows of a list.
//!
//! Each column has its own pages, so that a change copies the page of one field and not those of all.

use super::pages::Pages;
use super::words::{WORDS, WordPage};
use triomphe::Arc;
use weft::Value;
use weft::module::Type;
use weft::value::Real;

/// Rows of a page of other values: 384 bytes. Each is shared, so that copying a page counts every one.
const VALUES: usize = 16;

/// What a column's words stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fixed {
    /// bool, int, time, duration, enum
    Word,
    /// A real's bits.
    Real,
}

impl Fixed {
    /// Of a type whose values are one word.
    pub(super) fn of(kind: &Type) -> Option<Fixed> {
        match kind {
            Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_) => Some(Fixed::Word),
            Type::Real => Some(Fixed::Real),
            _ => None,
        }
    }

    fn value(self, word: i64) -> Value {
        match self {
            Fixed::Word => Value::Word(word),
            Fixed::Real => Value::Real(Real::new(f64::from_bits(word as u64)).unwrap_or(Real::ZERO)),
        }
    }
}

/// The word of a value that is one, none of any other.
fn word_of(value: &Value) -> Option<i64> {
    match value {
        Value::Word(word) => Some(*word),
        Value::Real(real) => Some(real.get().to_bits() as i64),
        _ => None,
    }
}

#[derive(Debug, Clone)]
pub(super) enum Column {
    Words(Fixed, Pages<WordPage>),
    /// Words that may be none: the second has a bit for each row that has one.
    OptionalWords(Fixed, Pages<WordPage>, Pages<Arc<[u64; WORDS]>>),
    Values(Pages<Arc<[Value; VALUES]>>),
}

impl Column {
    pub(super) fn new(kind: &Type) -> Column {
        let optional = match kind {
            Type::Optional(inner) => Fixed::of(inner),
            _ => None,
        };
        match (Fixed::of(kind), optional) {
            (Some(fixed), _) => Column::Words(fixed, Pages::new()),
            (_, Some(fixed)) => Column::OptionalWords(fixed, Pages::new(), Pages::new()),
            _ => Column::Values(Pages::new()),
        }
    }

    /// A column of so many rows that all have the same value.
    pub(super) fn filled(kind: &Type, value: &Value, len: usize) -> Column {
        let word = word_of(value);
        match Column::new(kind) {
            Column::Words(fixed, _) => Column::Words(fixed, Pages::filled(&word.unwrap_or_default(), len)),
            Column::OptionalWords(fixed, ..) => {
                let bits = if word.is_some() { u64::MAX } else { 0 };
                let there = Pages::filled(&bits, len.div_ceil(64));
                Column::OptionalWords(fixed, Pages::filled(&word.unwrap_or_default(), len), there)
            }
            Column::Values(_) => Column::Values(Pages::filled(value, len)),
        }
    }

    /// The word of a row in a column of words; 0 in any other.
    #[inline]
    pub(super) fn word(&self, at: usize) -> i64 {
        match self {
            Column::Words(_, words) | Column::OptionalWords(_, words, _) => words.get(at).unwrap_or_default(),
            Column::Values(_) => 0,
        }
    }

    /// The words of all rows in a column of plain ones.
    pub(super) fn words(&self) -> Option<&Pages<WordPage>> {
        match self {
            Column::Words(Fixed::Word, words) => Some(words),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn value(&self, at: usize) -> Value {
        match self {
            Column::Words(Fixed::Word, words) => Value::Word(words.get(at).unwrap_or_default()),
            Column::Words(fixed, words) => fixed.value(words.get(at).unwrap_or_default()),
            Column::OptionalWords(fixed, words, there) => {
                match there.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1) {
                    true => fixed.value(words.get(at).unwrap_or_default()),
                    false => Value::None,
                }
            }
            Column::Values(values) => values.get(at).unwrap_or_default(),
        }
    }

    /// The plain word of a row: none in any other column.
    #[inline]
    pub(super) fn plain_word(&self, at: usize) -> Option<i64> {
        match self {
            Column::Words(Fixed::Word, words) => words.get(at),
            _ => None,
        }
    }

    /// Puts another plain word, and gives the one that was there; none, and nothing done, in any other column.
    #[inline(always)]
    pub(super) fn replace_plain(&mut self, at: usize, word: i64) -> Option<i64> {
        match self {
            Column::Words(Fixed::Word, words) => words.put(at, word),
            _ => None,
        }
    }

    /// Puts another value, and gives the one that was there.
    pub(super) fn replace(&mut self, at: usize, value: Value) -> Value {
        match self {
            Column::Words(fixed, words) => {
                let word = word_of(&value).unwrap_or_default();
                words.put(at, word).map_or(Value::None, |before| fixed.value(before))
            }
            Column::OptionalWords(fixed, words, there) => {
                let word = word_of(&value);
                let was = put_bit(there, at, word.is_some());
                let before = words.put(at, word.unwrap_or_default());
                before.filter(|_| was).map_or(Value::None, |before| fixed.value(before))
            }
            Column::Values(values) => values.put(at, value).unwrap_or_default(),
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: &Value) {
        match self {
            Column::Words(Fixed::Word, words) => words.push(match value {
                Value::Word(word) => *word,
                _ => 0,
            }),
            Column::Words(_, words) => words.push(word_of(value).unwrap_or_default()),
            Column::OptionalWords(_, words, there) => {
                let at = words.len();
                if at.is_multiple_of(64) {
                    there.push(0);
                }
                let word = word_of(value);
                put_bit(there, at, word.is_some());
                words.push(word.unwrap_or_default());
            }
            Column::Values(values) => values.push(value.clone()),
        }
    }

    /// Takes the row at a place; the last one comes there.
    pub(super) fn swap_remove(&mut self, at: usize) -> Value {
        let last = self.pop();
        if at < self.len() { self.replace(at, last) } else { last }
    }

    fn pop(&mut self) -> Value {
        let Some(last) = self.len().checked_sub(1) else { return Value::None };
        match self {
            Column::Words(fixed, words) => fixed.value(words.pop().unwrap_or_default()),
            Column::OptionalWords(fixed, words, there) => {
                let word = words.pop().unwrap_or_default();
                let was = put_bit(there, last, false);
                if last.is_multiple_of(64) {
                    there.pop();
                }
                if was { fixed.value(word) } else { Value::None }
            }
            Column::Values(values) => values.pop().unwrap_or_default(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Column::Words(_, words) => words.clear(),
            Column::OptionalWords(_, words, there) => {
                words.clear();
                there.clear();
            }
            Column::Values(values) => values.clear(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Column::Words(_, words) | Column::OptionalWords(_, words, _) => words.len(),
            Column::Values(values) => values.len(),
        }
    }

    /// Bytes, not counting what values share.
    pub(super) fn memory(&self) -> usize {
        match self {
            Column::Words(_, words) => words.memory(),
            Column::OptionalWords(_, words, there) => words.memory() + there.memory(),
            Column::Values(values) => values.memory(),
        }
    }

    /// Where a word of a whole page is.
    #[cfg(test)]
    pub(super) fn address(&self, at: usize) -> Option<usize> {
        match self {
            Column::Words(_, words) | Column::OptionalWords(_, words, _) => {
                words.page(at / WORDS).map(|page| page.address(at % WORDS))
            }
            Column::Values(_) => None,
        }
    }
}

/// Says whether a row has a word; whether it had one. What stays the same copies no page.
fn put_bit(there: &mut Pages<Arc<[u64; WORDS]>>, at: usize, is_there: bool) -> bool {
    let (bits, bit) = (there.get(at / 64).unwrap_or_default(), 1 << (at % 64));
    let was = bits & bit != 0;
    if was != is_there {
        there.put(at / 64, bits ^ bit);
    }
    was
}
