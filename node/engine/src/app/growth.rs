//! Whether an event made the state larger: on a full disk what grows is refused, and what removes or replaces goes on.

use crate::codec;
use crate::state::{List, State};
use crate::undo::{Before, Change, Merged};
use weft::Value;
use weft::module::{ListKind, Module, Type};

/// Bytes by which a changed row may get longer all the same: numbers have as many bytes as they need.
const LONGER_NUMBER_BYTES: i64 = 8;

/// Whether there are more rows and timers than before the event that runs, or their bytes are more.
pub(super) fn has_grown(state: &mut State, module: &Module) -> bool {
    let (mut more_rows, mut more_bytes, mut changed) = (0i64, 0i64, 0i64);
    let (Merged { changes, .. }, lists) = state.changes();
    for changes in changes.chunk_by(Change::is_of_same_row) {
        let [first @ Change { list, key, before, .. }, ..] = changes else { continue };
        if module.lists.get(*list as usize).is_some_and(|list| list.transient) {
            continue;
        }
        changed += 1;
        match (before, lists.get(*list)) {
            (Before::Due(before), _) => {
                more_rows += i64::from(lists.due(key).is_some()) - i64::from(before.is_some());
            }
            (Before::Variable(before), Some(List::Variable(now))) => {
                let ListKind::Variable { kind, .. } = &module.lists[*list as usize].kind else { continue };
                more_bytes += bytes(now, kind, module) - bytes(before, kind, module);
            }
            (_, Some(List::Keyed(keyed))) => {
                let slot = lists.slot(first, keyed);
                let kinds = &keyed.layout().kinds;
                let now = |field: usize| slot.map(|slot| keyed.value(slot, field as u16));
                for change in changes {
                    match &change.before {
                        Before::Row(before) => {
                            more_rows += i64::from(slot.is_some()) - i64::from(before.is_some());
                            for (field, kind) in kinds.iter().enumerate() {
                                let was = before.as_ref().and_then(|before| before.get(field));
                                more_bytes += now(field).map_or(0, |now| bytes(&now, kind, module))
                                    - was.map_or(0, |was| bytes(was, kind, module));
                            }
                        }
                        Before::Field(field, was) => {
                            let kind = &kinds[*field as usize];
                            more_bytes += now(*field as usize).map_or(0, |now| bytes(&now, kind, module))
                                - bytes(was, kind, module);
                        }
                        Before::Variable(_) | Before::Due(_) => {}
                    }
                }
            }
            _ => {}
        }
    }
    more_rows > 0 || more_bytes > LONGER_NUMBER_BYTES * changed
}

/// Bytes of a value as a row has it.
fn bytes(value: &Value, kind: &Type, module: &Module) -> i64 {
    let mut row = Vec::new();
    match codec::put_value(value, kind, module, usize::MAX, &mut row) {
        Ok(()) => row.len() as i64,
        Err(_) => 0,
    }
}
