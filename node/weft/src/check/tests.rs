//! Tests: inputs called like functions, what is expected, nodes and time.
//!
//! A test's code runs on a machine of its own and reads the state of one node at a time; everything that acts is asked
//! of the world around it ([`TestOperation`]).

use super::body::{Body, Effect, Operand};
use super::{Checker, Signature};
use crate::code::{Operation, Register, Sides, TestOperation};
use crate::diagnostics::{Code, Diagnostic, Span, line_of};
use crate::module::{Door, Test, Type};
use crate::syntax::tree::{Binary, Expectation, Expression, ExpressionKind, File, Query, Who, Word};
use crate::value::Value;
use std::collections::HashMap;

/// What only a simulator of links and disks can do.
const SIMULATED: &[&str] = &["crash", "crash_anywhere", "cut", "heal", "move"];
/// Bytes of an expectation's text that are shown when it fails.
const SHOWN_BYTES_MAX: usize = 200;

/// Where something is called, and by what name.
struct Called<'e> {
    node: Option<Register>,
    name: Word,
    arguments: &'e [Expression],
    who: Option<&'e Who>,
    span: Span,
}

impl Checker<'_> {
    pub(super) fn check_tests(&mut self, file: &File) {
        let mut titles: HashMap<&str, Span> = HashMap::new();
        for test in &file.tests {
            let title = Word { text: test.title.clone(), span: test.span };
            if let Some(before) = titles.insert(&test.title, test.span) {
                self.twice(&title, "the test", before);
            }
            let function = self.reserve_function(&test.title);
            let mut body = Body::new(self, &test.title, Effect::Tests);
            body.block(&test.body);
            body.emit(Operation::Return { value: None });
            let simulator = body.simulator.take();
            body.finish(function);
            let line = line_of(self.source, test.span.start) as u32;
            self.module.tests.push(Test { title: test.title.clone(), line, function, simulator });
        }
    }
}

impl<'c, 'a> Body<'c, 'a> {
    fn ask(&mut self, operation: TestOperation) {
        self.emit(Operation::Test(operation));
    }

    /// Reads something of a node, then of the test's own again.
    pub(super) fn visiting<T>(&mut self, node: Option<Register>, read: impl FnOnce(&mut Self) -> T) -> T {
        if node.is_none() {
            return read(self);
        }
        self.ask(TestOperation::Visit { node });
        let found = read(self);
        self.ask(TestOperation::Visit { node: None });
        found
    }

    /// `node.list`, where it is a keyed list.
    pub(super) fn list_of_node(&mut self, place: &Expression) -> Option<(Register, u32)> {
        if self.effect != Effect::Tests {
            return None;
        }
        let ExpressionKind::Field(node, list) = &*place.kind else { return None };
        let number = self.checker.states.get(&list.text).copied()?;
        self.checker.keyed(number)?;
        let node = self.lower(node, None);
        (node.kind == Type::Node).then_some((node.register, number))
    }

    /// A node's state, setting or view.
    pub(super) fn member_of_node(&mut self, node: Register, member: &Word) -> Operand {
        let name = member.text.as_str();
        if let Some(list) = self.checker.states.get(name).copied() {
            return self.visiting(Some(node), |body| body.whole_list(list, member.span));
        }
        if let Some(setting) = self.checker.settings.get(name).copied() {
            return self.visiting(Some(node), |body| body.setting(setting));
        }
        if let Some(signature) = self.checker.functions.get(name).filter(|one| one.is_view).cloned() {
            return self.test_view(Some(node), member, &signature, &[], None, member.span);
        }
        self.nothing_of_node(member);
        self.broken()
    }

    fn nothing_of_node(&mut self, member: &Word) {
        if self.checker.report.is_full() {
            return;
        }
        let checker = &*self.checker;
        let module = &checker.module;
        let inputs = module.inputs.iter().chain(&module.from_inputs).map(|door| &door.name);
        let views = checker.functions.iter().filter(|(_, one)| one.is_view).map(|(name, _)| name);
        let mut there: Vec<String> = inputs.chain(views).chain(checker.states.keys()).cloned().collect();
        there.extend(checker.settings.keys().cloned());
        there.sort();
        let message = format!("a node has no input, view, state or setting `{}`", member.text);
        self.checker.unknown(Code::UnknownAction, member, message, there, false);
    }

    /// Calls a view of a node.
    pub(super) fn test_view(
        &mut self,
        node: Option<Register>,
        name: &Word,
        signature: &Signature,
        arguments: &[Expression],
        who: Option<&Who>,
        span: Span,
    ) -> Operand {
        let (first, count) = self.arguments(name, arguments, &signature.fields, span);
        if signature.by {
            // The caller comes after the fields.
            let moved = self.row_of_registers(usize::from(count) + 1);
            for at in 0..count {
                self.copy(first.saturating_add(at), moved.saturating_add(at));
            }
            let by = self.poster(who);
            self.copy(by, moved.saturating_add(count));
            return self.call_view(node, signature, moved, count.saturating_add(1));
        }
        if let Some(who) = who {
            let message = format!("`{}` does not ask by whom it is read", name.text);
            self.report(Diagnostic::new(Code::Unexpected, who.value.span, message));
        }
        self.call_view(node, signature, first, count)
    }

