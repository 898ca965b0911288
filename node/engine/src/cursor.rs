//! What loops run over. A cursor over rows keeps the list as it was when the loop began.

use crate::access::Access;
use crate::keyed::{Key, Range};
use crate::table::{Keyed, Slot, Totals, Walk};
use std::sync::Arc;
use weft::Value;
use weft::code::Fold;

#[derive(Debug, Default)]
pub(crate) enum Cursor {
    #[default]
    Closed,
    Rows(Rows),
    /// The values of the first field of what rows are found by.
    Distinct(Box<Distinct>),
    List {
        values: Arc<Vec<Value>>,
        at: usize,
    },
    Range {
        next: i64,
        last: i64,
        done: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Distinct {
    rows: Rows,
    pub(crate) field: u16,
    begun: bool,
    /// The value that it is at, where that is a word.
    pub(crate) here: Option<i64>,
    /// What was made of a field in all groups so far.
    pub(crate) totals: Vec<(Fold, u16, Totals)>,
}

impl Distinct {
    pub(crate) fn new(rows: Rows, field: u16) -> Distinct {
        Distinct { rows, field, begun: false, here: None, totals: Vec::new() }
    }

    fn step(&mut self, state: &Access<'_>) -> Step {
        let (Some(keyed), Walked::Along(walk)) = (state.keyed(self.rows.list), &mut self.rows.walked) else {
            return Step::Done;
        };
        if std::mem::replace(&mut self.begun, true) {
            walk.skip(1);
        }
        let Some(key) = walk.next() else { return Step::Done };
        let Some(slot) = keyed.find(&key) else { return Step::Skipped };
        let value = keyed.value(slot, self.field);
        self.here = match value {
            Value::Word(word) => Some(word),
            _ => None,
        };
        Step::Value(value)
    }
}

/// Rows of a list, by their keys.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) list: u32,
    /// Whether keys are skipped that have no row any more.
    pub(crate) live: bool,
    pub(crate) walked: Walked,
}

#[derive(Debug)]
pub(crate) enum Walked {
    Along(Walk),
    /// Keys that were looked for: the one that it is at last, then the next one.
    Found(Vec<Key>),
    Turned(Box<Turned>),
}

/// Runs backward over what rows are alike in, and forward over those that are alike.
#[derive(Debug)]
pub(crate) struct Turned {
    /// Backward over all of them.
    pub(crate) all: Walk,
    /// The index that they are found by; none: the key.
    pub(crate) index: Option<u16>,
    /// How many of its fields rows are alike in.
    pub(crate) fields: usize,
    pub(crate) alike: Alike,
}

/// The rows that are run over now.
#[derive(Debug)]
pub(crate) enum Alike {
    None,
    /// The row that the walk backward is at: no other one is alike.
    One,
    /// The walk backward came to a row, and whether others are alike was not looked at.
    Reached,
    /// What rows are alike in, and the walk over them.
    Several(Vec<Value>, Walk),
}

/// One step of a cursor.
pub(crate) enum Step {
    Value(Value),
    /// A value that costs as much as another one that is skipped before it.
    Second(Value),
    /// A row that was removed since, or that is not the next one.
    Skipped,
    Done,
}

impl Cursor {
    /// The walk along rows that nothing changes, if it is one.
    #[inline]
    fn along(&self) -> Option<&Walk> {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) => Some(walk),
            _ => None,
        }
    }

    /// Goes to the next row of a walk along rows that nothing changes; whether there is one.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) => walk.advance(),
            _ => false,
        }
    }

    /// Goes to the next row of a walk along rows that nothing changes one of whose fields is as wanted, but looks at no
    /// more than so many; how many those were, and the key and the field of the last one if it is. None where it must be
    /// found step by step.
    #[inline]
    pub(crate) fn seek(
        &mut self,
        field: u16,
        most: usize,
        is: &impl Fn(i64) -> bool,
    ) -> Option<(usize, Option<(i64, i64)>)> {
        let Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) = self else { return None };
        let (looked, found) = walk.seek(field, most, is)?;
        let words = if found { walk.key_word().zip(walk.word_of(field)) } else { None };
        Some((looked, words))
    }

    /// The next element where it is a word and costs no more; none is no end.
    #[inline]
    pub(crate) fn next_word(&mut self) -> Option<i64> {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) => walk.next_word(),
            Cursor::Range { next, last, done: false } if *next < *last => {
                let value = *next;
                *next += 1;
                Some(value)
            }
            _ => None,
        }
    }

    /// The next key of rows in an order that is turned round, where it is a word and costs one operation more; none is
    /// no end.
    #[inline]
    pub(crate) fn next_alone(&mut self) -> Option<i64> {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Turned(turned), .. }) => turned.next_alone(),
            _ => None,
        }
    }

    /// The word of a field in the entry that it is at.
    #[inline]
    pub(crate) fn word_of(&self, field: u16) -> Option<i64> {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) => walk.word_of(field),
            Cursor::Rows(Rows { live: false, walked: Walked::Turned(turned), .. }) => {
                turned.walk()?.word_of(field)
            }
            _ => None,
        }
    }

    /// Ends it. What it ran over is given back: a list that is still held is copied when it grows.
    #[inline]
    pub(crate) fn close(&mut self) {
        match self {
            Cursor::Rows(Rows { live: false, walked: Walked::Along(walk), .. }) if walk.is_one() => {}
            _ => *self = Cursor::Closed,
        }
    }

    /// The walk of a cursor along rows of a list that nothing changes, which may be used again.
    #[inline]
    pub(crate) fn ended(&mut self, of: u32) -> Option<&mut Walk> {
        match self {
            Cursor::Rows(Rows { list, live: false, walked: Walked::Along(walk) }) if *list == of => {
                Some(walk)
            }
            _ => None,
        }
    }

    /// Where the row that it is at stands.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.along()?.slot()
    }

    /// The key of the row that it is at.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Cursor::Rows(Rows { walked: Walked::Along(walk), .. }) => walk.key(),
            Cursor::Rows(Rows { walked: Walked::Found(keys), .. }) => keys.last().cloned(),
            Cursor::Rows(Rows { walked: Walked::Turned(turned), .. }) => turned.walk()?.key(),
            _ => None,
        }
    }

    /// What its last step costs by the bytes of keys.
    pub(crate) fn search_operations(&self) -> u64 {
        match self {
            Cursor::Rows(Rows { walked: Walked::Along(walk), .. }) => walk.search_operations(),
            Cursor::Distinct(distinct) => match &distinct.rows.walked {
                Walked::Along(walk) => walk.search_operations(),
                _ => 0,
            },
            Cursor::Rows(Rows { walked: Walked::Turned(turned), .. }) => turned.all.search_operations(),
            _ => 0,
        }
    }

    pub(crate) fn step(&mut self, state: &Access<'_>) -> Step {
        match self {
            Cursor::Closed => Step::Done,
            Cursor::Rows(rows) => match state.keyed(rows.list) {
                Some(keyed) => rows.step(keyed),
                None => Step::Done,
            },
            Cursor::Distinct(distinct) => distinct.step(state),
            Cursor::List { values, at } => match values.get(*at) {
                Some(value) => {
                    *at += 1;
                    Step::Value(value.clone())
                }
                None => Step::Done,
            },
            Cursor::Range { next, last, done } => {
                if *done || *next > *last {
                    return Step::Done;
                }
                let value = *next;
                match next.checked_add(1) {
                    Some(following) => *next = following,
                    None => *done = true,
                }
                Step::Value(Value::Word(value))
            }
        }
    }
}

