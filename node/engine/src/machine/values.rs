//! Operations on values: arithmetic, comparisons, texts, records, lists.

use super::Machine;
use crate::budget::Fault;
use crate::text;
use std::cmp::Ordering;
use std::mem::size_of;
use std::sync::Arc;
use weft::Value;
use weft::code::{Arithmetic, Comparison, Operation, Register, Rounding, TextFunction};
use weft::value::Real;

/// The first float that is too large for an int: 2^63.
const INT_END: f64 = 9_223_372_036_854_775_808.0;

impl Machine<'_> {
    pub(super) fn compute(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::SumInto { sum, value } => {
                let total = self.wide(sum)? + i128::from(self.word(value)?);
                self.set_wide(sum, total);
            }
            Operation::Sum { out, sum } => {
                let total = i64::try_from(self.wide(sum)?).map_err(|_| overflow())?;
                self.set(out, Value::Word(total));
            }
            Operation::Negate { out, from } => {
                let result = self.word(from)?.checked_neg().ok_or_else(overflow)?;
                self.set(out, Value::Word(result));
            }
            Operation::RealArithmetic { .. }
            | Operation::RealNegate { .. }
            | Operation::IntToReal { .. }
            | Operation::RealToInt { .. } => self.on_reals(operation)?,
            Operation::Not { out, from } => {
                let result = i64::from(self.word(from)? == 0);
                self.set(out, Value::Word(result));
            }
            Operation::IsNone { out, from } => {
                let result = i64::from(matches!(self.get(from), Value::None));
                self.set(out, Value::Word(result));
            }
            Operation::Equal { comparison, out, left, right } => {
                let result = self.compare(comparison, left, right)? == Ordering::Equal;
                self.set(out, Value::Word(i64::from(result)));
            }
            Operation::Less { comparison, out, left, right } => {
                let result = self.compare(comparison, left, right)? == Ordering::Less;
                self.set(out, Value::Word(i64::from(result)));
            }
            Operation::Write { .. }
            | Operation::Join { .. }
            | Operation::TextLength { .. }
            | Operation::BytesLength { .. }
            | Operation::TextFunction { .. }
            | Operation::TextContains { .. }
            | Operation::TextSlice { .. } => self.on_texts(operation)?,
            Operation::Field { out, record, field } => {
                let value = self.record(record)?[field as usize].clone();
                self.set(out, value);
            }
            Operation::MakeRecord { out, first, count } => {
                let record = self.make_record(first, count)?;
                self.set(out, record);
            }
            Operation::WithField { out, record, field, value } => {
                let changed = self.with_field(&Arc::clone(self.record(record)?), field, value)?;
                self.set(out, Value::Record(changed));
            }
            Operation::MakeList { .. }
            | Operation::ListLength { .. }
            | Operation::ElementThere { .. }
            | Operation::SetElement { .. }
            | Operation::Group { .. }
            | Operation::ListContains { .. }
            | Operation::Sort { .. }
            | Operation::Truncate { .. } => self.on_lists(operation)?,
            other => self.on_rows(other)?,
        }
        Ok(())
    }

    pub(super) fn make_record(&mut self, first: Register, count: u16) -> Result<Value, Fault> {
        self.budget.bytes(count as usize * size_of::<Value>())?;
        Ok(Value::Record(self.several(first, count).into()))
    }

    /// Whether the list in a register is written and not made.
    #[inline]
    fn is_written(&self, list: Register) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.list == list) && self.room.callers.is_empty()
    }

    /// Adds a record of some registers to the list in another one.
    pub(super) fn push_record(&mut self, list: Register, first: Register, count: u16) -> Result<(), Fault> {
        if !self.is_written(list) {
            let record = self.make_record(first, count)?;
            return self.push(list, record);
        }
        // As if it were made.
        self.budget.bytes(count as usize * size_of::<Value>())?;
        self.budget.bytes(size_of::<Value>())?;
        let from = self.running.base + first as usize;
        let Some(stream) = &mut self.stream else { return Err(Fault::unproven("a list")) };
        stream.record(&self.room.registers[from..from + count as usize], self.module, &mut self.budget)
    }

    /// Adds a value to the list in a register.
    pub(super) fn push(&mut self, list: Register, value: Value) -> Result<(), Fault> {
        if self.is_written(list)
            && let Some(stream) = &mut self.stream
        {
            self.budget.bytes(size_of::<Value>())?;
            return stream.value(&value, self.module, &mut self.budget);
        }
        let place = &mut self.room.registers[self.running.base + list as usize];
        let Value::List(values) = place else { return Err(Fault::unproven("a list")) };
        if let Some(values) = Arc::get_mut(values) {
            self.budget.bytes(size_of::<Value>())?;
            values.push(value);
            return Ok(());
        }
        self.budget.bytes((values.len() + 1) * size_of::<Value>())?;
        Arc::make_mut(values).push(value);
        Ok(())
    }

    /// The element at a place from 0, or none.
    pub(super) fn list_at(&mut self, out: Register, list: Register, index: Register) -> Result<(), Fault> {
        let index = usize::try_from(self.word(index)?).ok();
        match index.and_then(|index| self.list(list).ok()?.get(index)) {
            Some(Value::Word(word)) => {
                let word = *word;
                self.set_word(out, word);
            }
            value => {
                let value = value.cloned().unwrap_or_default();
                self.set(out, value);
            }
        }
        Ok(())
    }

    pub(super) fn with_field(
        &mut self,
        record: &Arc<[Value]>,
        field: u16,
        value: Register,
    ) -> Result<Arc<[Value]>, Fault> {
        self.budget.bytes(record.len() * size_of::<Value>())?;
        let mut changed = record.to_vec();
        changed[field as usize] = self.get(value).clone();
        Ok(changed.into())
    }

    /// The sum of 128 bits in two registers. No sum of as many words as there are operations is larger.
    pub(super) fn wide(&self, sum: Register) -> Result<i128, Fault> {
        let (low, high) = (self.word(sum)?, self.word(sum + 1)?);
        Ok(i128::from(high) << 64 | i128::from(low as u64))
    }

    pub(super) fn set_wide(&mut self, sum: Register, total: i128) {
        self.set(sum, Value::Word(total as i64));
        self.set(sum + 1, Value::Word((total >> 64) as i64));
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: Register,
        right: Register,
    ) -> Result<Ordering, Fault> {
        if comparison == Comparison::Word {
            return Ok(self.word(left)?.cmp(&self.word(right)?));
        }
        let mut steps = self.budget.operations_left();
        let ordering = self.get(left).compare(self.get(right), &mut steps);
        self.budget.operations(self.budget.operations_left() - steps)?;
        match ordering {
            Some(ordering) => Ok(ordering),
            None => Err(self.exhausted()),
        }
    }

    /// The fault of having no operations left.
    fn exhausted(&mut self) -> Fault {
        let left = self.budget.operations_left();
        self.budget.operations(left + 1).err().unwrap_or_else(|| Fault::unproven("an end"))
    }

    fn real(&self, register: Register) -> Result<f64, Fault> {
        match self.get(register) {
            Value::Real(real) => Ok(real.get()),
            _ => Err(Fault::unproven("a real")),
        }
    }

    fn on_reals(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::RealArithmetic { operator, out, left, right } => {
                let (left, right) = (self.real(left)?, self.real(right)?);
                let result = match operator {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide if right == 0.0 => return Err(division_by_zero()),
                    Arithmetic::Divide => left / right,
                    Arithmetic::Remainder => return Err(Fault::unproven("an operator on reals")),
                };
                self.set(out, Value::Real(Real::new(result).ok_or_else(overflow)?));
            }
            Operation::RealNegate { out, from } => {
                let result = Real::new(-self.real(from)?).ok_or_else(overflow)?;
                self.set(out, Value::Real(result));
            }
            Operation::IntToReal { out, from } => {
                let result = Real::new(self.word(from)? as f64).ok_or_else(overflow)?;
                self.set(out, Value::Real(result));
            }
            Operation::RealToInt { rounding, out, from } => {
                let from = self.real(from)?;
                let whole = match rounding {
                    Rounding::Floor => from.floor(),
                    Rounding::Ceiling => from.ceil(),
                    Rounding::Round => from.round(),
                };
                // -2^63 is an int, 2^63 is none; both are floats.
                if !(-INT_END..INT_END).contains(&whole) {
                    return Err(overflow());
                }
                self.set(out, Value::Word(whole as i64));
            }
            _ => return Err(Fault::unproven("an operation on reals")),
        }
        Ok(())
    }

    fn on_texts(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::Write { written, out, from } => {
                let text = text::write(self.get(from), written, self.module);
                let text = text.ok_or_else(|| Fault::unproven("a value to write"))?;
                self.budget.bytes(text.len())?;
                self.set(out, Value::Text(text.into()));
            }
            Operation::Join { out, first, count } => {
                let mut length = 0;
                for at in 0..count {
                    length += self.text(first + at)?.len();
                }
                self.budget.bytes(length)?;
                let mut joined = String::with_capacity(length);
                for at in 0..count {
                    joined.push_str(self.text(first + at)?);
                }
                self.set(out, Value::Text(joined.into()));
            }
            Operation::TextLength { out, from } => {
                let text = Arc::clone(self.text(from)?);
                self.budget.operations(text.len() as u64 / 16)?;
                self.set(out, Value::Word(text.chars().count() as i64));
            }
            Operation::BytesLength { out, from } => {
                let Value::Bytes(bytes) = self.get(from) else { return Err(Fault::unproven("bytes")) };
                let length = bytes.len() as i64;
                self.set(out, Value::Word(length));
            }
            Operation::TextFunction { function, out, from } => {
                let text = Arc::clone(self.text(from)?);
                // Some letters grow to three when their case changes.
                self.budget.bytes(text.len().saturating_mul(3))?;
                let result = match function {
                    TextFunction::Lower => text.to_lowercase(),
                    TextFunction::Upper => text.to_uppercase(),
                    TextFunction::Trim => text.trim().to_owned(),
                };
                self.set(out, Value::Text(result.into()));
            }
            Operation::TextContains { out, text, part } => {
                let size = self.text(text)?.len() + self.text(part)?.len();
                self.budget.operations(size as u64 / 16)?;
                let result = self.text(text)?.contains(&**self.text(part)?);
                self.set(out, Value::Word(i64::from(result)));
            }
            Operation::TextSlice { out, text, from, count } => {
                let text = Arc::clone(self.text(text)?);
                self.budget.operations(text.len() as u64 / 16)?;
                let slice = text::slice(&text, self.word(from)?, self.word(count)?)?;
                self.budget.bytes(slice.len())?;
                self.set(out, Value::Text(slice.into()));
            }
            _ => return Err(Fault::unproven("a text operation")),
        }
        Ok(())
    }

    fn on_lists(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::MakeList { out } => self.set(out, Value::List(Arc::default())),
            Operation::ListLength { out, list } => {
                let length = self.list(list)?.len() as i64;
                self.set(out, Value::Word(length));
            }
            Operation::ElementThere { out, list, index } => {
                let value = self.list(list)?[self.place(list, index)?].clone();
                self.set(out, value);
            }
            Operation::SetElement { list, index, value } => {
                let place = self.place(list, index)?;
                let value = self.get(value).clone();
                let Value::List(mut values) = self.take(list) else { return Err(Fault::unproven("a list")) };
                let copied = if Arc::get_mut(&mut values).is_none() { values.len() } else { 0 };
                self.budget.bytes(copied * size_of::<Value>())?;
                Arc::make_mut(&mut values)[place] = value;
                self.set(list, Value::List(values));
            }
            Operation::Group { list } => self.group(list)?,
            Operation::ListContains { out, list, value } => {
                let (list, value) = (Arc::clone(self.list(list)?), self.get(value).clone());
                let mut steps = self.budget.operations_left();
                let mut found = Some(false);
                for one in list.iter() {
                    match one.compare(&value, &mut steps) {
                        Some(Ordering::Equal) => found = Some(true),
                        Some(_) => continue,
                        None => found = None,
                    }
                    break;
                }
                self.budget.operations(self.budget.operations_left() - steps)?;
                let Some(found) = found else { return Err(self.exhausted()) };
                self.set(out, Value::Word(i64::from(found)));
            }
            Operation::Sort { list, keys, descending } => self.sort(list, keys as usize, descending)?,
            Operation::Truncate { list, length } => {
                let length = usize::try_from(self.word(length)?.max(0)).unwrap_or(usize::MAX);
                let Value::List(mut values) = self.take(list) else { return Err(Fault::unproven("a list")) };
                self.budget.bytes(values.len().min(length) * size_of::<Value>())?;
                Arc::make_mut(&mut values).truncate(length);
                self.set(list, Value::List(values));
            }
            _ => return Err(Fault::unproven("a list operation")),
        }
        Ok(())
    }

    /// The place in a list that a register holds; none there refuses the event.
    fn place(&self, list: Register, index: Register) -> Result<usize, Fault> {
        let (index, length) = (self.word(index)?, self.list(list)?.len());
        usize::try_from(index).ok().filter(|place| *place < length).ok_or_else(|| {
            Fault::Refused(format!("the list has no element {index}: it has {length}, counted from 0"))
        })
    }

    fn group(&mut self, list: Register) -> Result<(), Fault> {
        self.sort(list, 1, 0)?;
        let Value::List(pairs) = self.take(list) else { return Err(Fault::unproven("a list")) };
        self.budget.bytes(pairs.len() * 3 * size_of::<Value>())?;
        let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
        for pair in pairs.iter() {
            let Value::Record(pair) = pair else { return Err(Fault::unproven("a record")) };
            let [key, element] = &**pair else { return Err(Fault::unproven("a key and an element")) };
            match groups.last_mut().filter(|(last, _)| last == key) {
                Some((_, elements)) => elements.push(element.clone()),
                None => groups.push((key.clone(), vec![element.clone()])),
            }
        }
        let groups = groups
            .into_iter()
            .map(|(key, elements)| Value::Record([key, Value::List(Arc::new(elements))].into()));
        let groups = groups.collect();
        self.set(list, Value::List(Arc::new(groups)));
        Ok(())
    }

    /// Sorts records by their first fields. Keys are words, texts and nodes, whose sizes are charged before.
    fn sort(&mut self, list: Register, keys: usize, descending: u64) -> Result<(), Fault> {
        let Value::List(mut values) = self.take(list) else { return Err(Fault::unproven("a list")) };
        let rounds = u64::from(usize::BITS - values.len().leading_zeros());
        for value in values.iter() {
            let Value::Record(fields) = value else { return Err(Fault::unproven("a record")) };
            let texts: usize = fields
                .iter()
                .take(keys)
                .map(|key| match key {
                    Value::Text(text) => text.len(),
                    Value::Bytes(bytes) => bytes.len(),
                    _ => 0,
                })
                .sum();
            self.budget.operations((keys as u64 + texts as u64 / 16) * rounds)?;
        }
        let sorted = Arc::make_mut(&mut values);
        sorted.sort_by(|left, right| match (left, right) {
            (Value::Record(left), Value::Record(right)) => compare_keys(left, right, keys, descending),
            _ => Ordering::Equal,
        });
        self.set(list, Value::List(values));
        Ok(())
    }
}