    fn call_view(
        &mut self,
        node: Option<Register>,
        signature: &Signature,
        first: Register,
        count: u16,
    ) -> Operand {
        let (function, kind) = (signature.function, signature.answer.clone());
        self.visiting(node, |body| body.plain(kind, |out| Operation::Call { function, first, count, out }))
    }

    /// The text of who posts or reads.
    fn poster(&mut self, who: Option<&Who>) -> Register {
        match who {
            Some(Who { from: false, value }) => self.need(value, &Type::Text),
            Some(Who { value, .. }) => {
                self.report(
                    Diagnostic::new(Code::Unexpected, value.span, "this comes from outside, not from a node")
                        .help("write `by \"ann\"`"),
                );
                self.register()
            }
            None => self.constant(Value::Text("local".into())),
        }
    }

    /// A call that gives a value.
    pub(super) fn test_value(
        &mut self,
        callee: &Expression,
        (arguments, query): (&[Expression], Option<&Query>),
        who: Option<&Who>,
        span: Span,
        wanted: Option<&Type>,
    ) -> Operand {
        if query.is_none()
            && let ExpressionKind::Name(name) = &*callee.kind
            && name == "node"
            && arguments.is_empty()
        {
            let out = self.register();
            self.ask(TestOperation::Node { out });
            return Operand { register: out, kind: Type::Node, origin: None };
        }
        if query.is_none()
            && let Some(called) = self.called(callee, arguments, who, span)
        {
            if let Some(signature) = self.checker.functions.get(&called.name.text).filter(|one| one.is_view) {
                let signature = signature.clone();
                return self.test_view(called.node, &called.name, &signature, arguments, who, span);
            }
            if let Some((out, answer)) = self.act(&called, None) {
                let Some(kind) = answer else {
                    let message = format!("`{}` gives nothing", called.name.text);
                    self.report(Diagnostic::new(Code::WrongType, span, message));
                    return self.broken();
                };
                return Operand { register: out, kind, origin: None };
            }
            if called.node.is_some() {
                self.nothing_of_node(&called.name);
                return self.broken();
            }
        }
        self.only_named(who);
        self.call(callee, arguments, query, span, wanted)
    }

    fn only_named(&mut self, who: Option<&Who>) {
        if let Some(who) = who {
            let message = "only inputs, sends and views know who is there";
            self.report(Diagnostic::new(Code::Unexpected, who.value.span, message));
        }
    }

    /// A call that stands as a statement; whether it was one of a test's own.
    pub(super) fn test_statement(
        &mut self,
        callee: &Expression,
        arguments: &[Expression],
        who: Option<&Who>,
        span: Span,
    ) -> bool {
        if let ExpressionKind::Name(name) = &*callee.kind {
            if name == "advance" {
                let [by] = arguments else {
                    let message = "`advance` takes how long, a duration";
                    self.report(Diagnostic::new(Code::WrongCount, span, message));
                    return true;
                };
                let by = self.need(by, &Type::Duration);
                self.ask(TestOperation::Advance { by });
                return true;
            }
            if SIMULATED.contains(&name.as_str()) {
                for argument in arguments {
                    self.need(argument, &Type::Node);
                }
                self.simulator.get_or_insert_with(|| name.clone());
                return true;
            }
        }
        let Some(called) = self.called(callee, arguments, who, span) else { return false };
        let acted = self.act(&called, None).is_some();
        if acted || called.node.is_none() {
            return acted;
        }
        if self.checker.functions.get(&called.name.text).is_some_and(|one| one.is_view) {
            let message = "a view does nothing";
            self.report(
                Diagnostic::new(Code::NoEffect, span, message)
                    .help("give what it shows a name, or `expect` something"),
            );
        } else {
            self.nothing_of_node(&called.name);
        }
        true
    }

