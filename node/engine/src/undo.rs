//! What an event changed: played backward where it is refused, and what the log gets where it is not.

use crate::budget::Fault;
use crate::keyed::{Key, Row};
use crate::table::Slot;
use std::cmp::Ordering;
use std::sync::Arc;
use weft::Value;

/// Rows and fields that one event changes: with them it remembers what they were, in 64 bytes each.
const CHANGES_MAX: usize = 1 << 21;
/// Changes that are kept before those of the same row and field are made one.
const UNMERGED: usize = 1 << 12;

/// More than a slot's number.
const NOWHERE: u32 = u32::MAX;

/// Something that is another than it was.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// The number of the list in deltas.
    pub(crate) list: u32,
    /// Where the row stood then; none of what is no row, and of one that was removed.
    slot: u32,
    /// The row's key. Of a variable `Word(0)`, of [`crate::TIMERS`] its bytes.
    pub(crate) key: Key,
    pub(crate) before: Before,
}

/// What was there.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    /// A row, or none.
    Row(Option<Row>),
    /// A field of a row that was there.
    Field(u16, Value),
    /// A variable's value.
    Variable(Value),
    /// When a timer was due.
    Due(Option<i64>),
}

impl Change {
    /// Where the row stood then.
    #[inline(always)]
    pub(crate) fn slot(&self) -> Option<Slot> {
        (self.slot != NOWHERE).then(|| Slot::of(self.slot))
    }

    pub(crate) fn is_of_same_row(&self, other: &Change) -> bool {
        self.list == other.list && self.key == other.key
    }

    /// In the order of lists and keys.
    fn compare_rows(&self, other: &Change) -> Ordering {
        self.list.cmp(&other.list).then_with(|| self.key.cmp(&other.key))
    }
}

/// What an event changed, in order.
#[derive(Clone, Copy)]
pub(crate) struct Merged<'u> {
    pub(crate) changes: &'u [Change],
    /// Lists and the numbers that their counters had.
    pub(crate) counters: &'u [(u32, i64)],
    /// If so, no row was changed twice; where rows were not changed in order nobody looked.
    pub(crate) surely_once: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Undo {
    /// In the order in which they were made; behind them come some of earlier events, to be written over: most changes
    /// are of words, of which a word is then all that is written.
    changes: Vec<Change>,
    /// How many are of this event.
    used: usize,
    /// Whether some hold what is to be dropped.
    holds: bool,
    /// The list of each counter that another number was put into, each once, and the number that was there.
    counters: Vec<(u32, i64)>,
    /// Whether the order in which they were made is not that of lists and keys, each once.
    is_mixed: bool,
    /// How many there may be before some are made one.
    unmerged: usize,
    /// Whether a row was removed, so that others may stand elsewhere.
    pub(crate) has_moved: bool,
}

impl Undo {
    /// Notes what a row, a field, a variable or a timer was; `slot` is where the row stands now.
    pub(crate) fn push(
        &mut self,
        list: u32,
        (key, slot): (Key, Option<Slot>),
        before: Before,
    ) -> Result<(), Fault> {
        self.has_moved |= slot.is_none() && matches!(before, Before::Row(Some(_)));
        self.holds |= !matches!((&key, &before), (Key::Word(_), Before::Row(None)));
        self.look_at_order(list, &key);
        let change = Change { list, slot: slot.map_or(NOWHERE, Slot::number), key, before };
        match self.changes.get_mut(self.used) {
            Some(place) => *place = change,
            None => self.changes.push(change),
        }
        self.count_one()
    }

    /// As [`Undo::push`], for a word in a field of a row by one.
    #[inline(always)]
    pub(crate) fn push_word(
        &mut self,
        list: u32,
        (key, slot): (i64, Slot),
        (field, before): (u16, i64),
    ) -> Result<(), Fault> {
        let Some(Change { list: in_list, slot: at, key: Key::Word(of), before: was }) =
            self.changes.get_mut(self.used)
        else {
            let before = Before::Field(field, Value::Word(before));
            return self.push(list, (Key::Word(key), Some(slot)), before);
        };
        (*in_list, *at, *of) = (list, slot.number(), key);
        match was {
            Before::Field(number, Value::Word(word)) => (*number, *word) = (field, before),
            other => *other = Before::Field(field, Value::Word(before)),
        }
        self.look_at_order(list, &Key::Word(key));
        self.count_one()
    }

    /// As [`Undo::push`], for a row of a key that had none.
    #[inline(always)]
    pub(crate) fn push_added(&mut self, list: u32, key: Key, slot: Slot) -> Result<(), Fault> {
        match (&key, self.changes.get_mut(self.used)) {
            (
                Key::Word(key),
                Some(Change { list: in_list, slot: at, key: Key::Word(of), before: Before::Row(None) }),
            ) => (*in_list, *at, *of) = (list, slot.number(), *key),
            _ => return self.push(list, (key, Some(slot)), Before::Row(None)),
        }
        self.look_at_order(list, &key);
        self.count_one()
    }

    /// Looks whether a change comes behind the one before it.
    #[inline(always)]
    fn look_at_order(&mut self, list: u32, key: &Key) {
        if let Some(last) = self.used.checked_sub(1).and_then(|last| self.changes.get(last)) {
            self.is_mixed |= (last.list, &last.key) >= (list, key);
        }
    }

