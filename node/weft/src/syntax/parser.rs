//! The parser's hold on the tokens, and what it says when one does not fit.
//!
//! `declarations`, `statements` and `expressions` read what their names say. Recovery is theirs: each skips what is
//! broken to the next place where one of its own kind begins.

use super::NESTING_MAX;
use super::habits;
use super::lexer::{self, Kind, Token};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic, Report, Span, line_of};

/// The words that may not be names.
pub(crate) const RESERVED: &[&str] = &[
    "and", "break", "continue", "else", "expect", "false", "for", "if", "in", "is", "let", "me", "none",
    "not", "now", "or", "refuse", "require", "return", "then", "true", "var", "where",
];
/// Words with which a line goes on with the one before.
const CONTINUING: &[&str] = &["and", "else", "in", "is", "or", "then", "where"];
/// Something did not fit and is reported: the caller recovers.
#[derive(Debug)]
pub(crate) struct Broken;
pub(crate) type Parsed<T> = Result<T, Broken>;

pub(crate) struct Parser<'a> {
    pub(crate) source: &'a str,
    pub(crate) report: &'a mut Report,
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    /// Open ( and [ since the innermost block: inside of them layout means nothing.
    pub(crate) inside: u32,
    pub(crate) depth: u16,
    /// How far the line that the statement at hand begins is from the margin.
    pub(super) indentation: usize,
    /// The braces of a block that closes further left than it begins: likely another one's `}` stands for its own.
    pub(super) suspect: Option<(Span, Span)>,
    /// What ends the tokens, as it is called.
    pub(super) end: &'static str,
    /// Names that what was reported and left out would have given.
    pub(super) lost: Vec<String>,
}

pub(crate) fn parse(source: &str, report: &mut Report) -> File {
    parse_from(source, 0, report)
}

/// Reads what stands behind a byte of the source, which begins a line.
pub(crate) fn parse_from(source: &str, from: usize, report: &mut Report) -> File {
    let tokens = lexer::tokens(source, from, source.len(), report);
    let mut parser = Parser::new(source, tokens, report);
    parser.file()
}

