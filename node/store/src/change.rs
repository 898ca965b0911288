//! One changed row, and how the changes of a frame are laid out.
//!
//! Layout (little-endian): count u32, then each: list u64, key length u32, key, 0 (removed) or 1 and row length u32 and
//! row. It must not know what a list means.

/// A row that was written or removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// The number of the list it is in; numbers are the caller's.
    pub list: u64,
    /// The key of the row.
    pub key: Vec<u8>,
    /// The row as it is now; none if it was removed.
    pub row: Option<Vec<u8>>,
}

impl Change {
    fn encoded_bytes(&self) -> usize {
        8 + 4 + self.key.len() + 1 + self.row.as_ref().map_or(0, |row| 4 + row.len())
    }
}

/// The size of [`encode`]'s result in bytes, without making it; saturates.
pub(crate) fn encoded_bytes(changes: &[Change]) -> usize {
    changes.iter().fold(4, |sum: usize, change| sum.saturating_add(change.encoded_bytes()))
}

/// Appends the layout of `changes` to `out`. All lengths are below `FRAME_BYTES_MAX`, which the caller has checked.
pub(crate) fn encode(changes: &[Change], out: &mut Vec<u8>) {
    let length = |bytes: usize| u32::try_from(bytes).expect("checked against FRAME_BYTES_MAX by the caller");
    out.extend_from_slice(&length(changes.len()).to_le_bytes());
    for change in changes {
        out.extend_from_slice(&change.list.to_le_bytes());
        out.extend_from_slice(&length(change.key.len()).to_le_bytes());
        out.extend_from_slice(&change.key);
        match &change.row {
            None => out.push(0),
            Some(row) => {
                out.push(1);
                out.extend_from_slice(&length(row.len()).to_le_bytes());
                out.extend_from_slice(row);
            }
        }
    }
}

/// Reads changes; none if the bytes are not exactly a layout of some.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Change>> {
    let mut reader = Reader(bytes);
    let count = reader.u32()?;
    let mut changes = Vec::new();
    for _ in 0..count {
        let list = u64::from_le_bytes(reader.take(8)?.try_into().ok()?);
        let key_length = reader.u32()?;
        let key = reader.take(key_length as usize)?.to_vec();
        let row = match reader.take(1)? {
            [0] => None,
            [1] => {
                let row_length = reader.u32()?;
                Some(reader.take(row_length as usize)?.to_vec())
            }
            _ => return None,
        };
        changes.push(Change { list, key, row });
    }
    reader.0.is_empty().then_some(changes)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        proptest::collection::vec(
            (any::<u64>(), bytes(), proptest::option::of(bytes())).prop_map(|(list, key, row)| Change {
                list,
                key,
                row,
            }),
            0..8,
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_and_has_the_size_foretold(changes in changes()) {
            let mut bytes = Vec::new();
            encode(&changes, &mut bytes);
            prop_assert_eq!(bytes.len(), encoded_bytes(&changes));
            prop_assert_eq!(decode(&bytes), Some(changes));
        }

        #[test]
        fn any_bytes_decode_or_are_refused_and_a_cut_layout_is_refused(changes in changes(), noise in proptest::collection::vec(any::<u8>(), 0..64), cut in any::<prop::sample::Index>()) {
            let _ = decode(&noise);
            let mut bytes = Vec::new();
            encode(&changes, &mut bytes);
            bytes.truncate(cut.index(bytes.len()));
            prop_assert_eq!(decode(&bytes), None);
        }
    }
}
