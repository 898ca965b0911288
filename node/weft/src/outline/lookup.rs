//! What stands at a place of a source: what it is, where it is declared, what could stand there.

use super::declarations::{Tokens, Words};
use super::locals::{place_before, place_kind_upto, seen};
use super::{Declaration, Declares, Local, Member, Outline};
use crate::diagnostics::Span;
use crate::syntax::lexer::Kind;
use crate::syntax::parser::RESERVED;

/// What is said about the word at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// The word.
    pub span: Span,
    /// What it is, as Weft writes it.
    pub code: String,
    /// Its comment.
    pub comment: String,
}

/// What kind of word could stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A word of the language.
    Word,
    /// A record or an enum.
    Type,
    /// A case of an enum.
    Case,
    /// A field of a record.
    Field,
    /// A function, view, action or built-in function.
    Function,
    /// A state, setting or local.
    Value,
}

/// A word that could stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The word.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Its type or signature.
    pub detail: String,
    /// Its comment.
    pub comment: String,
}

/// The functions of the language, and what they give.
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("count", "count(list) -> int", "How many there are."),
    ("sum", "sum(value for x in list)", "The sum; of nothing 0."),
    ("min", "min(value for x in list), min(a, b)", "The least; of nothing none."),
    ("max", "max(value for x in list), max(a, b)", "The greatest; of nothing none."),
    ("mean", "mean(value for x in list) -> real?", "The mean; of nothing none."),
    ("first", "first(x for x in list …)", "The first; of nothing none."),
    ("any", "any(condition for x in list) -> bool", "Whether it is so for one at least."),
    ("all", "all(condition for x in list) -> bool", "Whether it is so for each."),
    ("length", "length(text) -> int", "How many characters."),
    ("abs", "abs(number)", "Without its sign."),
    ("contains", "contains(text, part) -> bool", "Whether the part stands in the text."),
    ("lower", "lower(text) -> text", "In small letters."),
    ("upper", "upper(text) -> text", "In capital letters."),
    ("trim", "trim(text) -> text", "Without space at its ends."),
    ("slice", "slice(text, from, count) -> text", "So many characters of it, the first one being 0."),
    ("floor", "floor(time, duration) -> time", "The last multiple of the duration, in UTC."),
    ("real", "real(int) -> real", "The number as a `real`."),
    ("random", "random(a, b) -> int", "By chance, both ends included; only where state may change."),
    ("new_id", "new_id() -> text", "A text that nobody else has; only where state may change."),
    ("next_id", "next_id(list) -> int", "A number that its key never had; only where state may change."),
];
const TYPES: &[&str] = &["bool", "int", "real", "text", "bytes", "time", "duration", "node", "endpoint"];
const VERBS: &[&str] = &["send", "start", "cancel", "remove"];

/// A place behind the name of a library and a dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfLibrary {
    /// The path as `use` writes it.
    pub path: String,
    /// The word there, as far as it is written.
    pub word: String,
    /// Where it stands.
    pub span: Span,
}

