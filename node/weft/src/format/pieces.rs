//! A source as tokens with their brackets, and with the comments and line breaks before each.

use crate::diagnostics::Report;
use crate::syntax::NESTING_MAX;
use crate::syntax::lexer::{self, Kind, Token};
use crate::syntax::parser::RESERVED;

/// Words with which a line goes on with the one before, after the grammar.
pub(super) const CONTINUING: &[&str] = &["and", "else", "in", "is", "or", "then", "where"];

/// Brackets in brackets: more than the grammar lets stand in each other, and few enough for a pass over all for each.
const OPEN_MAX: usize = 4 * NESTING_MAX as usize;

/// What a bracket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    /// `{ }` with statements.
    Block,
    /// `{ }` with fields, cases or the items of a record.
    Items,
    /// `( )` of a declaration, in which a comma may stand last.
    Fields,
    /// `( )`
    Round,
    /// `[ ]` with values, in which a comma may stand last.
    Values,
    /// `[ ]` with a query or keys.
    Square,
}

impl Bracket {
    /// Whether a comma stands behind the last one when each has a line of its own.
    pub(super) fn ends_with_comma(self) -> bool {
        matches!(self, Bracket::Items | Bracket::Fields | Bracket::Values)
    }
}

/// A comment on a line of its own.
#[derive(Debug)]
pub(super) struct Comment<'a> {
    pub(super) text: &'a str,
    pub(super) after_blank: bool,
}

/// A token and what stands before it.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// A comment behind the token before, on its line.
    pub(super) behind: Option<&'a str>,
    pub(super) comments: Vec<Comment<'a>>,
    pub(super) after_blank: bool,
    /// It begins a line.
    pub(super) newline: bool,
    /// Something stood between the token before and this.
    pub(super) apart: bool,
    /// The other bracket.
    pub(super) partner: usize,
    /// The opening bracket that it stands in; its own place if there is none.
    pub(super) parent: usize,
    pub(super) bracket: Option<Bracket>,
}

impl Piece<'_> {
    pub(super) fn has_comments(&self) -> bool {
        self.behind.is_some() || !self.comments.is_empty()
    }
    pub(super) fn opens(&self) -> bool {
        matches!(self.kind, Kind::Sign("(" | "[" | "{"))
    }
    pub(super) fn closes(&self) -> bool {
        matches!(self.kind, Kind::Sign(")" | "]" | "}"))
    }
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && !matches!(self.kind, Kind::Text)
    }
}

#[derive(Debug)]
pub(super) struct Pieces<'a> {
    pub(super) all: Vec<Piece<'a>>,
}

/// The words of a token as they are written.
pub(super) fn written(token: &Token, source: &str) -> String {
    let text = &source[token.span.start as usize..token.span.end as usize];
    if token.kind != Kind::Duration {
        return text.into();
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == ' ');
    format!("{} {unit}", text[..text.len() - unit.len()].trim_end())
}

impl<'a> Pieces<'a> {
    /// None where the brackets do not match, or too many stand in each other.
    pub(super) fn read(source: &'a str) -> Option<Pieces<'a>> {
        let tokens = lexer::tokens(source, 0, source.len(), &mut Report::default());
        let mut all = Vec::with_capacity(tokens.len());
        let mut end = 0;
        for token in &tokens {
            let gap = &source[end..token.span.start as usize];
            end = token.span.end as usize;
            all.push(piece(token, gap, source, all.is_empty()));
        }
        let mut pieces = Pieces { all };
        pieces.leave_out_commas();
        pieces.leave_out_empty_statements();
        pieces.match_brackets().then_some(pieces)
    }

    pub(super) fn before(&self, at: usize) -> Option<&Piece<'a>> {
        at.checked_sub(1).and_then(|before| self.all.get(before))
    }

    /// Commas before a closing bracket: whether one is written follows from the layout.
    fn leave_out_commas(&mut self) {
        let mut kept: Vec<Piece<'a>> = Vec::with_capacity(self.all.len());
        for mut piece in self.all.drain(..) {
            while let Some(comma) = kept.pop_if(|before| piece.closes() && before.is(",")) {
                if !comma.has_comments() {
                    continue;
                }
                // The comments that stood before the comma stand before the bracket.
                if piece.behind.is_none() {
                    piece.behind = comma.behind;
                } else if let Some(text) = comma.behind {
                    piece.comments.insert(0, Comment { text, after_blank: false });
                }
                piece.comments.splice(0..0, comma.comments);
                piece.newline = true;
            }
            kept.push(piece);
        }
        self.all = kept;
    }

