//! The state of an app: lists by key, variables, timers, kept so that a copy is a copy of their roots.

use crate::keyed::Layout;
use crate::table::Keyed;
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
    pub(crate) lists: Vec<List>,
    pub(crate) timers: Timers,
    /// In the order of the module.
    pub(crate) settings: Arc<Vec<Value>>,
    /// Keyed lists of functions, empty between events.
    scratch: Vec<Keyed>,
}

/// Pending timers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    due: OrdMap<TimerKey, i64>,
    order: OrdSet<(i64, TimerKey)>,
}

impl Timers {
    /// Begins, moves or ends one.
    pub(crate) fn set(&mut self, key: &TimerKey, due: Option<i64>) {
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
    pub(crate) fn new(module: &Module) -> State {
        let lists = module
            .lists
            .iter()
            .map(|list| match &list.kind {
                ListKind::Keyed { .. } => List::Keyed(Keyed::new(Arc::new(Layout::of(list, module)))),
                ListKind::Variable { initial, .. } => List::Variable(initial.clone()),
            })
            .collect();
        let scratch =
            module.scratch.iter().map(|list| Keyed::new(Arc::new(Layout::of(list, module)))).collect();
        let settings = module.settings.iter().map(|setting| setting.default.clone().unwrap_or_default());
        State { lists, timers: Timers::default(), settings: Arc::new(settings.collect()), scratch }
    }

    /// Empties all local lists.
    pub(crate) fn end_event(&mut self) {
        self.scratch.iter_mut().for_each(Keyed::clear);
    }

    /// Takes over the local lists of another state of the same module.
    pub(crate) fn keep_local_lists_of(&mut self, other: State) {
        self.scratch = other.scratch;
    }

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
