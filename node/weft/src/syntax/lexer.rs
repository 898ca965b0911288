//! From text to tokens. Layout is kept as a flag on the token after it.

use super::habits;
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

/// Longer ones first. Those of other languages are tokens too, so that the parser can say what they are here.
const SIGNS: &[&str] = &[
    "===", "!==", "...", "..<", "..=", "==", "!=", "<=", ">=", "+=", "-=", "*=", "->", "..", "&&", "||",
    "<>", "=>", "=<", "++", "**", "??", "?.", "::", ":=", "/=", "%=", "(", ")", "[", "]", "{", "}", ",", ":",
    ";", "=", "<", ">", "+", "-", "*", "/", "%", ".", "?", "!",
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

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..self.to]
    }

    /// What was read from a place on.
    fn since(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    fn skip_layout(&mut self) {
        loop {
            let rest = self.rest();
            match rest.chars().next() {
                Some('\n') => {
                    self.after_line = true;
                    self.at += 1;
                }
                Some(' ' | '\t' | '\r') => self.at += 1,
                // What some editors begin a file with.
                Some('\u{feff}') if self.at == 0 => self.at += '\u{feff}'.len_utf8(),
                Some('/') if rest.starts_with("//") => self.at += rest.find('\n').unwrap_or(rest.len()),
                Some('/') if rest.starts_with("/*") => self.skip_long_comment(),
                Some('#') => self.skip_hash_comment(),
                Some(other) if habits::is_other_space(other) => self.skip_other_space(other),
                _ => return,
            }
        }
    }

    /// `/* … */`; one that is not closed goes to the end.
    fn skip_long_comment(&mut self) {
        let (start, rest) = (self.at, self.rest());
        let length = rest.find("*/").map_or(rest.len(), |at| at + 2);
        let has_line = rest[..length].contains('\n');
        self.after_line |= has_line;
        self.at += length;
        self.report.push(
            Diagnostic::new(Code::Foreign, self.since(start), "there are no comments in `/* */`")
                .help("begin each line of a comment with `//`"),
        );
    }

    fn skip_hash_comment(&mut self) {
        let (start, rest) = (self.at, self.rest());
        self.at += rest.find('\n').unwrap_or(rest.len());
        self.report.push(
            Diagnostic::new(Code::StrayCharacter, self.since(start), "nothing in Weft begins with `#`")
                .help("a comment begins with `//`"),
        );
    }

    fn skip_other_space(&mut self, space: char) {
        let (start, rest) = (self.at, self.rest());
        self.at += rest.find(|c| !habits::is_other_space(c)).unwrap_or(rest.len());
        let number = space as u32;
        let message = format!("a character that looks like a space and is none, U+{number:04X}");
        let diagnostic = Diagnostic::new(Code::StrayCharacter, self.since(start), message);
        self.report.push(diagnostic.help("write a space instead"));
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
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        self.at += length;
        if self.rest().starts_with(char::is_alphanumeric) {
            self.word_of_others(start);
            return kind;
        }
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

    /// A word with letters that names have none of.
    fn word_of_others(&mut self, start: usize) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.report.push(
            Diagnostic::new(Code::StrayCharacter, self.since(start), "a word with other letters than a to z")
                .label("names have a to z, 0 to 9 and `_`")
                .help("inside of texts any character may stand: `\"…\"`"),
        );
    }

    fn digits(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        self.digits();
        let after = self.rest().as_bytes();
        let is_real = after.first() == Some(&b'.') && after.get(1).is_some_and(u8::is_ascii_digit);
        if is_real {
            self.at += 1;
            self.digits();
        }
        let space = usize::from(!is_real && self.rest().starts_with(' '));
        let rest = &self.rest()[space..];
        let word = &rest[..rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len())];
        if !is_real && UNITS.contains(&word) {
            self.at += space + word.len();
            return Kind::Duration;
        }
        let number = &self.source[start..self.at];
        let diagnostic = match habits::unit(number, word, space > 0) {
            Some(diagnostic) => diagnostic,
            None if space == 0 && !word.is_empty() => habits::number(number, word),
            None => return if is_real { Kind::Real } else { Kind::Int },
        };
        self.at += space + word.len();
        self.report.push(Diagnostic { span: self.since(start), ..diagnostic });
        Kind::Bad
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
        if let Some(closing) = habits::closing_quotes(first) {
            return self.quoted_otherwise(first, closing);
        }
        let start = self.at;
        if first.is_alphabetic() {
            self.word_of_others(start);
            return Kind::Bad;
        }
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(first).len();
        let message = format!("nothing in Weft begins with `{}`", shown(first));
        let diagnostic = Diagnostic::new(Code::StrayCharacter, self.since(start), message);
        self.report.push(match habits::sign(first) {
            Some(sign) => diagnostic.help(format!("write `{sign}`")),
            None => diagnostic,
        });
        Kind::Bad
    }

    /// A text in quotes that are none.
    fn quoted_otherwise(&mut self, first: char, closing: &[char]) -> Kind {
        let (start, rest) = (self.at, self.rest());
        let width = first.len_utf8();
        // Looks no further than to the next quote: a line of many is read once.
        let stop = rest[width..].char_indices().find(|(_, one)| *one == '\n' || closing.contains(one));
        let closed = stop.filter(|(_, one)| *one != '\n');
        let inner = closed.map(|(length, _)| &rest[width..width + length]);
        let end = closed.map_or(width, |(length, one)| width + length + one.len_utf8());
        let help = match inner.filter(|inner| inner.len() <= 40 && !inner.contains(['"', '\\'])) {
            Some(inner) => format!("texts stand in double quotes: `\"{inner}\"`"),
            None => "texts stand in double quotes: `\"…\"`".into(),
        };
        let is_text = inner.is_some() && first.is_ascii();
        self.at += end;
        let message = format!("nothing in Weft begins with `{first}`");
        self.report.push(Diagnostic::new(Code::StrayCharacter, self.since(start), message).help(help));
        // Goes on as the text that was meant, whose quotes have one byte each.
        if is_text { Kind::Text } else { Kind::Bad }
    }
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn shown(character: char) -> String {
    if character.is_control() { character.escape_default().to_string() } else { character.into() }
}
