//! Which tokens begin a line: where the writer broke lines, made even; and where a line would be too long.

use super::layout::{Line, lines};
use super::pieces::{Bracket, Pieces};
use super::spacing::columns;
use super::{COLUMNS_MAX, INDENT};
use crate::syntax::lexer::Kind;
use std::ops::Range;

/// A bracket with at least so many columns in it is opened up rather than the words around it.
const LARGE_COLUMNS: usize = 40;

impl Pieces<'_> {
    /// Both ends of a bracket have lines of their own, or neither; signs that belong to what is before stay with it.
    pub(super) fn settle_lines(&mut self) {
        for at in 1..self.all.len() {
            let (before, piece) = (&self.all[at - 1], &self.all[at]);
            let stays = piece.is(",")
                || piece.is(";")
                || piece.is(":")
                || piece.is("?")
                || piece.is("{") && (piece.bracket == Some(Bracket::Block) || before.kind == Kind::Type)
                || piece.is("else") && before.closes() && before.bracket == Some(Bracket::Block)
                || piece.closes() && piece.partner == at - 1;
            let newline = piece.newline && !stays || piece.has_comments();
            self.all[at].newline = newline;
        }
        if let Some(last) = self.all.last_mut() {
            last.newline = true;
        }
        self.settle_brackets();
    }

    /// A bracket that is opened up may open up the one around it.
    fn settle_brackets(&mut self) {
        let mut before = Vec::new();
        loop {
            let own = self.lines_of_brackets();
            if own == before {
                return;
            }
            (0..own.len()).filter(|at| own[*at]).for_each(|at| self.open_up(at));
            before = own;
        }
    }

    /// For each opening bracket, whether its ends stand on lines of their own.
    fn lines_of_brackets(&self) -> Vec<bool> {
        let mut own = vec![false; self.all.len()];
        for (at, piece) in self.all.iter().enumerate() {
            if !piece.newline {
                continue;
            }
            if piece.closes() {
                own[piece.partner] = true;
            }
            if let Some(before) = at.checked_sub(1)
                && self.all[before].opens()
            {
                own[before] = true;
            }
            let around = &self.all[piece.parent];
            if around.bracket.is_some_and(|bracket| bracket == Bracket::Block || bracket.ends_with_comma())
                && piece.parent != at
            {
                own[piece.parent] = true;
            }
        }
        own
    }

    /// Whether a bracket opens here and closes before `end`.
    fn is_whole(&self, at: usize, end: usize) -> bool {
        self.all[at].opens() && self.all[at].partner < end
    }

    /// Gives both ends of the bracket that opens at `at` lines of their own.
    fn open_up(&mut self, at: usize) {
        let end = self.all[at].partner;
        if end > at + 1 || self.all[end].has_comments() {
            self.all[at + 1].newline = true;
            self.all[end].newline = true;
        }
    }
}

/// Breaks what is too long, from the outside in, until nothing more can be broken.
///
/// Each round looks at all lines, so a round breaks a line wherever it can tell that the next ones would: the number of
/// rounds, which is told, follows from how deep brackets stand in each other, not from how many stand beside each other.
pub(super) fn break_long_lines(pieces: &mut Pieces<'_>) -> usize {
    for round in 1.. {
        let lines = lines(pieces);
        let mut changed = false;
        let mut first = 0;
        while first < pieces.all.len() {
            let length = pieces.all[first + 1..].iter().take_while(|piece| !piece.newline).count();
            let end = first + 1 + length;
            let wide = width(pieces, first..end);
            if lines[first].columns + wide > COLUMNS_MAX {
                changed |= Long { first, end, wide, lines: &lines }.break_up(pieces);
            }
            first = end;
        }
        if !changed {
            return round;
        }
        pieces.settle_brackets();
    }
    unreachable!("a round that changes nothing comes before there are no numbers left")
}

/// Columns of tokens on one line.
fn width(pieces: &Pieces<'_>, tokens: Range<usize>) -> usize {
    tokens.map(|at| columns(pieces, at)).sum()
}

/// A line that is too long: the tokens from `first` to before `end`.
struct Long<'l> {
    first: usize,
    end: usize,
    /// Its columns without the indentation.
    wide: usize,
    /// How all tokens would be indented.
    lines: &'l [Line],
}

