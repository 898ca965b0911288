//! Values, and how they are written: as JSON, in a text, in a row, in a key, in the arguments of a send.

use super::kinds::{Kind, Program};
use sealing::NodeId;
use weft::value::Real;

/// A value says what it is. They are compared as the language does: `none` first, cases by their place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Real(Real),
    Text(String),
    Bytes(Vec<u8>),
    Time(i64),
    Duration(i64),
    Node([u8; 32]),
    Endpoint(String),
    /// Its place in its enum, and its name.
    Case(usize, String),
    Record(Vec<(String, Value)>),
    List(Vec<Value>),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub fn field(&self, name: &str) -> &Value {
        let Value::Record(fields) = self else { panic!("{self:?} has no field `{name}`") };
        match fields.iter().find(|(field, _)| field == name) {
            Some((_, value)) => value,
            None => panic!("{self:?} has no field `{name}`"),
        }
    }

    pub fn set_field(&mut self, name: &str, value: Value) {
        let Value::Record(fields) = self else { panic!("{self:?} has no field `{name}`") };
        let field =
            fields.iter_mut().find(|(field, _)| field == name).expect("the checker has seen the field");
        field.1 = value;
    }

    pub fn bool(&self) -> bool {
        match self {
            Value::Bool(value) => *value,
            other => panic!("{other:?} is no bool"),
        }
    }

    pub fn int(&self) -> i64 {
        match self {
            Value::Int(value) | Value::Time(value) | Value::Duration(value) => *value,
            other => panic!("{other:?} is no whole number"),
        }
    }

    pub fn list(self) -> Vec<Value> {
        match self {
            Value::List(values) => values,
            other => panic!("{other:?} is no list"),
        }
    }

    /// As it stands in a text.
    pub fn written(&self) -> String {
        match self {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Real(value) => format!("{:?}", value.get()),
            Value::Text(value) | Value::Endpoint(value) | Value::Case(_, value) => value.clone(),
            Value::Node(value) => NodeId(*value).to_string(),
            Value::Time(value) => written_time(*value),
            Value::Duration(value) => written_duration(*value),
            other => panic!("{other:?} has no form as a text"),
        }
    }
}

/// RFC 3339: whole cycles of 400 years are taken off, the rest is counted year by year and month by month.
fn written_time(milliseconds: i64) -> String {
    const DAY: i64 = 86_400_000;
    const CYCLE: i64 = 146_097;
    let (days, rest) = (milliseconds.div_euclid(DAY), milliseconds.rem_euclid(DAY));
    let mut year = 1970 + 400 * days.div_euclid(CYCLE);
    let mut day = days.rem_euclid(CYCLE);
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let fraction = if rest % 1000 == 0 { String::new() } else { format!(".{:03}", rest % 1000) };
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", day + 1)
}

pub fn written_duration(milliseconds: i64) -> String {
    match milliseconds {
        0 => "0 ms".into(),
        days if days % 86_400_000 == 0 => format!("{} d", days / 86_400_000),
        hours if hours % 3_600_000 == 0 => format!("{} h", hours / 3_600_000),
        minutes if minutes % 60_000 == 0 => format!("{} min", minutes / 60_000),
        seconds if seconds % 1000 == 0 => format!("{} s", seconds / 1000),
        other => format!("{other} ms"),
    }
}

pub fn json(value: &Value) -> String {
    match value {
        Value::None => "null".into(),
        Value::Int(value) | Value::Time(value) | Value::Duration(value) => value.to_string(),
        Value::Bool(_) | Value::Real(_) => value.written(),
        Value::Text(text) | Value::Endpoint(text) | Value::Case(_, text) => json_text(text),
        Value::Bytes(bytes) => json_text(&data_encoding::BASE64.encode(bytes)),
        Value::Node(_) => json_text(&value.written()),
        Value::Record(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{}", json(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::List(values) => format!("[{}]", values.iter().map(json).collect::<Vec<_>>().join(",")),
    }
}

fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// As a parameter of a view's query.
pub fn parameter(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Endpoint(text) | Value::Case(_, text) => text.clone(),
        Value::Bytes(bytes) => data_encoding::BASE64.encode(bytes),
        Value::Node(_) => value.written(),
        other => json(other),
    }
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let low = (number & 127) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 128);
    }
}

