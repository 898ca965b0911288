//! Where a space stands between two tokens of a line.

use super::pieces::{Bracket, Pieces};
use crate::syntax::lexer::Kind;

/// Whether a space stands before a token that does not begin a line.
pub(super) fn space_before(pieces: &Pieces<'_>, at: usize) -> bool {
    let Some(before) = pieces.before(at) else { return false };
    let here = &pieces.all[at];
    let sign = |kind: Kind| if let Kind::Sign(sign) = kind { sign } else { "" };
    match (sign(before.kind), sign(here.kind)) {
        (_, "," | ";" | ":" | "?" | ")" | "]") | ("(" | "[" | ".", _) => false,
        ("{", "}") => false,
        ("-", _) if pieces.operand_expected(at - 1) => false,
        (_, "." | "(" | "[") => {
            // A brace of items is a value, one of a block is not.
            before.bracket == Some(Bracket::Block) && before.closes() || pieces.operand_expected(at)
        }
        _ => true,
    }
}

/// Columns of a token on its line, with the space and without the indentation.
pub(super) fn columns(pieces: &Pieces<'_>, at: usize) -> usize {
    use unicode_width::UnicodeWidthStr;
    let piece = &pieces.all[at];
    if pieces.is_idle(at) {
        return 0;
    }
    let space = usize::from(!piece.newline && space_before(pieces, at));
    let comma = usize::from(comma_behind(pieces, at));
    space + piece.text.as_str().width() + comma
}

/// Whether the token is the last one in brackets whose ends have lines of their own.
pub(super) fn comma_behind(pieces: &Pieces<'_>, at: usize) -> bool {
    let Some(next) = pieces.all.get(at + 1) else { return false };
    let last = next.closes() && next.newline && next.partner != at;
    last && next.bracket.is_some_and(Bracket::ends_with_comma)
}
