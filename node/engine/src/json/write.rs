//! JSON out, by type.
//!
//! Names of fields and cases are the language's, of ASCII letters, digits and `_`: nothing in them is ever escaped.

use crate::budget::{Budget, Fault};
use data_encoding::BASE64;
use sealing::NodeId;
use std::fmt::Write;
use weft::Value;
use weft::code::Register;
use weft::module::{Field, Module, Type};

/// Bytes that the text of a list or a record has room for when it begins.
const FIRST_BYTES: usize = 128;
/// Bytes of the longest number.
const WORD_BYTES: usize = 20;
/// Bytes that a list has room for when it is written while it is made: a few records.
const STREAM_BYTES: usize = 512;
/// Bytes that are made room for at most when the first element of a list tells how long the others may be.
const EXPECTED_BYTES_MAX: usize = 16 << 10;

/// Writes a value; what is written is charged.
pub(crate) fn write_value(
    value: &Value,
    kind: &Type,
    module: &Module,
    budget: &mut Budget,
) -> Result<String, Fault> {
    // As `Writer::value` does it, for what most answers are.
    if let (Type::Int | Type::Time | Type::Duration, Value::Word(word)) = (kind, value) {
        budget.one()?;
        budget.bytes(WORD_BYTES)?;
        return Ok(itoa::Buffer::new().format(*word).to_owned());
    }
    let mut writer = Writer::new(module, budget, usize::MAX);
    writer.value(value, kind)?;
    Ok(writer.out)
}

/// As [`write_value`], but nothing where it has more bytes: it is not written any further then.
pub(crate) fn write_within(
    value: &Value,
    kind: &Type,
    module: &Module,
    budget: &mut Budget,
    bytes_max: usize,
) -> Result<Option<String>, Fault> {
    let mut writer = Writer::new(module, budget, bytes_max);
    let written = writer.value(value, kind);
    if writer.out.len() > bytes_max {
        return Ok(None);
    }
    written.map(|()| Some(writer.out))
}

/// Writes an object of these fields; what is written is charged.
pub(crate) fn write_fields(
    values: &[Value],
    fields: &[Field],
    module: &Module,
    budget: &mut Budget,
) -> Result<String, Fault> {
    let mut writer = Writer::new(module, budget, usize::MAX);
    writer.fields(values, fields)?;
    Ok(writer.out)
}

/// A list of records that is written while a view makes it, so that none of them is made. What that costs is the same.
pub(crate) struct Stream<'w> {
    /// Where the view makes the list.
    pub(crate) list: Register,
    element: &'w Type,
    fields: &'w [Field],
    bytes_max: usize,
    out: String,
}

impl<'w> Stream<'w> {
    /// For a result of a type that is made in a register; none if it is written when it is made.
    pub(crate) fn of(
        kind: &'w Type,
        collects: Option<Register>,
        module: &'w Module,
        bytes_max: usize,
    ) -> Option<Stream<'w>> {
        let Type::List(element) = kind else { return None };
        let Type::Record(number) = **element else { return None };
        let fields = &module.records[number as usize].fields;
        Some(Stream { list: collects?, element, fields, bytes_max, out: String::new() })
    }

    /// Writes a record of which these are the fields.
    pub(crate) fn record(
        &mut self,
        values: &[Value],
        module: &Module,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let mut writer = self.next(module, budget);
        let written = writer.begin().and_then(|()| writer.fields(values, self.fields));
        self.out = writer.out;
        written
    }

    /// Writes an element.
    pub(crate) fn value(&mut self, value: &Value, module: &Module, budget: &mut Budget) -> Result<(), Fault> {
        let mut writer = self.next(module, budget);
        let written = writer.value(value, self.element);
        self.out = writer.out;
        written
    }

    fn next<'b>(&mut self, module: &'b Module, budget: &'b mut Budget) -> Writer<'b> {
        let mut out = std::mem::take(&mut self.out);
        if out.is_empty() {
            out.reserve(STREAM_BYTES);
            out.push('[');
        } else {
            out.push(',');
        }
        Writer { module, budget, bytes_max: self.bytes_max, out }
    }

    /// The text, after what came of the view; nothing where it has more bytes than it may.
    pub(crate) fn end(
        mut self,
        outcome: Result<(), Fault>,
        budget: &mut Budget,
    ) -> Result<Option<String>, Fault> {
        if self.out.len() > self.bytes_max {
            return Ok(None);
        }
        outcome?;
        budget.one()?;
        self.out.push_str(if self.out.is_empty() { "[]" } else { "]" });
        Ok(Some(self.out).filter(|out| out.len() <= self.bytes_max))
    }
}

