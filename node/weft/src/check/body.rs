//! One function: its scope, its registers, its code.

use super::expressions::is_plain_word;
use super::queries::Grouping;
use super::tidy::tidied;
use super::{Checker, OPERATIONS_MAX};
use crate::code::{Comparison, Cursor, Function, Operation, Register, Target};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{SCRATCH, Type};
use crate::syntax::tree::Word;
use crate::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Names in scope at one place: they are looked up one after the other.
const LOCALS_MAX: usize = 2_000;

/// What a body may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// `fn`, `view`
    Reads,
    /// `on`, `do`
    Changes,
    /// `test`: acts on nodes from outside.
    Tests,
}

/// What `return` is told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// `on`, which may answer.
    On,
    /// `do`
    Do,
    /// A timer, `every`, the fabric's word, a test.
    Other,
}

/// Where a value is, what it is, and of which list it is a row right now.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) register: Register,
    pub(super) kind: Type,
    pub(super) origin: Option<Origin>,
}

/// Of which list something is a row, and what of it a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) list: u32,
    pub(super) held: Held,
}

/// What a register holds of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The row itself, or none.
    Row,
    /// The key of a row that is there, or none.
    Key,
    /// The key of the row that a cursor is at.
    Here(Cursor),
    /// A key, or none; whether a row is there must be looked up.
    Place,
    /// The key of a group of rows.
    Group(Grouping),
}

#[derive(Debug, Clone)]
pub(super) enum BindingKind {
    /// A value of its own; `origin` names the list of which it is a row, where nothing can change between.
    Value { register: Register, kind: Type, fixed: bool, origin: Option<u32> },
    /// Stands for the list at a key, which is none where `optional`.
    Row { list: u32, key: Register, optional: bool },
    /// The row at a key, or none where `optional`, while nothing can change it: its fields are read when they are wanted.
    /// `cursor` is at it as long as the name is in scope.
    Element { list: u32, key: Register, optional: bool, cursor: Option<Cursor> },
    /// A keyed list of this function's own.
    Keyed { list: u32 },
    /// A group of rows that an index has, by its key.
    Group { key: Register, kind: Type, grouping: Grouping },
}

#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) kind: BindingKind,
    pub(super) span: Span,
    /// The row's field that this is a copy of, as the source writes it.
    pub(super) copy_of: Option<String>,
    pub(super) given_by: GivenBy,
}

/// What gave a name, for what is said where it is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenBy {
    /// Which could have been a `var`.
    Let,
    Is,
    /// A loop, a group, what is posted.
    Other,
}

/// The jumps out of a loop that are not aimed yet.
#[derive(Debug, Default)]
pub(super) struct Loop {
    pub(super) again: Target,
    pub(super) leave: Vec<usize>,
}

pub(super) struct Body<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    /// As it is called, for what is said about it.
    pub(super) name: String,
    pub(super) effect: Effect,
    pub(super) kind: BodyKind,
    /// What `return` gives; `Broken` until it is inferred.
    pub(super) answer: Option<Type>,
    pub(super) code: Vec<Operation>,
    pub(super) scope: Vec<Binding>,
    pub(super) loops: Vec<Loop>,
    /// Whether it has keyed lists of its own, whose rows may change in a `fn` or `view` too.
    pub(super) has_own_lists: bool,
    /// What `is` gave a name, by that name: for what is said where the name does not reach.
    pub(super) named_by_is: HashMap<String, Span>,
    /// How many loops around run over a whole list of the state.
    pub(super) scans: u16,
    /// Whether it is one expression: no statement stands in it.
    pub(super) is_expression: bool,
    /// Where the list is made that is all that the body gives.
    pub(super) collects: Option<Register>,
    /// In a test: the first word that only a simulator can do.
    pub(super) simulator: Option<String>,
    /// Fields of the rows that cursors are at, which the loop's condition has put into registers.
    pub(super) asked: Vec<(Cursor, u16, Register)>,
    next: Register,
    highest: Register,
    cursors: Cursor,
    /// Where the last jump was aimed at: what stands there is not taken back.
    aimed_at: Target,
    overflowed: bool,
}

impl<'c, 'a> Body<'c, 'a> {
    pub(super) fn new(checker: &'c mut Checker<'a>, name: &str, effect: Effect) -> Body<'c, 'a> {
        Body {
            checker,
            name: name.into(),
            effect,
            kind: BodyKind::Other,
            answer: None,
            code: Vec::new(),
            scope: Vec::new(),
            loops: Vec::new(),
            has_own_lists: false,
            named_by_is: HashMap::new(),
            scans: 0,
            is_expression: false,
            collects: None,
            simulator: None,
            asked: Vec::new(),
            next: 0,
            highest: 0,
            cursors: 0,
            aimed_at: 0,
            overflowed: false,
        }
    }

