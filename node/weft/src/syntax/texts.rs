//! Texts, with `{expressions}` in them.

use super::lexer::{self, Kind};
use super::parser::{Broken, Parsed, Parser};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// A text with `{expressions}` in it.
    pub(super) fn text(&mut self) -> Parsed<Expression> {
        let span = self.advance().span;
        let (from, to) = (span.start as usize + 1, span.end as usize - 1);
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut below = 0;
        let mut at = from;
        while let Some(character) = self.source[at..to].chars().next() {
            match character {
                '\\' => at = self.escape(at, to, &mut literal),
                '{' => {
                    let Some(length) = closing(&self.source[at..to]) else {
                        let open = Span { start: at as u32, end: span.end };
                        self.report.push(
                            Diagnostic::new(Code::OpenText, open, "this `{` is not closed")
                                .note("a text ends at the next `\"`, in its `{ }` too")
                                .help("a brace as such is written `\\{`"),
                        );
                        return Err(Broken);
                    };
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    let value = self.interpolated(at + 1, at + length)?;
                    below = below.max(value.height);
                    pieces.push(Piece::Value(value));
                    at += length + 1;
                }
                _ => {
                    literal.push(character);
                    at += character.len_utf8();
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        self.make(ExpressionKind::Text(pieces), span, below)
    }

    fn escape(&mut self, at: usize, to: usize, literal: &mut String) -> usize {
        let Some(character) = self.source[at + 1..to].chars().next() else { return to };
        let end = at + 1 + character.len_utf8();
        match character {
            'n' => literal.push('\n'),
            't' => literal.push('\t'),
            '"' | '\\' | '{' | '}' => literal.push(character),
            _ => {
                let span = Span { start: at as u32, end: end as u32 };
                self.report.push(
                    Diagnostic::new(Code::OpenText, span, "there is no such escape")
                        .note("escapes are \\n \\t \\\" \\\\ \\{ and \\}"),
                );
            }
        }
        end
    }

    fn interpolated(&mut self, from: usize, to: usize) -> Parsed<Expression> {
        let tokens = lexer::tokens(self.source, from, to, self.report);
        let depth = self.depth;
        let mut inner = Parser::new(self.source, tokens, self.report);
        inner.depth = depth;
        inner.inside = 1;
        inner.end = "`}`";
        let value = inner.expression()?;
        if inner.peek().kind == Kind::End { Ok(value) } else { inner.unexpected("`}`") }
    }
}

/// Where the brace that a text begins with is closed: a record's stand inside of it.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let closes = |(_, byte): &(usize, u8)| {
        open = match byte {
            b'{' => open + 1,
            b'}' => open.saturating_sub(1),
            _ => return false,
        };
        open == 0
    };
    text.bytes().enumerate().find(closes).map(|(at, _)| at)
}
