//! Statements.

use super::body::{BindingKind, Body, BodyKind, Effect, GivenBy, Held, Loop, Operand, Origin};
use super::builtins::BUILT_IN;
use super::declarations::no_covers;
use super::optional;
use super::queries::Runs;
use crate::code::{Operation, Register, TestOperation};
use crate::diagnostics::{Code, Diagnostic, Span, line_of};
use crate::module::{List, ListKind, SCRATCH, Type};
use crate::syntax::habits;
use crate::syntax::tree::{
    Binary, Block, Exit, Expression, ExpressionKind, LetValue, Otherwise, Query, Statement, StatementKind,
    TypeTree, Word,
};
use crate::value::Value;
use std::sync::Arc;

impl Body<'_, '_> {
    /// Lowers a block; whether nothing after it is ever reached.
    pub(super) fn block(&mut self, block: &Block) -> bool {
        let depth = self.scope.len();
        let mark = self.mark();
        let mut ends = false;
        for statement in &block.statements {
            ends |= self.statement(statement);
        }
        self.leave_scope(depth);
        self.release(mark);
        ends
    }

    fn statement(&mut self, statement: &Statement) -> bool {
        if self.effect == Effect::Tests {
            let line = line_of(self.checker.source, statement.span.start) as u32;
            self.emit(Operation::Test(TestOperation::Line(line)));
        }
        if let StatementKind::Let { fixed, name, kind, value } = &statement.kind {
            self.let_statement(*fixed, name, kind.as_ref(), value.as_ref());
            return false;
        }
        let depth = self.scope.len();
        let mark = self.mark();
        let ends = self.statement_kind(statement);
        self.leave_scope(depth);
        self.release(mark);
        ends
    }

    fn statement_kind(&mut self, statement: &Statement) -> bool {
        match &statement.kind {
            StatementKind::If { arms, otherwise } => return self.if_statement(arms, otherwise.as_ref()),
            StatementKind::For { query, body } => self.for_statement(query, body),
            StatementKind::Require { condition, otherwise } => {
                let depth = self.scope.len();
                let begins = self.here();
                let condition = self.need(condition, &Type::Bool);
                self.leave_scope(depth);
                let holds = self.jump_when(condition, true, begins);
                let reason = self.need(otherwise, &Type::Text);
                self.emit(Operation::Refuse { reason });
                self.aim(holds);
            }
            StatementKind::Exit(exit) => {
                self.exit(exit, statement.span);
                return true;
            }
            StatementKind::Change(change) => drop(self.change(change)),
            StatementKind::Assign { place, operator, value } => self.assign(place, *operator, value),
            StatementKind::Place(place) => self.place_statement(place),
            StatementKind::Remove { place, query } => self.remove(place, query.as_ref()),
            StatementKind::Send { name, arguments, to } => self.send(name, arguments, to, statement.span),
            StatementKind::Start { name, arguments, at, time } => {
                self.start(name, arguments, *at, time, statement.span);
            }
            StatementKind::Cancel { name, arguments } => self.cancel(name, arguments, statement.span),
            StatementKind::Expect(expectation) if self.effect == Effect::Tests => {
                self.expect(expectation, statement.span);
            }
            StatementKind::Expect(_) => {
                let message = "`expect` stands in a test";
                self.report(Diagnostic::new(Code::Unexpected, statement.span, message));
            }
            // Nobody knows what it would have done: nothing is said of what is missing behind it.
            StatementKind::Broken => return true,
            StatementKind::Let { .. } => {}
        }
        false
    }

    fn if_statement(&mut self, arms: &[(Expression, Block)], otherwise: Option<&Block>) -> bool {
        let mut ends = otherwise.is_some();
        let mut done = Vec::new();
        for (condition, block) in arms {
            let depth = self.scope.len();
            let mark = self.mark();
            let begins = self.here();
            let condition = self.condition(condition);
            let skip = self.jump_when(condition, false, begins);
            ends &= self.block(block);
            self.leave_scope(depth);
            self.release(mark);
            done.push(self.jump());
            self.aim(skip);
        }
        if let Some(block) = otherwise {
            ends &= self.block(block);
        }
        done.into_iter().for_each(|jump| self.aim(jump));
        ends
    }

