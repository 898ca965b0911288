//! The arguments of a send and the answer to one: names and typed values that say themselves what they are, after a version byte.
//!
//! The receiver reads them along its own types: fields are matched by name, also by one that they had before; those that
//! it has and the sender has not take their default, those that it had once and has no more are passed over. Any other
//! that it does not know is wrong: who sends it knows more than the receiver. Nesting is bounded.

use crate::budget::{Budget, Fault, VALUE_BYTES};
use crate::codec::{Malformed, Reader, Unwritable, put_number, put_word};
use crate::json::{Misshapen, Read, Unread, expected, filled};
use std::sync::Arc;
use weft::Value;
use weft::module::{Field, Former, Module, Type};

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

/// How deep a value that is passed over may be: as deep as types of the language.
const PASSED_OVER_DEPTH_MAX: u16 = 48;

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

/// The bytes of what a handler answers a send, at most `limit` of them.
pub(crate) fn encode_answer(
    value: &Value,
    kind: &Type,
    module: &Module,
    limit: usize,
) -> Result<Vec<u8>, Unwritable> {
    let mut out = vec![VERSION];
    put_value(value, kind, module, limit, &mut out)?;
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
    if fields.len() != values.len() {
        return Err(Unwritable::OfAnotherType);
    }
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
        return Err(Unwritable::TooLarge);
    }
    match (kind, value) {
        (Type::Optional(_), Value::None) => out.push(NONE),
        (Type::Optional(inner), value) => put_value(value, inner, module, limit, out)?,
        (Type::Enum(number), Value::Word(word)) => {
            let cases = &module.enums[*number as usize].cases;
            let case = usize::try_from(*word).ok().and_then(|word| cases.get(word));
            let case = case.ok_or(Unwritable::OfAnotherType)?;
            out.push(CASE);
            put_text(case, out);
        }
        (Type::Bool | Type::Time | Type::Duration | Type::Int, Value::Word(word)) => {
            out.push(match kind {
                Type::Bool => BOOL,
                Type::Time => TIME,
                Type::Duration => DURATION,
                _ => INT,
            });
            put_word(*word, out);
        }
        (Type::Real, Value::Real(real)) => {
            out.push(REAL);
            out.extend_from_slice(&real.get().to_bits().to_be_bytes());
        }
        (Type::Text | Type::Endpoint, Value::Text(text)) => {
            out.push(if *kind == Type::Endpoint { ENDPOINT } else { TEXT });
            put_text(text, out);
        }
        (Type::Bytes, Value::Bytes(bytes)) => {
            out.push(BYTES);
            put_number(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        (Type::Node, Value::Node(node)) => {
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
        _ => return Err(Unwritable::OfAnotherType),
    }
    if out.len() > limit { Err(Unwritable::TooLarge) } else { Ok(()) }
}

/// Reads arguments into a handler's fields; what is made is charged, what is wrong is said with the field's name.
pub(crate) fn decode(
    bytes: &[u8],
    (fields, former): (&[Field], &[Former]),
    module: &Module,
    budget: &mut Budget,
) -> Read<Vec<Value>> {
    let mut reader = Reader::new(bytes);
    match reader.byte() {
        Ok(VERSION) => {}
        Ok(other) => {
            return wrong(format!("arguments of version {other}; this node reads version {VERSION}"));
        }
        Err(_) => return wrong("arguments without a byte"),
    }
    let values = read_fields(&mut reader, (fields, former), module, budget)?;
    if !reader.is_empty() {
        return wrong("bytes follow the arguments");
    }
    Ok(values)
}

/// Reads what another node's handler answered: none if it is of another type than here.
pub(crate) fn decode_answer(
    bytes: &[u8],
    kind: &Type,
    module: &Module,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let Some((&VERSION, bytes)) = bytes.split_first() else { return Ok(Value::None) };
    let mut reader = Reader::new(bytes);
    match read_value(&mut reader, kind, module, budget) {
        Ok(value) if reader.is_empty() => Ok(value),
        Ok(_) | Err(Unread::Misshapen(_)) => Ok(Value::None),
        Err(Unread::Fault(fault)) => Err(fault),
    }
}

fn wrong<T>(message: impl Into<String>) -> Read<T> {
    Err(Misshapen::new(message).into())
}

fn malformed(error: Malformed) -> Unread {
    Misshapen::new(format!("malformed arguments: {}", error.0)).into()
}

fn read_fields(
    reader: &mut Reader<'_>,
    (fields, former): (&[Field], &[Former]),
    module: &Module,
    budget: &mut Budget,
) -> Read<Vec<Value>> {
    let count = reader.count().map_err(malformed)?;
    budget.bytes(fields.len() * VALUE_BYTES)?;
    let mut values: Vec<Option<Value>> = vec![None; fields.len()];
    for _ in 0..count {
        let name = reader.text().map_err(malformed)?;
        budget.searched(fields.len() + former.len())?;
        let now = fields.iter().position(|field| field.name == name);
        let before = || former.iter().find(|former| former.name == name);
        let at = match now.map(Some).or_else(|| Some(before()?.now.map(usize::from))) {
            Some(Some(at)) => at,
            Some(None) => {
                pass_over(reader, PASSED_OVER_DEPTH_MAX, budget)?;
                continue;
            }
            None => {
                let name: String = name.chars().take(40).collect();
                return wrong(format!("there is no field `{name}`"));
            }
        };
        if values[at].is_some() {
            return Err(Misshapen::new("is there twice").in_field(name).into());
        }
        let value = read_value(reader, &fields[at].kind, module, budget);
        values[at] = Some(value.map_err(|unread| unread.said(|wrong| wrong.in_field(name)))?);
    }
    filled(values, fields, module)
}

/// Reads what no field takes any more.
fn pass_over(reader: &mut Reader<'_>, depth: u16, budget: &mut Budget) -> Read<()> {
    budget.operations(1)?;
    let Some(depth) = depth.checked_sub(1) else { return wrong("malformed arguments: nested too deep") };
    match reader.byte().map_err(malformed)? {
        NONE => {}
        BOOL | INT | TIME | DURATION => drop(reader.word().map_err(malformed)?),
        TEXT | CASE | ENDPOINT => drop(reader.text().map_err(malformed)?),
        NODE => drop(reader.take(32).map_err(malformed)?),
        REAL => drop(reader.take(8).map_err(malformed)?),
        BYTES => {
            let count = reader.count().map_err(malformed)?;
            reader.take(count).map_err(malformed)?;
        }
        RECORD => {
            for _ in 0..reader.count().map_err(malformed)? {
                reader.text().map_err(malformed)?;
                pass_over(reader, depth, budget)?;
            }
        }
        LIST => {
            for _ in 0..reader.count().map_err(malformed)? {
                pass_over(reader, depth, budget)?;
            }
        }
        _ => return wrong("malformed arguments: a value of no type"),
    }
    Ok(())
}

fn read_value(reader: &mut Reader<'_>, kind: &Type, module: &Module, budget: &mut Budget) -> Read<Value> {
    budget.operations(1)?;
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
            let enumeration = &module.enums[*number as usize];
            budget.searched(enumeration.cases.len() + enumeration.former.len())?;
            let now = enumeration.cases.iter().position(|case| case == text);
            let before = || enumeration.former.iter().find(|former| former.name == text);
            return match now.or_else(|| before()?.now.map(usize::from)) {
                Some(at) => Ok(Value::Word(at as i64)),
                None => wrong(format!("expected {}, found another case", expected(kind, module))),
            };
        }
        (Type::Record(number), RECORD) => {
            let record = &module.records[*number as usize];
            let values = read_fields(reader, (&record.fields, &record.former), module, budget)?;
            return Ok(Value::Record(values.into()));
        }
        (Type::List(element), LIST) => {
            let count = reader.count().map_err(malformed)?;
            budget.bytes(count * VALUE_BYTES)?;
            let values: Read<Vec<Value>> =
                (0..count).map(|_| read_value(reader, element, module, budget)).collect();
            return Ok(Value::List(Arc::new(values?)));
        }
        _ => return wrong(format!("expected {}, found another type", expected(kind, module))),
    };
    let value = plain.map_err(malformed)?;
    match &value {
        Value::Text(text) => budget.bytes(text.len())?,
        Value::Bytes(bytes) => budget.bytes(bytes.len())?,
        _ => {}
    }
    Ok(value)
}
