//! Declarations, their comments and their members.

use super::{Declaration, Declares, Member, Outline};
use crate::SOURCE_BYTES_MAX;
use crate::diagnostics::{Report, Span};
use crate::syntax::lexer::{self, Kind, Token};

const DECLARING: &[&str] = &[
    "app",
    "library",
    "use",
    "enum",
    "record",
    "setting",
    "state",
    "transient",
    "output",
    "on",
    "every",
    "do",
    "fn",
    "view",
    "test",
];

/// Tokens with the text that they stand in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) source: &'a str,
    pub(super) tokens: &'a [Token],
    /// For each opening bracket the one that closes it; the last token where none does.
    partners: &'a [usize],
}

/// The tokens of a source, from which [`Words`] are borrowed.
pub(super) struct Tokens {
    all: Vec<Token>,
    partners: Vec<usize>,
}

impl Tokens {
    pub(super) fn of(source: &str) -> Tokens {
        let source = if source.len() > SOURCE_BYTES_MAX { "" } else { source };
        let all = lexer::tokens(source, 0, source.len(), &mut Report::default());
        let mut partners = vec![all.len() - 1; all.len()];
        let mut open = Vec::new();
        for (at, token) in all.iter().enumerate() {
            match token.kind {
                Kind::Sign("(" | "[" | "{") => open.push(at),
                Kind::Sign(")" | "]" | "}") => {
                    if let Some(opening) = open.pop() {
                        partners[opening] = at;
                    }
                }
                _ => {}
            }
        }
        Tokens { all, partners }
    }

    pub(super) fn words<'a>(&'a self, source: &'a str) -> Words<'a> {
        Words { source, tokens: &self.all, partners: &self.partners }
    }
}

impl<'a> Words<'a> {
    pub(super) fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| self.slice(token.span))
    }
    pub(super) fn slice(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }
    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::End, |token| token.kind)
    }
    pub(super) fn is(&self, at: usize, text: &str) -> bool {
        self.kind(at) != Kind::Text && self.text(at) == text
    }
    pub(super) fn is_name(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Name | Kind::Type)
    }
    pub(super) fn span(&self, at: usize) -> Span {
        self.tokens.get(at).map_or_else(Span::default, |token| token.span)
    }
    /// The place of the bracket that closes the one at `open`, or the last token.
    pub(super) fn closing(&self, open: usize) -> usize {
        self.partners.get(open).copied().unwrap_or(open)
    }
    /// The text from one token to before another, its space made even.
    pub(super) fn line(&self, from: usize, to: usize) -> String {
        let (Some(first), Some(last)) =
            (self.tokens.get(from), to.checked_sub(1).and_then(|to| self.tokens.get(to)))
        else {
            return String::new();
        };
        if last.span.end <= first.span.start {
            return String::new();
        }
        let text = &self.source[first.span.start as usize..last.span.end as usize];
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
        let words: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        words.join(" ").replace("( ", "(").replace(", )", ")").replace(" )", ")")
    }
}

pub(super) fn read(source: &str) -> Outline {
    let tokens = Tokens::of(source);
    let words = tokens.words(source);
    let starts: Vec<usize> = (0..words.tokens.len()).filter(|at| begins(words, *at)).collect();
    let mut outline = Outline { comment: first_comment(source, words.tokens), ..Outline::default() };
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(words.tokens.len() - 1);
        outline.declarations.extend(declaration(words, *start, end));
    }
    outline
}

/// Whether a declaration begins here: a declaring word at the very beginning of a line, and something to declare.
fn begins(words: Words<'_>, at: usize) -> bool {
    let start = words.span(at).start as usize;
    let at_margin = start == 0 || words.source.as_bytes()[start - 1] == b'\n';
    let follows = match words.text(at) {
        "every" => words.kind(at + 1) == Kind::Duration,
        "test" | "use" => words.kind(at + 1) == Kind::Text,
        _ => words.is_name(at + 1),
    };
    at_margin && words.kind(at) == Kind::Name && DECLARING.contains(&words.text(at)) && follows
}