    /// Semicolons that end nothing.
    fn leave_out_empty_statements(&mut self) {
        let mut kept: Vec<Piece<'a>> = Vec::with_capacity(self.all.len());
        let (mut newline, mut blank) = (false, false);
        for mut piece in self.all.drain(..) {
            let nothing = kept.last().is_some_and(|before| before.is("{") || before.is(";"));
            if nothing && piece.is(";") && !piece.has_comments() {
                newline |= piece.newline;
                blank |= piece.after_blank;
            } else {
                piece.newline |= std::mem::take(&mut newline);
                piece.after_blank |= std::mem::take(&mut blank);
                kept.push(piece);
            }
        }
        self.all = kept;
    }

    /// Whether a token is a semicolon where the layout says the same: it is not written.
    pub(super) fn is_idle(&self, at: usize) -> bool {
        let (piece, Some(next)) = (&self.all[at], self.all.get(at + 1)) else { return false };
        if !piece.is(";") || piece.has_comments() {
            return false;
        }
        let line = next.newline
            && matches!(next.kind, Kind::Name | Kind::Type)
            && !CONTINUING.contains(&next.text.as_str());
        line || next.is("}") || next.kind == Kind::End
    }

    fn match_brackets(&mut self) -> bool {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.all.len() {
            if self.all[at].closes() {
                let Some(opening) = open.pop() else { return false };
                let matching = matches!(
                    (self.all[opening].text.as_str(), self.all[at].text.as_str()),
                    ("(", ")") | ("[", "]") | ("{", "}")
                );
                if !matching {
                    return false;
                }
                self.all[opening].partner = at;
                self.all[at].partner = opening;
                self.all[at].bracket = self.all[opening].bracket;
            }
            self.all[at].parent = open.last().copied().unwrap_or(at);
            if self.all[at].opens() {
                if open.len() >= OPEN_MAX {
                    return false;
                }
                self.all[at].bracket = Some(self.bracket(at, open.last().copied()));
                open.push(at);
            }
        }
        for at in 0..self.all.len() {
            let comprehension = |piece: &Piece<'_>| piece.parent == at && piece.is("for");
            if self.all[at].opens() && self.all[at].bracket == Some(Bracket::Values) {
                let inside = at + 1..self.all[at].partner.max(at + 1);
                if self.all[inside].iter().any(comprehension) {
                    self.all[at].bracket = Some(Bracket::Square);
                    let partner = self.all[at].partner;
                    self.all[partner].bracket = Some(Bracket::Square);
                }
            }
        }
        open.is_empty()
    }

    fn bracket(&self, at: usize, parent: Option<usize>) -> Bracket {
        let prefix = self.operand_expected(at);
        match self.all[at].text.as_str() {
            "[" if prefix => Bracket::Values,
            "[" => Bracket::Square,
            "(" if parent.is_none() && self.declares_fields(at) => Bracket::Fields,
            "(" => Bracket::Round,
            _ if parent.is_some_and(|parent| self.all[parent].bracket != Some(Bracket::Block)) => {
                Bracket::Items
            }
            _ => self.brace(at, parent.is_none(), prefix),
        }
    }

    /// A `{` where statements or declarations stand around it.
    fn brace(&self, at: usize, outermost: bool, prefix: bool) -> Bracket {
        let Some(before) = self.before(at) else { return Bracket::Items };
        if outermost && matches!(self.declaration(at), "enum" | "record") {
            return Bracket::Items;
        }
        if before.is("else") {
            let chain = self.before(at - 1).is_some_and(|piece| piece.bracket == Some(Bracket::Block));
            return if chain { Bracket::Block } else { Bracket::Items };
        }
        if before.kind == Kind::Type {
            let mut first = at - 1;
            while first >= 2 && self.all[first - 1].is(".") {
                first -= 2;
            }
            let answer = self.before(first).is_some_and(|piece| piece.is("->") || piece.is("of"));
            return if answer { Bracket::Block } else { Bracket::Items };
        }
        if prefix { Bracket::Items } else { Bracket::Block }
    }

