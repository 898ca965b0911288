//! Names in bodies, where they can be seen, and what their types are as far as the text shows.

use super::declarations::{Tokens, Words};
use super::{Declares, Local, Outline};
use crate::diagnostics::Span;
use crate::syntax::lexer::Kind;

/// Names of one declaration that are told: more than a person writes in one, and few enough to look through for each.
const LOCALS_MAX: usize = 2_000;

pub(super) fn read(source: &str, outline: &mut Outline) {
    let tokens = Tokens::of(source);
    let words = tokens.words(source);
    for number in 0..outline.declarations.len() {
        let locals = locals_of(words, outline, number);
        outline.declarations[number].locals = locals;
    }
}

fn locals_of(words: Words<'_>, outline: &Outline, number: usize) -> Vec<Local> {
    let declaration = &outline.declarations[number];
    if matches!(declaration.declares, Declares::Enum | Declares::Record | Declares::App | Declares::Use) {
        return Vec::new();
    }
    let scope = declaration.span;
    let mut locals: Vec<Local> = declaration
        .members
        .iter()
        .map(|member| Local {
            name: member.name.clone(),
            span: member.span,
            scope,
            kind: member.kind.clone().or_else(|| sent(outline, declaration.name.as_str(), &member.name)),
        })
        .collect();
    let first = words.tokens.partition_point(|token| token.span.start < scope.start);
    let end = words.tokens.partition_point(|token| token.span.start < scope.end);
    let name_end = declaration.name_span.end;
    let mut open: Vec<usize> = Vec::new();
    for at in first..end {
        match words.kind(at) {
            Kind::Sign("(" | "[" | "{") => open.push(at),
            Kind::Sign(")" | "]" | "}") => {
                open.pop();
            }
            _ => {}
        }
        let next = at + 1;
        if locals.len() >= LOCALS_MAX {
            break;
        }
        if words.kind(at) != Kind::Name || words.kind(next) != Kind::Name || words.is(next, "_") {
            continue;
        }
        let enclosing = match open.last() {
            // In brackets a name may stand before the loop that makes it.
            Some(open) if !words.is(*open, "{") => words.span(*open).to(words.span(words.closing(*open))),
            _ if words.is(at, "for") => loop_scope(words, at),
            Some(open) => words.span(next).to(words.span(words.closing(*open))),
            None => scope,
        };
        let head = open.is_empty() && words.span(at).start >= name_end;
        let kind = match words.text(at) {
            "let" | "var" => value_kind(words, outline, &locals, next),
            "for" => loop_kind(words, outline, &locals, next),
            "is" => place_before(words, at)
                .and_then(|from| place_kind(words, outline, &locals, from))
                .map(|kind| present(&kind)),
            "as" => None,
            "by" if head => Some("text".to_owned()),
            "from" | "to" if head => Some("node".to_owned()),
            "because" if head => Some("text".to_owned()),
            "with" if head => answered(outline, declaration.name.as_str()),
            _ => continue,
        };
        let span = words.span(next);
        locals.push(Local { name: words.text(next).into(), span, scope: enclosing, kind });
    }
    locals
}

/// Of a loop as a statement: its block. Of `remove x for x in …`: the statement.
fn loop_scope(words: Words<'_>, at: usize) -> Span {
    let from = if at >= 2 && words.is(at - 2, "remove") { at - 2 } else { at };
    let mut end = at + 1;
    while end + 1 < words.tokens.len() {
        match words.kind(end) {
            Kind::Sign("{") => return words.span(from).to(words.span(words.closing(end))),
            Kind::Sign("(" | "[") => end = words.closing(end),
            Kind::Sign("}") => break,
            _ => {}
        }
        end += 1;
        if words.tokens.get(end).is_none_or(|token| token.after_line)
            && words.kind(end) == Kind::Name
            && !words.is(end, "where")
        {
            break;
        }
    }
    words.span(from).to(words.span(end - 1))
}

/// The type of what is answered to an app's own send, where its handler says it.
fn answered(outline: &Outline, output: &str) -> Option<String> {
    let kind = outline.find(Declares::FromInput, output)?.kind.as_ref()?;
    Some(format!("{}?", present(kind)))
}

/// The type of an output's field.
fn sent(outline: &Outline, output: &str, field: &str) -> Option<String> {
    let sent =
        outline.find(Declares::FromInput, output).or_else(|| outline.find(Declares::Output, output))?;
    sent.members.iter().find(|member| member.name == field)?.kind.clone()
}

/// `T` of `T?`.
fn present(kind: &str) -> String {
    kind.trim_end_matches('?').to_owned()
}

/// What a list holds.
pub(super) fn element(kind: &str) -> Option<String> {
    let rest = kind.strip_prefix("list of ")?;
    Some(rest.split(" by ").next().unwrap_or(rest).to_owned())
}

