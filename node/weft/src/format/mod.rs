//! The one layout of a source: two spaces, at most 100 columns, no alignment, at most one blank line.
//!
//! Must not know what a source means, nor whether it is right: it works on tokens, so that what the checker does not
//! take yet is laid out, too. A source that the grammar does not take is not touched.
//!
//! The writer's line breaks stay where they are; `pieces` holds the tokens, their brackets and comments, `spacing` says
//! where a space stands on a line, `layout` how far each line is indented and how it all is written, `breaking` where
//! a line that is too long is broken. What comes out is read again and compared: a layout that would change a program
//! is an error, not a result.

mod breaking;
mod layout;
mod pieces;
mod spacing;

#[cfg(test)]
mod tests;

use crate::SOURCE_BYTES_MAX;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Report, Span, line_of};
use crate::syntax::lexer::{Kind, tokens};
use crate::syntax::parser::parse;
use std::fmt;

/// The longest line that is not broken, in columns.
pub const COLUMNS_MAX: usize = 100;
/// How far what stands in brackets is indented, in columns.
const INDENT: usize = 2;

/// Why a source is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatError {
    /// The grammar does not take it.
    Syntax(Diagnostics),
    /// The formatter does not know how: its own fault, found before anything was changed.
    Unfaithful {
        /// The first line that would mean something else, from 1.
        line: usize,
    },
}

impl std::error::Error for FormatError {}

impl fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Syntax(wrong) => write!(formatter, "{wrong}"),
            FormatError::Unfaithful { line } => {
                write!(
                    formatter,
                    "line {line}: no layout was found that keeps the program; nothing was changed"
                )
            }
        }
    }
}

/// Lays out a source. `file` is the name that diagnostics show.
///
/// # Errors
/// The source does not fit the grammar, or no layout was found that keeps it.
pub fn format(source: &str, file: &str) -> Result<String, FormatError> {
    syntax(source, file)?;
    let unfaithful = |offset| FormatError::Unfaithful { line: line_of(source, offset) };
    let mut pieces = pieces::Pieces::read(source).ok_or_else(|| unfaithful(0))?;
    pieces.settle_lines();
    breaking::break_long_lines(&mut pieces);
    let formatted = layout::write(&pieces);
    if let Some(offset) = first_difference(source, &formatted) {
        return Err(unfaithful(offset));
    }
    syntax(&formatted, file)?;
    Ok(formatted)
}

/// Whether the grammar takes a source.
fn syntax(source: &str, file: &str) -> Result<(), FormatError> {
    let mut report = Report::default();
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the file has {} bytes; an app has at most {SOURCE_BYTES_MAX}", source.len());
        report.push(Diagnostic::new(Code::TooLarge, Span::default(), message));
        return Err(FormatError::Syntax(report.finish("", file)));
    }
    parse(source, &mut report);
    let said = report.finish(source, file);
    if said.iter().next().is_some() { Err(FormatError::Syntax(said)) } else { Ok(()) }
}

/// Where two sources differ in their words or comments, as a byte of the first.
fn first_difference(left: &str, right: &str) -> Option<u32> {
    let (left, right) = (essence(left), essence(right));
    let mut both = left.iter().zip(&right);
    both.find(|((_, left), (_, right))| left != right)
        .map(|((offset, _), _)| *offset)
        .or_else(|| (left.len() != right.len()).then_some(left.last().map_or(0, |(offset, _)| *offset)))
}

/// The words of a source with where they begin; without the commas and semicolons that may be left out, of which
/// reading it again tells whether they were needed.
fn essence(source: &str) -> Vec<(u32, String)> {
    let tokens = tokens(source, 0, source.len(), &mut Report::default());
    let mut words: Vec<(u32, String)> = Vec::with_capacity(tokens.len());
    let mut end = 0;
    for (at, token) in tokens.iter().enumerate() {
        let gap = &source[end..token.span.start as usize];
        for comment in gap.lines().map(str::trim).filter(|line| line.starts_with("//")) {
            words.push((token.span.start, comment.into()));
        }
        end = token.span.end as usize;
        let closes = matches!(tokens.get(at + 1).map(|next| next.kind), Some(Kind::Sign(")" | "]" | "}")));
        if token.kind == Kind::Sign(";") || (token.kind == Kind::Sign(",") && closes) {
            continue;
        }
        words.push((token.span.start, pieces::written(token, source)));
    }
    // A comma may move to before a comment: comments are compared in their own order.
    words.sort_by_key(|(_, word)| word.starts_with("//"));
    words
}
