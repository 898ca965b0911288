//! What a type wants, in words for a message.

use super::write::write_value;
use crate::budget::Budget;
use std::fmt::Write;
use weft::module::{Field, Module, Type};

/// Fields or cases that a message lists: more are read in the app's description.
const LISTED_MAX: usize = 12;

/// A default that is longer is not shown.
const DEFAULT_BYTES_SHOWN: usize = 40;

/// What a type wants: its name, and how a value of it is written where the name does not say it.
pub(crate) fn expected(kind: &Type, module: &Module) -> String {
    let name = module.type_name(kind);
    match written(kind, module) {
        Some(how) => format!("{name} ({how})"),
        None => name,
    }
}

fn written(kind: &Type, module: &Module) -> Option<String> {
    Some(match kind {
        Type::Node => "a text that begins with `sv1`".into(),
        Type::Enum(number) => {
            let cases = module.enums[*number as usize].cases.iter();
            listed(cases.map(|case| format!("\"{case}\"")))
        }
        Type::Record(number) => object_of(&module.records[*number as usize].fields, module),
        Type::Bytes => "a text in base64".into(),
        Type::Endpoint => "a text that begins with `https://` or `http://`".into(),
        Type::Time => "milliseconds since 1970 UTC".into(),
        Type::Duration => "milliseconds".into(),
        Type::Optional(inner) => format!("{}, or null", written(inner, module)?),
        Type::List(element) => format!("of each: {}", written(element, module)?),
        _ => return None,
    })
}

/// A field's default as JSON, if it has one.
pub fn default_of(field: &Field, module: &Module) -> Option<String> {
    let default = field.default.as_ref()?;
    write_value(default, &field.kind, module, &mut Budget::new()).ok()
}

/// An object with these fields; what has a default shows it.
pub(super) fn object_of(fields: &[Field], module: &Module) -> String {
    if fields.is_empty() {
        return "an object without fields".into();
    }
    let field = |field: &Field| {
        let default = match default_of(field, module) {
            Some(value) if value.len() <= DEFAULT_BYTES_SHOWN => format!(" = {value}"),
            Some(_) => " = …".to_owned(),
            None => String::new(),
        };
        format!("{}: {}{default}", field.name, module.type_name(&field.kind))
    };
    format!("an object with {}", listed(fields.iter().map(field)))
}

pub(super) fn listed(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(LISTED_MAX);
    let mut listed = all.take(LISTED_MAX).collect::<Vec<String>>().join(", ");
    if more > 0 {
        let _ = write!(listed, " and {more} more");
    }
    listed
}