    pub(super) fn finish(self, number: u32) {
        let code = tidied(self.code);
        self.checker.module.functions[number as usize] = Function {
            name: self.name,
            registers: self.highest,
            cursors: self.cursors,
            code,
            collects: self.collects,
        };
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.checker.report.push(diagnostic);
    }

    // Registers and code.

    pub(super) fn register(&mut self) -> Register {
        let register = self.next;
        match self.next.checked_add(1) {
            Some(next) => self.next = next,
            None => self.overflow(),
        }
        self.highest = self.highest.max(self.next);
        register
    }

    /// Registers in a row.
    pub(super) fn row_of_registers(&mut self, count: usize) -> Register {
        let first = self.next;
        for _ in 0..count {
            self.register();
        }
        first
    }

    pub(super) fn mark(&self) -> Register {
        self.next
    }

    pub(super) fn release(&mut self, mark: Register) {
        self.next = mark;
    }

    pub(super) fn cursor(&mut self) -> Cursor {
        let cursor = self.cursors;
        match self.cursors.checked_add(1) {
            Some(next) => self.cursors = next,
            None => self.overflow(),
        }
        cursor
    }

    fn overflow(&mut self) {
        if !std::mem::replace(&mut self.overflowed, true) {
            let message = format!("`{}` is too large", self.name);
            self.report(
                Diagnostic::new(Code::TooLarge, Span::default(), message)
                    .help("divide it into several functions"),
            );
        }
    }

    pub(super) fn emit(&mut self, operation: Operation) -> usize {
        self.checker.operations += 1;
        if self.checker.operations > OPERATIONS_MAX {
            self.overflow();
            return 0;
        }
        self.code.push(operation);
        self.code.len() - 1
    }

    pub(super) fn here(&self) -> Target {
        self.code.len() as Target
    }

    /// The place where a loop goes on.
    pub(super) fn loop_start(&mut self) -> Target {
        self.aimed_at = self.here();
        self.aimed_at
    }

    /// A jump taken where a condition that was lowered from `begins` on is as wanted. What the condition came from is
    /// one operation with it, where nothing else jumps into it.
    pub(super) fn jump_when(&mut self, condition: Register, wanted: bool, begins: Target) -> usize {
        let (mut condition, mut wanted) = (condition, wanted);
        let first = begins.max(self.aimed_at) as usize;
        while self.code.len() > first
            && let Some(Operation::Not { out, from }) = self.code.last()
            && *out == condition
        {
            (condition, wanted) = (*from, !wanted);
            self.code.pop();
        }
        let to = 0;
        let last = self.code.last().filter(|_| self.code.len() > first).copied();
        let fused = match last {
            Some(Operation::Less { comparison: Comparison::Word, out, left, right }) if out == condition => {
                Some(Operation::JumpLess { left, right, wanted, to })
            }
            Some(Operation::Equal { comparison: Comparison::Word, out, left, right }) if out == condition => {
                Some(Operation::JumpEqual { left, right, wanted, to })
            }
            Some(Operation::HasRow { out, list, key }) if out == condition => {
                Some(Operation::JumpHasRow { list, key, wanted, to })
            }
            Some(Operation::IsNone { out, from: value }) if out == condition && wanted => {
                Some(Operation::JumpIfNone { value, to })
            }
            _ => None,
        };
        match fused {
            Some(jump) => {
                self.code.pop();
                self.emit(jump)
            }
            None if wanted => self.jump_if(condition),
            None => self.jump_unless(condition),
        }
    }

    /// Makes one operation of the beginning of a loop, at `next`, and of the first condition that stands behind it, where
    /// that is whether a field of the row is a key of a list.
    pub(super) fn join_next(&mut self, next: usize) {
        let (key, is_wanted) = match self.code.get(next..) {
            Some([_, Operation::FieldOf { out, .. }, Operation::JumpHasRow { key, wanted, .. }])
                if out == key =>
            {
                (*key, !wanted)
            }
            Some(
                [
                    _,
                    Operation::FieldOf { out: read, .. },
                    Operation::Copy { out, from },
                    Operation::JumpHasRow { key, wanted, .. },
                ],
            ) if read == from && out == key => (*key, !wanted),
            _ => return,
        };
        let (
            Some(Operation::Next { cursor, out, done }),
            Some(Operation::FieldOf { cursor: of, list, field, .. }),
            Some(Operation::JumpHasRow { list: keys, .. }),
        ) = (self.code.get(next), self.code.get(next + 1), self.code.last())
        else {
            return;
        };
        let (cursor, out, done, list, field, keys) = (*cursor, *out, *done, *list, *field, *keys);
        if *of != cursor || !self.is_word(list, field) || !self.is_by_one_word(keys) {
            return;
        }
        self.code.truncate(next);
        let wanted = is_wanted;
        // It stays there while the cursor is at the row.
        if key < self.next {
            self.asked.push((cursor, field, key));
        }
        self.emit(Operation::NextWhere { cursor, out, list, field, value: key, keys, wanted, done });
    }

