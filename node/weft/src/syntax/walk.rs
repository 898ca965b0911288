//! Walks over the tree, for what must be known before functions are checked one by one.

use super::tree::*;

/// Every statement of a block and of the blocks in it.
pub(crate) fn statements<'a>(block: &'a Block, see: &mut dyn FnMut(&'a Statement)) {
    for statement in &block.statements {
        see(statement);
        match &statement.kind {
            StatementKind::If { arms, otherwise } => {
                for (_, body) in arms {
                    statements(body, see);
                }
                if let Some(body) = otherwise {
                    statements(body, see);
                }
            }
            StatementKind::For { body, .. } => statements(body, see),
            _ => {}
        }
    }
}

/// Every expression of a block, inner ones too.
pub(crate) fn expressions<'a>(block: &'a Block, see: &mut dyn FnMut(&'a Expression)) {
    statements(block, &mut |statement| match &statement.kind {
        StatementKind::Let { value, .. } => match value {
            None => {}
            Some(LetValue::Expression(value)) => inner(value, see),
            Some(LetValue::Change(change)) => in_change(change, see),
            Some(LetValue::Else(value, otherwise)) => {
                inner(value, see);
                match otherwise {
                    Otherwise::Exit(exit, _) => in_exit(exit, see),
                    Otherwise::Change(change) => in_change(change, see),
                    Otherwise::Expression(value) => inner(value, see),
                }
            }
        },
        StatementKind::If { arms, .. } => arms.iter().for_each(|(condition, _)| inner(condition, see)),
        StatementKind::For { query, .. } => in_query(query, see),
        StatementKind::Require { condition, otherwise } => {
            inner(condition, see);
            inner(otherwise, see);
        }
        StatementKind::Exit(exit) => in_exit(exit, see),
        StatementKind::Change(change) => in_change(change, see),
        StatementKind::Assign { place, value, .. } => {
            inner(place, see);
            inner(value, see);
        }
        StatementKind::Place(place) => inner(place, see),
        StatementKind::Remove { place, query } => {
            inner(place, see);
            if let Some(query) = query {
                in_query(query, see);
            }
        }
        StatementKind::Send { arguments, to, .. } => {
            arguments.iter().for_each(|argument| inner(argument, see));
            inner(to, see);
        }
        StatementKind::Start { arguments, time, .. } => {
            arguments.iter().for_each(|argument| inner(argument, see));
            inner(time, see);
        }
        StatementKind::Cancel { arguments, .. } => {
            arguments.iter().for_each(|argument| inner(argument, see));
        }
        StatementKind::Expect(expectation) => match expectation {
            Expectation::Holds(value) => inner(value, see),
            Expectation::Refused { place, because } => {
                inner(place, see);
                because.iter().for_each(|one| inner(one, see));
            }
            Expectation::Sent { arguments, to, .. } => {
                arguments.iter().for_each(|argument| inner(argument, see));
                inner(to, see);
            }
        },
        StatementKind::Broken => {}
    });
}

fn in_change<'a>(change: &'a Change, see: &mut dyn FnMut(&'a Expression)) {
    inner(&change.place, see);
    inner(&change.value, see);
}

fn in_exit<'a>(exit: &'a Exit, see: &mut dyn FnMut(&'a Expression)) {
    match exit {
        Exit::Return(Some(value)) | Exit::Refuse(value) => inner(value, see),
        _ => {}
    }
}

fn in_query<'a>(query: &'a Query, see: &mut dyn FnMut(&'a Expression)) {
    for source in &query.sources {
        inner(&source.list, see);
        source.upto.iter().chain(&source.condition).for_each(|one| inner(one, see));
    }
    if let Some(group) = &query.group {
        inner(&group.key, see);
        group.condition.iter().for_each(|one| inner(one, see));
    }
    query.order.iter().for_each(|(key, _)| inner(key, see));
    query.take.iter().for_each(|count| inner(count, see));
}

/// An expression and every one in it.
pub(crate) fn inner<'a>(expression: &'a Expression, see: &mut dyn FnMut(&'a Expression)) {
    see(expression);
    match &*expression.kind {
        ExpressionKind::Text(pieces) => {
            for piece in pieces {
                if let Piece::Value(value) = piece {
                    inner(value, see);
                }
            }
        }
        ExpressionKind::Record { items, .. } => {
            for item in items {
                match item {
                    Item::Named(_, value) | Item::Place(value) => inner(value, see),
                }
            }
        }
        ExpressionKind::List(values) => values.iter().for_each(|value| inner(value, see)),
        ExpressionKind::Comprehension(body, query) => {
            inner(body, see);
            in_query(query, see);
        }
        ExpressionKind::Negate(value) | ExpressionKind::Not(value) | ExpressionKind::Field(value, _) => {
            inner(value, see);
        }
        ExpressionKind::Is { value, .. } => inner(value, see),
        ExpressionKind::Binary(_, left, right) => {
            inner(left, see);
            inner(right, see);
        }
        ExpressionKind::In { value, list, upto } => {
            inner(value, see);
            inner(list, see);
            upto.iter().for_each(|one| inner(one, see));
        }
        ExpressionKind::Else { value, otherwise } => {
            inner(value, see);
            inner(otherwise, see);
        }
        ExpressionKind::If { condition, then, otherwise } => {
            inner(condition, see);
            inner(then, see);
            inner(otherwise, see);
        }
        ExpressionKind::Index(value, keys) => {
            inner(value, see);
            keys.iter().for_each(|key| inner(key, see));
        }
        ExpressionKind::Call { callee, arguments, query, who } => {
            inner(callee, see);
            arguments.iter().for_each(|argument| inner(argument, see));
            if let Some(query) = query {
                in_query(query, see);
            }
            who.iter().for_each(|who| inner(&who.value, see));
        }
        _ => {}
    }
}