/// What a word refers to.
enum Found<'o> {
    Declaration(&'o Declaration),
    Member(&'o Declaration, &'o Member),
    Local(&'o Local),
}

impl Outline {
    /// What is said about the word at a byte of the source.
    pub fn hover(&self, source: &str, offset: usize) -> Option<Hover> {
        let tokens = Tokens::of(source);
        let words = tokens.words(source);
        let at = word_at(words, offset)?;
        let span = words.span(at);
        let hover = |code: String, comment: &str| Some(Hover { span, code, comment: comment.into() });
        let found = self.found(words, at);
        // Of several fields of this name, or none, only the checker knows which is meant.
        if found.len() != 1
            && let Some(kind) = self.types.get(&span.start)
        {
            return hover(format!("{}: {kind}", words.text(at)), "");
        }
        match found.first() {
            Some(Found::Declaration(one)) => hover(one.signature.clone(), &one.comment),
            Some(Found::Member(of, member)) => hover(format!("{}.{}", of.name, member.text), &member.comment),
            Some(Found::Local(local)) => match &local.kind {
                Some(kind) => hover(format!("{}: {kind}", local.name), ""),
                None => hover(local.name.clone(), ""),
            },
            None => {
                let (_, signature, says) = BUILT_IN.iter().find(|(name, ..)| *name == words.text(at))?;
                if words.is(at + 1, "(") { hover((*signature).into(), says) } else { None }
            }
        }
    }

    /// Where the word at a byte of the source is declared; several where only the checker could tell.
    pub fn definitions(&self, source: &str, offset: usize) -> Vec<Span> {
        let tokens = Tokens::of(source);
        let words = tokens.words(source);
        let Some(at) = word_at(words, offset) else { return Vec::new() };
        let found = self.found(words, at);
        found
            .iter()
            .map(|found| match found {
                Found::Declaration(one) => one.name_span,
                Found::Member(_, member) => member.span,
                Found::Local(local) => local.span,
            })
            .collect()
    }

    /// Whether a byte of the source is at a word of a library, and of which.
    pub fn of_library(&self, source: &str, offset: usize) -> Option<OfLibrary> {
        let tokens = Tokens::of(source);
        let words = tokens.words(source);
        let dot = match word_at(words, offset).filter(|at| !self.names_library(words, *at)) {
            Some(at) => at.checked_sub(1)?,
            None => words.tokens.iter().position(|token| token.span.end == offset as u32)?,
        };
        let library = dot.checked_sub(1).filter(|at| words.is(dot, ".") && self.names_library(words, *at))?;
        let path = self.find(Declares::Use, words.text(library))?.kind.clone()?;
        let at = Span { start: offset as u32, end: offset as u32 };
        let begun = words.is_name(dot + 1) && words.span(dot).end == words.span(dot + 1).start;
        let (word, span) = if begun { (words.text(dot + 1), words.span(dot + 1)) } else { ("", at) };
        Some(OfLibrary { path, word: word.into(), span })
    }

    /// Whether a library's name stands here, and not a field, a case or a local of that name.
    fn names_library(&self, words: Words<'_>, at: usize) -> bool {
        let name = words.text(at);
        let local = self.around(words.span(at)).and_then(|around| seen(&around.locals, name, words.span(at)));
        self.find(Declares::Use, name).is_some()
            && local.is_none()
            && !at.checked_sub(1).is_some_and(|before| words.is(before, "."))
    }

    /// The declaration of a library that its users name so.
    pub fn exported(&self, name: &str) -> Option<&Declaration> {
        let exported = [Declares::Function, Declares::Record, Declares::Enum];
        self.declarations.iter().find(|one| one.name == name && exported.contains(&one.declares))
    }

    /// What a library's users may write behind its name.
    pub fn export_completions(&self) -> Vec<Completion> {
        let mut types = self.declared(&[Declares::Record, Declares::Enum], CompletionKind::Type);
        types.extend(self.declared(&[Declares::Function], CompletionKind::Function));
        types
    }

    fn found(&self, words: Words<'_>, at: usize) -> Vec<Found<'_>> {
        let (name, span) = (words.text(at), words.span(at));
        if let Some(declared) = self.own(span) {
            return vec![Found::Declaration(declared)];
        }
        let members =
            self.declarations.iter().flat_map(|one| one.members.iter().map(move |member| (one, member)));
        if let Some((one, member)) = members.clone().find(|(one, member)| {
            matches!(one.declares, Declares::Record | Declares::Enum) && member.span == span
        }) {
            return vec![Found::Member(one, member)];
        }
        if words.kind(at) == Kind::Type {
            return self.among(&[Declares::Record, Declares::Enum], name);
        }
        let before = |word: &str| at > 0 && words.is(at - 1, word);
        let is_key = words.is(at + 1, ":") && (before("{") || before(","));
        if before(".") || is_key {
            let (wanted, record) = match place_before(words, at - 1) {
                Some(from) if before(".") => (Declares::Record, self.record_of(words, from, at - 1)),
                _ if is_key => (Declares::Record, literal_of(words, at)),
                _ => (Declares::Enum, None),
            };
            let named = members.filter(|(one, member)| one.declares == wanted && member.name == name);
            let exact = |one: &Declaration| record.as_ref().is_none_or(|record| one.name == *record);
            return named
                .filter(|(one, _)| exact(one))
                .map(|(one, member)| Found::Member(one, member))
                .collect();
        }
        let local = self.around(span).and_then(|around| seen(&around.locals, name, span));
        if words.is(at + 1, "(") && local.is_none() {
            use Declares::*;
            return match at.checked_sub(1).map(|verb| words.text(verb)) {
                Some("send" | "sent") => self.among(&[FromInput, Output], name),
                Some("delivered" | "refused") => self.among(&[FromInput, Output, Input], name),
                Some("start" | "cancel") => self.among(&[Timer], name),
                _ => self.among(&[Function, View, Procedure, Input, FromInput], name),
            };
        }
        match local {
            Some(local) => vec![Found::Local(local)],
            None => self.among(&[Declares::State, Declares::Setting, Declares::View, Declares::Use], name),
        }
    }

    /// The declaration whose own name stands here; a word of the fabric only refers to what was sent.
    fn own(&self, span: Span) -> Option<&Declaration> {
        self.declarations.iter().find(|one| one.name_span == span && one.declares != Declares::Word)
    }

    fn among(&self, kinds: &[Declares], name: &str) -> Vec<Found<'_>> {
        let found = kinds.iter().find_map(|kind| self.find(*kind, name));
        found.map(Found::Declaration).into_iter().collect()
    }

    fn around(&self, place: Span) -> Option<&Declaration> {
        self.declarations.iter().rev().find(|one| one.span.start <= place.start)
    }

    fn record_of(&self, words: Words<'_>, from: usize, upto: usize) -> Option<String> {
        let locals = self.around(words.span(from)).map_or(&[][..], |around| &around.locals);
        place_kind_upto(words, self, locals, from, upto).map(|kind| kind.trim_end_matches('?').to_owned())
    }

    /// What could stand at a byte of the source, as far as the text tells.
    pub fn completions(&self, source: &str, offset: usize) -> Vec<Completion> {
        let tokens = Tokens::of(source);
        let words = tokens.words(source);
        let offset = offset as u32;
        let begun = words.tokens.iter().position(|token| {
            matches!(token.kind, Kind::Name | Kind::Type)
                && token.span.start < offset
                && offset <= token.span.end
        });
        let place = begun.unwrap_or_else(|| words.tokens.partition_point(|token| token.span.end <= offset));
        let before = |word: &str| place > 0 && words.is(place - 1, word);
        if before(".") {
            return match place.checked_sub(2).and_then(|_| place_before(words, place - 1)) {
                Some(from) if touches(words, place - 1) => {
                    self.fields(self.record_of(words, from, place - 1))
                }
                _ => self.cases(),
            };
        }
        if before(":") || before("->") || before("of") {
            let mut types: Vec<Completion> =
                TYPES.iter().map(|word| plain(word, CompletionKind::Type)).collect();
            types.push(plain("list of", CompletionKind::Word));
            types.extend(self.declared(&[Declares::Record, Declares::Enum], CompletionKind::Type));
            types.extend(self.declared(&[Declares::Use], CompletionKind::Value));
            // Behind a colon a value may be wanted as well: a record's item.
            if !before(":") {
                return types;
            }
            types.extend(self.values(offset));
            return types;
        }
        if before("send") {
            return self.declared(&[Declares::FromInput, Declares::Output], CompletionKind::Function);
        }
        if before("start") || before("cancel") {
            return self.declared(&[Declares::Timer], CompletionKind::Function);
        }
        let mut found = self.values(offset);
        found.extend(self.declared(&[Declares::Record, Declares::Enum], CompletionKind::Type));
        found.extend(RESERVED.iter().chain(VERBS).map(|word| plain(word, CompletionKind::Word)));
        found
    }

    fn values(&self, offset: u32) -> Vec<Completion> {
        let place = Span { start: offset, end: offset };
        let around = self.around(place);
        let locals = around.into_iter().flat_map(|around| &around.locals);
        let mut found: Vec<Completion> = Vec::new();
        for local in locals.filter(|local| local.scope.start <= offset && offset <= local.scope.end) {
            if found.iter().all(|one| one.label != local.name) {
                let detail = local.kind.clone().unwrap_or_default();
                let label = local.name.clone();
                found.push(Completion { label, kind: CompletionKind::Value, detail, comment: String::new() });
            }
        }
        let values = [Declares::State, Declares::Setting, Declares::Use];
        found.extend(self.declared(&values, CompletionKind::Value));
        let functions = [Declares::Function, Declares::View, Declares::Procedure];
        found.extend(self.declared(&functions, CompletionKind::Function));
        found.extend(BUILT_IN.iter().map(|(label, detail, comment)| Completion {
            label: (*label).into(),
            kind: CompletionKind::Function,
            detail: (*detail).into(),
            comment: (*comment).into(),
        }));
        found
    }

    fn declared(&self, kinds: &[Declares], kind: CompletionKind) -> Vec<Completion> {
        let declared = self.declarations.iter().filter(|one| kinds.contains(&one.declares));
        declared
            .map(|one| Completion {
                label: one.name.clone(),
                kind,
                detail: one.signature.clone(),
                comment: one.comment.clone(),
            })
            .collect()
    }

    fn fields(&self, record: Option<String>) -> Vec<Completion> {
        let records = self.declarations.iter().filter(|one| one.declares == Declares::Record);
        let wanted = records.filter(|one| record.as_ref().is_none_or(|record| one.name == *record));
        wanted
            .flat_map(|one| one.members.iter().map(|field| of_member(one, field, CompletionKind::Field)))
            .collect()
    }

    fn cases(&self) -> Vec<Completion> {
        let enums = self.declarations.iter().filter(|one| one.declares == Declares::Enum);
        enums
            .flat_map(|one| one.members.iter().map(|case| of_member(one, case, CompletionKind::Case)))
            .collect()
    }
}

fn of_member(of: &Declaration, member: &Member, kind: CompletionKind) -> Completion {
    let detail = format!("{}.{}", of.name, member.text);
    Completion { label: member.name.clone(), kind, detail, comment: member.comment.clone() }
}

fn plain(word: &str, kind: CompletionKind) -> Completion {
    Completion { label: word.into(), kind, detail: String::new(), comment: String::new() }
}

/// Whether a sign stands directly behind the token before it.
fn touches(words: Words<'_>, at: usize) -> bool {
    at > 0 && words.span(at - 1).end == words.span(at).start
}

fn word_at(words: Words<'_>, offset: usize) -> Option<usize> {
    let offset = offset as u32;
    (0..words.tokens.len()).find(|at| {
        let span = words.span(*at);
        words.is_name(*at) && span.start <= offset && offset <= span.end
    })
}

/// The record whose items stand around a token, if it is named.
fn literal_of(words: Words<'_>, at: usize) -> Option<String> {
    let mut depth = 0u32;
    for before in (0..at).rev() {
        match words.kind(before) {
            Kind::Sign(")" | "]" | "}") => depth += 1,
            Kind::Sign("(" | "[" | "{") if depth > 0 => depth -= 1,
            Kind::Sign("{") => {
                let named = before.checked_sub(1).filter(|name| words.kind(*name) == Kind::Type)?;
                return Some(words.text(named).into());
            }
            Kind::Sign("(" | "[") => return None,
            _ => {}
        }
    }
    None
}
