//! What an event changed, row by row as the log gets it.

use super::refusal;
use crate::budget::{EVENT_BYTES_MAX, Fault};
use crate::codec::{self, Unwritable, Words};
use crate::deltas::Deltas;
use crate::event::EventError;
use crate::keyed::Key;
use crate::state::{COUNTERS, List, Lists, State, TIMERS};
use crate::table::{Keyed, Slot};
use crate::undo::{Before, Change, Merged};
use std::cmp::Ordering;
use std::convert::Infallible;
use weft::Value;
use weft::module::{ListKind, Module, Type};

/// What an event changed that is not what it was, its bytes taken from `left`; and whether it changed what is transient.
pub(super) fn deltas(
    state: &mut State,
    module: &Module,
    left: &mut usize,
) -> Result<(Deltas, bool), EventError> {
    let is_transient = |list: u32| module.lists.get(list as usize).is_some_and(|list| list.transient);
    let mut transient = false;
    let (Merged { changes, counters, surely_once }, lists) = state.changes();
    let mut deltas = Deltas::with_room(changes.len() + counters.len());
    for changes in changes.chunk_by(Change::is_of_same_row) {
        let [first @ Change { list, key, before, .. }, ..] = changes else { continue };
        if is_transient(*list) {
            transient = true;
            continue;
        }
        let bytes = match (before, lists.get(*list)) {
            (_, Some(List::Keyed(keyed))) => {
                let slot = lists.slot(first, keyed);
                if is_as_it_was(keyed, slot, changes, surely_once) {
                    continue;
                }
                push_row(&mut deltas, first, (keyed, slot), module, *left)
            }
            (Before::Variable(before), Some(List::Variable(now))) if !is_same(before, now) => {
                deltas.push(*list, &[], |out| put_variable(now, *list, module, *left, out).map(|()| true))
            }
            (Before::Due(before), _) => Ok(push_due(&mut deltas, key, *before, lists)),
            _ => continue,
        };
        let bytes = bytes.map_err(|wrong| unwritable(wrong, event_too_large()))?;
        *left = left.checked_sub(bytes).ok_or_else(event_too_large)?;
    }
    for (list, before) in counters.iter().filter(|(list, _)| !is_transient(*list)) {
        let now = lists.keyed(*list).map_or(0, |keyed| keyed.counter);
        if now != *before {
            let bytes = push_word(&mut deltas, COUNTERS, &list.to_be_bytes(), Some(now));
            *left = left.checked_sub(bytes).ok_or_else(event_too_large)?;
        }
    }
    Ok((deltas, transient))
}

/// Appends a changed row of a list; the bytes that it has, of key and row.
#[inline(always)]
fn push_row(
    deltas: &mut Deltas,
    Change { list, key, .. }: &Change,
    (keyed, slot): (&Keyed, Option<Slot>),
    module: &Module,
    limit: usize,
) -> Result<usize, Unwritable> {
    let put = |words: &mut Words<'_>| match slot {
        Some(slot) => put_row(keyed, (slot, key), module, limit, words).map(|()| true),
        None => {
            words.end();
            Ok(false)
        }
    };
    match key {
        Key::Word(word) => deltas.push_by_word(*list, *word, put),
        Key::Bytes(bytes) => deltas.push(*list, bytes, |out| put(&mut Words::new(out, []))),
    }
}

/// Appends when a timer is due, if that is not when it was; the bytes that it has.
fn push_due(deltas: &mut Deltas, timer: &Key, before: Option<i64>, lists: Lists<'_>) -> usize {
    match (lists.due(timer), timer) {
        (now, Key::Bytes(timer)) if now != before => push_word(deltas, TIMERS, timer, now),
        _ => 0,
    }
}

/// Appends a word, or that there is none any more; the bytes that it has.
fn push_word(deltas: &mut Deltas, list: u32, key: &[u8], word: Option<i64>) -> usize {
    let put = |out: &mut Vec<u8>| {
        word.into_iter().for_each(|word| codec::put_word(word, out));
        Ok::<bool, Infallible>(word.is_some())
    };
    deltas.push(list, key, put).unwrap_or_else(|never| match never {})
}

pub(super) fn counter_row(counter: i64) -> Vec<u8> {
    let mut row = Vec::new();
    codec::put_word(counter, &mut row);
    row
}

/// A row as bytes.
pub(super) fn encoded_row(keyed: &Keyed, row: (Slot, &Key), module: &Module) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    put_row(keyed, row, module, usize::MAX, &mut Words::new(&mut bytes, [])).ok().map(|()| bytes)
}

