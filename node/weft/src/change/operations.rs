//! The closed set of what a change does to what is kept. Names and types are in the shapes before and after it.

use super::schema::{Constant, Fields, Holds, Kind, Schema};
use serde::{Deserialize, Serialize};

/// One thing that a change does, on numbers that are never used again. It stands in the log: what one means never changes.
#[expect(missing_docs, reason = "the fields are the numbers of what they name")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// A list without rows, or a variable with its initial value.
    AddList { list: u32 },
    /// The list goes, with its rows and its counter.
    DropList { list: u32 },
    /// It has another name.
    RenameList { list: u32 },
    /// Each value of the record gets a constant; without one there may be none.
    AddField { record: u32, field: u32, constant: Option<Constant> },
    /// Each value of the record loses a field.
    DropField { record: u32, field: u32 },
    /// It has another name.
    RenameField { record: u32, field: u32 },
    /// The field has another type; what is none becomes a constant where the type has no none.
    RetypeField { record: u32, field: u32, none: Option<Constant> },
    /// The fields stand in another order.
    ReorderFields { record: u32 },
    /// The variable has another type.
    RetypeVariable { list: u32, none: Option<Constant> },
    /// The enum has one more case.
    AddCase { enumeration: u32, case: u32 },
    /// The enum has a case less, which no value may be.
    DropCase { enumeration: u32, case: u32 },
    /// It has another name.
    RenameCase { enumeration: u32, case: u32 },
    /// The cases stand in another order.
    ReorderCases { enumeration: u32 },
    /// A record or an enum has another name.
    RenameType { number: u32 },
    /// The rows have another key.
    Rekey { list: u32 },
    /// The list has other indexes.
    Reindex { list: u32 },
}

/// What turns the rows of one shape into those of the next.
pub(super) fn operations(before: &Schema, after: &Schema) -> Vec<Operation> {
    let mut operations = Vec::new();
    types(before, after, &mut operations);
    for list in &before.lists {
        if after.list(list.number).is_none() {
            operations.push(Operation::DropList { list: list.number });
        }
    }
    for list in &after.lists {
        let number = list.number;
        let Some(old) = before.list(number) else {
            operations.push(Operation::AddList { list: number });
            continue;
        };
        if old.name != list.name {
            operations.push(Operation::RenameList { list: number });
        }
        match (&old.holds, &list.holds) {
            (Holds::Value(from), Holds::Value(to)) if from != to => {
                operations.push(Operation::RetypeVariable { list: number, none: None });
            }
            (
                Holds::Rows { record, keys, indexes },
                Holds::Rows { record: same, keys: new_keys, indexes: new_indexes },
            ) if record == same => {
                if keys != new_keys || keys.iter().any(|key| is_reordered(*record, *key, before, after)) {
                    operations.push(Operation::Rekey { list: number });
                }
                if indexes != new_indexes {
                    operations.push(Operation::Reindex { list: number });
                }
            }
            _ => {}
        }
    }
    operations
}

/// Whether the bytes of a key change though its fields are the same: it has another type, or its cases another order.
fn is_reordered(record: u32, field: u32, before: &Schema, after: &Schema) -> bool {
    let kind = |schema: &Schema| Some(schema.record(record)?.fields.get(field)?.kind.clone());
    match (kind(before), kind(after)) {
        (Some(Kind::Enum(old)), Some(Kind::Enum(new))) if old == new => {
            let cases = |schema: &Schema| -> Vec<u32> {
                let cases = schema.enumeration(old).map_or(&[][..], |one| &one.cases);
                cases.iter().map(|(number, _)| *number).collect()
            };
            !cases(after).starts_with(&cases(before))
        }
        (old, new) => old != new,
    }
}

/// What happens to the types whose values are kept on both sides.
fn types(before: &Schema, after: &Schema, operations: &mut Vec<Operation>) {
    let stored = &before.stored() & &after.stored();
    for number in stored {
        if let (Some(old), Some(new)) = (before.enumeration(number), after.enumeration(number)) {
            if old.name != new.name {
                operations.push(Operation::RenameType { number });
            }
            cases(number, &old.cases, &new.cases, operations);
        }
        if let (Some(old), Some(new)) = (before.record(number), after.record(number)) {
            if old.name != new.name {
                operations.push(Operation::RenameType { number });
            }
            fields(number, &old.fields, &new.fields, operations);
        }
    }
}

fn cases(enumeration: u32, old: &[(u32, String)], new: &[(u32, String)], operations: &mut Vec<Operation>) {
    let of = |cases: &[(u32, String)], number: u32| cases.iter().find(|one| one.0 == number).cloned();
    for (case, name) in new {
        match of(old, *case) {
            None => operations.push(Operation::AddCase { enumeration, case: *case }),
            Some((_, known)) if known != *name => {
                operations.push(Operation::RenameCase { enumeration, case: *case });
            }
            Some(_) => {}
        }
    }
    for (case, _) in old {
        if of(new, *case).is_none() {
            operations.push(Operation::DropCase { enumeration, case: *case });
        }
    }
    let kept = |from: &[(u32, String)], other: &[(u32, String)]| -> Vec<u32> {
        from.iter().map(|one| one.0).filter(|number| of(other, *number).is_some()).collect()
    };
    if kept(old, new) != kept(new, old) {
        operations.push(Operation::ReorderCases { enumeration });
    }
}

fn fields(record: u32, old: &Fields, new: &Fields, operations: &mut Vec<Operation>) {
    for one in &new.fields {
        let field = one.number;
        let Some(known) = old.get(field) else {
            operations.push(Operation::AddField { record, field, constant: one.default.clone() });
            continue;
        };
        if known.name != one.name {
            operations.push(Operation::RenameField { record, field });
        }
        if known.kind != one.kind {
            let from_optional =
                matches!(known.kind, Kind::Optional(_)) && !matches!(one.kind, Kind::Optional(_));
            let none = one.default.clone().filter(|_| from_optional);
            operations.push(Operation::RetypeField { record, field, none });
        }
    }
    for one in &old.fields {
        if new.get(one.number).is_none() {
            operations.push(Operation::DropField { record, field: one.number });
        }
    }
    let kept = |from: &Fields, other: &Fields| -> Vec<u32> {
        from.fields.iter().map(|one| one.number).filter(|number| other.get(*number).is_some()).collect()
    };
    if kept(old, new) != kept(new, old) {
        operations.push(Operation::ReorderFields { record });
    }
}
