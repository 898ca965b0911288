//! Whether rows are small enough for an event to change them: what an event changes is written whole, so one that a change
//! of the module made larger than that could only be removed.

use super::changed::{put_row, put_variable};
use crate::budget::EVENT_BYTES_MAX;
use crate::codec::Words;
use crate::keyed::{Key, Range};
use crate::table::{Keyed, ROWS_AT_ONCE};
use weft::Value;
use weft::module::{Module, Type};

/// Bytes of a value of a fixed size, or of what stands before one of another, at most: a node has 32.
const FIXED_BYTES_MAX: usize = 48;

/// Rows that no event could change, and the first of them; nobody is asked about others once `is_wanted` says no.
pub(super) fn rows_too_large(
    keyed: &Keyed,
    module: &Module,
    is_wanted: &dyn Fn() -> bool,
) -> Option<(u64, Key)> {
    let kinds = keyed.layout().kinds.iter().enumerate();
    let long: Vec<u16> = kinds.filter(|(_, kind)| !is_fixed(kind)).map(|(field, _)| field as u16).collect();
    if long.is_empty() {
        return None;
    }
    let fixed = keyed.layout().kinds.len() * FIXED_BYTES_MAX;
    let mut too_large: Option<(u64, Key)> = None;
    let mut walk = keyed.walk(&Range::ALL, false);
    let mut at = 0_usize;
    while let Some(key) = walk.next() {
        if at.is_multiple_of(ROWS_AT_ONCE) && !is_wanted() {
            break;
        }
        at += 1;
        let Some(slot) = keyed.find(&key) else { continue };
        let at_most: usize = long.iter().map(|field| bytes_at_most(&keyed.value(slot, *field))).sum();
        if at_most.saturating_add(fixed + key.len()) <= EVENT_BYTES_MAX {
            continue;
        }
        let left = EVENT_BYTES_MAX.saturating_sub(key.len());
        let mut row = Vec::new();
        if put_row(keyed, (slot, &key), module, left, &mut Words::new(&mut row, [])).is_err()
            || row.len() > left
        {
            too_large = Some(too_large.map_or((1, key), |(rows, first)| (rows + 1, first)));
        }
    }
    too_large
}

/// Whether a variable is one that no event could change.
pub(super) fn is_variable_too_large(value: &Value, list: u32, module: &Module) -> bool {
    put_variable(value, list, module, EVENT_BYTES_MAX, &mut Vec::new()).is_err()
}

fn is_fixed(kind: &Type) -> bool {
    match kind {
        Type::Optional(inner) => is_fixed(inner),
        Type::Bool | Type::Int | Type::Real | Type::Time | Type::Duration | Type::Node | Type::Enum(_) => {
            true
        }
        Type::Text | Type::Bytes | Type::Endpoint | Type::Record(_) | Type::List(_) => false,
        Type::Nothing | Type::Broken => false,
    }
}

/// Bytes of a value of no fixed size; of one that has parts more than there may be, as long as nobody writes it.
fn bytes_at_most(value: &Value) -> usize {
    match value {
        Value::None => 0,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => EVENT_BYTES_MAX + 1,
    }
}
