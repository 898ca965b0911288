//! JSON in, strict and by type.
//!
//! What comes in is read along the wanted type, so that nesting is bounded by types and nothing is kept that is not
//! wanted: an unknown, missing or repeated field, a wrong type or a number too large says where and what was expected.

use super::expected::{expected, listed, object_of};
use super::straight;
use crate::budget::{Budget, Fault, VALUE_BYTES};
use crate::text::read_duration;
use data_encoding::BASE64;
use sealing::{NodeId, NodeIdError};
use std::borrow::Cow;
use std::sync::Arc;
use weft::Value;
use weft::module::{Field, Module, Type};
use weft::value::Real;

/// What is wrong with a JSON text, and where: the path is collected from the inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misshapen {
    /// What the outermost name of the path is of: a JSON object's field, or a query's parameter.
    place: &'static str,
    path: Vec<String>,
    message: String,
}

impl Misshapen {
    pub(crate) fn new(message: impl Into<String>) -> Misshapen {
        Misshapen { place: "field", path: Vec::new(), message: message.into() }
    }

    pub(crate) fn in_field(mut self, name: &str) -> Misshapen {
        self.path.push(if self.path.is_empty() { name.into() } else { format!("{name}.") });
        self
    }

    /// What is named is a query's parameter.
    pub(crate) fn of_parameter(self) -> Misshapen {
        Misshapen { place: "parameter", ..self }
    }

    fn in_element(mut self, at: usize) -> Misshapen {
        let dot = self.path.last().is_some_and(|last| !last.starts_with('['));
        self.path.push(format!("[{at}]{}", if dot { "." } else { "" }));
        self
    }

    pub(crate) fn message(&self) -> String {
        if self.path.is_empty() {
            return self.message.clone();
        }
        let path: String = self.path.iter().rev().map(String::as_str).collect();
        format!("{} `{}`: {}", self.place, path.replace(".[", "["), self.message)
    }
}

/// Why a value was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not what was expected.
    Misshapen(Misshapen),
    /// It would cost too much.
    Fault(Fault),
}

impl From<Misshapen> for Unread {
    fn from(wrong: Misshapen) -> Unread {
        Unread::Misshapen(wrong)
    }
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Unread {
        Unread::Fault(fault)
    }
}

impl Unread {
    fn new(message: impl Into<String>) -> Unread {
        Unread::Misshapen(Misshapen::new(message))
    }

    /// With more said about what is misshapen.
    pub(crate) fn said(self, more: impl FnOnce(Misshapen) -> Misshapen) -> Unread {
        match self {
            Unread::Misshapen(wrong) => Unread::Misshapen(more(wrong)),
            fault => fault,
        }
    }
}

pub(crate) type Read<T> = Result<T, Unread>;

/// Reads a whole object with exactly these fields; what is made is charged.
pub(crate) fn read_fields(
    text: &[u8],
    fields: &[Field],
    module: &Module,
    budget: &mut Budget,
) -> Read<Vec<Value>> {
    let mut reader = Reader::new(text, module, budget)?;
    let values = reader.fields(fields)?;
    reader.end()?;
    Ok(values)
}

/// As [`read_fields`], into as many places, which are none.
pub(crate) fn read_arguments(
    text: &[u8],
    fields: &[Field],
    module: &Module,
    budget: &mut Budget,
    places: &mut [Value],
) -> Read<()> {
    if straight::read(text, fields, budget, places).is_none() {
        let values = read_fields(text, fields, module, budget)?;
        places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    }
    Ok(())
}

/// Reads a whole value; what is made is charged.
pub(crate) fn read_value(text: &[u8], kind: &Type, module: &Module, budget: &mut Budget) -> Read<Value> {
    let mut reader = Reader::new(text, module, budget)?;
    let value = reader.value(kind)?;
    reader.end()?;
    Ok(value)
}

struct Reader<'t, 'b> {
    text: &'t str,
    at: usize,
    module: &'t Module,
    budget: &'b mut Budget,
}

impl<'t, 'b> Reader<'t, 'b> {
    fn new(text: &'t [u8], module: &'t Module, budget: &'b mut Budget) -> Read<Reader<'t, 'b>> {
        let text = std::str::from_utf8(text).map_err(|_| Unread::new("the JSON text is not UTF-8"))?;
        Ok(Reader { text, at: 0, module, budget })
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The sign that comes next, after blanks.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest.first() {
            Some(b' ' | b'\t' | b'\n' | b'\r') => {
                let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
                self.at += blanks.count();
                self.text.as_bytes().get(self.at).copied()
            }
            other => other.copied(),
        }
    }

