//! Runs register code over a state, within a budget.
//!
//! What each operation costs: one operation; `Join`, `MakeRecord`, texts, shared lists and answers also their bytes
//! (one operation for sixteen); comparisons of whole values one for each part; sorting and grouping n values n times
//! log2 n; changing an element of a shared list its bytes; a call one for every eight registers; a timer its
//! arguments' bytes; a key and an index entry its bytes where it is made, and for every 64 of its bytes log2 n where
//! it is found among n; an entry eight more where it is made or removed; a row one for each field where it is put or
//! removed, and the bytes of a record where it is read as a whole. Reading an event's arguments costs the same before
//! the code runs: one a value, and the bytes of what is made. Bytes made are never given back: the budget is a sum,
//! not a peak.
//!
//! Calls do not use the stack of the thread: frames are kept in a list, and calls among functions are acyclic.

mod keys;
mod ranges;
mod rows;
mod values;

use crate::budget::{Budget, Fault, SENDS_MAX};
use crate::chance::Chance;
use crate::cursor::{Cursor, Step};
use crate::event::Context;
use crate::keyed::Key;
use crate::state::State;
use std::sync::Arc;
use weft::Value;
use weft::code::{Operation, Over, Register, TestOperation};
use weft::module::Module;

/// What runs, and what it changed and sent so far.
pub(crate) struct Machine<'m> {
    pub(crate) module: &'m Module,
    pub(crate) state: State,
    pub(crate) budget: Budget,
    pub(crate) sends: Vec<Sent>,
    pub(crate) me: Arc<[u8; 32]>,
    pub(crate) now: i64,
    chance: Chance,
    registers: Vec<Value>,
    frames: Vec<Frame>,
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

#[derive(Debug, Default)]
struct Frame {
    function: u32,
    at: usize,
    /// Where its registers begin.
    base: usize,
    /// Where the caller wants the result.
    out: Register,
    cursors: Vec<Cursor>,
}

impl<'m> Machine<'m> {
    pub(crate) fn new(module: &'m Module, state: State, me: [u8; 32], world: &Context) -> Machine<'m> {
        Machine {
            module,
            state,
            budget: Budget::new(),
            sends: Vec::new(),
            me: Arc::new(me),
            now: world.now,
            chance: Chance::new(world.entropy),
            registers: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Runs a function to its end and returns what it gives.
    pub(crate) fn run(&mut self, function: u32, arguments: Vec<Value>) -> Result<Value, Fault> {
        self.begin(function, arguments)?;
        match self.resume()? {
            Stopped::Ended(value) => Ok(value),
            Stopped::Asks(_) => Err(Fault::unproven("an app")),
        }
    }

    /// Enters a function; [`Machine::resume`] runs it.
    pub(crate) fn begin(&mut self, function: u32, arguments: Vec<Value>) -> Result<(), Fault> {
        self.enter(function, 0)?;
        for (register, argument) in self.registers.iter_mut().zip(arguments) {
            *register = argument;
        }
        Ok(())
    }

    /// Runs until the end, or until a test asks something.
    pub(crate) fn resume(&mut self) -> Result<Stopped, Fault> {
        let module = self.module;
        loop {
            let Some(frame) = self.frames.last_mut() else { return Err(Fault::unproven("a frame")) };
            let code = &module.functions[frame.function as usize].code;
            let Some(operation) = code.get(frame.at).copied() else {
                return Err(Fault::unproven("an operation"));
            };
            frame.at += 1;
            self.budget.operations(1)?;
            if let Some(stopped) = self.step(operation)? {
                return Ok(stopped);
            }
        }
    }

    fn enter(&mut self, function: u32, out: Register) -> Result<(), Fault> {
        let code = &self.module.functions[function as usize];
        self.budget.operations(u64::from(code.registers) / 8)?;
        let base = self.registers.len();
        self.registers.resize(base + code.registers as usize, Value::None);
        let cursors = (0..code.cursors).map(|_| Cursor::Closed).collect();
        self.frames.push(Frame { function, at: 0, base, out, cursors });
        Ok(())
    }

    /// Ends the innermost function; the result if it was the outermost.
    fn leave(&mut self, value: Value) -> Option<Value> {
        let frame = self.frames.pop()?;
        self.registers.truncate(frame.base);
        if self.frames.is_empty() {
            return Some(value);
        }
        self.set(frame.out, value);
        None
    }

    // Registers. That a function's registers are all below its count is the compiler's promise.

    fn base(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.base)
    }

    pub(crate) fn get(&self, register: Register) -> &Value {
        &self.registers[self.base() + register as usize]
    }

    pub(crate) fn set(&mut self, register: Register, value: Value) {
        let at = self.base() + register as usize;
        self.registers[at] = value;
    }

    fn take(&mut self, register: Register) -> Value {
        let at = self.base() + register as usize;
        std::mem::take(&mut self.registers[at])
    }

    pub(crate) fn several(&self, first: Register, count: u16) -> &[Value] {
        let from = self.base() + first as usize;
        &self.registers[from..from + count as usize]
    }

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

    fn jump(&mut self, to: u32) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = to as usize;
        }
    }

