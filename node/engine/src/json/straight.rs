//! The short way through an object of words and plain texts, written as programs write it: all fields in their order, at
//! most one blank behind `:` and `,`, numbers of at most 18 digits, texts without escapes. All else is left to `read`, which
//! reads the same, and finds fault with it where there is one.

use crate::budget::{Budget, VALUE_BYTES};
use weft::Value;
use weft::module::{Field, Type};

/// Reads a whole object into as many places; it is charged as `read` charges it. None, and nothing charged, where the way
/// is not straight; some places may have a value then.
pub(super) fn read(text: &[u8], fields: &[Field], budget: &mut Budget, places: &mut [Value]) -> Option<()> {
    let mut rest = text;
    // Names and texts are charged by their bytes, one by one.
    let (mut operations, mut bytes) = ((fields.len() * VALUE_BYTES) as u64 / 16, fields.len() * VALUE_BYTES);
    let mut charge = |count: usize| {
        operations += count as u64 / 16;
        bytes += count;
    };
    let mut before = b'{';
    for (field, place) in fields.iter().zip(places) {
        rest = behind(before, rest)?;
        before = b',';
        rest = rest.strip_prefix(b"\"")?.strip_prefix(field.name.as_bytes())?.strip_prefix(b"\"")?;
        rest = behind(b':', rest)?;
        charge(field.name.len());
        match field.kind {
            Type::Int | Type::Time | Type::Duration => {
                let (word, length) = short_number(rest)?;
                *place = Value::Word(word);
                rest = rest.get(length..)?;
            }
            Type::Bool => {
                let word = rest.starts_with(b"true");
                *place = Value::Word(i64::from(word));
                rest = rest.strip_prefix(if word { b"true".as_slice() } else { b"false" })?;
            }
            Type::Text => {
                let text = rest.strip_prefix(b"\"")?;
                let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
                charge(end);
                *place = Value::Text(str::from_utf8(&text[..end]).ok()?.into());
                rest = text[end..].strip_prefix(b"\"")?;
            }
            _ => return None,
        }
    }
    let names = fields.len() as u64 * (1 + fields.len() as u64 / 16);
    (rest == b"}" && before == b',').then_some(())?;
    budget.charge(operations + names, bytes as u64)
}

/// What comes behind a sign, and behind one blank there.
fn behind(sign: u8, text: &[u8]) -> Option<&[u8]> {
    match text {
        [first, b' ', rest @ ..] | [first, rest @ ..] if *first == sign => Some(rest),
        _ => None,
    }
}

/// Digits that fit an i64 whatever they are.
const SHORT_DIGITS: usize = 18;

/// The whole number that stands first, and its length, if it is short, regular, and followed by what ends a value;
/// all others are read, and found fault with, at leisure.
pub(super) fn short_number(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let digits = &text[sign..];
    let mut word = 0;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = digits.get(length) {
        if length == SHORT_DIGITS {
            return None;
        }
        word = word * 10 + i64::from(digit - b'0');
        length += 1;
    }
    let regular = length == 1 || length > 1 && digits[0] != b'0';
    let ended = matches!(digits.get(length), None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
    (regular && ended).then_some((if sign == 1 { -word } else { word }, sign + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{read_arguments, read_fields};
    use weft::module::Module;

    /// Reads a text both ways; whether the short one took it.
    fn check(module: &Module, text: &str) -> bool {
        let fields = &module.inputs[0].fields;
        let (mut long, mut short) = (Budget::new(), Budget::new());
        let values = read_fields(text.as_bytes(), fields, module, &mut long);
        let mut places = vec![Value::None; fields.len()];
        let is_straight = read(text.as_bytes(), fields, &mut short, &mut places).is_some();
        if is_straight {
            assert_eq!(values.as_ref(), Ok(&places), "{text}");
            assert_eq!(format!("{short:?}"), format!("{long:?}"), "{text}");
        }
        let mut places = vec![Value::None; fields.len()];
        let read = read_arguments(text.as_bytes(), fields, module, &mut Budget::new(), &mut places);
        assert_eq!(read.map(|()| places), values, "{text}");
        is_straight
    }

    #[test]
    fn the_short_way_leads_where_the_long_one_does() {
        let source = "app a\nrecord R { id: int, note: text }\nstate l: list of R by id\n\
                      on f(a: int, t: text, b: bool, at: time) { l put R { id: a, note: t } }";
        let module = weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        let straight = [
            r#"{"a":-17,"t":"some text that is longer than sixteen bytes","b":true,"at":0}"#,
            r#"{ "a": 123456789012345678, "t": "", "b": false, "at": 9}"#,
            r#"{"a":0,"t":"žluťoučký","b":false,"at":-1}"#,
        ];
        let not = [
            r#"{}"#,
            r#"{"a":1,"t":"x","b":true}"#,
            r#"{"t":"x","a":1,"b":true,"at":1}"#,
            r#"{"a":1,"t":"\n","b":true,"at":1}"#,
            r#"{"a" :1,"t":"x","b":true,"at":1}"#,
            r#"{"a":1,"t":"x","b":true,"at":1} "#,
            r#"{"a":1,"t":"x","b":true,"at":1}}"#,
            r#"{"a":1,"t":"x","b":true,"at":1,}"#,
            r#"{"a":1,"t":"x","b":true,"at":1,"at":1}"#,
            r#"{"a":1,"t":"x","b":truer,"at":1}"#,
            r#"{"a":1,"t":"x","b":tru,"at":1}"#,
            r#"{"a":01,"t":"x","b":true,"at":1}"#,
            r#"{"a":-,"t":"x","b":true,"at":1}"#,
            r#"{"a":1.0,"t":"x","b":true,"at":1}"#,
            r#"{"a":null,"t":"x","b":true,"at":1}"#,
            r#"{"a":9223372036854775807,"t":"x","b":true,"at":1}"#,
            r#"{"a":9223372036854775808,"t":"x","b":true,"at":1}"#,
            r#"{"a":1,"t":"x","b":true,"at":1"#,
            r#"{"a":1,"t":"x"#,
            r#"[{"a":1,"t":"x","b":true,"at":1}"#,
            r#"{"a":1,"t":x,"b":true,"at":1}"#,
            r#"{"aa":1,"t":"x","b":true,"at":1}"#,
            "",
        ];
        for text in straight {
            assert!(check(&module, text), "{text}");
        }
        for text in not {
            assert!(!check(&module, text), "{text}");
        }
    }
}
