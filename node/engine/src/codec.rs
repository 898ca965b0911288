//! Rows and keys as bytes.
//!
//! A row is its fields in order, each by its type: words as zigzag varints, reals as the
//! 8 bytes of their bits, texts, bytes and lists after their length, nodes as 32 bytes, a `T?` after a byte that says whether it is there. A key compares as its bytes do: words big-endian
//! with the sign turned, reals so that their bytes are in their order, texts and bytes with 0 written 0 255 and ended by 0 0.

use std::sync::Arc;
use weft::Value;
use weft::module::{Module, Type};
use weft::value::Real;

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Why a value has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwritable {
    /// More than allowed.
    TooLarge,
    /// It is not of its type: an error of the compiler.
    OfAnotherType,
}

/// Whether a value is of a type, its parts not looked at.
#[inline(always)]
pub(crate) fn is_of(value: &Value, kind: &Type) -> bool {
    match (kind, value) {
        (Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_), Value::Word(_)) => true,
        _ => is_of_other(value, kind),
    }
}

fn is_of_other(value: &Value, kind: &Type) -> bool {
    match (kind, value) {
        (Type::Text | Type::Endpoint, Value::Text(_))
        | (Type::Optional(_), Value::None)
        | (Type::Node, Value::Node(_))
        | (Type::Real, Value::Real(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Record(_), Value::Record(_))
        | (Type::List(_), Value::List(_)) => true,
        (Type::Optional(inner), value) => is_of(value, inner),
        _ => false,
    }
}

#[inline]
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    // Two bytes at a time are half the work.
    while number >= 0x4000 {
        out.extend_from_slice(&[number as u8 | 0x80, (number >> 7) as u8 | 0x80]);
        number >>= 14;
    }
    if number >= 0x80 {
        return out.extend_from_slice(&[number as u8 | 0x80, (number >> 7) as u8]);
    }
    out.push(number as u8);
}

fn zigzag(word: i64) -> u64 {
    ((word << 1) ^ (word >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[inline]
pub(crate) fn put_word(word: i64, out: &mut Vec<u8>) {
    put_number(zigzag(word), out);
}

/// Bytes of words that are gathered before they are appended: a power of two.
const GATHERED: usize = 128;
/// Bytes of the longest number; one of up to 56 bits is put as a word of 8, of which those that follow are put over.
const NUMBER_BYTES: usize = 10;
/// Bytes of most rows of words with their heads: so many are copied without asking how many.
const FEW: usize = 64;

/// Writes words one behind the other as [`put_word`] does each.
pub(crate) struct Words<'o> {
    out: &'o mut Vec<u8>,
    bytes: [u8; GATHERED + NUMBER_BYTES],
    len: usize,
}

impl<'o> Words<'o> {
    /// What is written comes behind `first`.
    #[inline(always)]
    pub(crate) fn new<const N: usize>(out: &'o mut Vec<u8>, first: [u8; N]) -> Words<'o> {
        let mut bytes = [0; GATHERED + NUMBER_BYTES];
        bytes[..N].copy_from_slice(&first);
        Words { out, bytes, len: N }
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, word: i64) {
        if self.len > GATHERED - NUMBER_BYTES {
            self.flush();
        }
        let at = self.len % GATHERED;
        let number = zigzag(word);
        if number < 0x80 {
            self.bytes[at] = number as u8;
            self.len = at + 1;
            return;
        }
        if number < 0x4000 {
            let bytes = (number & 0x7f | 0x80 | number << 1 & 0x7f00) as u16;
            self.bytes[at..at + size_of::<u16>()].copy_from_slice(&bytes.to_le_bytes());
            self.len = at + 2;
            return;
        }
        let bits = u64::BITS - number.leading_zeros();
        if bits > 56 {
            return self.put_long(number);
        }
        // Each seven bits come into a byte of their own, by halves of what there is.
        let spread = (number & 0x0fff_ffff) | (number & 0x00ff_ffff_f000_0000) << 4;
        let spread = (spread & 0x0000_3fff_0000_3fff) | (spread & 0x0fff_c000_0fff_c000) << 2;
        let spread = (spread & 0x007f_007f_007f_007f) | (spread & 0x3f80_3f80_3f80_3f80) << 1;
        // A seventh of up to 56, rounded up.
        let len = (bits * 37 + 222) >> 8;
        let goes_on = 0x8080_8080_8080_8080 & ((1 << (8 * (len - 1))) - 1);
        self.bytes[at..at + size_of::<u64>()].copy_from_slice(&(spread | goes_on).to_le_bytes());
        self.len = at + len as usize;
    }

    #[cold]
    fn put_long(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes[self.len % GATHERED] = number as u8 | 0x80;
            self.len += 1;
            number >>= 7;
        }
        self.bytes[self.len % GATHERED] = number as u8;
        self.len += 1;
    }

    #[cold]
    fn flush(&mut self) {
        self.out.extend_from_slice(&self.bytes[..self.len.min(GATHERED)]);
        self.len = 0;
    }

    /// Appends all words; what comes next is put behind them.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        if self.len > FEW {
            self.flush();
        } else {
            let len = self.out.len() + self.len;
            self.out.extend_from_slice(&self.bytes[..FEW]);
            self.out.truncate(len);
            self.len = 0;
        }
        self.out
    }
}

