//! What code reads and changes: in an event the state of its app; in a view a snapshot, beside local lists of its own.

use crate::state::{List, State};
use crate::table::Keyed;
use weft::Value;

/// The state as the code that runs reaches it.
pub(crate) enum Access<'s> {
    /// All of it is read and changed.
    Event(&'s mut State),
    /// It is read; the local lists that the code fills are its own, made when the first of them is changed.
    View(&'s State, Option<Box<State>>),
}

impl<'s> From<&'s mut State> for Access<'s> {
    fn from(state: &'s mut State) -> Access<'s> {
        Access::Event(state)
    }
}

impl<'s> From<&'s State> for Access<'s> {
    fn from(shown: &'s State) -> Access<'s> {
        Access::View(shown, None)
    }
}

impl Access<'_> {
    #[inline]
    pub(crate) fn keyed(&self, list: u32) -> Option<&Keyed> {
        match self {
            Access::Event(state) => state.keyed(list),
            Access::View(_, Some(own)) if State::is_local(list) => own.keyed(list),
            Access::View(shown, _) => shown.keyed(list),
        }
    }

    /// A variable's value.
    pub(crate) fn variable(&self, list: u32) -> Option<&Value> {
        match self.whole().lists.get(list as usize) {
            Some(List::Variable(value)) => Some(value),
            _ => None,
        }
    }

    /// All but the local lists of a view.
    pub(crate) fn whole(&self) -> &State {
        match self {
            Access::Event(state) => state,
            Access::View(shown, _) => shown,
        }
    }

    /// What the code changes: of a view its own local lists and nothing else.
    #[inline]
    pub(crate) fn changed(&mut self) -> &mut State {
        match self {
            Access::Event(state) => state,
            Access::View(shown, own) => own.get_or_insert_with(|| Box::new(shown.local())),
        }
    }
}