/// Of `let name: type = value`.
fn value_kind(words: Words<'_>, outline: &Outline, locals: &[Local], name: usize) -> Option<String> {
    if words.is(name + 1, ":") {
        let end = (name + 2..words.tokens.len())
            .find(|at| words.is(*at, "=") || words.tokens[*at].after_line || words.is(*at, "}"))?;
        return Some(words.line(name + 2, end));
    }
    let value = name + 2;
    match words.kind(value) {
        Kind::Type => return Some(words.text(value).into()),
        Kind::Text => return Some("text".into()),
        Kind::Int if !words.is(value + 1, "..") => return Some("int".into()),
        Kind::Real => return Some("real".into()),
        Kind::Duration => return Some("duration".into()),
        _ => {}
    }
    let kind = match words.text(value) {
        "true" | "false" => "bool".into(),
        "now" => "time".into(),
        "me" => "node".into(),
        "first" if words.is(value + 1, "(") => {
            let close = words.closing(value + 1);
            let of = (value..close).find(|at| words.is(*at, "in"))?;
            element(&place_kind(words, outline, locals, of + 1)?)?
        }
        "count" | "length" | "next_id" if words.is(value + 1, "(") => "int".into(),
        function if words.is(value + 1, "(") && words.kind(value) == Kind::Name => {
            let view = outline.find(Declares::View, function);
            outline.find(Declares::Function, function).or(view)?.kind.clone()?
        }
        _ => place_kind(words, outline, locals, value)?,
    };
    // `list add value` gives the row.
    let place = place_end(words, value);
    if words.is(place, "add") || words.is(place, "put") {
        return element(&kind);
    }
    Some(if words.is(place, "else") { present(&kind) } else { kind })
}

fn loop_kind(words: Words<'_>, outline: &Outline, locals: &[Local], name: usize) -> Option<String> {
    if !words.is(name + 1, "in") {
        return None;
    }
    let list = name + 2;
    if words.is(place_end(words, list), "..") {
        return Some("int".into());
    }
    element(&place_kind(words, outline, locals, list)?)
}

/// The token behind `name.field[key](…)`.
fn place_end(words: Words<'_>, from: usize) -> usize {
    let mut at = from + 1;
    loop {
        if words.is(at, ".") && words.is_name(at + 1) {
            at += 2;
        } else if words.is(at, "[") || words.is(at, "(") {
            at = words.closing(at) + 1;
        } else {
            return at;
        }
        if at >= words.tokens.len() {
            return at;
        }
    }
}

/// The first token of the place that ends before `end`.
pub(super) fn place_before(words: Words<'_>, end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    loop {
        if matches!(words.kind(at), Kind::Sign(")" | "]")) {
            let mut depth = 1u32;
            while depth > 0 {
                at = at.checked_sub(1)?;
                match words.kind(at) {
                    Kind::Sign(")" | "]" | "}") => depth += 1,
                    Kind::Sign("(" | "[" | "{") => depth -= 1,
                    _ => {}
                }
            }
            at = at.checked_sub(1)?;
        } else if words.kind(at) == Kind::Name {
            if at < 2 || !words.is(at - 1, ".") {
                return Some(at);
            }
            at -= 2;
        } else {
            return None;
        }
    }
}

/// The type of the place that begins at a token, as far as it can be told.
pub(super) fn place_kind(
    words: Words<'_>,
    outline: &Outline,
    locals: &[Local],
    from: usize,
) -> Option<String> {
    place_kind_upto(words, outline, locals, from, words.tokens.len())
}

/// The same, for the part of it before a token.
pub(super) fn place_kind_upto(
    words: Words<'_>,
    outline: &Outline,
    locals: &[Local],
    from: usize,
    upto: usize,
) -> Option<String> {
    if words.kind(from) != Kind::Name {
        return None;
    }
    let name = words.text(from);
    let mut at = from + 1;
    let mut kind = if words.is(at, "(") {
        let answer =
            [Declares::Function, Declares::View].into_iter().find_map(|one| outline.find(one, name))?;
        at = words.closing(at) + 1;
        answer.kind.clone()?
    } else {
        let seen = seen(locals, name, words.span(from)).map(|local| local.kind.clone());
        let state = || {
            let found = outline.find(Declares::State, name).or_else(|| outline.find(Declares::Setting, name));
            found.and_then(|found| found.kind.clone())
        };
        seen.unwrap_or_else(state)?
    };
    while at < upto {
        if words.is(at, ".") && words.kind(at + 1) == Kind::Name {
            let record = outline.find(Declares::Record, kind.trim_end_matches('?'))?;
            kind = record.members.iter().find(|field| field.name == words.text(at + 1))?.kind.clone()?;
            at += 2;
        } else if words.is(at, "[") {
            kind = element(&kind)? + "?";
            at = words.closing(at) + 1;
        } else {
            break;
        }
    }
    Some(kind)
}

/// The local of this name that is seen at a place: the last one that begins before it, or else any around it.
pub(super) fn seen<'l>(locals: &'l [Local], name: &str, place: Span) -> Option<&'l Local> {
    let around = locals.iter().filter(|local| {
        local.name == name
            && (local.span == place || local.scope.start <= place.start && place.start < local.scope.end)
    });
    around.max_by_key(|local| (local.span.start <= place.start, local.span.start))
}
