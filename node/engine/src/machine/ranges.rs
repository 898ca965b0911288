//! Ranges of rows: what loops run over, and how many there are.

use super::Machine;
use crate::budget::{Fault, search_operations};
use crate::cursor::{self, Alike, Cursor, Distinct, Turned, Walked};
use crate::keyed::{Key, Range};
use crate::table::Keyed;
use std::mem::size_of;
use std::ops::Bound;
use weft::Value;
use weft::code::{End, Fold, Order, Register, Rows};

/// Where more than one in so many rows is in a range of an index, running over all of them in the order of keys costs
/// less than looking for those and sorting them.
const FOUND_SHARE: usize = 8;

/// What is folded, and into which register.
#[derive(Clone, Copy)]
pub(super) struct Folded {
    pub(super) fold: Fold,
    pub(super) list: u32,
    pub(super) field: u16,
    pub(super) into: Register,
}

/// That a field, which goes into a register, is a key of a list by one plain word or, unless `wanted`, is none.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) list: u32,
    pub(super) field: u16,
    pub(super) value: Register,
    pub(super) keys: u32,
    pub(super) wanted: bool,
}

/// Rows that are looked at between two looks at the budget.
const SOUGHT_MAX: usize = 1 << 10;

impl Machine<'_> {
    /// Goes to the next row that is as asked; whether there is one. Costs one operation a row.
    pub(super) fn next_where(&mut self, cursor: u16, out: Register, asked: Asked) -> Result<bool, Fault> {
        let Asked { list, field, value, keys, wanted } = asked;
        let place = self.running.first_cursor + cursor as usize;
        loop {
            let found_by = self.state.keyed(keys).ok_or_else(|| Fault::unproven("a keyed list"))?;
            let cursor_there = &mut self.room.cursors[place];
            let sought = match found_by.places() {
                Some(places) => cursor_there.seek(field, SOUGHT_MAX, &|word: i64| places.has(word) == wanted),
                None => {
                    let is_asked = |word: i64| found_by.has(&Key::Word(word)) == wanted;
                    cursor_there.seek(field, SOUGHT_MAX, &is_asked)
                }
            };
            if let Some((looked, found)) = sought {
                if looked == 0 {
                    return Ok(false);
                }
                // The operation itself is one already.
                self.budget.operations(looked as u64 - 1)?;
                if let Some((key, word)) = found {
                    self.set_word(out, key);
                    self.set_word(value, word);
                    return Ok(true);
                }
            } else {
                if !self.next(cursor, out)? {
                    return Ok(false);
                }
                self.field_of(value, cursor, list, field)?;
                let word = self.word(value)?;
                if self.keyed(keys)?.has(&Key::Word(word)) == wanted {
                    return Ok(true);
                }
            }
            self.budget.one()?;
        }
    }

    /// Opens a cursor that ran over the rows of another value of an index before; whether it did, and can do so again.
    /// Costs what `open_rows` does.
    #[inline]
    pub(super) fn open_again(&mut self, cursor: u16, rows: &Rows) -> Result<bool, Fault> {
        let Rows { list, index: Some(index), equal: 1, from: End::Open, upto: End::Open, .. } = *rows else {
            return Ok(false);
        };
        let (Value::Word(value), Order::Forward, false) = (self.get(rows.first), rows.order, rows.live)
        else {
            return Ok(false);
        };
        let value = *value;
        let place = &mut self.room.cursors[self.running.first_cursor + cursor as usize];
        let (Some(walk), Some(keyed)) = (place.ended(list), self.state.keyed(list)) else { return Ok(false) };
        if !keyed.walk_index_again(index, value, walk) {
            return Ok(false);
        }
        self.budget.bytes(size_of::<i64>())?;
        Ok(true)
    }

    /// The rows that a loop runs over. Costs what making the ends of their range costs and, where they are looked for
    /// and sorted by key, one operation a row times log2.
    pub(super) fn open_rows(&mut self, rows: Rows) -> Result<cursor::Rows, Fault> {
        let Rows { list, index, order, live, equal, .. } = rows;
        self.charge_range(&rows)?;
        let (keyed, range) = self.range(&rows)?;
        let walk = |range: &Range<'_>, backward: bool| match index {
            Some(index) => keyed.walk_index(index, range, backward),
            None => keyed.walk(range, backward),
        };
        let walked = match order {
            Order::Forward => Walked::Along(walk(&range, false)),
            Order::Backward => Walked::Along(walk(&range, true)),
            Order::Turned(fields) => {
                let fields = usize::from(equal) + usize::from(fields);
                Walked::Turned(Box::new(Turned {
                    all: walk(&range, true),
                    index,
                    fields,
                    alike: Alike::None,
                }))
            }
            Order::ByKey => {
                let count = count(keyed, index, &range);
                if count > keyed.len() / FOUND_SHARE {
                    Walked::Along(keyed.walk(&Range::ALL, false))
                } else {
                    let mut walk = walk(&range, false);
                    let rounds = u64::from(usize::BITS - count.leading_zeros());
                    self.budget.operations(count as u64 * (1 + rounds))?;
                    self.budget.bytes(count * size_of::<Key>())?;
                    let mut keys: Vec<Key> = std::iter::from_fn(|| walk.next()).collect();
                    keys.sort_unstable_by(|left, right| right.cmp(left));
                    // The one that is left behind first.
                    keys.push(Key::default());
                    Walked::Found(keys)
                }
            }
        };
        Ok(cursor::Rows { list, live, walked })
    }

    /// How many rows a range has: its ends are found, nothing is run over.
    pub(super) fn count_rows(&mut self, out: Register, rows: Rows) -> Result<(), Fault> {
        self.charge_range(&rows)?;
        let (keyed, range) = self.range(&rows)?;
        let count = count(keyed, rows.index, &range) as i64;
        self.set(out, Value::Word(count));
        Ok(())
    }

    /// Folds the rows of the group that a loop over groups is at: those of all at once, in one run over the rows as they
    /// stand, where groups are not far apart. That costs an operation for each row of the list, and the other groups
    /// cost nothing more; else each costs its own rows.
    pub(super) fn fold_group(&mut self, folded: Folded, cursor: u16, groups: u16) -> Result<(), Fault> {
        let Folded { fold, list, field, into } = folded;
        let place = self.running.first_cursor + groups as usize;
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let Some(Cursor::Distinct(distinct)) = self.room.cursors.get_mut(place) else {
            return Err(Fault::unproven("a loop over groups"));
        };
        let Distinct { field: alike, here: Some(here), totals, .. } = &mut **distinct else {
            return self.fold(folded, cursor);
        };
        let known = totals.iter().position(|(known, of, _)| (*known, *of) == (fold, field));
        let at = match known {
            Some(at) => at,
            None => {
                let Some(made) = keyed.totals(*alike, field, fold) else { return self.fold(folded, cursor) };
                self.budget.operations(keyed.len() as u64)?;
                self.budget.bytes(made.memory())?;
                totals.push((fold, field, made));
                totals.len() - 1
            }
        };
        let total = totals[at].2.of(*here);
        match fold {
            Fold::Sum => {
                let sum = self.wide(into)? + total.unwrap_or_default();
                self.set_wide(into, sum);
            }
            _ => self.set(into, total.map_or(Value::None, |word| Value::Word(word as i64))),
        }
        self.room.cursors[self.running.first_cursor + cursor as usize] = Cursor::Closed;
        Ok(())
    }

    /// Runs a cursor over rows to its end and folds a field of each.
    pub(super) fn fold(&mut self, folded: Folded, cursor: u16) -> Result<(), Fault> {
        let Folded { fold, list, field, into } = folded;
        let place = self.running.first_cursor + cursor as usize;
        let mut over = std::mem::take(&mut self.room.cursors[place]);
        let mut total = if fold == Fold::Sum { self.wide(into)? } else { 0 };
        let mut best = None;
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        while over.advance() {
            self.budget.one()?;
            let word = over.word_of(field).or_else(|| {
                let slot = over.slot().or_else(|| keyed.find(&over.key()?))?;
                Some(keyed.word(slot, field))
            });
            let word = word.ok_or_else(|| Fault::unproven("a row"))?;
            match fold {
                Fold::Sum => total += i128::from(word),
                Fold::Least => best = best.into_iter().chain([word]).min(),
                Fold::Greatest => best = best.into_iter().chain([word]).max(),
            }
        }
        match fold {
            Fold::Sum => self.set_wide(into, total),
            _ => self.set(into, best.map_or(Value::None, Value::Word)),
        }
        Ok(())
    }

    /// Charges the bytes of the ends of a range, and finding them.
    fn charge_range(&mut self, rows: &Rows) -> Result<(), Fault> {
        let keyed = self.keyed(rows.list)?;
        let size = keyed.layout().ends_size(rows.index, self.ends(rows), rows.equal);
        let search = 2 * search_operations(size, keyed.len());
        self.budget.bytes(size)?;
        self.budget.operations(search)
    }

    /// The values of a range: those that are equal, then its ends.
    fn ends(&self, rows: &Rows) -> &[Value] {
        let ends = u16::from(rows.from != End::Open) + u16::from(rows.upto != End::Open);
        self.several(rows.first, rows.equal + ends)
    }

    fn range(&self, rows: &Rows) -> Result<(&Keyed, Range<'_>), Fault> {
        let (equal, mut ends) = self.ends(rows).split_at(rows.equal as usize);
        let mut bound = |end: End| match (end, ends) {
            (End::Included, [value, rest @ ..]) => (Bound::Included(value), ends = rest).0,
            (End::Excluded, [value, rest @ ..]) => (Bound::Excluded(value), ends = rest).0,
            _ => Bound::Unbounded,
        };
        let range = Range { equal, from: bound(rows.from), upto: bound(rows.upto) };
        Ok((self.keyed(rows.list)?, range))
    }
}

fn count(keyed: &Keyed, index: Option<u16>, range: &Range<'_>) -> usize {
    match index {
        Some(index) => keyed.count_index(index, range),
        None => keyed.count(range),
    }
}