    fn for_statement(&mut self, query: &Query, block: &Block) {
        self.query(query, Runs::Block(block), &mut |body, again, leave| {
            body.loops.push(Loop { again, leave: Vec::new() });
            body.block(block);
            if let Some(left) = body.loops.pop() {
                leave.extend(left.leave);
            }
        });
    }

    fn exit(&mut self, exit: &Exit, span: Span) {
        match exit {
            Exit::Refuse(reason) => {
                let reason = self.need(reason, &Type::Text);
                self.emit(Operation::Refuse { reason });
            }
            Exit::Return(value) => self.return_value(value.as_ref(), span),
            Exit::Break | Exit::Continue => {
                let is_break = matches!(exit, Exit::Break);
                let Some(again) = self.loops.last().map(|innermost| innermost.again) else {
                    let word = if is_break { "break" } else { "continue" };
                    self.report(Diagnostic::new(
                        Code::OutsideLoop,
                        span,
                        format!("`{word}` outside of a loop"),
                    ));
                    return;
                };
                if !is_break {
                    return self.jump_to(again);
                }
                let jump = self.jump();
                if let Some(innermost) = self.loops.last_mut() {
                    innermost.leave.push(jump);
                }
            }
        }
    }

    fn return_value(&mut self, value: Option<&Expression>, span: Span) {
        match (value, self.answer.clone()) {
            (Some(value), Some(answer)) => {
                let register = self.need(value, &answer);
                self.emit(Operation::Return { value: Some(register) });
            }
            (None, None) => {
                self.emit(Operation::Return { value: None });
            }
            (None, Some(Type::Broken)) => {}
            (None, Some(answer)) => {
                let kind = self.checker.name_of(&answer);
                let message = format!("`{}` gives {kind}, and here it gives nothing", self.name);
                self.report(Diagnostic::new(Code::Return, span, message).help("write `return …`"));
            }
            (Some(value), None) => {
                let found = self.lower(value, None);
                let kind = self.checker.name_of(&found.kind);
                let message = format!("`{}` gives nothing", self.name);
                let diagnostic =
                    Diagnostic::new(Code::Return, value.span, message).label(format!("this is {kind}"));
                self.report(match self.kind {
                    BodyKind::On => diagnostic.help(format!("write `-> {kind}` before its `{{`")),
                    BodyKind::Do => diagnostic.help("what gives a value is a `fn`; a `do` only changes"),
                    BodyKind::Other => diagnostic.help("write `return` alone"),
                });
            }
        }
    }