    /// The first word of the outermost statement that a token is in.
    fn declaration(&self, at: usize) -> &str {
        let mut first = at;
        while first > 0 {
            let piece = &self.all[first];
            if piece.closes() && first != at {
                first = piece.partner;
            } else if piece.newline && first != at && !self.continues(first) || self.all[first - 1].is(";") {
                break;
            }
            first = first.saturating_sub(1);
        }
        &self.all[first].text
    }

    fn declares_fields(&self, at: usize) -> bool {
        let words = at.checked_sub(2).map(|first| [&self.all[first], &self.all[first + 1]]);
        words.is_some_and(|[declaring, name]| {
            name.kind == Kind::Name
                && ["on", "do", "fn", "view", "output", "timer"].contains(&declaring.text.as_str())
        })
    }

    /// Whether a line that begins with this token goes on with the statement before it.
    pub(super) fn continues(&self, at: usize) -> bool {
        let piece = &self.all[at];
        let Some(before) = self.before(at) else { return false };
        match piece.kind {
            Kind::End | Kind::Sign("{") => false,
            Kind::Name | Kind::Type => {
                let begins = ends_operand(before)
                    || before.opens()
                    || [";", "break", "continue", "return"].contains(&before.text.as_str());
                CONTINUING.contains(&piece.text.as_str()) || !begins
            }
            _ => true,
        }
    }

    /// Whether what follows the token before this one begins a value, so that a sign here is a prefix.
    pub(super) fn operand_expected(&self, at: usize) -> bool {
        let Some(before) = self.before(at) else { return true };
        if !ends_operand(before) {
            return true;
        }
        // Words that are verbs only in their places: how the writer set the sign tells.
        if before.kind != Kind::Name || !AFTER_WORDS.contains(&before.text.as_str()) {
            return false;
        }
        let Some(verb) = at.checked_sub(2).map(|first| &self.all[first]) else { return false };
        let here = &self.all[at];
        let touches = self.all.get(at + 1).is_some_and(|next| !next.apart);
        let placed = match here.text.as_str() {
            "{" => before.is("add") || before.is("put"),
            "-" | "." => here.apart && touches,
            _ => here.apart,
        };
        placed && ends_operand(verb) && !NAMING_WORDS.contains(&verb.text.as_str())
    }
}

/// Words before a value where the grammar has them, and names elsewhere.
const AFTER_WORDS: &[&str] =
    &["add", "put", "to", "by", "from", "take", "after", "at", "of", "with", "because", "refused", "as"];
/// Words that a name follows.
const NAMING_WORDS: &[&str] = &[
    "on",
    "do",
    "fn",
    "view",
    "output",
    "timer",
    "delivered",
    "send",
    "start",
    "cancel",
    "sent",
    "state",
    "setting",
];

/// Whether a value, a name or a type may end with this token.
pub(super) fn ends_operand(piece: &Piece<'_>) -> bool {
    match piece.kind {
        Kind::Sign(sign) => matches!(sign, ")" | "]" | "}" | "?"),
        Kind::Name => {
            !RESERVED.contains(&piece.text.as_str())
                || ["true", "false", "none", "now", "me"].contains(&piece.text.as_str())
        }
        _ => true,
    }
}

fn piece<'a>(token: &Token, gap: &'a str, source: &str, first: bool) -> Piece<'a> {
    let mut lines = gap.split('\n').map(str::trim);
    let behind = if first { None } else { lines.next() };
    let mut comments = Vec::new();
    let mut blank = false;
    let mut rest: Vec<&str> = lines.collect();
    // What stands on the token's own line is no line; only at the end of the file it can be a comment.
    if let Some(own) = rest.pop().filter(|own| own.starts_with("//")) {
        rest.push(own);
    }
    for line in rest {
        if line.starts_with("//") {
            comments.push(Comment { text: line, after_blank: std::mem::take(&mut blank) });
        } else {
            blank = true;
        }
    }
    Piece {
        kind: token.kind,
        text: written(token, source),
        behind: behind.filter(|line| line.starts_with("//")),
        comments,
        after_blank: blank,
        newline: first || token.kind == Kind::End || gap.contains('\n'),
        apart: !gap.is_empty(),
        partner: usize::MAX,
        parent: usize::MAX,
        bracket: None,
    }
}
