//! The state of an app: lists by key, variables, timers, kept so that a copy is a copy of their roots.

use crate::budget::Fault;
use crate::keyed::{Key, Layout, Row};
use crate::table::{Full, Keyed, ROWS_MAX, Slot};
use crate::undo::{Before, Change, Merged, Undo};
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;
use weft::Value;
use weft::module::{ListKind, Module, SCRATCH};

/// The list number of deltas that keep when timers are due; the key is the timer and its arguments.
pub const TIMERS: u32 = u32::MAX - 1;

/// Timers pending in one app: each takes about 200 bytes of memory, and the log keeps them.
pub(crate) const TIMERS_MAX: usize = 1 << 20;

/// The list number of deltas that keep which numbers `next_id` has given out; the key is the list's number.
pub const COUNTERS: u32 = u32::MAX;

/// The name and arguments of a timer, as [`timer_key`] lays them out.
pub(crate) type TimerKey = Arc<[u8]>;

#[derive(Debug, Clone)]
pub(crate) struct State {
    /// The node whose it is.
    pub(crate) me: Arc<[u8; 32]>,
    pub(crate) lists: Vec<List>,
    pub(crate) timers: Timers,
    /// In the order of the module.
    pub(crate) settings: Arc<Vec<Value>>,
    /// Keyed lists of functions, empty between events.
    scratch: Vec<Keyed>,
    /// What the event that runs has changed; empty between events.
    undo: Undo,
    /// Whether the event that runs may make the state larger.
    pub(crate) may_grow: bool,
}

/// Pending timers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    due: OrdMap<TimerKey, i64>,
    order: OrdSet<(i64, TimerKey)>,
}

impl Timers {
    /// Begins, moves or ends one; when it was due.
    pub(crate) fn set(&mut self, key: &TimerKey, due: Option<i64>) -> Option<i64> {
        let before = match due {
            Some(due) => self.due.insert(Arc::clone(key), due),
            None => self.due.remove(key),
        };
        if let Some(before) = before {
            self.order.remove(&(before, Arc::clone(key)));
        }
        if let Some(due) = due {
            self.order.insert((due, Arc::clone(key)));
        }
        before
    }

    pub(crate) fn due(&self, key: &TimerKey) -> Option<i64> {
        self.due.get(key).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn first(&self) -> Option<&(i64, TimerKey)> {
        self.order.get_min()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TimerKey, &i64)> {
        self.due.iter()
    }
}

/// The key of a timer: its name's length in one byte, its name, its arguments as a send has them. So it stays what it
/// is when a module changes.
pub(crate) fn timer_key(name: &str, arguments: &[u8]) -> TimerKey {
    let length = name.len().min(255);
    [&[length as u8], &name.as_bytes()[..length], arguments].concat().into()
}

/// A timer's name and arguments; none if the key is not laid out so.
pub(crate) fn read_timer_key(key: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = key.split_first()?;
    let (name, arguments) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(name).ok()?, arguments))
}

#[derive(Debug, Clone)]
pub(crate) enum List {
    Keyed(Keyed),
    Variable(Value),
}

impl State {
    pub(crate) fn new(module: &Module, me: Arc<[u8; 32]>) -> State {
        let lists = module
            .lists
            .iter()
            .map(|list| match &list.kind {
                ListKind::Keyed { .. } => List::Keyed(Keyed::new(Arc::new(Layout::of(list, module)))),
                ListKind::Variable { initial, .. } => List::Variable(initial.clone()),
            })
            .collect();
        let scratch =
            module.scratch.iter().map(|list| Keyed::local(Arc::new(Layout::of(list, module)))).collect();
        let settings = module.settings.iter().map(|setting| setting.default.clone().unwrap_or_default());
        let settings = Arc::new(settings.collect());
        State {
            me,
            lists,
            timers: Timers::default(),
            settings,
            scratch,
            undo: Undo::default(),
            may_grow: true,
        }
    }

    /// Ends an event: what it changed stays.
    pub(crate) fn commit(&mut self) {
        self.undo.clear();
        self.scratch.iter_mut().for_each(Keyed::clear);
    }