struct Writer<'w> {
    module: &'w Module,
    budget: &'w mut Budget,
    /// What is longer is not written any further.
    bytes_max: usize,
    out: String,
}

impl<'w> Writer<'w> {
    fn new(module: &'w Module, budget: &'w mut Budget, bytes_max: usize) -> Writer<'w> {
        Writer { module, budget, bytes_max, out: String::new() }
    }

    /// Charges a value that comes next, where the text is not too long for it.
    #[inline]
    fn begin(&mut self) -> Result<(), Fault> {
        self.budget.one()?;
        if self.out.len() > self.bytes_max {
            return Err(Fault::Budget { unit: "bytes of text", limit: self.bytes_max as u64 });
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, kind: &Type) -> Result<(), Fault> {
        self.begin()?;
        match (kind, value) {
            (Type::Optional(_), Value::None) => self.out.push_str("null"),
            (Type::Optional(inner), value) => self.value(value, inner)?,
            (Type::Bool, Value::Word(word)) => {
                self.out.push_str(if *word == 0 { "false" } else { "true" });
            }
            (Type::Int | Type::Time | Type::Duration, Value::Word(word)) => self.word(*word)?,
            (Type::Enum(number), Value::Word(word)) => {
                let cases = &self.module.enums[*number as usize].cases;
                let case = usize::try_from(*word).ok().and_then(|word| cases.get(word));
                let case = case.ok_or_else(|| Fault::unproven("a case"))?;
                self.quoted(case)?;
            }
            (Type::Text | Type::Endpoint, Value::Text(text)) => self.text(text)?,
            (Type::Real, Value::Real(real)) => {
                let _ = write!(self.out, "{real}");
                self.budget.bytes(24)?;
            }
            (Type::Bytes, Value::Bytes(bytes)) => {
                self.budget.bytes(bytes.len() / 3 * 4)?;
                self.quoted(&BASE64.encode(bytes))?;
            }
            (Type::Node, Value::Node(node)) => self.quoted(&NodeId(**node).to_string())?,
            (Type::Record(number), Value::Record(values)) => {
                let module = self.module;
                self.fields(values, &module.records[*number as usize].fields)?;
            }
            (Type::List(element), Value::List(values)) => self.list(values, element)?,
            _ => return Err(Fault::unproven("another type")),
        }
        Ok(())
    }

    fn list(&mut self, values: &[Value], element: &Type) -> Result<(), Fault> {
        self.make_room();
        self.out.push('[');
        let begins = self.out.len();
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.value(value, element)?;
            if at == 0 {
                let length = self.out.len() - begins;
                self.out.reserve(length.saturating_mul(values.len()).min(EXPECTED_BYTES_MAX));
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn fields(&mut self, values: &[Value], fields: &[Field]) -> Result<(), Fault> {
        self.make_room();
        let mut before = "{\"";
        for (field, value) in fields.iter().zip(values) {
            self.budget.bytes(field.name.len() + 4)?;
            self.out.push_str(before);
            self.out.push_str(&field.name);
            self.out.push_str("\":");
            before = ",\"";
            match (&field.kind, value) {
                (Type::Int | Type::Time | Type::Duration, Value::Word(word)) => {
                    self.begin()?;
                    self.word(*word)?;
                }
                (kind, value) => self.value(value, kind)?,
            }
        }
        self.out.push_str(if fields.is_empty() { "{}" } else { "}" });
        Ok(())
    }

    #[inline]
    fn make_room(&mut self) {
        if self.out.capacity() == 0 {
            self.out.reserve(FIRST_BYTES);
        }
    }

    #[inline]
    fn word(&mut self, word: i64) -> Result<(), Fault> {
        self.out.push_str(itoa::Buffer::new().format(word));
        self.budget.bytes(WORD_BYTES)
    }

    /// A text in which nothing is to be escaped.
    #[inline]
    fn quoted(&mut self, text: &str) -> Result<(), Fault> {
        self.budget.bytes(text.len() + 4)?;
        self.out.reserve(text.len() + 2);
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        // Most texts have nothing to escape.
        if !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..b' ')) {
            return self.quoted(text);
        }
        self.budget.bytes(text.len() + 4)?;
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                control if control < ' ' => {
                    let _ = write!(self.out, "\\u{:04x}", control as u32);
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
        Ok(())
    }
}
