//! Rows of a list as they come from a log: those of a checkpoint, in order, then what changed, in any. A map of them would cost as much
//! as all the rest of a start, and putting each where it belongs a wait for memory a field.
//!
//! Keys and rows lie one behind the other in one piece of memory. What comes in the order of keys is left as it is, what does not is
//! sorted once, by its keys' first bytes as far as they tell, and both are gone through side by side.

use std::cmp::Ordering;
use std::convert::Infallible;

/// Changes out of order that are kept at least before they are folded in.
const UNFOLDED: usize = 1 << 16;

/// Rows as they come.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Keys and rows.
    bytes: Vec<u8>,
    /// In the order of their keys, each once.
    ordered: Vec<Gathering>,
    /// What came out of order after those, the last of a key last.
    others: Vec<Gathering>,
}

/// A row, or its end.
#[derive(Debug, Clone, Copy)]
struct Gathering {
    /// The key's first bytes, by which most keys are told apart without looking them up.
    begins: u64,
    /// Where the key stands, and behind it the row.
    at: usize,
    key_bytes: u32,
    /// None if the row is gone.
    row_bytes: Option<u32>,
}

impl Gathering {
    fn key(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.at..self.at + self.key_bytes as usize).unwrap_or_default()
    }

    fn row(self, bytes: &[u8]) -> Option<&[u8]> {
        let from = self.at + self.key_bytes as usize;
        bytes.get(from..from + self.row_bytes? as usize)
    }

    /// By their keys, which are not looked at where their beginnings tell.
    fn compare(&self, other: &Gathering, bytes: &[u8]) -> Ordering {
        let is_whole = |one: &Gathering| one.key_bytes as usize <= size_of::<u64>();
        self.begins.cmp(&other.begins).then_with(|| match is_whole(self) && is_whole(other) {
            true => self.key_bytes.cmp(&other.key_bytes),
            false => self.key(bytes).cmp(other.key(bytes)),
        })
    }
}

impl Gathered {
    /// The next change of the log: a row, or its end.
    pub fn take(&mut self, key: &[u8], row: Option<&[u8]>) {
        let mut begins = [0; size_of::<u64>()];
        begins.iter_mut().zip(key).for_each(|(first, byte)| *first = *byte);
        let gathering = Gathering {
            begins: u64::from_be_bytes(begins),
            at: self.bytes.len(),
            // A frame is far below 2^32 bytes.
            key_bytes: key.len() as u32,
            row_bytes: row.map(|row| row.len() as u32),
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row.unwrap_or_default());
        let is_next = |last: &Gathering| last.compare(&gathering, &self.bytes).is_lt();
        if self.others.is_empty() && row.is_some() && self.ordered.last().is_none_or(is_next) {
            return self.ordered.push(gathering);
        }
        self.others.push(gathering);
        // A log without a checkpoint may be far longer than what it comes to.
        if self.others.len() > 2 * self.ordered.len().max(UNFOLDED) {
            self.fold();
        }
    }

    /// Leaves the last change of each row, and none of those that are gone.
    fn fold(&mut self) {
        let mut folded = Gathered::default();
        let whole = std::mem::take(self);
        let Ok(()) = whole.each(|key, row| {
            folded.take(key, Some(row));
            Ok::<(), Infallible>(())
        });
        *self = folded;
    }

    /// Hands out the rows that there are in the end, in order of their keys.
    pub fn each<E>(mut self, mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        let bytes = std::mem::take(&mut self.bytes);
        // Stable: of a row the last one is the last.
        self.others.sort_by(|one, other| one.compare(other, &bytes));
        let mut ordered = self.ordered.iter().peekable();
        let mut others = self.others.iter().peekable();
        loop {
            let order = match (ordered.peek(), others.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.compare(other, &bytes),
            };
            let mut last = if order.is_gt() { None } else { ordered.next() };
            if order.is_ge() {
                last = others.next();
                while let Some(later) =
                    others.next_if(|later| last.is_some_and(|last| last.compare(later, &bytes).is_eq()))
                {
                    last = Some(later);
                }
            }
            if let Some(last) = last
                && let Some(row) = last.row(&bytes)
            {
                take(last.key(&bytes), row)?;
            }
        }
    }

    /// Whether any row is there in the end.
    pub fn has_rows(&self) -> bool {
        let mut last: Vec<&Gathering> = self.ordered.iter().chain(&self.others).collect();
        last.sort_by(|one, other| one.compare(other, &self.bytes));
        let is_last =
            |at: usize| last.get(at + 1).is_none_or(|next| next.compare(last[at], &self.bytes).is_ne());
        (0..last.len()).any(|at| is_last(at) && last[at].row_bytes.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn rows(gathered: Gathered) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        let Ok(()) = gathered.each(|key, row| {
            rows.push((key.to_vec(), row.to_vec()));
            Ok::<(), Infallible>(())
        });
        rows
    }

    #[test]
    fn what_is_gathered_comes_to_the_last_of_each_row() {
        let mut gathered = Gathered::default();
        assert!(!gathered.has_rows());
        for (key, row) in [(3, Some(1)), (1, Some(2)), (3, None), (2, Some(3)), (1, Some(4))] {
            gathered.take(&[key], row.map(|row| vec![row]).as_deref());
        }
        assert!(gathered.has_rows());
        gathered.fold();
        for key in [1, 2] {
            gathered.take(&[key], None);
        }
        assert!(!gathered.has_rows());
        for (key, row) in [(2, 9), (1, 8)] {
            gathered.take(&[key], Some(&[row]));
        }
        assert_eq!(rows(gathered), [(vec![1], vec![8]), (vec![2], vec![9])]);
    }

    #[test]
    fn many_changes_of_few_rows_are_few() {
        let mut gathered = Gathered::default();
        for turn in 0..3 * UNFOLDED {
            gathered.take(&[(turn % 5) as u8], Some(&turn.to_be_bytes()));
            assert!(gathered.others.len() <= 2 * UNFOLDED);
        }
        let last = |key| (0..3 * UNFOLDED).rev().find(|turn| turn % 5 == key);
        let expected = |key: usize| Some((vec![key as u8], last(key)?.to_be_bytes().to_vec()));
        assert_eq!(rows(gathered), (0..5).filter_map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn long_keys_that_begin_alike_are_others_and_shorter_ones_come_first() {
        let mut gathered = Gathered::default();
        for key in [&b"12345678b"[..], b"12345678a", b"12345678", b"1\0", b"1", b"12345678a\0"] {
            gathered.take(key, Some(key));
        }
        let keys: Vec<_> = rows(gathered).into_iter().map(|(key, _)| key).collect();
        assert!(keys.len() == 6 && keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn any_changes_come_to_what_a_map_comes_to() {
        let mut seed = 1u64;
        let mut next = |below: u64| {
            // Knuth's MMIX.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..200 {
            let (mut gathered, mut map) = (Gathered::default(), BTreeMap::new());
            for change in 0..next(60) {
                let key: Vec<u8> = (0..next(12)).map(|_| next(2) as u8).collect();
                let row = (next(3) > 0).then(|| vec![change as u8; next(4) as usize]);
                gathered.take(&key, row.as_deref());
                match row {
                    Some(row) => map.insert(key, row),
                    None => map.remove(&key),
                };
                if next(20) == 0 {
                    gathered.fold();
                }
            }
            assert_eq!(gathered.has_rows(), !map.is_empty(), "{round}");
            assert_eq!(rows(gathered), map.into_iter().collect::<Vec<_>>(), "{round}");
        }
    }
}
