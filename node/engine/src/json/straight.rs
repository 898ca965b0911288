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