    /// Ends an event: all is what it was when it began.
    pub(crate) fn roll_back(&mut self) {
        for Change { list, key, before, .. } in self.undo.take() {
            match before {
                Before::Row(row) => {
                    let Some(keyed) = self.keyed_mut(list) else { continue };
                    match row {
                        Some(row) => keyed.put_back(&key, &row),
                        None => keyed.remove(&key),
                    };
                }
                Before::Field(field, value) => {
                    if let Some(keyed) = self.keyed_mut(list)
                        && let Some(slot) = keyed.find(&key)
                    {
                        keyed.set((&key, slot), field, value);
                    }
                }
                Before::Variable(value) => {
                    if let Some(List::Variable(place)) = self.lists.get_mut(list as usize) {
                        *place = value;
                    }
                }
                Before::Due(due) => {
                    if let Key::Bytes(key) = &key {
                        self.timers.set(key, due);
                    }
                }
            }
        }
        for (list, number) in self.undo.take_counters() {
            if let Some(keyed) = self.keyed_mut(list) {
                keyed.counter = number;
            }
        }
        self.scratch.iter_mut().for_each(Keyed::clear);
    }

    /// What the event that runs has changed, in the order of lists and keys, which counters, and the state as it is.
    pub(crate) fn changes(&mut self) -> (Merged<'_>, Lists<'_>) {
        let have_moved = self.undo.has_moved;
        (self.undo.merged(), Lists { lists: &self.lists, timers: &self.timers, have_moved })
    }

    fn log(&mut self, list: u32, place: (Key, Option<Slot>), before: Before) -> Result<(), Fault> {
        if is_seen(list) { self.undo.push(list, place, before) } else { Ok(()) }
    }