    // Operations.

    /// One operation of control; the others are in `values` and `rows`.
    fn step(&mut self, operation: Operation) -> Result<Option<Stopped>, Fault> {
        match operation {
            Operation::Constant { out, constant } => {
                let value = self.module.constants[constant as usize].clone();
                self.set(out, value);
            }
            Operation::Copy { out, from } => {
                let value = self.get(from).clone();
                self.set(out, value);
            }
            Operation::Now { out } => self.set(out, Value::Word(self.now)),
            Operation::Me { out } => {
                let me = Value::Node(Arc::clone(&self.me));
                self.set(out, me);
            }
            Operation::Jump { to } => self.jump(to),
            Operation::JumpIf { condition, to } => {
                if self.word(condition)? != 0 {
                    self.jump(to);
                }
            }
            Operation::JumpUnless { condition, to } => {
                if self.word(condition)? == 0 {
                    self.jump(to);
                }
            }
            Operation::JumpIfNone { value, to } => {
                if matches!(self.get(value), Value::None) {
                    self.jump(to);
                }
            }
            Operation::Open { cursor, over } => self.open(cursor, over)?,
            Operation::Next { cursor, out, done } => self.next(cursor, out, done)?,
            Operation::Call { function, first, count, out } => {
                let arguments = self.several(first, count).to_vec();
                self.enter(function, out)?;
                for (at, argument) in arguments.into_iter().enumerate() {
                    self.set(at as Register, argument);
                }
            }
            Operation::Return { value } => {
                let value = value.map_or(Value::None, |value| self.take(value));
                return Ok(self.leave(value).map(Stopped::Ended));
            }
            Operation::Refuse { reason } => return Err(Fault::Refused(self.text(reason)?.to_string())),
            Operation::Send { output, first, count, to } => self.send(output, first, count, to)?,
            Operation::Test(asked) => return Ok(Some(Stopped::Asks(asked))),
            other => self.compute(other)?,
        }
        Ok(None)
    }

    fn open(&mut self, cursor: u16, over: Over) -> Result<(), Fault> {
        let opened = match over {
            Over::Rows(rows) => Cursor::Rows(self.open_rows(rows)?),
            Over::List(list) => Cursor::List { values: Arc::clone(self.list(list)?), at: 0 },
            Over::Range(from, upto) => {
                Cursor::Range { next: self.word(from)?, last: self.word(upto)?, done: false }
            }
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.cursors[cursor as usize] = opened;
        }
        Ok(())
    }

    fn next(&mut self, cursor: u16, out: Register, done: u32) -> Result<(), Fault> {
        loop {
            let Some(frame) = self.frames.last_mut() else { return Ok(()) };
            let place = &mut frame.cursors[cursor as usize];
            let step = place.step(&self.state);
            self.budget.operations(place.search_operations())?;
            match step {
                Step::Value(value) => {
                    self.set(out, value);
                    return Ok(());
                }
                Step::Skipped => self.budget.operations(1)?,
                Step::Done => {
                    // What the loop ran over is given back: a list that is still held is copied when it grows.
                    frame.cursors[cursor as usize] = Cursor::Closed;
                    self.jump(done);
                    return Ok(());
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
