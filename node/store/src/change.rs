//! One changed row, and how changes are laid out: those of a frame, and the rows of a checkpoint's block.
//!
//! Layout: one after the other, to the end. A number is written in groups of seven bits, the lowest first, each but the
//! last with its high bit set. A change is: a head, the length of its key times four, and 2 if it has a row, and 1 if its
//! list is that of the change before; the list, if it is another; the key; the row's length and the row, if it has one.
//! The layout of format 1 is read too. It must not know what a list means.

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

/// A row of a state: what a checkpoint is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The number of the list it is in.
    pub list: u64,
    /// Its key.
    pub key: Vec<u8>,
    /// Its bytes.
    pub row: Vec<u8>,
}

impl From<Row> for Change {
    fn from(Row { list, key, row }: Row) -> Self {
        Self { list, key, row: Some(row) }
    }
}

const HAS_ROW: u64 = 2;
const SAME_LIST: u64 = 1;

/// One change as it is laid out.
struct Piece<'a> {
    list: u64,
    key: &'a [u8],
    row: Option<&'a [u8]>,
}

impl Piece<'_> {
    fn head(&self, before: Option<u64>) -> u64 {
        let has_row = if self.row.is_some() { HAS_ROW } else { 0 };
        let same_list = if before == Some(self.list) { SAME_LIST } else { 0 };
        (self.key.len() as u64) << 2 | has_row | same_list
    }

    fn encoded_bytes(&self, before: Option<u64>) -> usize {
        let list = if before == Some(self.list) { 0 } else { number_bytes(self.list) };
        let row = self.row.map_or(0, |row| number_bytes(row.len() as u64).saturating_add(row.len()));
        (number_bytes(self.head(before)) + list).saturating_add(self.key.len()).saturating_add(row)
    }

    fn encode(&self, before: Option<u64>, out: &mut Vec<u8>) {
        put_number(self.head(before), out);
        if before != Some(self.list) {
            put_number(self.list, out);
        }
        out.extend_from_slice(self.key);
        if let Some(row) = self.row {
            put_number(row.len() as u64, out);
            out.extend_from_slice(row);
        }
    }
}

impl<'a> From<&'a Change> for Piece<'a> {
    fn from(change: &'a Change) -> Self {
        Piece { list: change.list, key: &change.key, row: change.row.as_deref() }
    }
}

impl<'a> From<&'a Row> for Piece<'a> {
    fn from(row: &'a Row) -> Self {
        Piece { list: row.list, key: &row.key, row: Some(&row.row) }
    }
}

/// The size of [`encode`]'s result in bytes, without making it; saturates.
pub(crate) fn encoded_bytes(changes: &[Change]) -> usize {
    let (bytes, _) = changes.iter().fold((0usize, None), |(sum, before), change| {
        (sum.saturating_add(Piece::from(change).encoded_bytes(before)), Some(change.list))
    });
    bytes
}

/// Appends the layout of `changes` to `out`.
pub(crate) fn encode(changes: &[Change], out: &mut Vec<u8>) {
    let mut before = None;
    for change in changes {
        Piece::from(change).encode(before, out);
        before = Some(change.list);
    }
}

/// The size of a row in a block after a row of the list `before`, in bytes.
pub(crate) fn row_bytes(row: &Row, before: Option<u64>) -> usize {
    Piece::from(row).encoded_bytes(before)
}

/// Appends a row to a block that ends with a row of the list `before`.
pub(crate) fn encode_row(row: &Row, before: Option<u64>, out: &mut Vec<u8>) {
    Piece::from(row).encode(before, out);
}

/// Changes as they were read: of the layout of now they are still laid out, and made one by one as they are handed out, so that each
/// is gone before the next is there.
pub(crate) enum Changes<'a> {
    /// Made already.
    Made(Vec<Change>),
    /// Of so many changes; that it is a layout was checked.
    LaidOut(&'a [u8], u64),
}

