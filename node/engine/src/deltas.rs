//! Changed rows: what the log gets of an event.
//!
//! All of one event lie in one piece of memory, each behind its list's number, its key's length and its row's plus
//! one (0 where it was removed), so that an event does not
//! allocate for every row that it changes.

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
    #[inline(always)]
    pub(crate) fn push<E>(
        &mut self,
        list: u32,
        key: &[u8],
        row: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<usize, E> {
        // An event's bytes are far below 2^32: `EVENT_BYTES_MAX`, and one text of `BYTES_MAX` before that is seen.
        let head = [list, key.len() as u32, 0].map(u32::to_le_bytes);
        self.bytes.extend_from_slice(head.as_flattened());
        let behind_head = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let there = row(&mut self.bytes)?;
        let row = self.bytes.len() - behind_head - key.len();
        let length = row as u32 + u32::from(there);
        if let Some(place) = self.bytes.get_mut(behind_head - size_of::<u32>()..behind_head) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        self.len += 1;
        Ok(key.len() + row)
    }
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
