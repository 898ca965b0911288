//! Rows as JSON, for people: each list's rows as a view would show them, and back to the very bytes.
//!
//! The module may be one without code, of the shape alone: an app whose source does not compile any more is read as well.

use crate::app::read_row;
use crate::budget::{BYTES_MAX, Budget};
use crate::codec;
use crate::json;
use crate::keyed::Layout;
use weft::Value;
use weft::module::{ListKind, Module, Type};

/// The type of a row of a list; none if there is no such list.
fn kind_of(module: &Module, list: usize) -> Option<Type> {
    Some(match &module.lists.get(list)?.kind {
        ListKind::Keyed { record, .. } => Type::Record(*record),
        ListKind::Variable { kind, .. } => kind.clone(),
    })
}

/// A row as JSON: a record's object, a variable's value. None if its bytes are no row of the list.
#[must_use]
pub fn row_as_json(module: &Module, list: usize, row: &[u8]) -> Option<String> {
    let kind = kind_of(module, list)?;
    let value = read_row(row, &kind, module).ok()?;
    json::write_value(&value, &kind, module, &mut Budget::new()).ok()
}

/// The key and the bytes of a row that is given as JSON.
///
/// # Errors
/// What is wrong with it, in words.
pub fn row_of_json(module: &Module, list: usize, text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let kind = kind_of(module, list).ok_or("there is no such list")?;
    let value =
        json::read_value(text.as_bytes(), &kind, module, &mut Budget::new()).map_err(
            |unread| match unread {
                json::Unread::Misshapen(wrong) => wrong.message(),
                json::Unread::Fault(_) => "it is larger than any row".to_owned(),
            },
        )?;
    let mut row = Vec::new();
    let limit = usize::try_from(BYTES_MAX).unwrap_or(usize::MAX);
    codec::put_value(&value, &kind, module, limit, &mut row).map_err(|_| "it is too large for a row")?;
    let key = match (&value, &module.lists[list].kind) {
        (Value::Record(fields), ListKind::Keyed { .. }) => {
            Layout::of(&module.lists[list], module).key_of(fields).to_bytes()
        }
        _ => Vec::new(),
    };
    Ok((key, row))
}