    fn is_word(&self, list: u32, field: u16) -> bool {
        self.checker.keyed(list).is_some_and(|(record, ..)| {
            is_plain_word(&self.checker.record(record).fields[field as usize].kind)
        })
    }

    fn is_by_one_word(&self, list: u32) -> bool {
        self.checker.keyed(list).is_some_and(|(_, keys, _)| matches!(keys, [key] if self.is_word(list, *key)))
    }

    /// Takes back the making of a record that nobody else wants; where its fields are.
    pub(super) fn take_back_record(&mut self, record: Register) -> Option<(Register, u16)> {
        let Some(Operation::MakeRecord { out, first, count }) = self.code.last().copied() else {
            return None;
        };
        if out != record || self.aimed_at >= self.here() {
            return None;
        }
        self.code.pop();
        Some((first, count))
    }

    /// Aims a jump at a place before it.
    pub(super) fn aim_back(&mut self, jump: usize, target: Target) {
        let aimed_at = self.aimed_at;
        self.aim(jump);
        self.aimed_at = aimed_at;
        if let Some(to) = self.code.get_mut(jump).and_then(Operation::target) {
            *to = target;
        }
    }

    /// A jump whose target is the place where [`Body::aim`] is called.
    pub(super) fn jump(&mut self) -> usize {
        self.emit(Operation::Jump { to: 0 })
    }

    pub(super) fn jump_to(&mut self, to: Target) {
        self.emit(Operation::Jump { to });
    }

    pub(super) fn jump_if(&mut self, condition: Register) -> usize {
        self.emit(Operation::JumpIf { condition, to: 0 })
    }

    pub(super) fn jump_unless(&mut self, condition: Register) -> usize {
        self.emit(Operation::JumpUnless { condition, to: 0 })
    }

    pub(super) fn jump_if_none(&mut self, value: Register) -> usize {
        self.emit(Operation::JumpIfNone { value, to: 0 })
    }

    pub(super) fn jump_if_there(&mut self, value: Register) -> usize {
        self.emit(Operation::JumpIfThere { value, to: 0 })
    }

    /// Aims a jump at the next operation.
    pub(super) fn aim(&mut self, jump: usize) {
        let here = self.here();
        self.aimed_at = here;
        match self.code.get_mut(jump).and_then(Operation::target) {
            Some(to) => *to = here,
            None => debug_assert!(self.overflowed, "only jumps are aimed"),
        }
    }

    pub(super) fn copy(&mut self, from: Register, out: Register) {
        if from != out {
            self.emit(Operation::Copy { out, from });
        }
    }

    /// Adds a value to a list; a record that was made since a mark is of no other use.
    pub(super) fn push_made(&mut self, list: Register, value: Register, mark: Register) {
        let made = if value < mark { None } else { self.take_back_record(value) };
        self.emit(match made {
            Some((first, count)) => Operation::PushRecord { list, first, count },
            None => Operation::Push { list, value },
        });
    }

    /// As [`Body::copy`], of a value that was lowered since a mark: what made it puts it there at once, where that is the
    /// operation before and nothing jumps behind it.
    pub(super) fn put_into(&mut self, from: Register, out: Register, mark: Register) {
        if from >= mark
            && self.aimed_at < self.here()
            && let Some(made) = self.code.last_mut().and_then(Operation::out)
            && *made == from
        {
            *made = out;
            return;
        }
        self.copy(from, out);
    }

    /// Whether nothing else is ever put into a register that was there before `mark`, or it has no name.
    pub(super) fn is_fixed(&self, register: Register, mark: Register) -> bool {
        let is_it = |binding: &&Binding| match binding.kind {
            BindingKind::Value { register: bound, fixed: true, .. } => bound == register,
            _ => false,
        };
        register >= mark || self.scope.iter().rev().any(|binding| is_it(&binding))
    }

    pub(super) fn constant(&mut self, value: Value) -> Register {
        let out = self.register();
        self.constant_into(value, out);
        out
    }

