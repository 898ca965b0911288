//! Runs over a range of runs.

use super::dense::{signed, unsigned};
use super::entries::{FewWords, Words, search};
use super::piece::Run;
use super::runs::{Found, PAGE_VALUES, Runs, whole};
use super::tree::{Limit, TreeWalk};

/// Runs over a range of entries as they were when it began, forward or backward: over a copy of each run.
#[derive(Debug, Clone)]
pub(super) struct RunsWalk {
    /// The value whose run it is in, and the entries of that.
    value: i64,
    run: Vec<i64>,
    stride: usize,
    /// What is left of the run, and the entry that it is at.
    begin: usize,
    end: usize,
    here: usize,
    backward: bool,
    /// What is not needed for one run.
    pub(super) far: Option<Box<Far>>,
}

/// What a walk needs that goes on behind a run.
#[derive(Debug, Clone)]
pub(super) struct Far {
    /// Where other values may come; not held, where it is one.
    pub(super) runs: Option<Runs>,
    /// Where it looks for the next value, and the last one.
    pub(super) next: Option<i64>,
    pub(super) last: i64,
    pub(super) from: Option<Limit<Words>>,
    pub(super) upto: Option<Limit<Words>>,
    /// Instead of a run: that over a page that is a tree.
    pub(super) tree: Option<TreeWalk<Words>>,
}

impl RunsWalk {
    pub(super) fn new(stride: usize, backward: bool) -> RunsWalk {
        RunsWalk { value: 0, run: Vec::new(), stride, begin: 0, end: 0, here: 0, backward, far: None }
    }

    /// Whether it walks forward over one run: it holds nothing of the list.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        self.far.is_none() && !self.backward
    }

    fn tree(&self) -> Option<&TreeWalk<Words>> {
        self.far.as_ref()?.tree.as_ref()
    }

    /// Takes a value's run.
    pub(super) fn take(&mut self, value: i64, run: Run<'_>) {
        self.run.clear();
        run.append_to(&mut self.run);
        (self.value, self.begin, self.end) = (value, 0, run.len() / self.stride);
    }

    /// Takes what is between the limits of what a value has.
    pub(super) fn enter(&mut self, value: i64, found: Found<'_>, far: &mut Far) {
        let run = match found {
            Found::Words(run) => run,
            Found::Tree(tree) => {
                far.tree = Some(tree.walk(far.from.clone(), far.upto.clone(), self.backward));
                return;
            }
        };
        let stride = self.stride;
        let place = |limit: &Option<Limit<Words>>| {
            let limit = limit.as_ref()?;
            let (first, rest) = limit.key().split_first()?;
            (*first == value).then(|| run.search(stride, rest, limit.above))
        };
        let begin = place(&far.from).unwrap_or(0);
        let end = place(&far.upto).unwrap_or(run.len() / stride).max(begin);
        self.take(value, run.slice(begin * stride..end * stride));
    }

    /// Goes to the next run; whether there is one.
    fn turn(&mut self, far: &mut Far) -> bool {
        far.tree = None;
        let (Some(next), Some(runs)) = (far.next.take(), far.runs.take()) else { return false };
        let Some((value, found)) = runs.next(next, self.backward) else { return false };
        if if self.backward { value < far.last } else { value > far.last } {
            return false;
        }
        // A tree has all values of its page.
        let (at, size) = (unsigned(value), PAGE_VALUES as u64);
        let end = match (found, self.backward) {
            (Found::Words(_), _) => at,
            (Found::Tree(_), true) => at / size * size,
            (Found::Tree(_), false) => at / size * size + (size - 1),
        };
        far.next = if self.backward { end.checked_sub(1) } else { end.checked_add(1) }.map(signed);
        self.enter(value, found, far);
        far.runs = Some(runs);
        true
    }

    /// Goes to the next entry; whether there is one.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        if self.begin >= self.end {
            return self.advance_far();
        }
        if self.backward {
            self.end -= 1;
            self.here = self.end;
        } else {
            self.here = self.begin;
            self.begin += 1;
        }
        true
    }

    fn advance_far(&mut self) -> bool {
        let Some(mut far) = self.far.take() else { return false };
        let mut found = far.tree.as_mut().is_some_and(TreeWalk::advance);
        while !found && self.turn(&mut far) {
            found = match &mut far.tree {
                Some(tree) => tree.advance(),
                None => self.begin < self.end && self.advance(),
            };
        }
        self.far = Some(far);
        found
    }

    /// A word of the entry that it is at.
    #[inline]
    pub(super) fn word(&self, word: usize) -> Option<i64> {
        if let Some(tree) = self.tree() {
            let (leaf, at) = tree.here()?;
            return leaf.entries.entry(at).get(word).copied();
        }
        match word.checked_sub(1) {
            None => Some(self.value),
            Some(rest) if rest < self.stride => self.run.get(self.here * self.stride + rest).copied(),
            Some(_) => None,
        }
    }

    /// Goes to the next entry of its run whose word is as wanted, but looks at no more than so many; how many those
    /// were, none at the end of all, and whether the last of them is. None where there is no run, or no such word behind
    /// the value.
    #[inline]
    pub(super) fn seek(
        &mut self,
        word: usize,
        most: usize,
        is: &impl Fn(i64) -> bool,
    ) -> Option<(usize, bool)> {
        let rest = word.checked_sub(1).filter(|rest| *rest < self.stride && !self.backward)?;
        if self.begin >= self.end {
            return self.far.is_none().then_some((0, false));
        }
        let left = self.run.get(self.begin * self.stride..self.end * self.stride)?;
        let (mut looked, mut at, mut found) = (0, rest, false);
        while let Some(word) = left.get(at)
            && looked < most
        {
            looked += 1;
            at += self.stride;
            if is(*word) {
                found = true;
                break;
            }
        }
        self.begin += looked;
        self.here = self.begin - 1;
        Some((looked, found))
    }

    /// The entry that it is at.
    pub(super) fn entry(&self) -> Option<FewWords> {
        if let Some(tree) = self.tree() {
            let (leaf, at) = tree.here()?;
            return Some(FewWords::of(leaf.entries.entry(at)));
        }
        let rest = self.run.get(self.here * self.stride..(self.here + 1) * self.stride)?;
        Some(whole(self.value, rest))
    }

    /// Leaves out what is left of the entries whose first so many words are those of the entry that it is at.
    pub(super) fn skip(&mut self, width: usize) {
        let Some(entry) = self.entry() else { return };
        let key = &entry.as_slice()[..width];
        if let Some(tree) = self.far.as_mut().and_then(|far| far.tree.as_mut()) {
            return tree.skip(key);
        }
        let Some((_, rest)) = key.split_first() else { return };
        if self.backward {
            self.end = self.end.min(search(&self.run, self.stride, rest, false).max(self.begin));
        } else {
            self.begin = self.begin.max(search(&self.run, self.stride, rest, true)).min(self.end);
        }
    }

    /// Whether the entry before the one that it is at, in its run or leaf, is another in its first so many words.
    pub(super) fn is_alone(&self, width: usize) -> bool {
        if let Some(tree) = self.tree() {
            return tree.is_alone(width);
        }
        let Some(rest) = width.checked_sub(1) else { return false };
        // Before the first of a run another value comes.
        let Some(before) = self.here.checked_sub(1) else { return true };
        let begins = |at: usize| self.run.get(at * self.stride..at * self.stride + rest);
        begins(before) != begins(self.here)
    }
}
