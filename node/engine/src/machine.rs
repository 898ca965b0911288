//! Runs register code over a state, within a budget.
//!
//! What each operation costs: one operation; `Join`, `MakeRecord`, texts, shared lists and answers also their bytes
//! (one operation for sixteen); comparisons of whole values one for each part; sorting and grouping n values n times
//! log2 n; a fold one for each row, of all groups of a list one for each row of the list, when the first of them is
//! folded; rows that an index finds in another order and that are wanted in that of keys one and log2 n for each;
//! changing an element of a shared list its bytes; a call one for every eight registers; a timer its arguments' bytes;
//! a key and an index entry its bytes where it is made, and for every 64 of its bytes log2 n where it is found among n;
//! an entry eight more where it is made or removed; a row one for each field where it is put or removed, and the bytes
//! of a record where it is read as a whole; a row of a local list by a number also those of the pages that are made to
//! find it; a row that a loop passes over, for what a field of it is no key of, one. Reading an event's arguments costs
//! the same before the code runs: one a value, and the bytes of what is made. Bytes made are never given back: the
//! budget is a sum, not a peak. The list that a view gives costs what making it and writing it costs, also where its
//! records are written one by one and never made.
//!
//! Calls do not use the stack of the thread: callers are kept in a list, and calls among functions are acyclic.

mod keys;
mod ranges;
mod rows;
mod values;

use crate::access::Access;
use crate::budget::{Budget, Fault, SENDS_MAX};
use crate::chance::Chance;
use crate::cursor::{Cursor, Distinct, Step};
use crate::event::Context;
use crate::json::Stream;
use crate::keyed::Key;
use std::sync::Arc;
use weft::Value;
use weft::code::{Operation, Over, Register, TestOperation};
use weft::module::Module;

/// What runs, and what it changed and sent so far.
pub(crate) struct Machine<'m> {
    pub(crate) module: &'m Module,
    pub(crate) state: Access<'m>,
    pub(crate) budget: Budget,
    pub(crate) sends: Vec<Sent>,
    pub(crate) now: i64,
    /// Where the outermost function's list is written to instead of being made.
    pub(crate) stream: Option<Stream<'m>>,
    chance: Chance,
    room: &'m mut Room,
    running: Frame,
}

/// Registers that are kept from one event to the next, and as many cursors: of most functions all.
const KEPT_MAX: usize = 1 << 10;

/// What a machine runs in, empty before but for the arguments of what runs: it need not be made again.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Of the running function and its callers. Those of no function that are no arguments are none.
    registers: Vec<Value>,
    cursors: Vec<Cursor>,
    /// The functions that wait for those that they called.
    callers: Vec<Frame>,
}

impl Room {
    /// The registers where a function finds its arguments, so many.
    pub(crate) fn arguments(&mut self, count: usize) -> &mut [Value] {
        if self.registers.len() < count {
            self.registers.resize_with(count, Value::default);
        }
        &mut self.registers[..count]
    }

    /// Puts arguments where a function finds them.
    pub(crate) fn place(&mut self, arguments: Vec<Value>) {
        for (register, argument) in self.arguments(arguments.len()).iter_mut().zip(arguments) {
            *register = argument;
        }
    }

    /// Forgets arguments.
    pub(crate) fn clear(&mut self) {
        make_none(&mut self.registers);
    }
}

/// Of most registers nothing is to be dropped, and this sees it.
fn make_none(registers: &mut [Value]) {
    for register in registers {
        if !matches!(register, Value::None | Value::Word(_) | Value::Real(_)) {
            drop(std::mem::take(register));
        }
        std::mem::forget(std::mem::take(register));
    }
}

impl Clone for Room {
    fn clone(&self) -> Room {
        Room::default()
    }
}

/// A send, its arguments still values.
pub(crate) struct Sent {
    pub(crate) output: u32,
    pub(crate) arguments: Vec<Value>,
    /// A node, or an endpoint's text.
    pub(crate) to: Value,
}

/// Why the machine stopped.
pub(crate) enum Stopped {
    /// The outermost function gave this.
    Ended(Value),
    /// A test asks this of the world around it, and goes on then.
    Asks(TestOperation),
}

/// A function that waits for the one it called.
#[derive(Debug, Default, Clone, Copy)]
struct Frame {
    function: u32,
    /// Its next operation.
    at: usize,
    /// Where its registers begin, and where they end.
    base: usize,
    end: usize,
    /// Where its cursors begin.
    first_cursor: usize,
    /// Where its caller wants the result.
    out: Register,
}