fn compare_keys(left: &[Value], right: &[Value], keys: usize, descending: u64) -> Ordering {
    for (at, (left, right)) in left.iter().zip(right).take(keys).enumerate() {
        // Keys are shallow: what comparing them costs was charged.
        let mut unbounded = u64::MAX;
        let ordering = left.compare(right, &mut unbounded).unwrap_or(Ordering::Equal);
        let ordering = if descending >> at & 1 == 1 { ordering.reverse() } else { ordering };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

fn division_by_zero() -> Fault {
    Fault::Refused("division by zero".into())
}

fn overflow() -> Fault {
    Fault::Refused("a number grew too large".into())
}

/// Checked; division rounds towards minus infinity.
#[inline]
pub(super) fn calculate(operator: Arithmetic, left: i64, right: i64) -> Result<i64, Fault> {
    if right == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::Remainder) {
        return Err(division_by_zero());
    }
    let result = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right).map(|quotient| {
            let inexact = left % right != 0 && (left < 0) != (right < 0);
            quotient - i64::from(inexact)
        }),
        Arithmetic::Remainder => Some(left.checked_rem(right).map_or(0, |rest| {
            let turned = rest != 0 && (rest < 0) != (right < 0);
            if turned { rest + right } else { rest }
        })),
    };
    result.ok_or_else(overflow)
}