    fn place_statement(&mut self, place: &Expression) {
        if let ExpressionKind::Call { callee, arguments, query, who } = &*place.kind {
            if self.effect == Effect::Tests
                && self.test_statement(callee, arguments, who.as_ref(), place.span)
            {
                return;
            }
            self.only_in_tests(who.as_ref());
            if let ExpressionKind::Field(value, method) = &*callee.kind
                && !self.is_library(value)
            {
                return self.method(value, method, arguments);
            }
            if let ExpressionKind::Name(name) = &*callee.kind {
                let word = Word { text: name.clone(), span: callee.span };
                if let Some(signature) = self.checker.procedures.get(name).cloned() {
                    if self.effect != Effect::Changes {
                        return self.calls_procedure(&word);
                    }
                    if let Some(query) = query {
                        self.report(Diagnostic::new(Code::Unexpected, query.span, "a `do` takes no query"));
                    }
                    let (first, count) = self.arguments(&word, arguments, &signature.fields, place.span);
                    let out = self.register();
                    self.emit(Operation::Call { function: signature.function, first, count, out });
                    return;
                }
                let known = self.checker.functions.contains_key(name) || BUILT_IN.contains(&name.as_str());
                if !known && !self.checker.inputs.contains_key(name) {
                    if self.checker.report.is_full() {
                        return;
                    }
                    if let (Some(instead), false) =
                        (habits::function(name), self.checker.lost.contains(name.as_str()))
                    {
                        let message = format!("there is no `{name}` in Weft");
                        self.report(Diagnostic::new(Code::Foreign, callee.span, message).help(instead));
                        return;
                    }
                    let mut there: Vec<String> = self.checker.procedures.keys().cloned().collect();
                    there.sort();
                    let message = format!("there is no `do {name}`");
                    self.checker.unknown(Code::UnknownAction, &word, message, there, true);
                    return;
                }
            }
        }
        let found = self.lower(place, None);
        if found.kind != Type::Broken {
            let diagnostic = Diagnostic::new(Code::NoEffect, place.span, "this does nothing")
                .label("a value that nobody takes");
            self.report(match &*place.kind {
                ExpressionKind::Binary(Binary::Equal, left, right) => {
                    let (left, right) = (self.short(left.span), self.short(right.span));
                    diagnostic.help(format!("to assign, write `{left} = {right}`"))
                }
                _ => diagnostic.help("give it a name with `let`, or leave it out"),
            });
        }
    }

    // let and var

    fn let_statement(&mut self, fixed: bool, name: &Word, tree: Option<&TypeTree>, value: Option<&LetValue>) {
        if let Some(TypeTree::Keyed { element, keys, indexes, span }) = tree {
            let value = value.map(|_| name.span);
            return self.own_list(fixed, name, (element, keys, indexes), value, *span);
        }
        let depth = self.scope.len();
        let slot = self.register();
        let wanted = tree.map(|tree| self.checker.resolve(tree));
        let copy_of = self.copied(value);
        let operand = match value {
            None => self.empty(fixed, name, wanted.as_ref()),
            Some(LetValue::Expression(value)) => {
                let found = self.lower_row(value, wanted.as_ref());
                // A `let` of a row stands for the list at its key, a `var` copies the row.
                let mut found = if fixed { self.settled(found) } else { self.whole(found) };
                if wanted.is_none() {
                    found.kind = self.told(found.kind, value.span);
                }
                self.fitted(found, wanted.as_ref(), value.span)
            }
            Some(LetValue::Change(change)) => {
                let found = self.change(change);
                self.fitted(found, wanted.as_ref(), change.span)
            }
            Some(LetValue::Else(value, otherwise)) => self.let_else(value, otherwise, wanted.as_ref(), slot),
        };
        self.leave_scope(depth);
        self.bind_operand(name, &operand, fixed, slot);
        if let Some(binding) = self.scope.last_mut() {
            binding.copy_of = copy_of;
            binding.given_by = if fixed { GivenBy::Let } else { GivenBy::Other };
        }
        self.release(slot.saturating_add(1));
    }

    /// `var name: list of R by key`
    fn own_list(
        &mut self,
        fixed: bool,
        name: &Word,
        (element, keys, indexes): (&Word, &[Word], &[Vec<Word>]),
        value: Option<Span>,
        span: Span,
    ) {
        if fixed || value.is_some() {
            let message = format!("`{}` begins empty, and is filled with `add` and `put`", name.text);
            self.report(
                Diagnostic::new(Code::Unexpected, value.unwrap_or(span), message).help(format!(
                    "write `var {}: list of {} by …`, without a value",
                    name.text, element.text
                )),
            );
        }
        let list = SCRATCH + self.checker.module.scratch.len() as u32;
        let kind = self.checker.keyed_list(None, element, keys, indexes);
        if let ListKind::Variable { kind, .. } = kind {
            // Reported: nothing more is said about it.
            self.bind_value(name, kind);
            return;
        }
        let covers = no_covers(&kind);
        let list_name = name.text.clone();
        self.checker.module.scratch.push(List { name: list_name, was: None, transient: true, kind, covers });
        self.has_own_lists = true;
        self.emit(Operation::Clear { list });
        self.bind(name, BindingKind::Keyed { list });
    }

