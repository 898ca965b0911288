//! What is likely not meant in an app that compiles: names that nobody uses, statements that never run, conditions that
//! are always the same.
//!
//! Must not know how the app runs. Looks at the tree and at how queries find their rows, and says nothing where it is not sure: a warning that is
//! none teaches people to read over all of them.
//!
//! `used` gathers the names that a file uses; here they are compared with those that it declares.

mod used;

use crate::diagnostics::{Code, Diagnostic, Report, Span};
use crate::module::Module;
use crate::syntax::tree::{
    Binary, Block, Exit, Expression, ExpressionKind, File, FunctionBody, HandlerKind, LetValue, Otherwise,
    Query, Statement, StatementKind, Word,
};
use crate::syntax::walk;
use used::Used;

/// Reports all warnings of a file.
pub(crate) fn find(module: &Module, source: &str, file: &File, report: &mut Report) {
    let used = Used::of(file);
    unused_declarations(file, &used, report);
    scans_in_scans(module, report);
    let mut body = |block: &Block| {
        unread_locals(block, report);
        never_run(block, report);
        walk::statements(block, &mut |statement| constant_conditions(source, statement, report));
        walk::expressions(block, &mut |expression| constant_in_query(source, expression, report));
    };
    let functions = file.functions.iter().filter_map(|function| match &function.body {
        FunctionBody::Block(block) => Some(block),
        FunctionBody::Expression(_) => None,
    });
    let handlers = file.handlers.iter().map(|handler| &handler.body);
    let others = file.procedures.iter().map(|one| &one.body).chain(file.everies.iter().map(|one| &one.body));
    functions
        .chain(handlers)
        .chain(others)
        .chain(file.tests.iter().map(|test| &test.body))
        .for_each(&mut body);
    for function in &file.functions {
        if let FunctionBody::Expression(value) = &function.body {
            walk::inner(value, &mut |expression| constant_in_query(source, expression, report));
        }
    }
}

fn unused_declarations(file: &File, used: &Used<'_>, report: &mut Report) {
    let mut unused = |name: &Word, what: &str, label: &str| {
        report.push(
            Diagnostic::new(Code::Unused, name.span, format!("{what} `{}` is never used", name.text))
                .label(label)
                .help("leave it out"),
        );
    };
    let of_library = |name: &str| {
        used.types.iter().any(|one| one.split_once('.').is_some_and(|(library, _)| library == name))
    };
    for one in file.uses.iter().filter(|one| !used.values.contains(one.name.text.as_str())) {
        if !of_library(&one.name.text) {
            unused(&one.name, "the library", "nothing of it is used");
        }
    }
    // What a library declares is for others.
    if file.is_library {
        return;
    }
    for record in file.records.iter().filter(|one| !used.types.contains(one.name.text.as_str())) {
        unused(&record.name, "the record", "nothing is of this type");
    }
    for one in file.enums.iter().filter(|one| !used.types.contains(one.name.text.as_str())) {
        unused(&one.name, "the enum", "nothing is of this type");
    }
    for state in file.states.iter().filter(|one| !used.values.contains(one.name.text.as_str())) {
        unused(&state.name, "the state", "nothing reads or changes it");
    }
    for setting in file.settings.iter().filter(|one| !used.values.contains(one.name.text.as_str())) {
        unused(&setting.name, "the setting", "nothing reads it");
    }
    for function in file.functions.iter().filter(|one| !one.is_view) {
        if !used.called.contains(function.name.text.as_str()) {
            unused(&function.name, "the function", "nothing calls it");
        }
    }
    for procedure in file.procedures.iter().filter(|one| !used.called.contains(one.name.text.as_str())) {
        unused(&procedure.name, "the procedure", "nothing calls it");
    }
    for handler in &file.handlers {
        let is_timer = matches!(handler.kind, HandlerKind::Timer { .. });
        if is_timer && !used.started.contains(handler.name.text.as_str()) {
            unused(&handler.name, "the timer", "nothing starts it");
        }
    }
    for output in file.outputs.iter().filter(|one| !used.sent.contains(one.name.text.as_str())) {
        unused(&output.name, "the output", "nothing sends it");
    }
}

fn scans_in_scans(module: &Module, report: &mut Report) {
    for plan in module.plans.iter().filter(|plan| plan.in_scan) {
        let list = &plan.list;
        let message = format!("all of `{list}` is run over again for each row of another list");
        report.push(
            Diagnostic::new(Code::ScanInScan, plan.span, message)
                .label("a scan in a scan")
                .note("a thousand rows of each cost a million steps, and what an event may cost is bounded")
                .help(format!(
                    "fix a key of `{list}` by `==` in the `where`, or the field of an index: `state {list}: … index field`"
                )),
        );
    }
}

/// Names that a `let` or a `var` gives and nothing reads. Two of one name in blocks beside each other count as one.
fn unread_locals(block: &Block, report: &mut Report) {
    let read = used::names_read(block);
    walk::statements(block, &mut |statement| {
        let StatementKind::Let { fixed, name, value, .. } = &statement.kind else { return };
        // That there is something, else a way out: the name is only what the grammar asks for.
        let tests = matches!(value, Some(LetValue::Else(_, Otherwise::Exit(..))));
        if tests || read.contains(name.text.as_str()) {
            return;
        }
        let changes = matches!(value, Some(LetValue::Change(_)));
        let word = if *fixed { "let" } else { "var" };
        let help =
            if changes { format!("leave `{word} {} =` out", name.text) } else { "leave it out".into() };
        report.push(
            Diagnostic::new(Code::Unread, name.span, format!("`{}` is never read", name.text))
                .label("only given a value")
                .help(help),
        );
    });
}