impl Rows {
    fn step(&mut self, keyed: &Keyed) -> Step {
        let next = match &mut self.walked {
            Walked::Along(walk) => walk.next(),
            Walked::Found(keys) => {
                keys.pop();
                keys.last().cloned()
            }
            Walked::Turned(turned) => return turned.step(keyed),
        };
        match next {
            None => Step::Done,
            Some(key) if self.live && keyed.find(&key).is_none() => Step::Skipped,
            Some(key) => Step::Value(key.into_value()),
        }
    }
}

impl Turned {
    /// The walk that is at the row that it is at.
    fn walk(&self) -> Option<&Walk> {
        match &self.alike {
            Alike::None => None,
            Alike::One | Alike::Reached => Some(&self.all),
            Alike::Several(_, walk) => Some(walk),
        }
    }

    /// The next key, where it is a word and plainly that of a row that no other one is alike; none is no end.
    #[inline]
    fn next_alone(&mut self) -> Option<i64> {
        if !matches!(self.alike, Alike::None | Alike::One) {
            return None;
        }
        let word = self.all.next_word()?;
        let is_alone = self.all.is_alone(self.fields);
        self.alike = if is_alone { Alike::One } else { Alike::Reached };
        is_alone.then_some(word)
    }

    /// The next key. Nothing of the list changes under way.
    fn step(&mut self, keyed: &Keyed) -> Step {
        if let Alike::Several(_, walk) = &mut self.alike
            && let Some(key) = walk.next()
        {
            return Step::Value(key.into_value());
        }
        let reached = match self.alike {
            Alike::Reached => self.all.key(),
            _ => self.all.next(),
        };
        let Some(key) = reached else { return Step::Done };
        if self.all.is_alone(self.fields) {
            self.alike = Alike::One;
            return Step::Second(key.into_value());
        }
        let Some(slot) = keyed.find(&key) else { return Step::Skipped };
        let layout = keyed.layout();
        let fields = self.index.map_or(&layout.keys, |index| &layout.indexes[index as usize]);
        let values = fields.iter().take(self.fields).map(|field| keyed.value(slot, *field));
        let values: Vec<Value> = values.collect();
        if let Alike::Several(before, _) = &self.alike
            && *before == values
        {
            return Step::Skipped;
        }
        let range = Range { equal: &values, ..Range::ALL };
        let walk = match self.index {
            Some(index) => keyed.walk_index(index, &range, false),
            None => keyed.walk(&range, false),
        };
        self.alike = Alike::Several(values, walk);
        self.all.skip(self.fields);
        Step::Skipped
    }
}
