//! Which function calls which: checked first are those that others call, and a circle is an error.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::syntax::tree::{Block, Expression, ExpressionKind, File, FunctionBody, StatementKind, Word};
use crate::syntax::walk;
use std::collections::{BTreeSet, HashMap};

impl Checker<'_> {
    /// Numbers of `file.functions`, callees first; those in a circle are reported and left out.
    pub(super) fn function_order(&mut self, file: &File) -> Vec<usize> {
        let numbers: HashMap<&str, usize> =
            file.functions.iter().enumerate().rev().map(|(at, one)| (one.name.text.as_str(), at)).collect();
        let calls = file
            .functions
            .iter()
            .map(|function| {
                let mut found = BTreeSet::new();
                let mut see = |expression: &Expression| called(expression, &numbers, &mut found);
                match &function.body {
                    FunctionBody::Expression(body) => walk::inner(body, &mut see),
                    FunctionBody::Block(body) => walk::expressions(body, &mut see),
                }
                found
            })
            .collect();
        let names: Vec<&Word> = file.functions.iter().map(|function| &function.name).collect();
        self.order(&names, calls)
    }

    /// Reports circles among procedures.
    pub(super) fn check_procedure_calls(&mut self, file: &File) {
        let numbers: HashMap<&str, usize> =
            file.procedures.iter().enumerate().rev().map(|(at, one)| (one.name.text.as_str(), at)).collect();
        let calls =
            file.procedures.iter().map(|procedure| procedures_called(&procedure.body, &numbers)).collect();
        let names: Vec<&Word> = file.procedures.iter().map(|procedure| &procedure.name).collect();
        self.order(&names, calls);
    }

    fn order(&mut self, names: &[&Word], calls: Vec<BTreeSet<usize>>) -> Vec<usize> {
        let mut callers = vec![Vec::new(); names.len()];
        let mut left: Vec<usize> = calls.iter().map(BTreeSet::len).collect();
        for (caller, called) in calls.iter().enumerate() {
            called.iter().for_each(|callee| callers[*callee].push(caller));
        }
        let mut order: Vec<usize> = (0..names.len()).filter(|at| left[*at] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for caller in callers[order[next]].clone() {
                left[caller] -= 1;
                if left[caller] == 0 {
                    order.push(caller);
                }
            }
            next += 1;
        }
        if let Some(start) = (0..names.len()).find(|at| left[*at] > 0) {
            self.report_call_circle(names, &calls, &left, start);
        }
        order
    }

    fn report_call_circle(
        &mut self,
        names: &[&Word],
        calls: &[BTreeSet<usize>],
        left: &[usize],
        start: usize,
    ) {
        let mut path = vec![start];
        let mut at = start;
        while let Some(next) = calls[at].iter().copied().find(|callee| left[*callee] > 0) {
            if let Some(begin) = path.iter().position(|seen| *seen == next) {
                path.drain(..begin);
                break;
            }
            path.push(next);
            at = next;
        }
        let mut circle: Vec<&str> = path.iter().take(8).map(|at| names[*at].text.as_str()).collect();
        if path.len() > circle.len() {
            circle.push("…");
        }
        circle.push(names[path[0]].text.as_str());
        let word = names[path[0]];
        self.report.push(
            Diagnostic::new(Code::Circle, word.span, format!("`{}` calls itself", word.text))
                .label(circle.join(" → "))
                .note("calls go one way, so that everything that loads also ends")
                .help("write it as a loop over a list or a range"),
        );
    }
}

fn called(expression: &Expression, numbers: &HashMap<&str, usize>, found: &mut BTreeSet<usize>) {
    if let ExpressionKind::Call { callee, .. } = &*expression.kind
        && let ExpressionKind::Name(name) = &*callee.kind
        && let Some(at) = numbers.get(name.as_str())
    {
        found.insert(*at);
    }
}

fn procedures_called(body: &Block, numbers: &HashMap<&str, usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    walk::statements(body, &mut |statement| {
        if let StatementKind::Place(place) = &statement.kind {
            called(place, numbers, &mut found);
        }
    });
    found
}