/// The first statement of each block behind one that always leaves.
fn never_run(block: &Block, report: &mut Report) {
    let mut inner: Vec<&Block> = vec![block];
    walk::statements(block, &mut |statement| match &statement.kind {
        StatementKind::If { arms, otherwise } => {
            inner.extend(arms.iter().map(|(_, block)| block).chain(otherwise));
        }
        StatementKind::For { body, .. } => inner.push(body),
        _ => {}
    });
    for block in inner {
        let leaves = block.statements.iter().position(leaves);
        if let Some(next) = leaves.and_then(|at| block.statements.get(at + 1)) {
            report.push(
                Diagnostic::new(Code::NeverRun, next.span, "this never runs")
                    .label("what stands before it always leaves")
                    .help("leave it out, or put it before"),
            );
        }
    }
}

/// Whether nothing behind a statement ever runs.
fn leaves(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Exit(Exit::Return(_) | Exit::Refuse(_) | Exit::Break | Exit::Continue) => true,
        StatementKind::If { arms, otherwise: Some(otherwise) } => arms
            .iter()
            .map(|(_, block)| block)
            .chain([otherwise])
            .all(|block| block.statements.iter().any(leaves)),
        _ => false,
    }
}

fn constant_conditions(source: &str, statement: &Statement, report: &mut Report) {
    match &statement.kind {
        StatementKind::If { arms, .. } => {
            arms.iter().for_each(|(condition, _)| constant_condition(source, condition, "`if`", report));
        }
        StatementKind::Require { condition, .. } => {
            constant_condition(source, condition, "`require`", report)
        }
        StatementKind::For { query, .. } | StatementKind::Remove { query: Some(query), .. } => {
            constant_query(source, query, report);
        }
        _ => {}
    }
}

fn constant_in_query(source: &str, expression: &Expression, report: &mut Report) {
    match &*expression.kind {
        ExpressionKind::Comprehension(_, query) | ExpressionKind::Call { query: Some(query), .. } => {
            constant_query(source, query, report);
        }
        ExpressionKind::If { condition, .. } => constant_condition(source, condition, "`if`", report),
        _ => {}
    }
}

fn constant_query(source: &str, query: &Query, report: &mut Report) {
    for one in &query.sources {
        if let Some(condition) = &one.condition {
            constant_condition(source, condition, "`where`", report);
        }
        if let Some(upto) = &one.upto
            && let (Some(from), Some(to)) = (number(&one.list), number(upto))
            && from > to
        {
            report.push(
                Diagnostic::new(
                    Code::AlwaysSame,
                    one.list.span.to(upto.span),
                    "this range has nothing in it",
                )
                .label(format!("{from} is more than {to}"))
                .note("`a .. b` goes up from a to b, both included"),
            );
        }
    }
    if let Some(condition) = query.group.as_ref().and_then(|group| group.condition.as_ref()) {
        constant_condition(source, condition, "`where`", report);
    }
}

fn number(expression: &Expression) -> Option<i64> {
    match &*expression.kind {
        ExpressionKind::Int(number) => Some(*number),
        ExpressionKind::Negate(inner) => number(inner).map(|number| -number),
        _ => None,
    }
}

/// Reports what in a condition is the same whatever happens.
fn constant_condition(source: &str, condition: &Expression, whose: &str, report: &mut Report) {
    match &*condition.kind {
        ExpressionKind::Bool(value) => {
            report.push(
                Diagnostic::new(Code::AlwaysSame, condition.span, format!("this is always {value}"))
                    .label(format!("a condition of the {whose} that never changes")),
            );
        }
        ExpressionKind::Not(inner) => constant_condition(source, inner, whose, report),
        ExpressionKind::Binary(Binary::And | Binary::Or, left, right) => {
            constant_condition(source, left, whose, report);
            constant_condition(source, right, whose, report);
        }
        ExpressionKind::Binary(operator, left, right) if operator.strength() == Binary::Equal.strength() => {
            if is_same(source, left, right) {
                let text = text_of(source, left.span);
                report.push(
                    Diagnostic::new(Code::AlwaysSame, condition.span, "a value is compared with itself")
                        .label(format!("both sides are `{text}`")),
                );
            } else if is_literal(left) && is_literal(right) {
                report.push(
                    Diagnostic::new(
                        Code::AlwaysSame,
                        condition.span,
                        "two values that never change are compared",
                    )
                    .label(format!("this {whose} is always the same")),
                );
            }
        }
        _ => {}
    }
}

fn text_of(source: &str, span: Span) -> &str {
    let text = source.get(span.start as usize..span.end as usize).unwrap_or_default();
    if text.len() <= 40 && !text.contains('\n') { text } else { "…" }
}

fn is_literal(expression: &Expression) -> bool {
    match &*expression.kind {
        ExpressionKind::Int(_)
        | ExpressionKind::Real(_)
        | ExpressionKind::Duration(_)
        | ExpressionKind::Bool(_)
        | ExpressionKind::Case(_)
        | ExpressionKind::None => true,
        ExpressionKind::Negate(inner) => is_literal(inner),
        _ => false,
    }
}

/// Whether two expressions are one name, field, or row, written alike.
fn is_same(source: &str, left: &Expression, right: &Expression) -> bool {
    let is_place = |expression: &Expression| {
        let mut place = true;
        walk::inner(expression, &mut |part| {
            place &= matches!(
                &*part.kind,
                ExpressionKind::Name(_)
                    | ExpressionKind::Field(..)
                    | ExpressionKind::Index(..)
                    | ExpressionKind::Int(_)
            );
        });
        place && number(expression).is_none()
    };
    let text = |span: Span| source.get(span.start as usize..span.end as usize);
    is_place(left) && is_place(right) && text(left.span) == text(right.span)
}
