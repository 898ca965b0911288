//! The arguments of a send: names and typed values that say themselves what they are, after a version byte.
//!
//! The receiver reads them along its own types: fields are matched by name, those that it has and the sender has not
//! take their default. Nesting is bounded by the receiver's types.

use crate::codec::{Malformed, Reader, Unwritable, put_number, put_word};
use crate::json::{expected, with_default};
use std::sync::Arc;
use weft::Value;
use weft::module::{Field, Module, Type};

/// The first byte; golden bytes in the tests keep it honest.
const VERSION: u8 = 1;

const NONE: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const TEXT: u8 = 3;
const TIME: u8 = 4;
const DURATION: u8 = 5;
const NODE: u8 = 6;
const CASE: u8 = 7;
const RECORD: u8 = 8;
const LIST: u8 = 9;
const REAL: u8 = 10;
const BYTES: u8 = 11;
const ENDPOINT: u8 = 12;

/// The bytes of a send's arguments, at most `limit` of them.
pub(crate) fn encode(
    values: &[Value],
    fields: &[Field],
    module: &Module,
    limit: usize,
) -> Result<Vec<u8>, Unwritable> {
    let mut out = vec![VERSION];
    put_fields(values, fields, module, limit, &mut out)?;
    Ok(out)
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_number(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn put_fields(
    values: &[Value],
    fields: &[Field],
    module: &Module,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    put_number(fields.len() as u64, out);
    for (field, value) in fields.iter().zip(values) {
        put_text(&field.name, out);
        put_value(value, &field.kind, module, limit, out)?;
    }
    Ok(())
}

fn put_value(
    value: &Value,
    kind: &Type,
    module: &Module,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    if out.len() > limit {
        return Err(Unwritable);
    }
    match (kind, value) {
        (Type::Optional(_), Value::None) => out.push(NONE),
        (Type::Optional(inner), value) => put_value(value, inner, module, limit, out)?,
        (Type::Enum(number), Value::Word(word)) => {
            let cases = &module.enums[*number as usize].cases;
            let case = usize::try_from(*word).ok().and_then(|word| cases.get(word)).ok_or(Unwritable)?;
            out.push(CASE);
            put_text(case, out);
        }
        (kind, Value::Word(word)) => {
            out.push(match kind {
                Type::Bool => BOOL,
                Type::Time => TIME,
                Type::Duration => DURATION,
                _ => INT,
            });
            put_word(*word, out);
        }
        (_, Value::Real(real)) => {
            out.push(REAL);
            out.extend_from_slice(&real.get().to_bits().to_be_bytes());
        }
        (kind, Value::Text(text)) => {
            out.push(if *kind == Type::Endpoint { ENDPOINT } else { TEXT });
            put_text(text, out);
        }
        (_, Value::Bytes(bytes)) => {
            out.push(BYTES);
            put_number(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        (_, Value::Node(node)) => {
            out.push(NODE);
            out.extend_from_slice(&**node);
        }
        (Type::Record(number), Value::Record(values)) => {
            out.push(RECORD);
            put_fields(values, &module.records[*number as usize].fields, module, limit, out)?;
        }
        (Type::List(element), Value::List(values)) => {
            out.push(LIST);
            put_number(values.len() as u64, out);
            for value in values.iter() {
                put_value(value, element, module, limit, out)?;
            }
        }
        _ => return Err(Unwritable),
    }
    if out.len() > limit { Err(Unwritable) } else { Ok(()) }
}

/// Reads arguments into a handler's fields; what is wrong is said with the field's name.
pub(crate) fn decode(bytes: &[u8], fields: &[Field], module: &Module) -> Result<Vec<Value>, String> {
    let mut reader = Reader::new(bytes);
    match reader.byte() {
        Ok(VERSION) => {}
        Ok(other) => return Err(format!("arguments of version {other}; this node reads version {VERSION}")),
        Err(_) => return Err("arguments without a byte".into()),
    }
    let values = read_fields(&mut reader, fields, module)?;
    if !reader.is_empty() {
        return Err("bytes follow the arguments".into());
    }
    Ok(values)
}

fn malformed(error: Malformed) -> String {
    format!("malformed arguments: {}", error.0)
}

fn read_fields(reader: &mut Reader<'_>, fields: &[Field], module: &Module) -> Result<Vec<Value>, String> {
    let count = reader.count().map_err(malformed)?;
    let mut values: Vec<Option<Value>> = vec![None; fields.len()];
    for _ in 0..count {
        let name = reader.text().map_err(malformed)?;
        let Some(at) = fields.iter().position(|field| field.name == name) else {
            let name: String = name.chars().take(40).collect();
            return Err(format!("there is no field `{name}`"));
        };
        if values[at].is_some() {
            return Err(format!("field `{name}` is there twice"));
        }
        let value = read_value(reader, &fields[at].kind, module);
        values[at] = Some(value.map_err(|wrong| format!("field `{name}`: {wrong}"))?);
    }
    let filled = values.into_iter().zip(fields).map(|(value, field)| with_default(value, field, module));
    filled.collect::<Result<Vec<Value>, _>>().map_err(|wrong| wrong.message())
}

fn read_value(reader: &mut Reader<'_>, kind: &Type, module: &Module) -> Result<Value, String> {
    let tag = reader.byte().map_err(malformed)?;
    let kind = match kind {
        Type::Optional(_) if tag == NONE => return Ok(Value::None),
        Type::Optional(inner) => &**inner,
        other => other,
    };
    let plain = match (kind, tag) {
        (Type::Bool, BOOL) => reader.value(&Type::Bool, module),
        (Type::Int, INT) | (Type::Time, TIME) | (Type::Duration, DURATION) => reader.word().map(Value::Word),
        (Type::Real, REAL) => reader.real(),
        (Type::Bytes, BYTES) => reader.bytes(),
        (Type::Text, TEXT) | (Type::Endpoint, ENDPOINT) => reader.text().map(|text| Value::Text(text.into())),
        (Type::Node, NODE) => reader.node(),
        (Type::Enum(number), CASE) => {
            let text = reader.text().map_err(malformed)?;
            let cases = &module.enums[*number as usize].cases;
            let at = cases.iter().position(|case| case == text);
            return at
                .map(|at| Value::Word(at as i64))
                .ok_or_else(|| format!("expected {}, found another case", expected(kind, module)));
        }
        (Type::Record(number), RECORD) => {
            return Ok(Value::Record(
                read_fields(reader, &module.records[*number as usize].fields, module)?.into(),
            ));
        }
        (Type::List(element), LIST) => {
            let count = reader.count().map_err(malformed)?;
            let values: Result<Vec<Value>, String> =
                (0..count).map(|_| read_value(reader, element, module)).collect();
            return Ok(Value::List(Arc::new(values?)));
        }
        _ => return Err(format!("expected {}, found another type", expected(kind, module))),
    };
    plain.map_err(malformed)
}
