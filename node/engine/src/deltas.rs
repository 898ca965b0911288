//! Changed rows: what the log gets of an event.
//!
//! All of one event lie in one piece of memory, each behind its list's number, its key's length and its row's plus
//! one (0 where it was removed), so that an event does not
//! allocate for every row that it changes.

use crate::codec::{Words, word_key};
use std::fmt;

/// One changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The list's number in the module.
    pub list: u32,
    /// The row's key; empty for a state variable.
    pub key: Vec<u8>,
    /// The row as it is now, or none when it was removed.
    pub row: Option<Vec<u8>>,
}

/// One of [`Deltas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorrowedDelta<'d> {
    /// The list's number in the module.
    pub list: u32,
    /// The row's key; empty for a state variable.
    pub key: &'d [u8],
    /// The row as it is now, or none when it was removed.
    pub row: Option<&'d [u8]>,
}

/// Changed rows in order.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Deltas {
    bytes: Vec<u8>,
    len: usize,
}

/// Bytes of most changed rows, with their head and their key.
const MOST: usize = 48;
/// Bytes that are made room for before any is written: of more rows the first few tell how much more there is to come.
const RESERVED_MAX: usize = 4 << 10;

impl Deltas {
    /// With room for so many, if they are short.
    pub(crate) fn with_room(count: usize) -> Deltas {
        Deltas { bytes: Vec::with_capacity((count * MOST).min(RESERVED_MAX)), len: 0 }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One after the other.
    pub fn iter(&self) -> Iter<'_> {
        Iter { bytes: &self.bytes }
    }

    /// Each by itself.
    pub fn to_vec(&self) -> Vec<Delta> {
        let owned = |BorrowedDelta { list, key, row }: BorrowedDelta<'_>| {
            let (key, row) = (key.to_vec(), row.map(<[u8]>::to_vec));
            Delta { list, key, row }
        };
        self.iter().map(owned).collect()
    }

    /// Appends one; `row` appends its bytes and says whether there is a row. Gives the bytes of key and row. After an error
    /// nothing is appended any more.
    pub(crate) fn push<E>(
        &mut self,
        list: u32,
        key: &[u8],
        row: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&head(list, key.len()));
        self.bytes.extend_from_slice(key);
        let there = row(&mut self.bytes)?;
        Ok(self.end(begin, key.len(), there))
    }

    /// As [`Deltas::push`], for a key of a word; `row` appends to words that have it.
    #[inline(always)]
    pub(crate) fn push_by_word<E>(
        &mut self,
        list: u32,
        key: i64,
        row: impl FnOnce(&mut Words<'_>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        let begin = self.bytes.len();
        let mut first = [0; HEAD + size_of::<i64>()];
        first[..HEAD].copy_from_slice(&head(list, size_of::<i64>()));
        first[HEAD..].copy_from_slice(&word_key(key));
        let there = row(&mut Words::new(&mut self.bytes, first))?;
        Ok(self.end(begin, size_of::<i64>(), there))
    }

    /// Writes how long the row is that was appended; the bytes of key and row.
    #[inline(always)]
    fn end(&mut self, begin: usize, key: usize, there: bool) -> usize {
        let bytes = self.bytes.len() - begin - HEAD;
        let length = (bytes - key) as u32 + u32::from(there);
        if let Some(place) = self.bytes.get_mut(begin + HEAD - size_of::<u32>()..begin + HEAD) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        self.len += 1;
        bytes
    }
}

/// Bytes of a list's number and two lengths.
const HEAD: usize = 3 * size_of::<u32>();

/// What stands before a key, the row's length not known yet. An event's bytes are far below 2^32: `EVENT_BYTES_MAX`, and
/// one text of `BYTES_MAX` before that is seen.
#[inline(always)]
fn head(list: u32, key: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&list.to_le_bytes());
    head[4..8].copy_from_slice(&(key as u32).to_le_bytes());
    head
}

impl fmt::Debug for Deltas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self).finish()
    }
}

impl<'d> IntoIterator for &'d Deltas {
    type Item = BorrowedDelta<'d>;
    type IntoIter = Iter<'d>;

    fn into_iter(self) -> Iter<'d> {
        self.iter()
    }
}

/// Runs over [`Deltas`].
#[derive(Debug, Clone)]
pub struct Iter<'d> {
    bytes: &'d [u8],
}

impl<'d> Iterator for Iter<'d> {
    type Item = BorrowedDelta<'d>;

    fn next(&mut self) -> Option<BorrowedDelta<'d>> {
        let (list, rest) = self.bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (row, rest) = rest.split_first_chunk()?;
        let row = u32::from_le_bytes(*row).checked_sub(1);
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key) as usize)?;
        let (bytes, rest) = rest.split_at_checked(row.unwrap_or_default() as usize)?;
        self.bytes = rest;
        Some(BorrowedDelta { list: u32::from_le_bytes(*list), key, row: row.map(|_| bytes) })
    }
}