/// A variable's value as bytes.
pub(super) fn encoded_variable(value: &Value, list: u32, module: &Module) -> Option<Vec<u8>> {
    let mut row = Vec::new();
    put_variable(value, list, module, usize::MAX, &mut row).ok().map(|()| row)
}

/// Appends a row; its fields from the first that is no plain word on if they have at most `limit` bytes. The words before
/// them are not counted: who has a limit looks at all bytes, too.
#[inline(always)]
pub(super) fn put_row(
    keyed: &Keyed,
    (slot, key): (Slot, &Key),
    module: &Module,
    limit: usize,
    words: &mut Words<'_>,
) -> Result<(), Unwritable> {
    let count = keyed.put_words(slot, key, words);
    let out = words.end();
    match keyed.layout().kinds.get(count..) {
        None | Some([]) => Ok(()),
        Some(kinds) => put_fields(keyed, (slot, count), (kinds, module), limit, out),
    }
}

/// Appends the last fields of a row, from the first that is no plain word on, as long as they stay within `limit` bytes.
fn put_fields(
    keyed: &Keyed,
    (slot, first): (Slot, usize),
    (kinds, module): (&[Type], &Module),
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    let limit = out.len().saturating_add(limit);
    for (field, kind) in (first..).zip(kinds) {
        match keyed.plain_word(slot, field as u16) {
            Some(word) => codec::put_word(word, out),
            None => codec::put_value(&keyed.value(slot, field as u16), kind, module, limit, out)?,
        }
    }
    if out.len() > limit { Err(Unwritable::TooLarge) } else { Ok(()) }
}

/// Appends a variable's value of at most `limit` bytes.
pub(super) fn put_variable(
    value: &Value,
    list: u32,
    module: &Module,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    let ListKind::Variable { kind, .. } = &module.lists[list as usize].kind else {
        return Err(Unwritable::OfAnotherType);
    };
    let limit = out.len().saturating_add(limit);
    codec::put_value(value, kind, module, limit, out)?;
    if out.len() > limit { Err(Unwritable::TooLarge) } else { Ok(()) }
}

/// Whether a row that was changed is the same again.
#[inline(always)]
fn is_as_it_was(keyed: &Keyed, slot: Option<Slot>, changes: &[Change], surely_once: bool) -> bool {
    match changes {
        // A row that was added is there, and `State::update_plain` and `Machine::set_any_field` note no same word.
        [change @ Change { before: Before::Row(None) | Before::Field(_, Value::Word(_)), .. }]
            if surely_once =>
        {
            debug_assert!(!is_back(keyed, slot, change), "what is the same was noted");
            false
        }
        changes => changes.iter().all(|change| is_back(keyed, slot, change)),
    }
}

fn is_back(keyed: &Keyed, slot: Option<Slot>, change: &Change) -> bool {
    match (&change.before, slot) {
        (Before::Row(Some(row)), Some(slot)) => {
            row.iter().enumerate().all(|(field, before)| has(keyed, slot, field as u16, before))
        }
        (Before::Row(before), slot) => before.is_none() && slot.is_none(),
        (Before::Field(field, before), Some(slot)) => has(keyed, slot, *field, before),
        _ => false,
    }
}

/// Whether a field of a row has this value.
fn has(keyed: &Keyed, slot: Slot, field: u16, before: &Value) -> bool {
    match (before, keyed.plain_word(slot, field)) {
        (Value::Word(before), Some(word)) => *before == word,
        _ => is_same(before, &keyed.value(slot, field)),
    }
}

/// Whether two values are the same, as far as the bytes of an event reach: a value that shares its parts can be far
/// larger than its memory.
fn is_same(left: &Value, right: &Value) -> bool {
    left.compare(right, &mut (EVENT_BYTES_MAX as u64)) == Some(Ordering::Equal)
}

/// What is said of an event with a value that has no bytes, where `too_large` is said of one that has too many.
pub(super) fn unwritable(wrong: Unwritable, too_large: EventError) -> EventError {
    match wrong {
        Unwritable::TooLarge => too_large,
        Unwritable::OfAnotherType => refusal(Fault::of_another_type()),
    }
}

pub(super) fn event_too_large() -> EventError {
    EventError::Budget { unit: "bytes of changed rows, sends and answer", limit: EVENT_BYTES_MAX as u64 }
}