/// Appends a value, as long as all stays within `limit` bytes.
pub(crate) fn put_value(
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
        (Type::Optional(_), Value::None) => out.push(0),
        (Type::Optional(inner), value) => {
            out.push(1);
            put_value(value, inner, module, limit, out)?;
        }
        (Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_), Value::Word(word)) => {
            put_word(*word, out);
        }
        (Type::Text | Type::Endpoint, Value::Text(text)) => {
            put_number(text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
        (Type::Real, Value::Real(real)) => out.extend_from_slice(&real.get().to_bits().to_be_bytes()),
        (Type::Bytes, Value::Bytes(bytes)) => {
            put_number(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        (Type::Node, Value::Node(node)) => out.extend_from_slice(&**node),
        (Type::Record(number), Value::Record(fields)) => {
            let declared = &module.records[*number as usize].fields;
            if declared.len() != fields.len() {
                return Err(Unwritable::OfAnotherType);
            }
            for (field, value) in declared.iter().zip(fields.iter()) {
                put_value(value, &field.kind, module, limit, out)?;
            }
        }
        (Type::List(element), Value::List(values)) => {
            put_number(values.len() as u64, out);
            for value in values.iter() {
                put_value(value, element, module, limit, out)?;
            }
        }
        _ => return Err(Unwritable::OfAnotherType),
    }
    if out.len() > limit { Err(Unwritable::TooLarge) } else { Ok(()) }
}

/// Reads from the front of bytes.
pub(crate) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Malformed("bytes are missing"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 || byte == 0 && shift > 0 {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is not in its shortest form"))
    }

    pub(crate) fn word(&mut self) -> Result<i64, Malformed> {
        Ok(unzigzag(self.number()?))
    }

    /// A count of things that each take at least one byte.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.number()?;
        if count > self.bytes.len() as u64 {
            return Err(Malformed("bytes are missing"));
        }
        Ok(count as usize)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, Malformed> {
        let count = self.count()?;
        std::str::from_utf8(self.take(count)?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(crate) fn real(&mut self) -> Result<Value, Malformed> {
        let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| Malformed("bytes are missing"))?;
        let real = Real::new(f64::from_bits(u64::from_be_bytes(bytes)));
        real.map(Value::Real).ok_or(Malformed("a real is no number"))
    }

    pub(crate) fn bytes(&mut self) -> Result<Value, Malformed> {
        let count = self.count()?;
        Ok(Value::Bytes(self.take(count)?.into()))
    }

    pub(crate) fn node(&mut self) -> Result<Value, Malformed> {
        let bytes: [u8; 32] = self.take(32)?.try_into().map_err(|_| Malformed("bytes are missing"))?;
        Ok(Value::Node(Arc::new(bytes)))
    }

    pub(crate) fn value(&mut self, kind: &Type, module: &Module) -> Result<Value, Malformed> {
        Ok(match kind {
            Type::Optional(inner) => match self.byte()? {
                0 => Value::None,
                1 => self.value(inner, module)?,
                _ => return Err(Malformed("a value is neither there nor not")),
            },
            Type::Bool => match self.word()? {
                word @ (0 | 1) => Value::Word(word),
                _ => return Err(Malformed("a bool is neither true nor false")),
            },
            Type::Int | Type::Time | Type::Duration => Value::Word(self.word()?),
            Type::Enum(number) => {
                let word = self.word()?;
                let cases = module.enums[*number as usize].cases.len();
                if !(0..cases as i64).contains(&word) {
                    return Err(Malformed("an enum has no such case"));
                }
                Value::Word(word)
            }
            Type::Text | Type::Endpoint => Value::Text(self.text()?.into()),
            Type::Real => self.real()?,
            Type::Bytes => self.bytes()?,
            Type::Node => self.node()?,
            Type::Record(number) => {
                let fields = module.records[*number as usize].fields.iter();
                let fields: Result<Vec<Value>, Malformed> =
                    fields.map(|field| self.value(&field.kind, module)).collect();
                Value::Record(fields?.into())
            }
            Type::List(element) => {
                // The checker lets no record be without fields: every element takes a byte.
                let count = self.count()?;
                let values: Result<Vec<Value>, Malformed> =
                    (0..count).map(|_| self.value(element, module)).collect();
                Value::List(Arc::new(values?))
            }
            Type::Nothing | Type::Broken => return Err(Malformed("the type is no type of state")),
        })
    }
}

/// A word in a key or an index.
#[inline]
pub(crate) fn word_key(word: i64) -> [u8; 8] {
    (word as u64 ^ (1 << 63)).to_be_bytes()
}

/// Appends one field of a key or of an index.
pub(crate) fn put_key(value: &Value, kind: &Type, out: &mut Vec<u8>) {
    match (kind, value) {
        (Type::Optional(_), Value::None) => out.push(0),
        (Type::Optional(inner), value) => {
            out.push(1);
            put_key(value, inner, out);
        }
        (_, Value::Word(word)) => out.extend_from_slice(&word_key(*word)),
        (_, Value::Node(node)) => out.extend_from_slice(&**node),
        (_, Value::Real(real)) => {
            // A float's bits are in its order, below zero the other way round.
            let bits = real.get().to_bits();
            let turned = if bits >> 63 == 1 { !bits } else { bits ^ (1 << 63) };
            out.extend_from_slice(&turned.to_be_bytes());
        }
        (_, Value::Text(text)) => put_escaped(text.as_bytes(), out),
        (_, Value::Bytes(bytes)) => put_escaped(bytes, out),
        // The checker lets nothing else be a key.
        _ => {}
    }
}

fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(255);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words gathered are the bytes of words put one by one, behind what stands before them.
    fn check(words: &[i64]) {
        let mut one_by_one = vec![7, 1, 2, 3];
        words.iter().for_each(|word| put_word(*word, &mut one_by_one));
        let mut out = vec![7];
        let mut gathered = Words::new(&mut out, [1, 2, 3]);
        words.iter().for_each(|word| gathered.put(*word));
        gathered.end();
        assert_eq!(out, one_by_one, "{words:?}");
        let mut reader = Reader::new(&out[4..]);
        let read: Result<Vec<i64>, Malformed> = words.iter().map(|_| reader.word()).collect();
        assert_eq!(read.as_deref(), Ok(words));
    }

    #[test]
    fn words_of_each_width_alone_and_in_rows_of_each_length() {
        let mut all = Vec::new();
        for bits in 0..64 {
            let least = 1_i64.checked_shl(bits).unwrap_or_default();
            for word in [least.wrapping_sub(1), least, least.wrapping_add(1), least.wrapping_neg(), !least] {
                check(&[word]);
                all.push(word);
            }
        }
        check(&[]);
        for length in 0..all.len() {
            check(&all[..length]);
            check(&all[all.len() - length..]);
        }
        check(&vec![i64::MIN; 100]);
    }
}
