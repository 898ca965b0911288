//! Fills an index with the entries of rows that there are already: sorted in pieces, which are merged, so that it can be
//! given up on the way.

use super::change::{Unchangeable, go_on};
use super::sorted::Sorted;
use crate::budget::KEY_BYTES_MAX;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use weft::Value;

/// Entries of a piece: sorting it takes some milliseconds, and of a million rows there are few pieces to merge.
const PIECE_ENTRIES: u32 = 1 << 16;

impl Sorted {
    /// Adds the entries of an index's rows, so many, to none, for as long as `is_wanted`. Errors name the index by a
    /// number.
    pub(super) fn fill(
        &mut self,
        number: usize,
        rows: u32,
        value: &impl Fn(u32, u16) -> Value,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<(), Unchangeable> {
        if self.shape.words.is_some() {
            let entry = |row: u32| Ok(self.shape.entry(&|field: u16| value(row, field)));
            let pieces = pieces(rows, &entry, is_wanted)?;
            return merged(pieces, is_wanted, &mut |entry| self.insert_words(entry.as_slice()));
        }
        let entry = |row: u32| {
            let bytes = self.shape.bytes(&|field: u16| value(row, field));
            if bytes.len() > KEY_BYTES_MAX { Err(Unchangeable::LongEntry(number)) } else { Ok(bytes) }
        };
        let pieces = pieces(rows, &entry, is_wanted)?;
        merged(pieces, is_wanted, &mut |entry| self.insert_string(entry))
    }
}

/// The entries of all rows, in pieces that are sorted.
fn pieces<E: Ord>(
    rows: u32,
    entry: &impl Fn(u32) -> Result<E, Unchangeable>,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Vec<Vec<E>>, Unchangeable> {
    let mut pieces = Vec::new();
    let mut first = 0;
    while first < rows {
        let end = rows.min(first.saturating_add(PIECE_ENTRIES));
        let mut piece = Vec::with_capacity((end - first) as usize);
        for row in first..end {
            go_on(row as usize, is_wanted)?;
            piece.push(entry(row)?);
        }
        piece.sort_unstable();
        pieces.push(piece);
        first = end;
    }
    Ok(pieces)
}

/// Gives the entries of all pieces in their order.
fn merged<E: Ord>(
    pieces: Vec<Vec<E>>,
    is_wanted: &dyn Fn() -> bool,
    push: &mut impl FnMut(&E),
) -> Result<(), Unchangeable> {
    let mut pieces: Vec<_> = pieces.into_iter().map(Vec::into_iter).collect();
    let firsts =
        pieces.iter_mut().enumerate().filter_map(|(piece, left)| Some(Reverse((left.next()?, piece))));
    let mut next: BinaryHeap<_> = firsts.collect();
    let mut count = 0;
    while let Some(mut least) = next.peek_mut() {
        go_on(count, is_wanted)?;
        count += 1;
        let Reverse((entry, piece)) = &mut *least;
        push(entry);
        match pieces[*piece].next() {
            Some(behind) => *entry = behind,
            None => drop(PeekMut::pop(least)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ROWS_AT_ONCE;
    use super::*;
    use std::cell::Cell;

    #[test]
    fn pieces_are_merged_in_order() {
        for pieces in
            [vec![], vec![vec![]], vec![vec![1]], vec![vec![1, 4, 4, 9], vec![], vec![0, 4, 5], vec![10, 11]]]
        {
            let mut expected = pieces.concat();
            expected.sort_unstable();
            let mut found = Vec::new();
            assert_eq!(merged(pieces, &|| true, &mut |entry| found.push(*entry)), Ok(()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn it_is_given_up_on_the_way() {
        let rows = 3 * PIECE_ENTRIES + 1;
        let scattered = |row: u32| Ok(row.wrapping_mul(0x9e37_79b1));
        let asked = Cell::new(0);
        let until = |most: u32| {
            asked.set(0);
            let is_wanted = || {
                asked.set(asked.get() + 1);
                asked.get() <= most
            };
            let pieces = pieces(rows, &scattered, &is_wanted)?;
            merged(pieces, &is_wanted, &mut |_| {})
        };
        assert_eq!(until(u32::MAX), Ok(()));
        // As often for making entries as for merging them.
        let all = asked.get();
        assert_eq!(all, 2 * rows.div_ceil(ROWS_AT_ONCE as u32));
        for most in [0, 1, all / 2, all - 1] {
            assert_eq!(until(most), Err(Unchangeable::GivenUp), "{most} of {all}");
            assert_eq!(asked.get(), most + 1, "and at once");
        }
    }
}
