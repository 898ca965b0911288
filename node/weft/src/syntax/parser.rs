//! The parser's hold on the tokens, and what it says when one does not fit.
//!
//! `declarations`, `statements` and `expressions` read what their names say. Recovery is theirs: each skips what is
//! broken to the next place where one of its own kind begins.

use super::NESTING_MAX;
use super::lexer::{self, Kind, Token};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic, Report, Span};

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
}

pub(crate) fn parse(source: &str, report: &mut Report) -> File {
    let tokens = lexer::tokens(source, 0, source.len(), report);
    let mut parser = Parser::new(source, tokens, report);
    parser.file()
}

impl<'a> Parser<'a> {
    pub(crate) fn new(source: &'a str, tokens: Vec<Token>, report: &'a mut Report) -> Parser<'a> {
        Parser { source, report, tokens, at: 0, inside: 0, depth: 0 }
    }

    // Tokens.

    pub(crate) fn peek(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }
    pub(super) fn peek_after(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
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
            Kind::End => "the end of the file".into(),
            Kind::Text => "a text".into(),
            _ => {
                let text = self.text_of(token.span);
                if text.chars().count() > 40 { "a long word".into() } else { format!("`{text}`") }
            }
        }
    }
    pub(crate) fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        if token.kind != Kind::Bad {
            let found = self.found();
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {expected}, found {found}"))
                    .label(format!("expected {expected}")),
            );
        }
        Err(Broken)
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
                    .help(format!("write `{}`", text.to_ascii_lowercase())),
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
    pub(super) fn need_type_name(&mut self, what: &str) -> Parsed<Word> {
        let token = self.peek();
        if token.kind == Kind::Type {
            self.advance();
            return Ok(Word { text: self.text_of(token.span).into(), span: token.span });
        }
        if token.kind == Kind::Name {
            let text = self.text_of(token.span);
            let mut capital = text.to_owned();
            capital[..1].make_ascii_uppercase();
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
    /// Reports what the grammar has and this version does not do.
    pub(crate) fn not_yet(&mut self, span: Span, what: &str) {
        self.report.push(
            Diagnostic::new(Code::NotYet, span, format!("{what} is not in this version of Weft"))
                .note("docs/language.md lists what there is and what is to come"),
        );
    }
}