    /// Adds a row of a key that none has.
    pub(crate) fn add(&mut self, list: u32, key: Key, row: &[Value]) -> Result<(), Fault> {
        let keyed = self.keyed_mut(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let slot = keyed.add(&key, row)?;
        if is_seen(list) { self.undo.push_added(list, key, slot) } else { Ok(()) }
    }

    /// Puts a row where its key says.
    pub(crate) fn put(&mut self, list: u32, key: Key, row: &Row) -> Result<(), Fault> {
        let keyed = self.keyed_mut(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let before = keyed.put(&key, row)?;
        let slot = keyed.find(&key);
        self.log(list, (key, slot), Before::Row(before))
    }

    /// Removes the row of a key; whether there was one.
    pub(crate) fn remove(&mut self, list: u32, key: Key) -> Result<bool, Fault> {
        let keyed = self.keyed_mut(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let Some(before) = keyed.remove(&key) else { return Ok(false) };
        self.log(list, (key, None), Before::Row(Some(before)))?;
        Ok(true)
    }

    /// Gives a field of a row another value.
    pub(crate) fn set(
        &mut self,
        list: u32,
        (key, slot): (Key, Slot),
        field: u16,
        value: Value,
    ) -> Result<(), Fault> {
        let keyed = self.keyed_mut(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let before = keyed.set((&key, slot), field, value);
        self.log(list, (key, Some(slot)), Before::Field(field, before))
    }

    /// Gives a field of a plain word that no index has another value; `false`, and nothing done, if it is another field or
    /// there is no such row.
    #[inline]
    pub(crate) fn set_plain(&mut self, list: u32, key: i64, field: u16, word: i64) -> Result<bool, Fault> {
        self.update_plain(list, key, field, |_| Ok(word))
    }

    /// As [`State::set_plain`], the value made of what was there.
    #[inline]
    pub(crate) fn update_plain(
        &mut self,
        list: u32,
        key: i64,
        field: u16,
        update: impl FnOnce(i64) -> Result<i64, Fault>,
    ) -> Result<bool, Fault> {
        let Some(keyed) = self.keyed_mut(list) else { return Ok(false) };
        let Some(slot) = keyed.find(&Key::Word(key)) else { return Ok(false) };
        let Some(before) = keyed.plain_word(slot, field) else { return Ok(false) };
        let word = update(before)?;
        // What stays the same copies no page.
        if word == before {
            return Ok(true);
        }
        if !keyed.put_plain(slot, field, word) {
            return Ok(false);
        }
        if is_seen(list) {
            self.undo.push_word(list, (key, slot), (field, before))?;
        }
        Ok(true)
    }

    /// Gives a variable another value.
    pub(crate) fn store(&mut self, list: u32, value: Value) -> Result<(), Fault> {
        let Some(List::Variable(place)) = self.lists.get_mut(list as usize) else {
            return Err(Fault::unproven("a variable"));
        };
        let before = std::mem::replace(place, value);
        self.log(list, (Key::Word(0), None), Before::Variable(before))
    }

    /// No number up to this one is given out again.
    pub(crate) fn count_up(&mut self, list: u32, number: i64) -> Result<(), Fault> {
        let keyed = self.keyed_mut(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        if keyed.counter < number {
            let before = std::mem::replace(&mut keyed.counter, number);
            // Nobody sees what a local list was.
            if list < SCRATCH {
                self.undo.count(list, before);
            }
        }
        Ok(())
    }

    /// Begins, moves or ends a timer.
    pub(crate) fn set_timer(&mut self, key: &TimerKey, due: Option<i64>) -> Result<(), Fault> {
        let before = self.timers.set(key, due);
        self.log(TIMERS, (Key::Bytes(Arc::clone(key)), None), Before::Due(before))
    }

    /// Begins, moves or ends a timer outside of an event.
    pub(crate) fn restore_timer(&mut self, key: &TimerKey, due: Option<i64>) {
        self.timers.set(key, due);
    }

    /// Takes over the local lists of another state of the same module.
    pub(crate) fn keep_local_lists_of(&mut self, other: State) {
        self.scratch = other.scratch;
    }

    /// Whether a list is local to functions.
    #[inline]
    pub(crate) fn is_local(list: u32) -> bool {
        list >= SCRATCH
    }

    /// A state that has nothing but the local lists of this one.
    pub(crate) fn local(&self) -> State {
        State {
            me: Arc::clone(&self.me),
            lists: Vec::new(),
            timers: Timers::default(),
            settings: Arc::clone(&self.settings),
            scratch: self.scratch.clone(),
            undo: Undo::default(),
            may_grow: true,
        }
    }

    #[inline]
    pub(crate) fn keyed(&self, list: u32) -> Option<&Keyed> {
        if let Some(local) = list.checked_sub(SCRATCH) {
            return self.scratch.get(local as usize);
        }
        match self.lists.get(list as usize) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }

    pub(crate) fn keyed_mut(&mut self, list: u32) -> Option<&mut Keyed> {
        if let Some(local) = list.checked_sub(SCRATCH) {
            return self.scratch.get_mut(local as usize);
        }
        match self.lists.get_mut(list as usize) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }
}

/// Whether what was in a list matters: nobody sees what a local one was.
fn is_seen(list: u32) -> bool {
    !(SCRATCH..TIMERS).contains(&list)
}

impl From<Full> for Fault {
    fn from(_: Full) -> Fault {
        Fault::Budget { unit: "rows of a list", limit: ROWS_MAX as u64 }
    }
}

/// The state without what an event has changed in it.
#[derive(Clone, Copy)]
pub(crate) struct Lists<'s> {
    lists: &'s [List],
    timers: &'s Timers,
    /// Whether rows may stand elsewhere than where they stood when they were changed.
    have_moved: bool,
}

impl<'s> Lists<'s> {
    pub(crate) fn get(self, list: u32) -> Option<&'s List> {
        self.lists.get(list as usize)
    }

    pub(crate) fn keyed(self, list: u32) -> Option<&'s Keyed> {
        match self.get(list) {
            Some(List::Keyed(keyed)) => Some(keyed),
            _ => None,
        }
    }

    /// Where the row of a change stands, of a list by key.
    #[inline(always)]
    pub(crate) fn slot(self, change: &Change, keyed: &Keyed) -> Option<Slot> {
        match change.slot() {
            Some(slot) if !self.have_moved => Some(slot),
            _ => keyed.find(&change.key),
        }
    }

    pub(crate) fn due(self, timer: &Key) -> Option<i64> {
        match timer {
            Key::Bytes(key) => self.timers.due(key),
            Key::Word(_) => None,
        }
    }
}