impl<'a> Parser<'a> {
    pub(crate) fn new(source: &'a str, tokens: Vec<Token>, report: &'a mut Report) -> Parser<'a> {
        Parser {
            source,
            report,
            tokens,
            at: 0,
            inside: 0,
            depth: 0,
            indentation: 0,
            suspect: None,
            end: "the end of the file",
            lost: Vec::new(),
        }
    }

    // Tokens.

    pub(crate) fn peek(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }
    pub(super) fn peek_after(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }
    pub(super) fn peek_at(&self, distance: usize) -> Token {
        self.tokens[(self.at + distance).min(self.tokens.len() - 1)]
    }
    pub(crate) fn before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }
    pub(crate) fn text_of(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }
    /// `Type` or a library's `name.Type`, whose first word stands here.
    pub(super) fn type_word(&mut self) -> Parsed<Word> {
        let first = self.advance();
        let text = self.text_of(first.span).to_owned();
        if first.kind != Kind::Name || !self.take_sign(".") {
            return Ok(Word { text, span: first.span });
        }
        if self.peek().kind != Kind::Type {
            return self.unexpected("a type of the library");
        }
        let second = self.advance().span;
        Ok(Word { text: format!("{text}.{}", self.text_of(second)), span: first.span.to(second) })
    }
    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek().kind, Kind::Sign(found) if found == sign)
    }
    pub(crate) fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Name && self.text_of(token.span) == word
    }
    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }
    /// How far a token that begins a line is from the margin.
    pub(super) fn column(&self, token: Token) -> usize {
        let before = &self.source[..token.span.start as usize];
        before.bytes().rev().take_while(|byte| *byte != b'\n').count()
    }
    /// Whether nobody reads what more would be said: the rest is passed over.
    pub(super) fn gives_up(&mut self) -> bool {
        let full = self.report.is_full();
        if full {
            self.at = self.tokens.len() - 1;
        }
        full
    }
    /// Whether the statement ends before the next token because that begins a line of its own.
    pub(crate) fn line_ends(&self) -> bool {
        let token = self.peek();
        self.inside == 0
            && token.after_line
            && matches!(token.kind, Kind::Name | Kind::Type)
            && !CONTINUING.contains(&self.text_of(token.span))
    }
    pub(super) fn found(&self) -> String {
        let token = self.peek();
        match token.kind {
            Kind::End => self.end.into(),
            Kind::Text => "a text".into(),
            _ => {
                let text = self.text_of(token.span);
                if text.chars().count() > 40 { "a long word".into() } else { format!("`{text}`") }
            }
        }
    }
    pub(crate) fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        self.unexpected_with(expected, |diagnostic| diagnostic)
    }
    /// As [`Parser::unexpected`], with more to say where it is no habit of another language.
    pub(super) fn unexpected_with<T>(
        &mut self,
        expected: &str,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Parsed<T> {
        match self.habit() {
            Some(habit) if self.peek().kind != Kind::Bad => {
                self.report.push(habit.label(format!("expected {expected}")));
                Err(Broken)
            }
            _ => self.expected(expected, more),
        }
    }
    /// Says what was expected. What is missing at the end of a line is missing there, not where the next one begins.
    pub(super) fn expected<T>(
        &mut self,
        expected: &str,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Parsed<T> {
        let token = self.peek();
        if token.kind == Kind::Bad || self.report.is_full() {
            return Err(Broken);
        }
        let at_end = self.at > 0 && (token.after_line || token.kind == Kind::End);
        let end = self.before().end;
        let span = if at_end { Span { start: end, end } } else { token.span };
        let found = match token.kind {
            Kind::End => self.found(),
            _ if at_end => "the end of the line".into(),
            _ => self.found(),
        };
        let diagnostic =
            Diagnostic::new(Code::Unexpected, span, format!("expected {expected}, found {found}"));
        self.report.push(more(diagnostic.label(format!("expected {expected}"))));
        Err(Broken)
    }
    /// Text of the source, where it is short.
    pub(super) fn short_text(&self, span: Span) -> &'a str {
        let text = self.text_of(span);
        if text.len() <= 40 && !text.contains('\n') { text } else { "…" }
    }
    /// What is said of the next token, if it is a habit of another language behind a value.
    pub(super) fn habit(&self) -> Option<Diagnostic> {
        let token = self.peek();
        let text = match token.kind {
            Kind::Sign(sign) => sign,
            Kind::Name => self.text_of(token.span),
            _ => return None,
        };
        // On a line of its own it goes on only inside of brackets, and where it begins no statement.
        if token.after_line && (self.inside == 0 || RESERVED.contains(&text)) {
            return None;
        }
        let instead = habits::behind(text)?;
        let message = format!("there is no `{text}` here");
        Some(Diagnostic::new(Code::Foreign, token.span, message).help(instead))
    }
    /// Reports a habit of another language, and takes it as what it is here.
    pub(super) fn foreign(&mut self, span: Span, message: &str, instead: impl Into<String>) {
        self.report.push(Diagnostic::new(Code::Foreign, span, message).help(instead));
    }
    /// The `)`, `]` or `}` that closes what was opened.
    pub(super) fn need_close(&mut self, open: Span, close: &str, expected: &str) -> Parsed<Span> {
        if self.is_sign(close) {
            return Ok(self.advance().span);
        }
        if self.report.is_full() {
            return Err(Broken);
        }
        let line = line_of(self.source, open.start);
        let elsewhere = line != line_of(self.source, self.before().start);
        let opening = self.text_of(open).to_owned();
        self.unexpected_with(expected, |diagnostic| {
            if elsewhere {
                diagnostic.note(format!("the `{opening}` on line {line} is not closed"))
            } else {
                diagnostic
            }
        })
    }
    pub(crate) fn need_sign(&mut self, sign: &str) -> Parsed<Span> {
        if self.is_sign(sign) { Ok(self.advance().span) } else { self.unexpected(&format!("`{sign}`")) }
    }
    pub(crate) fn need_word(&mut self, word: &str) -> Parsed<Span> {
        if self.is_word(word) { Ok(self.advance().span) } else { self.unexpected(&format!("`{word}`")) }
    }
    pub(crate) fn need_name(&mut self, what: &str) -> Parsed<Word> {
        let token = self.peek();
        let text = self.text_of(token.span);
        if token.kind == Kind::Type {
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {what}, found `{text}`"))
                    .note("names begin with a small letter, types with a capital one")
                    .help(format!("write `{}`", habits::in_small_letters(text))),
            );
            return Err(Broken);
        }
        if token.kind != Kind::Name {
            return self.unexpected(what);
        }
        if RESERVED.contains(&text) {
            self.report.push(
                Diagnostic::new(Code::Reserved, token.span, format!("`{text}` is a word of the language"))
                    .label(format!("expected {what}"))
                    .help(format!("choose another name, `the_{text}` for example")),
            );
            return Err(Broken);
        }
        self.advance();
        Ok(Word { text: text.into(), span: token.span })
    }
    /// A name that is declared here: it has small letters and no dashes.
    pub(super) fn new_name(&mut self, what: &str) -> Parsed<Word> {
        if self.peek().kind == Kind::Type {
            // Said, and taken as the name that it is.
            let _ = self.need_name(what);
            let span = self.advance().span;
            return Ok(Word { text: self.text_of(span).into(), span });
        }
        let mut name = self.need_name(what)?;
        let mut dashes = false;
        while self.is_sign("-") && self.peek().span.start == name.span.end {
            let after = self.peek_after();
            if after.span.start != self.peek().span.end || !matches!(after.kind, Kind::Name | Kind::Type) {
                break;
            }
            self.advance();
            name.span = name.span.to(self.advance().span);
            dashes = true;
        }
        let text = self.text_of(name.span);
        let small = habits::in_small_letters(text).replace('-', "_");
        let message = if dashes {
            "a name has no dashes"
        } else if small != text && text.is_ascii() {
            "a name has small letters"
        } else {
            return Ok(name);
        };
        self.report.push(
            Diagnostic::new(Code::Unexpected, name.span, message)
                .note("names are of small letters, digits and `_`; types begin with a capital one")
                .help(format!("write `{small}`")),
        );
        name.text = text.into();
        Ok(name)
    }
    pub(super) fn need_type_name(&mut self, what: &str) -> Parsed<Word> {
        let token = self.peek();
        if token.kind == Kind::Type {
            self.advance();
            return Ok(Word { text: self.text_of(token.span).into(), span: token.span });
        }
        if token.kind == Kind::Name {
            let text = self.text_of(token.span);
            let capital = in_capitals(text);
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {what}, found `{text}`"))
                    .note("types begin with a capital letter")
                    .help(format!("write `{capital}`")),
            );
            return Err(Broken);
        }
        self.unexpected(what)
    }
    /// Runs `read` one level deeper, or reports that this is too deep and gives up on the file.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            return self.too_deep(self.peek().span);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
    pub(crate) fn too_deep<T>(&mut self, span: Span) -> Parsed<T> {
        self.report.push(
            Diagnostic::new(Code::TooLarge, span, format!("nested deeper than {NESTING_MAX} levels"))
                .help("give the inner part a name with `let`, or a function of its own"),
        );
        self.at = self.tokens.len() - 1;
        Err(Broken)
    }
    /// Whether one more of something is too many; if so, it says so.
    pub(crate) fn bounded(&mut self, count: usize, most: usize, what: &str) -> Parsed<()> {
        if count < most {
            return Ok(());
        }
        let message = format!("more than {most} {what}");
        self.report.push(Diagnostic::new(Code::TooLarge, self.peek().span, message));
        Err(Broken)
    }
}

/// `line_item` as a type's name, `LineItem`.
fn in_capitals(name: &str) -> String {
    let parts = name.split('_').map(|part| {
        let mut letters = part.chars();
        letters
            .next()
            .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    });
    parts.collect()
}