impl<'m> Machine<'m> {
    /// A machine in a room, where the arguments of what runs first are.
    pub(crate) fn new(
        module: &'m Module,
        state: impl Into<Access<'m>>,
        world: &Context,
        room: &'m mut Room,
    ) -> Machine<'m> {
        Machine {
            module,
            state: state.into(),
            budget: Budget::new(),
            sends: Vec::new(),
            now: world.now,
            stream: None,
            chance: Chance::new(world.entropy),
            room,
            running: Frame::default(),
        }
    }

    /// Leaves its room empty to the next one.
    pub(crate) fn leave_room(&mut self) {
        let Room { registers, cursors, callers } = &mut *self.room;
        make_none(&mut registers[..self.running.end]);
        if registers.len() > KEPT_MAX {
            registers.truncate(KEPT_MAX);
            registers.shrink_to(KEPT_MAX);
        }
        cursors.clear();
        if cursors.capacity() > KEPT_MAX {
            cursors.shrink_to(KEPT_MAX);
        }
        callers.clear();
    }

    /// Runs a function, whose arguments are in its room, to its end and returns what it gives.
    pub(crate) fn run(&mut self, function: u32) -> Result<Value, Fault> {
        self.enter(function, 0)?;
        match self.resume()? {
            Stopped::Ended(value) => Ok(value),
            Stopped::Asks(_) => Err(Fault::unproven("an app")),
        }
    }

    /// Enters a function; [`Machine::resume`] runs it.
    pub(crate) fn begin(&mut self, function: u32) -> Result<(), Fault> {
        self.enter(function, 0)
    }

    /// Runs until the end, or until a test asks something.
    pub(crate) fn resume(&mut self) -> Result<Stopped, Fault> {
        let module = self.module;
        loop {
            let function = module.functions.get(self.running.function as usize);
            let function = function.ok_or_else(|| Fault::unproven("a function"))?;
            if let Some(stopped) = self.run_code(&function.code)? {
                return Ok(stopped);
            }
        }
    }

    /// Runs the running function until another one runs, and tells why it stopped if that is all. What loops are made of
    /// is done here, without a call each; the rest is done by `step`.
    fn run_code(&mut self, code: &[Operation]) -> Result<Option<Stopped>, Fault> {
        let module = self.module;
        let mut at = self.running.at;
        loop {
            let Some(operation) = code.get(at) else { return Err(Fault::unproven("an operation")) };
            at += 1;
            self.budget.one()?;
            match *operation {
                Operation::Copy { out, from } => match self.get(from) {
                    Value::Word(word) => self.set_word(out, *word),
                    value => self.set(out, value.clone()),
                },
                Operation::Constant { out, constant } => match &module.constants[constant as usize] {
                    Value::Word(word) => self.set_word(out, *word),
                    value => self.set(out, value.clone()),
                },
                Operation::ListAt { out, list, index } => self.list_at(out, list, index)?,
                Operation::Push { list, value } => {
                    let value = self.get(value).clone();
                    self.push(list, value)?;
                }
                Operation::Jump { to } => at = to as usize,
                Operation::JumpIf { condition, to } => {
                    if self.word(condition)? != 0 {
                        at = to as usize;
                    }
                }
                Operation::JumpUnless { condition, to } => {
                    if self.word(condition)? == 0 {
                        at = to as usize;
                    }
                }
                Operation::JumpIfNone { value, to } => {
                    if matches!(self.get(value), Value::None) {
                        at = to as usize;
                    }
                }
                Operation::JumpIfThere { value, to } => {
                    if !matches!(self.get(value), Value::None) {
                        at = to as usize;
                    }
                }
                Operation::JumpLess { left, right, wanted, to } => {
                    if (self.word(left)? < self.word(right)?) == wanted {
                        at = to as usize;
                    }
                }
                Operation::JumpEqual { left, right, wanted, to } => {
                    if (self.word(left)? == self.word(right)?) == wanted {
                        at = to as usize;
                    }
                }
                Operation::JumpHasRow { list, key, wanted, to } => {
                    if self.has_row(list, key)? == wanted {
                        at = to as usize;
                    }
                }
                Operation::Arithmetic { operator, out, left, right } => {
                    let result = values::calculate(operator, self.word(left)?, self.word(right)?)?;
                    self.set_word(out, result);
                }
                Operation::FieldOf { out, cursor, list, field } => self.field_of(out, cursor, list, field)?,
                Operation::FieldThere { out, list, key, field } => self.field_there(out, list, key, field)?,
                Operation::SetField { list, key, field, value } => self.set_field(list, key, field, value)?,
                Operation::UpdateField { operator, list, key, field, right } => {
                    self.update_field(operator, (list, key, field), right)?;
                }
                Operation::MakeKey { out, list, first, count: 1 } if self.is_key(list, first) => {
                    let word = self.word(first)?;
                    self.budget.bytes(size_of::<i64>())?;
                    self.set_word(out, word);
                }
                Operation::KeyNow { out, list, key } => {
                    self.key_now(out, list, key)?;
                }
                Operation::JumpKeyNow { out, list, key, wanted, to } => {
                    if self.key_now(out, list, key)? == wanted {
                        at = to as usize;
                    }
                }
                Operation::AddFields { list, first, count, out } => {
                    self.add_fields(list, first, count, out)?;
                }
                Operation::NextId { out, list } => {
                    let number = self.next_id(list)?;
                    self.set_word(out, number);
                }
                Operation::PushRecord { list, first, count } => self.push_record(list, first, count)?,
                Operation::Now { out } => self.set_word(out, self.now),
                Operation::Open { cursor, over } => match over {
                    Over::Rows(rows) if self.open_again(cursor, &rows)? => {}
                    over => self.open(cursor, over)?,
                },
                Operation::Next { cursor, out, done } => {
                    if !self.next(cursor, out)? {
                        at = done as usize;
                    }
                }
                Operation::NextWhere { cursor, out, list, field, value, keys, wanted, done } => {
                    let asked = ranges::Asked { list, field, value, keys, wanted };
                    if !self.next_where(cursor, out, asked)? {
                        at = done as usize;
                    }
                }
                Operation::Call { function, first, count, out } => {
                    self.running.at = at;
                    self.call(function, first, count, out)?;
                    return Ok(None);
                }
                Operation::Return { value } => {
                    let value = value.map_or(Value::None, |value| self.take(value));
                    return Ok(self.leave(value).map(Stopped::Ended));
                }
                Operation::Test(asked) => {
                    self.running.at = at;
                    return Ok(Some(Stopped::Asks(asked)));
                }
                other => self.step(other)?,
            }
        }
    }

    fn enter(&mut self, function: u32, out: Register) -> Result<(), Fault> {
        let code = &self.module.functions[function as usize];
        self.budget.operations(u64::from(code.registers) / 8)?;
        let (base, first_cursor) = (self.running.end, self.room.cursors.len());
        let end = base + code.registers as usize;
        if self.room.registers.len() < end {
            self.room.registers.resize_with(end, Value::default);
        }
        if code.cursors > 0 {
            self.room.cursors.resize_with(first_cursor + code.cursors as usize, Cursor::default);
        }
        self.running = Frame { function, at: 0, base, end, first_cursor, out };
        Ok(())
    }

    fn call(&mut self, function: u32, first: Register, count: u16, out: Register) -> Result<(), Fault> {
        self.room.callers.push(self.running);
        let from = self.running.base + first as usize;
        self.enter(function, out)?;
        for at in 0..usize::from(count) {
            let argument = self.room.registers[from + at].clone();
            self.room.registers[self.running.base + at] = argument;
        }
        Ok(())
    }

    /// Ends the innermost function; the result if it was the outermost.
    fn leave(&mut self, value: Value) -> Option<Value> {
        let Frame { base, end, first_cursor, out, .. } = self.running;
        make_none(&mut self.room.registers[base..end]);
        self.room.cursors.truncate(first_cursor);
        self.running = self.room.callers.pop().unwrap_or_default();
        if self.running.end == 0 {
            return Some(value);
        }
        self.set(out, value);
        None
    }

    // Registers. That a function's registers are all below its count is the compiler's promise.

    #[inline(always)]
    pub(crate) fn get(&self, register: Register) -> &Value {
        &self.room.registers[self.running.base + register as usize]
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, register: Register, value: Value) {
        self.room.registers[self.running.base + register as usize] = value;
    }

    /// As `set`, where mostly a word was before.
    #[inline(always)]
    fn set_word(&mut self, register: Register, word: i64) {
        match &mut self.room.registers[self.running.base + register as usize] {
            Value::Word(place) => *place = word,
            // Nothing is to be dropped, and this sees it.
            none @ Value::None => std::mem::forget(std::mem::replace(none, Value::Word(word))),
            other => *other = Value::Word(word),
        }
    }

    fn take(&mut self, register: Register) -> Value {
        std::mem::take(&mut self.room.registers[self.running.base + register as usize])
    }

    pub(crate) fn several(&self, first: Register, count: u16) -> &[Value] {
        let from = self.running.base + first as usize;
        &self.room.registers[from..from + count as usize]
    }

    #[inline(always)]
    fn word(&self, register: Register) -> Result<i64, Fault> {
        match self.get(register) {
            Value::Word(word) => Ok(*word),
            _ => Err(Fault::unproven("a word")),
        }
    }

    fn text(&self, register: Register) -> Result<&Arc<str>, Fault> {
        match self.get(register) {
            Value::Text(text) => Ok(text),
            _ => Err(Fault::unproven("a text")),
        }
    }

    fn list(&self, register: Register) -> Result<&Arc<Vec<Value>>, Fault> {
        match self.get(register) {
            Value::List(list) => Ok(list),
            _ => Err(Fault::unproven("a list")),
        }
    }

    fn record(&self, register: Register) -> Result<&Arc<[Value]>, Fault> {
        match self.get(register) {
            Value::Record(record) => Ok(record),
            _ => Err(Fault::unproven("a record")),
        }
    }

    /// The key in a register; none stays none.
    fn key(&self, register: Register) -> Result<Option<Key>, Fault> {
        match self.get(register) {
            Value::None => Ok(None),
            value => Key::of(value).map(Some).ok_or_else(|| Fault::unproven("a key")),
        }
    }

    // Operations.

    /// One operation that is not done in the loop; those on values and rows are in `values` and `rows`.
    fn step(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::Me { out } => {
                let me = Value::Node(Arc::clone(&self.state.whole().me));
                self.set(out, me);
            }
            Operation::Fold { fold, cursor, list, field, into, groups } => {
                let folded = ranges::Folded { fold, list, field, into };
                match groups {
                    Some(groups) => self.fold_group(folded, cursor, groups)?,
                    None => self.fold(folded, cursor)?,
                }
            }
            Operation::Refuse { reason } => return Err(Fault::Refused(self.text(reason)?.to_string())),
            Operation::Send { output, first, count, to } => self.send(output, first, count, to)?,
            other => self.compute(other)?,
        }
        Ok(())
    }

    fn open(&mut self, cursor: u16, over: Over) -> Result<(), Fault> {
        let opened = match over {
            Over::Rows(rows) => Cursor::Rows(self.open_rows(rows)?),
            Over::Distinct(rows, field) => {
                Cursor::Distinct(Box::new(Distinct::new(self.open_rows(rows)?, field)))
            }
            Over::List(list) => Cursor::List { values: Arc::clone(self.list(list)?), at: 0 },
            Over::Range(from, upto) => {
                Cursor::Range { next: self.word(from)?, last: self.word(upto)?, done: false }
            }
        };
        self.room.cursors[self.running.first_cursor + cursor as usize] = opened;
        Ok(())
    }

    /// Goes to the next element; whether there is one.
    #[inline]
    fn next(&mut self, cursor: u16, out: Register) -> Result<bool, Fault> {
        let place = &mut self.room.cursors[self.running.first_cursor + cursor as usize];
        if let Some(word) = place.next_word() {
            self.set_word(out, word);
            return Ok(true);
        }
        if let Some(word) = place.next_alone() {
            // As much as a row costs that is skipped.
            self.budget.one()?;
            self.set_word(out, word);
            return Ok(true);
        }
        let place = &mut self.room.cursors[self.running.first_cursor + cursor as usize];
        loop {
            let step = place.step(&self.state);
            self.budget.operations(place.search_operations())?;
            match step {
                Step::Value(value) => {
                    self.set(out, value);
                    return Ok(true);
                }
                Step::Second(value) => {
                    self.budget.one()?;
                    self.set(out, value);
                    return Ok(true);
                }
                Step::Skipped => self.budget.operations(1)?,
                Step::Done => {
                    place.close();
                    return Ok(false);
                }
            }
        }
    }

    fn send(&mut self, output: u32, first: Register, count: u16, to: Register) -> Result<(), Fault> {
        if self.sends.len() >= SENDS_MAX {
            return Err(Fault::Budget { unit: "sends", limit: SENDS_MAX as u64 });
        }
        let to = self.get(to).clone();
        let arguments = self.several(first, count).to_vec();
        self.sends.push(Sent { output, arguments, to });
        Ok(())
    }
}