    fn fitted(&mut self, found: Operand, wanted: Option<&Type>, span: Span) -> Operand {
        let Some(wanted) = wanted else { return found };
        self.must_fit(&found.kind, wanted, span);
        Operand { kind: wanted.clone(), ..found }
    }

    /// The field of a row that a `let` copies.
    fn copied(&self, value: Option<&LetValue>) -> Option<String> {
        let Some(LetValue::Expression(value)) = value else { return None };
        let ExpressionKind::Field(inner, _) = &*value.kind else { return None };
        let ExpressionKind::Name(name) = &*inner.kind else { return None };
        match self.find(name)?.kind {
            BindingKind::Row { .. } => Some(self.short(value.span)),
            BindingKind::Value { .. }
            | BindingKind::Element { .. }
            | BindingKind::Group { .. }
            | BindingKind::Keyed { .. } => None,
        }
    }

    fn empty(&mut self, fixed: bool, name: &Word, wanted: Option<&Type>) -> Operand {
        let initial = match wanted {
            Some(Type::List(_)) => Some(Value::List(Arc::default())),
            Some(Type::Optional(_) | Type::Broken) => Some(Value::None),
            _ => None,
        };
        let (Some(initial), Some(wanted), false) = (initial, wanted, fixed) else {
            let word = if fixed { "let" } else { "var" };
            self.report(
                Diagnostic::new(Code::Unexpected, name.span, format!("`{}` has no value", name.text))
                    .help(format!("write `{word} {} = …`", name.text)),
            );
            return self.broken();
        };
        Operand { register: self.constant(initial), kind: wanted.clone(), origin: None }
    }

    fn let_else(
        &mut self,
        value: &Expression,
        otherwise: &Otherwise,
        wanted: Option<&Type>,
        slot: Register,
    ) -> Operand {
        let (depth, mark) = (self.scope.len(), self.mark());
        let hint = wanted.map(optional);
        let found = self.lower_row(value, hint.as_ref());
        let found = self.settled(found);
        self.leave_scope(depth);
        let inner = match &found.kind {
            Type::Optional(inner) => (**inner).clone(),
            Type::Broken => Type::Broken,
            other => {
                self.nothing_to_else(&other.clone(), value.span);
                Type::Broken
            }
        };
        let inner = match wanted {
            Some(wanted) => {
                self.must_fit(&inner, wanted, value.span);
                wanted.clone()
            }
            None => inner,
        };
        if let Otherwise::Exit(exit, span) = otherwise {
            self.put_into(found.register, slot, mark);
            let done = self.jump_if_there(slot);
            self.exit(exit, *span);
            self.aim(done);
            return Operand { register: slot, kind: inner, origin: found.origin };
        }
        let out = self.register();
        let begins = self.code.len();
        self.copy(found.register, out);
        let none = self.jump_if_none(out);
        let done = self.jump();
        self.aim(none);
        let (other, span) = match otherwise {
            Otherwise::Exit(_, span) => (self.broken(), *span),
            Otherwise::Change(change) => (self.change(change), change.span),
            Otherwise::Expression(expression) => {
                let other = self.lower_row(expression, Some(&inner));
                (self.settled(other), expression.span)
            }
        };
        self.must_fit(&other.kind, &inner, span);
        let mut origin = found.origin;
        // Both are keys of one list, or both are values.
        let same = origin.is_some() && origin == other.origin;
        let other = if same { other } else { self.whole(other) };
        self.copy(other.register, out);
        if !same && let Some(Origin { list, held: Held::Key }) = origin.take() {
            self.read_instead(begins, out, list, found.register);
        }
        origin = origin.filter(|_| same);
        self.aim(done);
        Operand { register: out, kind: inner, origin }
    }
}