    /// What is called: a name, perhaps of a node.
    fn called<'e>(
        &mut self,
        callee: &'e Expression,
        arguments: &'e [Expression],
        who: Option<&'e Who>,
        span: Span,
    ) -> Option<Called<'e>> {
        match &*callee.kind {
            ExpressionKind::Name(name) => {
                let name = Word { text: name.clone(), span: callee.span };
                Some(Called { node: None, name, arguments, who, span })
            }
            ExpressionKind::Field(node, _) if self.is_library(node) => None,
            ExpressionKind::Field(node, name) => {
                let node = self.lower(node, None);
                let found = (node.kind == Type::Node).then_some(node.register)?;
                Some(Called { node: Some(found), name: name.clone(), arguments, who, span })
            }
            _ => None,
        }
    }

    /// Posts or delivers, if an input is called: where its answer is and of what type.
    fn act(&mut self, called: &Called<'_>, refusal: Option<Register>) -> Option<(Register, Option<Type>)> {
        let Called { node, name, who, span, .. } = called;
        let find = |doors: &[Door]| {
            doors.iter().position(|door| door.name == name.text).map(|at| (at as u32, doors[at].clone()))
        };
        if let Some((input, door)) = find(&self.checker.module.inputs) {
            let (first, count) = self.arguments(name, called.arguments, &door.fields, *span);
            let by = who.map(|who| self.poster(Some(who)));
            let out = self.register();
            self.ask(TestOperation::Post { node: *node, input, first, count, by, out, refusal });
            return Some((out, door.answer));
        }
        let (input, door) = find(&self.checker.module.from_inputs)?;
        let (first, count) = self.arguments(name, called.arguments, &door.fields, *span);
        let from = match who {
            Some(Who { from: true, value }) => self.need(value, &Type::Node),
            _ => {
                let message = format!("who sends `{}`?", name.text);
                self.report(
                    Diagnostic::new(Code::Unexpected, *span, message)
                        .help("write `from` and a node behind it"),
                );
                self.register()
            }
        };
        let out = self.register();
        self.ask(TestOperation::Deliver { node: *node, input, first, count, from, out, refusal });
        Some((out, door.answer))
    }

    /// `node.setting = value`, `setting = value`; whether it is one.
    pub(super) fn assign_setting(&mut self, place: &Expression, value: &Expression) -> bool {
        let (node, name) = match &*place.kind {
            ExpressionKind::Name(name) if self.find(name).is_none() => (None, name),
            ExpressionKind::Field(node, name) => (Some(node), &name.text),
            _ => return false,
        };
        let Some(setting) = self.checker.settings.get(name).copied() else { return false };
        let node = match node {
            Some(node) => {
                let node = self.lower(node, None);
                if node.kind != Type::Node {
                    return false;
                }
                Some(node.register)
            }
            None => None,
        };
        let kind = self.checker.module.settings[setting as usize].kind.clone();
        let value = self.need(value, &kind);
        self.ask(TestOperation::Set { node, setting, value });
        true
    }

    pub(super) fn expect(&mut self, expectation: &Expectation, span: Span) {
        match expectation {
            Expectation::Holds(value) => self.expect_holds(value),
            Expectation::Refused { place, because } => self.expect_refused(place, because.as_ref()),
            Expectation::Sent { name, arguments, to } => {
                let Some(output) = self.output(name) else { return };
                let (first, count, to) = self.sent(output, name, arguments, to, span);
                self.ask(TestOperation::ExpectSent { output, first, count, to });
            }
        }
    }

    /// What is joined by `and` is expected part by part: the part that does not hold is told, with its own two sides.
    fn expect_holds(&mut self, value: &Expression) {
        let depth = self.scope.len();
        let mut parts = Vec::new();
        let mut rest = value;
        while let ExpressionKind::Binary(Binary::And, left, right) = &*rest.kind {
            parts.push(right);
            rest = left;
        }
        self.expect_part(rest);
        for part in parts.into_iter().rev() {
            self.expect_part(part);
        }
        self.leave_scope(depth);
    }

    fn expect_part(&mut self, value: &Expression) {
        let (condition, sides) = match &*value.kind {
            ExpressionKind::Binary(operator, left, right) if operator.strength() == 4 => {
                let (found, sides) = self.compare_sides(*operator, left, right, value.span);
                let sides = sides.map(|(left, right, kind)| {
                    let shown = &mut self.checker.module.shown;
                    shown.push(kind);
                    Sides { left, right, kind: (shown.len() - 1) as u32 }
                });
                (found.register, sides)
            }
            _ => (self.condition(value), None),
        };
        let source = &self.checker.source[value.span.start as usize..value.span.end as usize];
        let mut text = source.split_whitespace().collect::<Vec<_>>().join(" ");
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        let text = self.checker.constant(Value::Text(text.into()));
        self.ask(TestOperation::Expect { condition, text, sides });
    }

    fn expect_refused(&mut self, place: &Expression, because: Option<&Expression>) {
        let refusal = self.register();
        let acted = match &*place.kind {
            ExpressionKind::Call { callee, arguments, query: None, who } => {
                let called = self.called(callee, arguments, who.as_ref(), place.span);
                called.and_then(|called| self.act(&called, Some(refusal)))
            }
            _ => None,
        };
        if acted.is_none() {
            self.report(
                Diagnostic::new(Code::UnknownAction, place.span, "only inputs and sends are refused")
                    .help("write `expect refused input(…) because \"…\"`"),
            );
        }
        let because = because.map(|because| self.need(because, &Type::Text));
        self.ask(TestOperation::ExpectRefused { refusal, because });
    }
}