impl Long<'_> {
    /// Breaks the line; whether there was a place for it.
    fn break_up(&self, pieces: &mut Pieces<'_>) -> bool {
        let (first, end) = (self.first, self.end);
        if self.open_blocks(pieces) {
            return true;
        }
        let outer = outermost(pieces, first, end);
        if let Some(bracket) = around(pieces, &outer) {
            let places = places_inside(pieces, bracket, &outer, first);
            if !places.is_empty() {
                places.iter().for_each(|at| pieces.all[*at].newline = true);
                return true;
            }
        }
        // The parts of a choice stand below each other.
        if break_before(pieces, first, &outer, &["then", "else"], "then") {
            return true;
        }
        // A way out stands on the next line, if that is enough.
        let way_out = outer.iter().copied().rev().find(|at| *at > first && pieces.all[*at].is("else"));
        let room = COLUMNS_MAX.saturating_sub(self.lines[first].columns);
        let before_it = way_out.map_or(usize::MAX, |at| width(pieces, first..at));
        if before_it <= room && break_before(pieces, first, &outer, &["else"], "else") {
            return true;
        }
        let full = |at: &usize| pieces.is_whole(*at, end) && pieces.all[*at].partner > at + 1;
        let brackets: Vec<usize> = outer.iter().copied().filter(full).collect();
        let large: Vec<usize> =
            brackets.iter().copied().filter(|at| inside_columns(pieces, *at) >= LARGE_COLUMNS).collect();
        if self.open_brackets(pieces, &outer, &large) {
            return true;
        }
        if ["else", "where", "or", "and"]
            .iter()
            .any(|word| break_before(pieces, first, &outer, &[word], word))
        {
            return true;
        }
        self.open_brackets(pieces, &outer, &brackets) || self.break_after_equals(pieces, &outer)
    }

    /// Opens the line's first block and, as long as what follows is too long for a line, the next one beside it; whether
    /// there is one.
    fn open_blocks(&self, pieces: &mut Pieces<'_>) -> bool {
        let is_block = |pieces: &Pieces<'_>, at: usize| {
            pieces.is_whole(at, self.end) && pieces.all[at].bracket == Some(Bracket::Block)
        };
        let (mut from, mut rest, mut parent) = (self.first, self.wide, None);
        while let Some(block) = (from..self.end).find(|at| is_block(pieces, *at)) {
            let partner = pieces.all[block].partner;
            let around = Some(pieces.all[block].parent).filter(|parent| *parent != block);
            let beside = *parent.get_or_insert(around) == around;
            if partner == block + 1 || !beside {
                break;
            }
            rest -= width(pieces, from..partner + 1);
            open_block(pieces, block);
            rest += columns(pieces, partner);
            from = partner;
            if self.lines[block].contents + rest <= COLUMNS_MAX {
                break;
            }
        }
        from > self.first
    }

    /// Opens up the last of the line's brackets and, as long as what is before is too long for a line, the one before
    /// it; whether there is one.
    fn open_brackets(&self, pieces: &mut Pieces<'_>, outer: &[usize], brackets: &[usize]) -> bool {
        // What would be broken otherwise before another bracket is opened up; only in the whole line it was not.
        let ways_out = outer.iter().any(|at| pieces.all[*at].is("else") && !is_chained(pieces, *at));
        let (mut from, mut rest) = (self.end, self.wide);
        for at in brackets.iter().rev() {
            rest -= width(pieces, at + 1..from);
            pieces.open_up(*at);
            from = at + 1;
            if ways_out || self.lines[self.first].columns + rest <= COLUMNS_MAX {
                break;
            }
        }
        from < self.end
    }

    /// Behind the `=` of a declaration a line goes on; so it does behind the next one's, as long as what follows is too
    /// long for a line. Whether there is one.
    fn break_after_equals(&self, pieces: &mut Pieces<'_>, outer: &[usize]) -> bool {
        let (mut from, mut rest) = (self.first, self.wide);
        let is_equals = |at: &usize| pieces.all[*at].is("=") && at + 1 < self.end;
        for at in outer.iter().copied().filter(is_equals).collect::<Vec<usize>>() {
            rest -= width(pieces, from..at + 2);
            pieces.all[at + 1].newline = true;
            rest += columns(pieces, at + 1);
            from = at + 1;
            let goes_on = if pieces.continues(from) { INDENT } else { 0 };
            if self.lines[from].contents + goes_on + rest <= COLUMNS_MAX {
                break;
            }
        }
        from > self.first
    }
}

