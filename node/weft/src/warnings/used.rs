//! The names that a file uses, by what they are used as.

use crate::syntax::tree::{
    Block, Expectation, Expression, ExpressionKind, Field, File, FunctionBody, HandlerKind, Statement,
    StatementKind, TypeTree,
};
use crate::syntax::walk;
use std::collections::{HashMap, HashSet};

/// Names that stand somewhere.
#[derive(Debug, Default)]
pub(super) struct Used<'f> {
    pub(super) types: HashSet<&'f str>,
    /// Values, and fields: in a test a node's state stands behind a dot.
    pub(super) values: HashSet<&'f str>,
    pub(super) called: HashSet<&'f str>,
    pub(super) started: HashSet<&'f str>,
    pub(super) sent: HashSet<&'f str>,
}

impl<'f> Used<'f> {
    pub(super) fn of(file: &'f File) -> Used<'f> {
        let mut used = Used::default();
        for record in &file.records {
            used.fields(&record.fields);
        }
        used.fields(&file.settings);
        for state in &file.states {
            used.kind(&state.kind);
            state.initial.iter().for_each(|initial| used.expression(initial));
        }
        for output in &file.outputs {
            used.fields(&output.fields);
            output.answer.iter().for_each(|answer| used.kind(answer));
        }
        for handler in &file.handlers {
            match &handler.kind {
                HandlerKind::On { fields, answer, .. } => {
                    used.fields(fields);
                    answer.iter().for_each(|answer| used.kind(answer));
                }
                HandlerKind::Timer { fields } => used.fields(fields),
                HandlerKind::Delivered { .. } | HandlerKind::Refused { .. } => {}
            }
            used.block(&handler.body);
        }
        file.everies.iter().for_each(|every| used.block(&every.body));
        for procedure in &file.procedures {
            used.fields(&procedure.fields);
            used.block(&procedure.body);
        }
        for function in &file.functions {
            used.fields(&function.fields);
            function.answer.iter().for_each(|answer| used.kind(answer));
            match &function.body {
                FunctionBody::Expression(value) => used.expression(value),
                FunctionBody::Block(block) => used.block(block),
            }
        }
        file.tests.iter().for_each(|test| used.block(&test.body));
        used
    }

    fn fields(&mut self, fields: &'f [Field]) {
        for field in fields {
            self.kind(&field.kind);
            field.default.iter().for_each(|default| self.expression(default));
        }
    }

    fn kind(&mut self, kind: &'f TypeTree) {
        match kind {
            TypeTree::Named { name, .. } => drop(self.types.insert(&name.text)),
            TypeTree::List { element, .. } => self.kind(element),
            TypeTree::Keyed { element, .. } => drop(self.types.insert(&element.text)),
        }
    }

    fn block(&mut self, block: &'f Block) {
        walk::expressions(block, &mut |expression| self.one(expression));
        walk::statements(block, &mut |statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &'f Statement) {
        match &statement.kind {
            StatementKind::Let { kind: Some(kind), .. } => self.kind(kind),
            StatementKind::Send { name, .. } | StatementKind::Expect(Expectation::Sent { name, .. }) => {
                self.sent.insert(&name.text);
            }
            StatementKind::Start { name, .. } => drop(self.started.insert(&name.text)),
            _ => {}
        }
    }

    fn expression(&mut self, expression: &'f Expression) {
        walk::inner(expression, &mut |part| self.one(part));
    }

    fn one(&mut self, expression: &'f Expression) {
        match &*expression.kind {
            ExpressionKind::Name(name) => drop(self.values.insert(name)),
            ExpressionKind::Field(_, name) => drop(self.values.insert(&name.text)),
            ExpressionKind::Record { name: Some(name), .. } => drop(self.types.insert(&name.text)),
            ExpressionKind::Call { callee, .. } => match &*callee.kind {
                ExpressionKind::Name(name) => drop(self.called.insert(name)),
                ExpressionKind::Field(_, name) => drop(self.called.insert(&name.text)),
                _ => {}
            },
            _ => {}
        }
    }
}

/// The names that a block reads: all that stand in it, but where they only get a value.
pub(super) fn names_read(block: &Block) -> HashSet<&str> {
    let mut counts: HashMap<&str, isize> = HashMap::new();
    walk::expressions(block, &mut |expression| {
        if let ExpressionKind::Name(name) = &*expression.kind {
            *counts.entry(name).or_default() += 1;
        }
    });
    walk::statements(block, &mut |statement| {
        if let StatementKind::Assign { place, .. } = &statement.kind
            && let ExpressionKind::Name(name) = &*place.kind
        {
            *counts.entry(name).or_default() -= 1;
        }
    });
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect()
}