fn declaration(words: Words<'_>, start: usize, end: usize) -> Option<Declaration> {
    let transient = usize::from(words.is(start, "transient"));
    let first = start + transient;
    let on_word = |word| words.is(first + 1, word) && words.is_name(first + 2);
    let (mut declares, mut name) = match words.text(first) {
        "app" | "library" => (Declares::App, first + 1),
        "use" => (Declares::Use, if words.is(first + 2, "as") { first + 3 } else { first + 1 }),
        "enum" => (Declares::Enum, first + 1),
        "record" => (Declares::Record, first + 1),
        "state" => (Declares::State, first + 1),
        "setting" => (Declares::Setting, first + 1),
        "output" => (Declares::Output, first + 1),
        "on" if on_word("timer") => (Declares::Timer, first + 2),
        "on" if on_word("delivered") || on_word("refused") => (Declares::Word, first + 2),
        "on" => (Declares::Input, first + 1),
        "every" => (Declares::Every, first + 1),
        "do" => (Declares::Procedure, first + 1),
        "fn" => (Declares::Function, first + 1),
        "view" => (Declares::View, first + 1),
        "test" => (Declares::Test, first + 1),
        _ => return None,
    };
    name = name.min(end.saturating_sub(1));
    let head = head_end(words, name + 1, end, declares);
    if declares == Declares::Input && (name..head).any(|at| words.is(at, "from")) {
        declares = Declares::FromInput;
    }
    let last = words.span(end.saturating_sub(1));
    let text = words.text(name);
    Some(Declaration {
        declares,
        name: if declares == Declares::Every { String::new() } else { text.trim_matches('"').into() },
        name_span: words.span(name),
        span: words.span(start).to(last),
        signature: words.line(start, head),
        comment: comment_above(words.source, words.span(start).start as usize),
        members: members(words, name + 1, head),
        kind: kind(words, name + 1, head, declares),
        locals: Vec::new(),
    })
}

/// Where what is said before the body ends.
fn head_end(words: Words<'_>, from: usize, end: usize, declares: Declares) -> usize {
    let body = matches!(
        declares,
        Declares::Input
            | Declares::Timer
            | Declares::Word
            | Declares::Every
            | Declares::Procedure
            | Declares::Function
            | Declares::View
            | Declares::Test
    );
    let mut at = from;
    while at < end {
        if body && (words.is(at, "{") || words.is(at, "=")) {
            return at;
        }
        if matches!(words.kind(at), Kind::Sign("(" | "[" | "{")) {
            at = words.closing(at).min(end);
        }
        at += 1;
    }
    end
}

/// The type behind `:` or `->`.
fn kind(words: Words<'_>, from: usize, head: usize, declares: Declares) -> Option<String> {
    if declares == Declares::Use {
        let path = (from.saturating_sub(3)..from).find(|at| words.kind(*at) == Kind::Text)?;
        return Some(words.text(path).trim_matches('"').into());
    }
    let sign = match declares {
        Declares::State | Declares::Setting => ":",
        Declares::Input | Declares::FromInput | Declares::Function | Declares::View => "->",
        _ => return None,
    };
    let at = (from..head).find(|at| words.is(*at, sign))?;
    let end = (at..head).find(|at| words.is(*at, "=")).unwrap_or(head);
    Some(words.line(at + 1, end)).filter(|kind| !kind.is_empty())
}

/// The names in the first bracket, which holds fields, cases or blanks.
fn members(words: Words<'_>, from: usize, head: usize) -> Vec<Member> {
    let Some(open) = (from..head).find(|at| words.is(*at, "(") || words.is(*at, "{")) else {
        return Vec::new();
    };
    let close = words.closing(open).min(head);
    let mut members = Vec::new();
    let mut start = open + 1;
    while start < close {
        let mut end = start;
        while end < close && !words.is(end, ",") {
            let opens = matches!(words.kind(end), Kind::Sign("(" | "[" | "{"));
            end = if opens { words.closing(end).min(close) + 1 } else { end + 1 };
        }
        let end = end.min(close);
        if words.kind(start) == Kind::Name && !words.is(start, "_") {
            members.push(member(words, start, end));
        }
        start = end + 1;
    }
    members
}

fn member(words: Words<'_>, start: usize, end: usize) -> Member {
    let colon = (start..end).find(|at| words.is(*at, ":"));
    let equals = (start..end).find(|at| words.is(*at, "=")).unwrap_or(end);
    let span = words.span(start);
    let comma = usize::from(words.is(end, ","));
    let behind = &words.source[words.span(end - 1 + comma).end as usize..];
    let behind = behind.lines().next().unwrap_or_default().trim();
    let behind = behind.strip_prefix("//").map(|comment| comment.trim().to_owned());
    Member {
        name: words.text(start).into(),
        span,
        kind: colon.map(|colon| words.line(colon + 1, equals)),
        text: words.line(start, end),
        comment: behind.unwrap_or_else(|| comment_above(words.source, span.start as usize)),
    }
}

/// The comment on the lines directly above the line of a byte.
fn comment_above(source: &str, offset: usize) -> String {
    let line = source[..offset].rfind('\n').map_or(0, |end| end + 1);
    if !source[line..offset].trim().is_empty() {
        return String::new();
    }
    let above = source[..line].lines().rev().map(str::trim);
    let mut lines: Vec<&str> = above.map_while(|line| line.strip_prefix("//")).map(str::trim).collect();
    lines.reverse();
    lines.join("\n")
}

fn first_comment(source: &str, tokens: &[Token]) -> String {
    let end = tokens.first().map_or(0, |token| token.span.start as usize);
    let lines = source[..end].lines().map_while(|line| line.trim().strip_prefix("//")).map(str::trim);
    lines.collect::<Vec<_>>().join("\n")
}