/// Whether an `else` stands behind a block: there no line begins.
fn is_chained(pieces: &Pieces<'_>, at: usize) -> bool {
    let before = pieces.before(at).is_some_and(|before| before.bracket == Some(Bracket::Block));
    before && pieces.all[at].is("else")
}

/// Breaks before each of the words, if one is `needed` and stands on the line.
fn break_before(
    pieces: &mut Pieces<'_>,
    first: usize,
    outer: &[usize],
    words: &[&str],
    needed: &str,
) -> bool {
    let is_one = |at: &usize| {
        *at > first && words.iter().any(|word| pieces.all[*at].is(word)) && !is_chained(pieces, *at)
    };
    let places: Vec<usize> = outer.iter().copied().filter(is_one).collect();
    let found = places.iter().any(|at| pieces.all[*at].is(needed));
    if found {
        places.iter().for_each(|at| pieces.all[*at].newline = true);
    }
    found
}

/// Each statement of a block gets a line of its own.
fn open_block(pieces: &mut Pieces<'_>, block: usize) {
    let end = pieces.all[block].partner;
    pieces.open_up(block);
    for at in block + 1..end {
        let separates = pieces.all[at].is(";") && pieces.all[at].parent == block;
        if separates {
            pieces.all[at + 1].newline = true;
        }
    }
}

/// The line's tokens that stand in the fewest brackets, without brackets that end or begin outside of the line.
fn outermost(pieces: &Pieces<'_>, first: usize, end: usize) -> Vec<usize> {
    let mut depth = 0i64;
    let mut depths = Vec::with_capacity(end - first);
    for at in first..end {
        let piece = &pieces.all[at];
        if piece.closes() {
            depth -= 1;
        }
        depths.push(depth);
        if piece.opens() {
            depth += 1;
        }
    }
    let least = depths.iter().copied().min().unwrap_or(0);
    (first..end).filter(|at| depths[at - first] == least).collect()
}

/// The bracket in which these tokens stand.
fn around(pieces: &Pieces<'_>, outer: &[usize]) -> Option<usize> {
    let at = *outer.iter().find(|at| !pieces.all[**at].closes())?;
    let parent = pieces.all[at].parent;
    (parent != at && pieces.all[parent].bracket != Some(Bracket::Block)).then_some(parent)
}

/// Where a line inside of brackets is broken: after commas, or before the parts of a query.
fn places_inside(pieces: &Pieces<'_>, bracket: usize, outer: &[usize], first: usize) -> Vec<usize> {
    let child = |at: &usize| pieces.all[*at].parent == bracket && *at > first && !pieces.all[*at].closes();
    let begins = |words: &[&str]| -> Vec<usize> {
        outer
            .iter()
            .copied()
            .filter(child)
            .filter(|at| words.iter().any(|word| pieces.all[*at].is(word)))
            .collect()
    };
    let loops = begins(&["for"]);
    if !loops.is_empty() {
        return loops;
    }
    if pieces.all[first].is("for") || is_query(pieces, bracket) {
        // Words of a query are words only behind a value.
        let parts: Vec<usize> = begins(&["group", "order", "take"])
            .into_iter()
            .filter(|at| pieces.before(*at).is_some_and(super::pieces::ends_operand))
            .filter(|at| {
                matches!(pieces.all[at + 1].kind, Kind::Name | Kind::Int) || pieces.all[at + 1].opens()
            })
            .collect();
        return if parts.is_empty() { begins(&["where"]) } else { parts };
    }
    let commas = outer.iter().copied().filter(child).filter(|at| pieces.all[*at].is(","));
    commas.map(|at| at + 1).filter(|at| !pieces.all[*at].newline && !pieces.all[*at].closes()).collect()
}

fn is_query(pieces: &Pieces<'_>, bracket: usize) -> bool {
    (bracket + 1..pieces.all[bracket].partner)
        .any(|at| pieces.all[at].parent == bracket && pieces.all[at].is("for"))
}

fn inside_columns(pieces: &Pieces<'_>, at: usize) -> usize {
    (at + 1..pieces.all[at].partner).map(|inside| columns(pieces, inside)).sum()
}