/// Zigzag: 0, -1, 1, -2, … are 0, 1, 2, 3, …
pub fn put_word(word: i64, out: &mut Vec<u8>) {
    let number = if word < 0 { (-(word + 1)) as u64 * 2 + 1 } else { word as u64 * 2 };
    put_number(number, out);
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A row's bytes; only the declared kind tells what may be none.
pub fn put_row(value: &Value, kind: &Kind, program: &Program, out: &mut Vec<u8>) {
    match (value, kind) {
        (Value::None, Kind::Optional(_)) => out.push(0),
        (value, Kind::Optional(inner)) => {
            out.push(1);
            put_row(value, inner, program, out);
        }
        (Value::Bool(value), _) => put_word(i64::from(*value), out),
        (Value::Int(word) | Value::Time(word) | Value::Duration(word), _) => put_word(*word, out),
        (Value::Case(place, _), _) => put_word(*place as i64, out),
        (Value::Real(real), _) => out.extend_from_slice(&real.get().to_bits().to_be_bytes()),
        (Value::Text(text) | Value::Endpoint(text), _) => put_sized(text.as_bytes(), out),
        (Value::Bytes(bytes), _) => put_sized(bytes, out),
        (Value::Node(node), _) => out.extend_from_slice(node),
        (Value::Record(values), Kind::Record(name)) => {
            for ((_, value), field) in values.iter().zip(&program.record(name).fields) {
                put_row(value, &field.kind, program, out);
            }
        }
        (Value::List(values), Kind::List(element)) => {
            put_number(values.len() as u64, out);
            values.iter().for_each(|value| put_row(value, element, program, out));
        }
        (value, kind) => panic!("{value:?} is no {kind:?}"),
    }
}

/// A key's bytes: they compare as the key does.
pub fn put_key(value: &Value, out: &mut Vec<u8>) {
    let mut word =
        |word: i64| out.extend_from_slice(&((i128::from(word) - i128::from(i64::MIN)) as u64).to_be_bytes());
    match value {
        Value::Bool(value) => word(i64::from(*value)),
        Value::Int(value) | Value::Time(value) | Value::Duration(value) => word(*value),
        Value::Case(place, _) => word(*place as i64),
        Value::Real(real) => {
            let bits = real.get().to_bits();
            let ordered = if real.get().is_sign_negative() { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Value::Node(node) => out.extend_from_slice(node),
        Value::Text(text) | Value::Endpoint(text) => put_ended(text.as_bytes(), out),
        Value::Bytes(bytes) => put_ended(bytes, out),
        other => panic!("{other:?} is no key"),
    }
}

fn put_ended(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(if *byte == 0 { &[0, 255] } else { std::slice::from_ref(byte) });
    }
    out.extend_from_slice(&[0, 0]);
}

/// The arguments of a send: a version, then names and values that say what they are.
pub fn encode_arguments(fields: &[(String, Value)]) -> Vec<u8> {
    let mut out = vec![1];
    put_named(fields, &mut out);
    out
}

/// An answer: a version, then a value that says what it is.
pub fn encode_answer(answer: &Value) -> Vec<u8> {
    let mut out = vec![1];
    put_tagged(answer, &mut out);
    out
}

fn put_named(fields: &[(String, Value)], out: &mut Vec<u8>) {
    put_number(fields.len() as u64, out);
    for (name, value) in fields {
        put_sized(name.as_bytes(), out);
        put_tagged(value, out);
    }
}

fn put_tagged(value: &Value, out: &mut Vec<u8>) {
    let mut tagged_word = |tag: u8, word: i64| {
        out.push(tag);
        put_word(word, out);
    };
    match value {
        Value::None => out.push(0),
        Value::Bool(value) => tagged_word(1, i64::from(*value)),
        Value::Int(value) => tagged_word(2, *value),
        Value::Time(value) => tagged_word(4, *value),
        Value::Duration(value) => tagged_word(5, *value),
        Value::Text(text) => put_tagged_bytes(3, text.as_bytes(), out),
        Value::Case(_, name) => put_tagged_bytes(7, name.as_bytes(), out),
        Value::Bytes(bytes) => put_tagged_bytes(11, bytes, out),
        Value::Endpoint(text) => put_tagged_bytes(12, text.as_bytes(), out),
        Value::Node(node) => {
            out.push(6);
            out.extend_from_slice(node);
        }
        Value::Real(real) => {
            out.push(10);
            out.extend_from_slice(&real.get().to_bits().to_be_bytes());
        }
        Value::Record(fields) => {
            out.push(8);
            put_named(fields, out);
        }
        Value::List(values) => {
            out.push(9);
            put_number(values.len() as u64, out);
            values.iter().for_each(|value| put_tagged(value, out));
        }
    }
}

fn put_tagged_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    put_sized(bytes, out);
}