    /// Takes a sign if it comes next.
    fn take(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn end(&mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Unread::new(format!("something follows the JSON value, at byte {}", self.at))),
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        let found = after.is_some_and(|after| !after.starts_with(|next: char| next.is_ascii_alphanumeric()));
        if found {
            self.at += word.len();
        }
        found
    }

    /// What stands here, for a message; nothing is read after it.
    fn found(&mut self) -> &'static str {
        match self.peek() {
            None => "the end",
            Some(b'"') => "a text",
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b't' | b'f') if self.take_word("true") || self.take_word("false") => "a bool",
            Some(b'n') if self.take_word("null") => "null",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(_) => "something that is no JSON",
        }
    }

    fn wrong<T>(&mut self, wanted: &str) -> Read<T> {
        let found = self.found();
        Err(Unread::new(format!("expected {wanted}, found {found}")))
    }

    fn fields(&mut self, fields: &[Field]) -> Read<Vec<Value>> {
        if !self.take(b'{') {
            return self.wrong(&object_of(fields, self.module));
        }
        self.budget.bytes(fields.len() * VALUE_BYTES)?;
        let mut values: Vec<Option<Value>> = vec![None; fields.len()];
        let (mut first, mut next) = (true, 0);
        while !self.take(b'}') {
            if !std::mem::take(&mut first) && !self.take(b',') {
                return self.wrong("`,` or `}`");
            }
            if self.peek() != Some(b'"') {
                return self.wrong("a field's name");
            }
            let name = self.string()?;
            if !self.take(b':') {
                return self.wrong("`:`");
            }
            self.budget.searched(fields.len())?;
            // Most write the fields in their order.
            let is_named = |at: &usize| fields.get(*at).is_some_and(|field| *field.name == *name);
            let Some(at) = Some(next).filter(is_named).or_else(|| (0..fields.len()).find(is_named)) else {
                return Err(unknown_field(&name, fields).into());
            };
            next = at + 1;
            let field = &fields[at];
            if values[at].is_some() {
                return Err(Misshapen::new("is there twice").in_field(&field.name).into());
            }
            values[at] = Some(
                self.value(&field.kind).map_err(|unread| unread.said(|wrong| wrong.in_field(&field.name)))?,
            );
        }
        filled(values, fields, self.module)
    }

    fn value(&mut self, kind: &Type) -> Read<Value> {
        self.budget.operations(1)?;
        if let Type::Optional(inner) = kind {
            if self.peek() == Some(b'n') && self.take_word("null") {
                return Ok(Value::None);
            }
            return self.value(inner);
        }
        match (kind, self.peek()) {
            (Type::Bool, Some(b't')) if self.take_word("true") => Ok(Value::Word(1)),
            (Type::Bool, Some(b'f')) if self.take_word("false") => Ok(Value::Word(0)),
            (Type::Int | Type::Time | Type::Duration, Some(b'-' | b'0'..=b'9')) => self.number(kind),
            (Type::Real, Some(b'-' | b'0'..=b'9')) => self.real(kind),
            (Type::Text, Some(b'"')) => Ok(Value::Text(self.string()?.into())),
            (Type::Node | Type::Enum(_) | Type::Bytes | Type::Endpoint, Some(b'"')) => {
                let text = self.string()?;
                from_text(&text, kind, self.module, self.budget)
            }
            (Type::Record(number), Some(b'{')) => {
                let module = self.module;
                Ok(Value::Record(self.fields(&module.records[*number as usize].fields)?.into()))
            }
            (Type::List(element), Some(b'[')) => self.list(element),
            _ => self.wrong(&expected(kind, self.module)),
        }
    }

    fn list(&mut self, element: &Type) -> Read<Value> {
        self.take(b'[');
        let mut values = Vec::new();
        while !self.take(b']') {
            if !values.is_empty() && !self.take(b',') {
                return self.wrong("`,` or `]`");
            }
            self.budget.bytes(VALUE_BYTES)?;
            let value = self.value(element);
            values.push(value.map_err(|unread| unread.said(|wrong| wrong.in_element(values.len())))?);
        }
        Ok(Value::List(Arc::new(values)))
    }

    /// What stands where a number should, as an error.
    fn no_number<T>(&self, kind: &Type, found: &str, why: &str) -> Read<T> {
        let wanted = expected(kind, self.module);
        Err(Unread::new(format!("expected {wanted}, found {}{why}", shortened(found))))
    }

    /// The letters, digits and signs that come next.
    fn number_text(&self) -> &'t str {
        let rest = self.rest();
        let of_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        &rest[..rest.bytes().position(|byte| !of_number(&byte)).unwrap_or(rest.len())]
    }

    fn number(&mut self, kind: &Type) -> Read<Value> {
        if let Some((word, length)) = straight::short_number(&self.text.as_bytes()[self.at..]) {
            self.at += length;
            return Ok(Value::Word(word));
        }
        let text = self.number_text();
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let (wanted, shown) = (expected(kind, self.module), shortened(text));
            return Err(Unread::new(format!("expected {wanted}, a whole number, found {shown}")));
        }
        if digits.len() > 1 && digits.starts_with('0') {
            return self.no_number(kind, text, " with a leading zero");
        }
        let Ok(word) = text.parse::<i64>() else {
            return self.no_number(kind, text, &format!(": it goes from {} to {}", i64::MIN, i64::MAX));
        };
        self.at += text.len();
        Ok(Value::Word(word))
    }

    /// A number as RFC 8259 has it, with or without a point.
    fn real(&mut self, kind: &Type) -> Read<Value> {
        let text = self.number_text();
        if !is_number(text) {
            return self.no_number(kind, text, "");
        }
        let Some(real) = text.parse().ok().and_then(Real::new) else {
            return self.no_number(kind, text, ": it is too large");
        };
        self.at += text.len();
        Ok(Value::Real(real))
    }

    /// A string, whose quote comes next: as it stands in the text, or put together where it has escapes.
    fn string(&mut self) -> Read<Cow<'t, str>> {
        self.take(b'"');
        let mut pieces = String::new();
        loop {
            let rest = self.rest();
            let is_stop = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
            let Some(stop) = rest.as_bytes().iter().position(is_stop) else {
                return Err(Unread::new("a text is not closed"));
            };
            self.budget.bytes(stop)?;
            self.at += stop + 1;
            let piece = &rest[..stop];
            match rest.as_bytes()[stop] {
                b'"' if pieces.is_empty() => return Ok(Cow::Borrowed(piece)),
                b'"' => return Ok(Cow::Owned(pieces + piece)),
                b'\\' => {
                    pieces.push_str(piece);
                    pieces.push(self.escape()?);
                }
                _ => return Err(Unread::new("a control character stands in a text; write it as `\\u….`")),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let wrong = || Unread::new("an escape in a text is none of JSON's");
        let byte = self.rest().bytes().next().ok_or_else(wrong)?;
        self.at += if byte.is_ascii() { 1 } else { return Err(wrong()) };
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits().ok_or_else(wrong)?;
                if let Some(character) = char::from_u32(first) {
                    return Ok(character);
                }
                // A high surrogate wants its low half (RFC 8259, section 7).
                let low = self.rest().starts_with("\\u").then(|| {
                    self.at += 2;
                    self.four_digits()
                });
                let low = low.flatten().filter(|low| (0xdc00..0xe000).contains(low) && first < 0xdc00);
                let low =
                    low.ok_or_else(|| Unread::new("half of a surrogate pair stands alone in a text"))?;
                char::from_u32(0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00)).ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits =
            self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Whether a text is a JSON number: `-`, digits without a leading zero, a fraction, an exponent.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn unknown_field(name: &str, fields: &[Field]) -> Misshapen {
    let there = listed(fields.iter().map(|field| field.name.clone()));
    let there = if there.is_empty() { "none are expected".into() } else { format!("expected {there}") };
    Misshapen::new(format!("there is no field `{}`: {there}", shortened(name)))
}

/// The values of fields, defaults where none is given.
pub(crate) fn filled(values: Vec<Option<Value>>, fields: &[Field], module: &Module) -> Read<Vec<Value>> {
    let value = |(value, field): (Option<Value>, &Field)| {
        value.or_else(|| field.default.clone()).ok_or_else(|| {
            let missing = Misshapen::new(format!("is missing: expected {}", expected(&field.kind, module)));
            missing.in_field(&field.name).into()
        })
    };
    values.into_iter().zip(fields).map(value).collect()
}

/// The value of a setting: JSON, or a duration as the language writes it.
pub(crate) fn read_setting(text: &str, kind: &Type, module: &Module) -> Read<Value> {
    let is_duration = match kind {
        Type::Optional(inner) => **inner == Type::Duration,
        kind => *kind == Type::Duration,
    };
    if is_duration && let Some(milliseconds) = read_duration(text.trim().trim_matches('"')) {
        return Ok(Value::Word(milliseconds));
    }
    let value = read_value(text.as_bytes(), kind, module, &mut Budget::new());
    value.map_err(|unread| match is_duration {
        true => unread.said(|_| no_value(text, "duration (milliseconds, or as in 5 min)")),
        false => unread,
    })
}

fn no_value(text: &str, wanted: &str) -> Misshapen {
    Misshapen::new(format!("expected {wanted}, found \"{}\"", shortened(text)))
}

/// Values that are texts in JSON.
fn from_text(text: &str, kind: &Type, module: &Module, budget: &mut Budget) -> Read<Value> {
    budget.bytes(text.len())?;
    let value = match kind {
        Type::Node => return Ok(node_from_text(text, module)?),
        Type::Enum(number) => {
            let cases = &module.enums[*number as usize].cases;
            budget.searched(cases.len())?;
            cases.iter().position(|case| case == text).map(|at| Value::Word(at as i64))
        }
        Type::Bytes => BASE64.decode(text.as_bytes()).ok().map(|bytes| Value::Bytes(bytes.into())),
        Type::Endpoint if !has_a_port_that_is_one(text) => {
            return Err(no_value(text, "endpoint, whose port is a number up to 65535").into());
        }
        Type::Endpoint => {
            let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
            host.filter(|host| !host.is_empty() && !host.contains(|c: char| c.is_control() || c == ' '))
                .map(|_| Value::Text(text.into()))
        }
        _ => None,
    };
    value.ok_or_else(|| no_value(text, &expected(kind, module)).into())
}

/// Whether the port of an address, if it names one, is one: up to 65535. Some would take another in its place.
fn has_a_port_that_is_one(address: &str) -> bool {
    let Some((_, behind_scheme)) = address.split_once("://") else { return true };
    let authority = behind_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // An address of IPv6 stands in brackets, for its colons.
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.split_once(':').is_none_or(|(_, port)| port.is_empty() || is_port(port))
}

fn is_port(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
}

/// A node's id; one that was copied badly is told as such.
fn node_from_text(text: &str, module: &Module) -> Result<Value, Misshapen> {
    let wrong = match text.parse::<NodeId>() {
        Ok(node) => return Ok(Value::Node(Arc::new(node.0))),
        Err(wrong) => wrong,
    };
    let shown = shortened(text);
    Err(match wrong {
        NodeIdError::Prefix(_) => no_value(text, &expected(&Type::Node, module)),
        NodeIdError::Shape(_) => Misshapen::new(NodeIdError::Shape(shown).to_string()),
        NodeIdError::Checksum(_) => Misshapen::new(NodeIdError::Checksum(shown).to_string()),
    })
}

/// The number that a whole text is, if it is short and regular.
fn whole_number(text: &str) -> Option<i64> {
    straight::short_number(text.as_bytes()).filter(|(_, length)| *length == text.len()).map(|(word, _)| word)
}

/// One parameter of a query: numbers, texts, nodes, bools and cases as they are, lists and records as JSON.
pub(crate) fn read_parameter(text: &str, field: &Field, module: &Module, budget: &mut Budget) -> Read<Value> {
    let kind = match &field.kind {
        Type::Optional(inner) => &**inner,
        other => other,
    };
    match kind {
        Type::Text => budget.bytes(text.len()).map(|()| Value::Text(text.into())).map_err(Unread::Fault),
        Type::Int | Type::Time | Type::Duration if let Some(word) = whole_number(text) => {
            // As reading any value costs.
            budget.operations(1).map(|()| Value::Word(word)).map_err(Unread::Fault)
        }
        Type::Node | Type::Enum(_) | Type::Bytes | Type::Endpoint => from_text(text, kind, module, budget),
        // A word where a number is wanted is shown as it is: whoever writes a query does not think of JSON.
        Type::Bool | Type::Int | Type::Real | Type::Time | Type::Duration
            if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) =>
        {
            let value = read_value(text.as_bytes(), kind, module, budget);
            value.map_err(|unread| unread.said(|_| no_value(text, &expected(kind, module))))
        }
        _ => read_value(text.as_bytes(), kind, module, budget),
    }
    .map_err(|unread| unread.said(|wrong| wrong.in_field(&field.name).of_parameter()))
}