    pub(super) fn constant_into(&mut self, value: Value, out: Register) {
        let constant = self.checker.constant(value);
        self.emit(Operation::Constant { out, constant });
    }

    pub(super) fn broken(&mut self) -> Operand {
        Operand { register: self.register(), kind: Type::Broken, origin: None }
    }

    /// How two values of a type are compared.
    pub(super) fn comparison(kind: &Type) -> Comparison {
        match kind {
            Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_) => Comparison::Word,
            Type::Text | Type::Real | Type::Bytes | Type::Endpoint => Comparison::Text,
            Type::Node => Comparison::Node,
            _ => Comparison::Deep,
        }
    }

    /// Whether values of a type have an order.
    pub(super) fn is_ordered(kind: &Type) -> bool {
        !matches!(kind, Type::Record(_) | Type::List(_) | Type::Optional(_) | Type::Nothing)
    }

    // Scope.

    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        self.scope.iter().rev().find(|binding| binding.name == name)
    }

    /// Gives a value a name; no name hides another one.
    pub(super) fn bind(&mut self, name: &Word, kind: BindingKind) {
        if let Some(before) = self.find(&name.text) {
            let before = before.span;
            self.checker.twice(name, "the value", before);
        } else if let Some(what) = self.value_of_app(&name.text) {
            self.report(
                Diagnostic::new(Code::Twice, name.span, format!("`{}` is a {what} already", name.text))
                    .note("no local hides a value of the app")
                    .help("choose another name"),
            );
        }
        if self.scope.len() >= LOCALS_MAX {
            self.overflow();
            return;
        }
        let told = self.kind_of(&kind);
        self.checker.tell(name.span, &told);
        self.scope.push(Binding {
            name: name.text.clone(),
            kind,
            span: name.span,
            copy_of: None,
            given_by: GivenBy::Other,
        });
    }

    pub(super) fn value_of_app(&self, name: &str) -> Option<&'static str> {
        if self.checker.states.contains_key(name) {
            return Some("state");
        }
        if self.checker.libraries.contains_key(name) {
            return Some("library");
        }
        self.checker.settings.contains_key(name).then_some("setting")
    }

    /// What a name of this kind is.
    fn kind_of(&self, binding: &BindingKind) -> Type {
        let (list, is_optional) = match binding {
            BindingKind::Value { kind, .. } => return kind.clone(),
            BindingKind::Row { list, optional, .. } | BindingKind::Element { list, optional, .. } => {
                (*list, *optional)
            }
            BindingKind::Keyed { list } => (*list, false),
            BindingKind::Group { .. } => return Type::Broken,
        };
        let row = self.checker.keyed(list).map_or(Type::Broken, |(record, ..)| Type::Record(record));
        match binding {
            BindingKind::Keyed { .. } => Type::List(Arc::new(row)),
            _ if is_optional => Type::Optional(Arc::new(row)),
            _ => row,
        }
    }

    pub(super) fn bind_value(&mut self, name: &Word, kind: Type) -> Register {
        let register = self.register();
        self.bind(name, BindingKind::Value { register, kind, fixed: true, origin: None });
        register
    }

    /// Names an operand, in a register of its own: a row of a list stands for the list at its key where state may
    /// change, and is read where its fields are wanted where it may not.
    pub(super) fn bind_operand(&mut self, name: &Word, operand: &Operand, fixed: bool, slot: Register) {
        let (inner, optional) = match &operand.kind {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let is_row = fixed && matches!(inner, Type::Record(_));
        match operand.origin {
            // A test acts on nodes between its statements: what it has named stays as it was.
            Some(Origin { list, held }) if is_row && (list >= SCRATCH || self.effect != Effect::Tests) => {
                if held == Held::Row {
                    self.emit(Operation::KeyOf { out: slot, list, row: operand.register });
                } else {
                    let key = self.settled(operand.clone());
                    self.put_into(key.register, slot, slot.saturating_add(1));
                }
                let may_change = self.effect == Effect::Changes || list >= SCRATCH;
                self.bind(
                    name,
                    match may_change {
                        true => BindingKind::Row { list, key: slot, optional },
                        false => BindingKind::Element { list, key: slot, optional, cursor: None },
                    },
                );
            }
            origin => {
                let value = self.whole(operand.clone());
                self.put_into(value.register, slot, slot.saturating_add(1));
                let origin = origin.filter(|_| fixed).map(|origin| origin.list);
                let kind = operand.kind.clone();
                self.bind(name, BindingKind::Value { register: slot, kind, fixed, origin });
            }
        }
    }

    pub(super) fn leave_scope(&mut self, length: usize) {
        self.scope.truncate(length);
    }
}