    #[inline(always)]
    fn count_one(&mut self) -> Result<(), Fault> {
        self.used += 1;
        if self.used <= self.unmerged.max(UNMERGED) { Ok(()) } else { self.make_few() }
    }

    /// Notes what a list's counter was before it was another one.
    pub(crate) fn count(&mut self, list: u32, before: i64) {
        if self.counters.iter().all(|(known, _)| *known != list) {
            self.counters.push((list, before));
        }
    }

    #[cold]
    fn make_few(&mut self) -> Result<(), Fault> {
        self.merge();
        self.unmerged = 2 * self.used;
        match self.used {
            0..=CHANGES_MAX => Ok(()),
            _ => Err(Fault::Budget { unit: "changed rows and fields", limit: CHANGES_MAX as u64 }),
        }
    }

    /// All changes, the last one first.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Change> + use<> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.truncate(self.used);
        self.forget_changes();
        changes.into_iter().rev()
    }

    /// All counters.
    pub(crate) fn take_counters(&mut self) -> Vec<(u32, i64)> {
        std::mem::take(&mut self.counters)
    }

    /// Forgets all: what is, stays.
    pub(crate) fn clear(&mut self) {
        self.counters.clear();
        self.forget_changes();
    }

    fn forget_changes(&mut self) {
        if self.holds || self.changes.len() > UNMERGED {
            self.changes.clear();
            self.changes.shrink_to(UNMERGED);
        }
        (self.used, self.holds, self.unmerged) = (0, false, 0);
        (self.is_mixed, self.has_moved) = (false, false);
    }

    /// What is changed, in the order of lists and keys: of each row the row that was there, or some of its fields; and
    /// counters in the order of lists.
    pub(crate) fn merged(&mut self) -> Merged<'_> {
        let surely_once = !self.is_mixed;
        if self.is_mixed {
            self.merge();
        }
        if self.counters.len() > 1 {
            self.counters.sort_unstable();
        }
        Merged { changes: &self.changes[..self.used], counters: &self.counters, surely_once }
    }

    /// Leaves one change of a row or field: back to what it was at the beginning.
    fn merge(&mut self) {
        self.changes.truncate(self.used);
        // Stable: those of a row stay in the order in which they were made.
        self.changes.sort_by(Change::compare_rows);
        if !self.changes.array_windows().any(|[left, right]| left.is_of_same_row(right)) {
            return;
        }
        let mut merged: Vec<Change> = Vec::with_capacity(self.changes.len());
        for change in std::mem::take(&mut self.changes) {
            let from = merged.iter().rposition(|other| !other.is_of_same_row(&change)).map_or(0, |at| at + 1);
            match (&change.before, merged.get(from).map(|first| &first.before)) {
                (_, None) => merged.push(change),
                (Before::Field(field, _), Some(Before::Field(..))) => {
                    let is_known =
                        |other: &Change| matches!(&other.before, Before::Field(known, _) if known == field);
                    if !merged[from..].iter().any(is_known) {
                        merged.push(change);
                    }
                }
                // The row was put or removed after some of its fields were changed.
                (Before::Row(Some(row)), Some(Before::Field(..))) => {
                    let mut row = row.to_vec();
                    for change in merged.drain(from..) {
                        if let Before::Field(field, value) = change.before {
                            row[field as usize] = value;
                        }
                    }
                    merged.push(Change { before: Before::Row(Some(Arc::from(row))), ..change });
                }
                _ => {}
            }
        }
        self.changes = merged;
        self.used = self.changes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_row_and_field_stays() {
        let field = |key: i64, field: u16, value: i64| (key, Before::Field(field, Value::Word(value)));
        let row =
            |key: i64, row: Option<[i64; 3]>| (key, Before::Row(row.map(|row| row.map(Value::Word).into())));
        for (changes, merged) in [
            (vec![], vec![]),
            (vec![field(2, 1, 10)], vec![field(2, 1, 10)]),
            (
                vec![field(2, 1, 10), field(1, 1, 5), field(2, 1, 11), field(2, 2, 7), field(2, 2, 8)],
                vec![field(1, 1, 5), field(2, 1, 10), field(2, 2, 7)],
            ),
            (vec![row(1, None), field(1, 1, 3), row(1, Some([1, 4, 0])), row(1, None)], vec![row(1, None)]),
            (
                vec![field(1, 1, 3), field(1, 1, 4), row(1, Some([1, 9, 8])), row(1, None), field(1, 2, 3)],
                vec![row(1, Some([1, 3, 8]))],
            ),
            (
                vec![field(3, 1, 3), row(2, None), row(3, Some([3, 4, 5]))],
                vec![row(2, None), row(3, Some([3, 3, 5]))],
            ),
        ] {
            let mut undo = Undo::default();
            for (key, before) in changes {
                assert!(undo.push(0, (Key::Word(key), None), before).is_ok());
            }
            let found: Vec<String> = undo
                .merged()
                .changes
                .iter()
                .map(|change| format!("{:?}", (&change.key, &change.before)))
                .collect();
            let expected: Vec<String> =
                merged.iter().map(|(key, before)| format!("{:?}", (Key::Word(*key), before))).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn many_changes_of_few_fields_are_few() {
        let mut undo = Undo::default();
        for at in 0..50_000 {
            let before = Before::Field(1, Value::Word(at));
            assert!(undo.push(0, (Key::Word(at % 100), None), before).is_ok());
            assert!(undo.used <= UNMERGED + 1);
        }
        assert_eq!(undo.merged().changes.len(), 100);
    }
}
