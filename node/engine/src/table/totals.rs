//! What is made of a field of the rows of each group, in one run over columns: the order of rows is nothing to it.

use super::Keyed;
use super::pages::Pages;
use super::words::{WORDS, WordPage};
use weft::code::Fold;

/// Groups that there may be for each row, counted from the least to the greatest: where more were possible, most would be
/// empty.
const GROUPS_A_ROW: usize = 2;
/// Groups that there may be beside.
const GROUPS_FREE: usize = 256;

/// A sum, a least or a greatest word for each group. Groups are words that lie close together.
#[derive(Debug)]
pub(crate) struct Totals {
    /// The least group.
    first: i64,
    totals: Vec<Option<i128>>,
}

impl Totals {
    /// That of a group; none if it has no rows.
    pub(crate) fn of(&self, group: i64) -> Option<i128> {
        let at = usize::try_from(group.checked_sub(self.first)?).ok()?;
        self.totals.get(at).copied().flatten()
    }
}

impl Totals {
    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.totals.len() * size_of::<Option<i128>>()
    }
}

impl Keyed {
    /// Folds a field of the rows that are alike in another one; none where a field is no plain word, or where words that
    /// rows are alike in are far apart.
    pub(crate) fn totals(&self, alike: u16, field: u16, fold: Fold) -> Option<Totals> {
        let (groups, words) = (self.columns.get(alike as usize)?, self.columns.get(field as usize)?);
        let (groups, words) = (groups.words()?, words.words()?);
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        runs([groups, groups], |[groups, _]| {
            for group in groups {
                (first, last) = (first.min(*group), last.max(*group));
            }
        });
        let span = usize::try_from(last.checked_sub(first)?).ok()?;
        if span >= self.len * GROUPS_A_ROW + GROUPS_FREE {
            return None;
        }
        let mut totals = vec![None; span + 1];
        let rows = [groups, words];
        match fold {
            Fold::Sum => fold_into(&mut totals, first, rows, |total, word| total + word),
            Fold::Least => fold_into(&mut totals, first, rows, Ord::min),
            Fold::Greatest => fold_into(&mut totals, first, rows, Ord::max),
        }
        Some(Totals { first, totals })
    }
}

/// Hands over the words of two columns of one list, as many of each, until all were.
#[inline]
fn runs(columns: [&Pages<WordPage>; 2], mut take: impl FnMut([&[i64]; 2])) {
    let mut rooms = [[0; WORDS]; 2];
    let [left, right] = &mut rooms;
    let mut number = 0;
    while let [Some(first), Some(second)] = columns.map(|column| column.page(number)) {
        take([first.read(left), second.read(right)]);
        number += 1;
    }
    take(columns.map(Pages::tail));
}

#[inline]
fn fold_into(
    totals: &mut [Option<i128>],
    first: i64,
    columns: [&Pages<WordPage>; 2],
    fold: impl Fn(i128, i128) -> i128,
) {
    runs(columns, |[groups, words]| {
        for (group, word) in groups.iter().zip(words) {
            if let Some(total) = totals.get_mut((group - first) as usize) {
                let word = i128::from(*word);
                *total = Some(total.map_or(word, |before| fold(before, word)));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Random, layout};
    use super::*;
    use crate::keyed::Key;
    use std::collections::BTreeMap;
    use weft::Value;
    use weft::module::Type;

    #[test]
    fn totals_are_those_of_the_rows() {
        let mut random = Random(1);
        for (groups, first, step, is_close) in [
            (1, 0, 1, true),
            (5, -2, 1, true),
            (100, i64::MAX - 99, 1, true),
            (40, i64::MIN, 5, true),
            (5, -2, 1 << 40, false),
            (2, i64::MIN, i64::MAX, false),
        ] {
            let mut table =
                Keyed::new(layout(&[Type::Int, Type::Int, Type::Int, Type::Text], &[0], &[], &[]));
            let mut model: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
            for _ in 0..1_000 {
                let key = random.below(400) as i64;
                if random.below(3) == 0 {
                    table.remove(&Key::Word(key));
                    model.remove(&key);
                    continue;
                }
                let (group, word) = (first + random.below(groups) as i64 * step, random.next() as i64);
                let row = [Value::Word(key), Value::Word(group), Value::Word(word), Value::Text("".into())];
                table.put(&Key::Word(key), &row).unwrap();
                model.insert(key, (group, word));
            }
            for fold in [Fold::Sum, Fold::Least, Fold::Greatest] {
                let found = table.totals(1, 2, fold);
                assert_eq!(found.is_some(), is_close, "{groups} {first} {step}");
                let Some(found) = found else { continue };
                for group in
                    (0..groups as i64).map(|group| first + group * step).chain([0, i64::MIN, i64::MAX])
                {
                    let words = model.values().filter(|row| row.0 == group).map(|row| i128::from(row.1));
                    let expected = words.reduce(|before, word| match fold {
                        Fold::Sum => before + word,
                        Fold::Least => before.min(word),
                        Fold::Greatest => before.max(word),
                    });
                    assert_eq!(found.of(group), expected, "{fold:?} of {group}");
                }
            }
            assert!(table.totals(3, 2, Fold::Sum).is_none() && table.totals(1, 3, Fold::Sum).is_none());
        }
    }

    #[test]
    fn no_rows_have_no_totals() {
        let table = Keyed::new(layout(&[Type::Int, Type::Int], &[0], &[], &[]));
        assert!(table.totals(1, 1, Fold::Sum).is_none());
    }
}
