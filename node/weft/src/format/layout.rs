//! How far each line is indented, and how all of it is written.

use super::INDENT;
use super::pieces::{Bracket, Pieces};
use super::spacing::{comma_behind, space_before};
use crate::syntax::lexer::Kind;

/// Words that begin a part of a query.
const QUERY: &[&str] = &["for", "group", "order", "take"];

/// An open bracket: how far its contents and its end are indented.
#[derive(Debug, Clone, Copy)]
struct Frame {
    contents: usize,
    end: usize,
    statements: bool,
}

const FILE: Frame = Frame { contents: 0, end: 0, statements: true };

/// How a token stands if it begins a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    /// Its indentation, in columns.
    pub(super) columns: usize,
    /// It goes on with the line before: no blank line stands between.
    goes_on: bool,
    /// Of any token: the indentation of what stands beside it, in the same bracket or in the file.
    pub(super) contents: usize,
}

/// The lines, at the tokens with which they begin.
pub(super) fn lines(pieces: &Pieces<'_>) -> Vec<Line> {
    let mut lines = vec![Line::default(); pieces.all.len()];
    let mut frames: Vec<Frame> = Vec::new();
    let mut line = 0;
    for (at, piece) in pieces.all.iter().enumerate() {
        let frame = frames.last().copied().unwrap_or(FILE);
        if piece.newline {
            let goes_on = !piece.closes() && goes_on(pieces, at, frame);
            let contents = frame.contents + if goes_on { INDENT } else { 0 };
            line = if piece.closes() { frame.end } else { contents };
            lines[at] = Line { columns: line, goes_on, ..Line::default() };
        }
        if piece.closes() {
            frames.pop();
        }
        lines[at].contents = frames.last().map_or(FILE.contents, |frame| frame.contents);
        if piece.opens() {
            let block = piece.bracket == Some(Bracket::Block);
            // A block is indented from its statement, however many lines its head has.
            let end = if block { frame.contents } else { line };
            frames.push(Frame { contents: end + INDENT, end, statements: block });
        }
    }
    lines
}

fn goes_on(pieces: &Pieces<'_>, at: usize, frame: Frame) -> bool {
    if frame.statements {
        pieces.continues(at)
    } else {
        let first = pieces.before(at).is_none_or(|before| before.opens() || before.is(","));
        !first && !QUERY.contains(&pieces.all[at].text.as_str())
    }
}

/// Writes the tokens, each line where `newline` says.
pub(super) fn write(pieces: &Pieces<'_>) -> String {
    let lines = lines(pieces);
    let mut text = String::new();
    let line = |text: &mut String, columns: usize, blank: bool| {
        if !text.is_empty() {
            text.push('\n');
            if blank {
                text.push('\n');
            }
        }
        text.extend(std::iter::repeat_n(' ', columns));
    };
    for (at, piece) in pieces.all.iter().enumerate() {
        if let Some(comment) = piece.behind {
            text.push(' ');
            text.push_str(comment);
        }
        // Nothing stands between a bracket and its first line.
        let mut first = pieces.before(at).is_some_and(|before| before.opens());
        let inner = lines[at].columns + if piece.closes() { INDENT } else { 0 };
        for comment in &piece.comments {
            line(&mut text, inner, comment.after_blank && !first);
            text.push_str(comment.text);
            first = false;
        }
        if piece.kind == Kind::End {
            break;
        }
        if pieces.is_idle(at) {
            continue;
        }
        if piece.newline {
            let blank = piece.after_blank && !first && !piece.closes() && !lines[at].goes_on;
            line(&mut text, lines[at].columns, blank);
        } else if space_before(pieces, at) {
            text.push(' ');
        }
        text.push_str(&piece.text);
        if comma_behind(pieces, at) {
            text.push(',');
        }
    }
    text.push('\n');
    text
}
