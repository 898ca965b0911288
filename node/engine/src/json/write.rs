//! JSON out, by type.

use crate::budget::{Budget, Fault};
use data_encoding::BASE64;
use sealing::NodeId;
use std::fmt::Write;
use weft::Value;
use weft::module::{Field, Module, Type};

/// Writes a value; what is written is charged.
pub(crate) fn write_value(
    value: &Value,
    kind: &Type,
    module: &Module,
    budget: &mut Budget,
) -> Result<String, Fault> {
    let mut out = String::new();
    Writer { module, budget, bytes_max: usize::MAX }.value(value, kind, &mut out)?;
    Ok(out)
}

/// As [`write_value`], but nothing where it has more bytes: it is not written any further then.
pub(crate) fn write_within(
    value: &Value,
    kind: &Type,
    module: &Module,
    budget: &mut Budget,
    bytes_max: usize,
) -> Result<Option<String>, Fault> {
    let mut out = String::new();
    let written = Writer { module, budget, bytes_max }.value(value, kind, &mut out);
    if out.len() > bytes_max {
        return Ok(None);
    }
    written.map(|()| Some(out))
}

/// Writes an object of these fields; what is written is charged.
pub(crate) fn write_fields(
    values: &[Value],
    fields: &[Field],
    module: &Module,
    budget: &mut Budget,
) -> Result<String, Fault> {
    let mut out = String::new();
    Writer { module, budget, bytes_max: usize::MAX }.fields(values, fields, &mut out)?;
    Ok(out)
}

struct Writer<'w> {
    module: &'w Module,
    budget: &'w mut Budget,
    /// What is longer is not written any further.
    bytes_max: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, kind: &Type, out: &mut String) -> Result<(), Fault> {
        self.budget.operations(1)?;
        if out.len() > self.bytes_max {
            return Err(Fault::Budget { unit: "bytes of text", limit: self.bytes_max as u64 });
        }
        match (kind, value) {
            (Type::Optional(_), Value::None) => out.push_str("null"),
            (Type::Optional(inner), value) => self.value(value, inner, out)?,
            (Type::Bool, Value::Word(word)) => out.push_str(if *word == 0 { "false" } else { "true" }),
            (Type::Int | Type::Time | Type::Duration, Value::Word(word)) => {
                let _ = write!(out, "{word}");
                self.budget.bytes(20)?;
            }
            (Type::Enum(number), Value::Word(word)) => {
                let cases = &self.module.enums[*number as usize].cases;
                let case = usize::try_from(*word).ok().and_then(|word| cases.get(word));
                let case = case.ok_or_else(|| Fault::unproven("a case"))?;
                self.text(case, out)?;
            }
            (Type::Text | Type::Endpoint, Value::Text(text)) => self.text(text, out)?,
            (Type::Real, Value::Real(real)) => {
                let _ = write!(out, "{real}");
                self.budget.bytes(24)?;
            }
            (Type::Bytes, Value::Bytes(bytes)) => {
                self.budget.bytes(bytes.len() / 3 * 4)?;
                self.text(&BASE64.encode(bytes), out)?;
            }
            (Type::Node, Value::Node(node)) => self.text(&NodeId(**node).to_string(), out)?,
            (Type::Record(number), Value::Record(values)) => {
                let module = self.module;
                self.fields(values, &module.records[*number as usize].fields, out)?;
            }
            (Type::List(element), Value::List(values)) => {
                out.push('[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.value(value, element, out)?;
                }
                out.push(']');
            }
            _ => return Err(Fault::unproven("another type")),
        }
        Ok(())
    }

    fn fields(&mut self, values: &[Value], fields: &[Field], out: &mut String) -> Result<(), Fault> {
        out.push('{');
        for (at, (field, value)) in fields.iter().zip(values).enumerate() {
            if at > 0 {
                out.push(',');
            }
            self.text(&field.name, out)?;
            out.push(':');
            self.value(value, &field.kind, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn text(&mut self, text: &str, out: &mut String) -> Result<(), Fault> {
        self.budget.bytes(text.len() + 4)?;
        out.push('"');
        // Most texts have nothing to escape.
        if !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..b' ')) {
            out.push_str(text);
            out.push('"');
            return Ok(());
        }
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                control if control < ' ' => {
                    let _ = write!(out, "\\u{:04x}", control as u32);
                }
                other => out.push(other),
            }
        }
        out.push('"');
        Ok(())
    }
}
