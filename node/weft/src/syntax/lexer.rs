//! From text to tokens. Layout is kept as a flag on the token after it.

use crate::diagnostics::{Code, Diagnostic, Report, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Lower case, perhaps a word of the grammar.
    Name,
    /// Upper case.
    Type,
    Int,
    Real,
    Duration,
    /// With its quotes.
    Text,
    Sign(&'static str),
    /// Reported already.
    Bad,
    End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// A line ended between the token before and this.
    pub(crate) after_line: bool,
}

/// Longer ones first.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "+=", "-=", "*=", "->", "..", "(", ")", "[", "]", "{", "}", ",", ":", ";", "=",
    "<", ">", "+", "-", "*", "/", "%", ".", "?",
];
/// How many bytes a name may have: names go into keys, links and paths behind lengths of one byte.
const NAME_BYTES_MAX: usize = 64;
const UNITS: &[&str] = &["ms", "min", "s", "h", "d"];

/// Tokens of `source[from..to]`, the last being `End`.
pub(crate) fn tokens(source: &str, from: usize, to: usize, report: &mut Report) -> Vec<Token> {
    let mut lexer = Lexer { source, at: from, to, after_line: false, report };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        tokens.push(token);
        if token.kind == Kind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    to: usize,
    after_line: bool,
    report: &'a mut Report,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..self.to]
    }

    fn skip_layout(&mut self) {
        loop {
            let rest = self.rest();
            let mut characters = rest.chars();
            match characters.next() {
                Some('\n') => {
                    self.after_line = true;
                    self.at += 1;
                }
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('/') if characters.next() == Some('/') => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn next(&mut self) -> Token {
        self.skip_layout();
        let start = self.at;
        let after_line = std::mem::take(&mut self.after_line);
        let kind = match self.rest().chars().next() {
            None => Kind::End,
            Some('a'..='z' | '_') => self.word(Kind::Name),
            Some('A'..='Z') => self.word(Kind::Type),
            Some('0'..='9') => self.number(),
            Some('"') => self.text(),
            Some(other) => self.sign(other),
        };
        Token { kind, span: Span { start: start as u32, end: self.at as u32 }, after_line }
    }

    fn word(&mut self, kind: Kind) -> Kind {
        let rest = self.rest();
        let start = self.at;
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += length;
        if length > NAME_BYTES_MAX {
            let span = Span { start: start as u32, end: self.at as u32 };
            let message = format!("a name of {length} characters");
            self.report.push(
                Diagnostic::new(Code::TooLarge, span, message)
                    .label(format!("a name has at most {NAME_BYTES_MAX}"))
                    .help("choose a shorter one"),
            );
        }
        kind
    }

    fn digits(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
    }

    fn number(&mut self) -> Kind {
        self.digits();
        let after = self.rest().as_bytes();
        if after.first() == Some(&b'.') && after.get(1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.digits();
            return Kind::Real;
        }
        let space = usize::from(after.first() == Some(&b' '));
        let rest = &self.rest()[space..];
        let word =
            &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())];
        if UNITS.contains(&word) {
            self.at += space + word.len();
            return Kind::Duration;
        }
        Kind::Int
    }

    fn text(&mut self) -> Kind {
        let start = self.at;
        let mut escaped = false;
        for (offset, character) in self.rest().char_indices().skip(1) {
            match character {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at += offset + 1;
                    return Kind::Text;
                }
                _ => {}
            }
        }
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
        let span = Span { start: start as u32, end: self.at as u32 };
        self.report.push(
            Diagnostic::new(Code::OpenText, span, "this text is not closed")
                .label("no `\"` before the line ends")
                .help("close it with `\"`; a line's end inside of a text is written `\\n`"),
        );
        Kind::Bad
    }

    fn sign(&mut self, first: char) -> Kind {
        if let Some(sign) = SIGNS.iter().copied().find(|sign| self.rest().starts_with(sign)) {
            self.at += sign.len();
            return Kind::Sign(sign);
        }
        // `&&` and `||` are one mistake, not two.
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(first).len();
        let span = Span { start: self.at as u32, end: (self.at + length) as u32 };
        self.at += length;
        let diagnostic = Diagnostic::new(
            Code::StrayCharacter,
            span,
            format!("nothing in Weft begins with `{}`", shown(first)),
        );
        self.report.push(match first {
            '\'' => diagnostic.help("texts stand in double quotes: `\"…\"`"),
            '&' => diagnostic.help("write `and`"),
            '|' => diagnostic.help("write `or`"),
            '!' => diagnostic.help("write `not`"),
            '#' => diagnostic.help("comments begin with `//`"),
            _ => diagnostic,
        });
        Kind::Bad
    }
}

fn shown(character: char) -> String {
    if character.is_control() { character.escape_default().to_string() } else { character.into() }
}