impl<'a> Changes<'a> {
    /// Checks a layout; none if the bytes are not exactly one.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut count = 0;
        let (mut reader, mut before) = (Reader(bytes), None);
        while !reader.0.is_empty() {
            before = Some(reader.piece(before)?.list);
            count += 1;
        }
        Some(Self::LaidOut(bytes, count))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Self::Made(changes) => changes.len() as u64,
            Self::LaidOut(_, count) => *count,
        }
    }

    /// Hands out each.
    pub fn each(self, restore: &mut dyn FnMut(Change)) {
        let bytes = match self {
            Self::Made(changes) => return changes.into_iter().for_each(restore),
            Self::LaidOut(bytes, _) => bytes,
        };
        let (mut reader, mut before) = (Reader(bytes), None);
        while let Some(Piece { list, key, row }) = reader.piece(before) {
            before = Some(list);
            restore(Change { list, key: key.to_vec(), row: row.map(<[u8]>::to_vec) });
        }
    }
}

fn number_bytes(number: u64) -> usize {
    // Seven bits a byte; 0 takes one, too.
    (64 - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        // The low seven bits and the mark that more follow.
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads changes laid out as format 1 had them: count u32, then each: list u64, key length u32, key, 0 (removed) or 1 and
/// row length u32 and row.
pub(crate) fn decode_format_1(bytes: &[u8]) -> Option<Vec<Change>> {
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

    /// A number in its shortest form alone, so that a layout is the only one of its changes.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The next change behind one of the list `before`; none at the end, or where none is.
    fn piece(&mut self, before: Option<u64>) -> Option<Piece<'a>> {
        let head = self.number()?;
        let list = match head & SAME_LIST {
            0 => self.number()?,
            _ => before?,
        };
        let key = self.take(usize::try_from(head >> 2).ok()?)?;
        let row = match head & HAS_ROW {
            0 => None,
            _ => {
                let length = usize::try_from(self.number()?).ok()?;
                Some(self.take(length)?)
            }
        };
        Some(Piece { list, key, row })
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

    fn decode(bytes: &[u8]) -> Option<Vec<Change>> {
        let changes = Changes::read(bytes)?;
        let (count, mut all) = (changes.count(), Vec::new());
        changes.each(&mut |change| all.push(change));
        assert_eq!(all.len() as u64, count);
        Some(all)
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
        fn any_bytes_are_the_one_layout_of_what_they_decode_to_or_are_refused(noise in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode_format_1(&noise);
            if let Some(changes) = decode(&noise) {
                let mut bytes = Vec::new();
                encode(&changes, &mut bytes);
                let same_list = changes.windows(2).any(|two| two[0].list == two[1].list);
                prop_assert!(bytes == noise || same_list);
            }
        }

        #[test]
        fn rows_of_a_block_are_changes_with_rows(rows in proptest::collection::vec((0u64..3, any::<[u8; 3]>(), any::<[u8; 9]>()), 0..6)) {
            let rows: Vec<Row> = rows.into_iter().map(|(list, key, row)| Row { list, key: key.to_vec(), row: row.to_vec() }).collect();
            let (mut block, mut size, mut before) = (Vec::new(), 0, None);
            for row in &rows {
                size += row_bytes(row, before);
                encode_row(row, before, &mut block);
                before = Some(row.list);
            }
            prop_assert_eq!(block.len(), size);
            let changes: Vec<Change> = rows.into_iter().map(Change::from).collect();
            prop_assert_eq!(decode(&block), Some(changes));
        }
    }

    #[test]
    fn numbers_take_as_many_bytes_as_foretold() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(number, &mut bytes);
            assert_eq!(bytes.len(), number_bytes(number), "{number}");
            assert_eq!(Reader(&bytes).number(), Some(number));
        }
        for not_shortest in [&[0x80, 0][..], &[0xff; 10], &[0x80]] {
            assert_eq!(Reader(not_shortest).number(), None);
        }
    }
}
