//! Which tokens begin a line: where the writer broke lines, made even; and where a line would be too long.

use super::COLUMNS_MAX;
use super::layout::lines;
use super::pieces::{Bracket, Pieces};
use super::spacing::columns;
use crate::syntax::lexer::Kind;

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
pub(super) fn break_long_lines(pieces: &mut Pieces<'_>) {
    loop {
        let lines = lines(pieces);
        let mut changed = false;
        let mut first = 0;
        while first < pieces.all.len() {
            let length = pieces.all[first + 1..].iter().take_while(|piece| !piece.newline).count();
            let end = first + 1 + length;
            let wide: usize = (first..end).map(|at| columns(pieces, at)).sum();
            if lines[first].columns + wide > COLUMNS_MAX {
                let room = COLUMNS_MAX.saturating_sub(lines[first].columns);
                changed |= break_line(pieces, first, end, room);
            }
            first = end;
        }
        if !changed {
            return;
        }
        pieces.settle_brackets();
    }
}

/// Breaks the line of the tokens from `first` to before `end`, which has room for so many columns; whether there was a
/// place for it.
fn break_line(pieces: &mut Pieces<'_>, first: usize, end: usize, room: usize) -> bool {
    if let Some(block) =
        (first..end).find(|at| pieces.is_whole(*at, end) && pieces.all[*at].bracket == Some(Bracket::Block))
        && pieces.all[block].partner > block + 1
    {
        open_block(pieces, block);
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
    let before_it = way_out.map_or(usize::MAX, |at| (first..at).map(|one| columns(pieces, one)).sum());
    if before_it <= room && break_before(pieces, first, &outer, &["else"], "else") {
        return true;
    }
    let full = |at: &usize| pieces.is_whole(*at, end) && pieces.all[*at].partner > at + 1;
    let brackets = outer.iter().copied().filter(full);
    let largest = brackets.max_by_key(|at| (inside_columns(pieces, *at) >= LARGE_COLUMNS, *at));
    if let Some(at) = largest.filter(|at| inside_columns(pieces, *at) >= LARGE_COLUMNS) {
        pieces.open_up(at);
        return true;
    }
    if ["else", "where", "or", "and"].iter().any(|word| break_before(pieces, first, &outer, &[word], word)) {
        return true;
    }
    if let Some(at) = largest {
        pieces.open_up(at);
        return true;
    }
    // Behind the `=` of a declaration a line goes on.
    let equals = outer.iter().copied().find(|at| pieces.all[*at].is("=") && at + 1 < end);
    if let Some(at) = equals {
        pieces.all[at + 1].newline = true;
    }
    equals.is_some()
}

/// Breaks before each of the words, if one is `needed` and stands on the line.
fn break_before(
    pieces: &mut Pieces<'_>,
    first: usize,
    outer: &[usize],
    words: &[&str],
    needed: &str,
) -> bool {
    let chained = |at: usize| {
        let before = pieces.before(at).is_some_and(|before| before.bracket == Some(Bracket::Block));
        before && pieces.all[at].is("else")
    };
    let is_one =
        |at: &usize| *at > first && words.iter().any(|word| pieces.all[*at].is(word)) && !chained(*at);
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
