//! Entries of words by their first word, of values that lie close together and have several entries each: numbers that
//! rows of another list have, as those of an edge's nodes or of an order's customer.
//!
//! A value's entries are a run: side by side, sorted, without the value itself. Runs of 32 values are a page, one piece of
//! memory; 64 pages are an area, that knows where each run ends. So a value's run is found without a search, with one look
//! into memory that is far away, where a tree of a million entries takes ten. A page that grows too large is a tree of its
//! own, so that one value of very many entries costs the others nothing.
//!
//! Copies share areas and pages; a change copies the page and the area where a copy still holds them.

use super::dense::{signed, trim, unsigned};
use super::entries::{FewWords, Words};
use super::pages::COUNT_BYTES;
use super::piece::{Piece, ROOM, Run};
use super::runs_walk::{Far, RunsWalk};
use super::tree::{Limit, Tree};
use triomphe::Arc;

/// Values of a page: a change moves half of their entries, a copy takes all of them.
pub(super) const PAGE_VALUES: usize = 32;
/// Pages of an area: a change copies as many pointers where a copy holds it.
const AREA_PAGES: usize = 64;
const AREA_VALUES: usize = PAGE_VALUES * AREA_PAGES;
/// Entries of a page; of more it makes a tree. Of three words a page takes 8 or 16 KB then.
const PAGE_ENTRIES_MAX: usize = 1024;
/// A tree of so few becomes a page again.
const PAGE_ENTRIES_FEW: usize = PAGE_ENTRIES_MAX / 4;
/// Entries for each value that areas have room for: with fewer of them more pages are copied than a tree has leaves, and
/// with far fewer a tree takes less memory, too. What is made runs has more, and what becomes a tree has less.
const ENTRIES_A_VALUE: usize = 2;
/// Values that there may be in areas beside: two areas that meet are never worth a tree.
const VALUES_FREE: usize = 2 * AREA_VALUES;
/// Areas between the first and the last, there or not: an entry for each so many, and some.
const AREA_ENTRIES_MIN: usize = 64;
const AREAS_FREE: u64 = 64;
/// Entries below which a tree is no worse.
const ENTRIES_MIN: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Runs {
    areas: Arc<Vec<Option<Arc<Area>>>>,
    /// The number of the first area; values are counted from the least int.
    first: u64,
    /// Areas that are there.
    there: usize,
    len: usize,
    /// Words of an entry without the value, and how many of them it is found by.
    stride: usize,
    width: usize,
}

#[derive(Debug, Clone)]
struct Area {
    len: usize,
    /// How many entries of its page come before the end of each value's.
    ends: [u16; AREA_VALUES],
    pages: [Page; AREA_PAGES],
}

#[derive(Debug, Clone)]
enum Page {
    /// The entries of one value behind those of another, then room.
    Words(Piece),
    /// Whole entries.
    Tree(Tree<Words>),
}

/// The entries of one value, or of a page where that is a tree.
#[derive(Clone, Copy)]
pub(super) enum Found<'r> {
    Words(Run<'r>),
    Tree(&'r Tree<Words>),
}

/// The area of a value, and its place there.
fn split(value: i64) -> (u64, usize) {
    let value = unsigned(value);
    (value / AREA_VALUES as u64, value as usize % AREA_VALUES)
}

impl Area {
    fn new() -> Area {
        let pages = std::array::from_fn(|_| Page::Words(Piece::default()));
        Area { len: 0, ends: [0; AREA_VALUES], pages }
    }

    /// From where to where the entries of a value are in its page.
    #[inline]
    fn bounds(&self, at: usize) -> (usize, usize) {
        let from = if at.is_multiple_of(PAGE_VALUES) { 0 } else { self.ends[at - 1] };
        (usize::from(from), usize::from(self.ends[at]))
    }

    #[inline]
    fn found(&self, at: usize, stride: usize) -> Found<'_> {
        match &self.pages[at / PAGE_VALUES] {
            Page::Words(words) => {
                let (from, end) = self.bounds(at);
                Found::Words(words.run(from * stride..end * stride))
            }
            Page::Tree(tree) => Found::Tree(tree),
        }
    }

    /// Entries of a page.
    fn page_len(&self, page: usize) -> usize {
        match &self.pages[page] {
            Page::Words(_) => self.page_end(page),
            Page::Tree(tree) => tree.len(),
        }
    }

    fn page_end(&self, page: usize) -> usize {
        usize::from(self.ends[(page + 1) * PAGE_VALUES - 1])
    }
}

impl Runs {
    pub(super) fn new(width: usize, covered: usize) -> Runs {
        let (stride, width) = (width + covered - 1, width - 1);
        Runs { areas: Arc::default(), first: 0, there: 0, len: 0, stride, width }
    }

    /// Whether so many entries, whose values are between two ends, lie close enough together: closer than they must
    /// stay, so that what was made a tree stays one for a while.
    pub(super) fn would_hold(entries: usize, first: i64, last: i64) -> bool {
        let span = unsigned(last).saturating_sub(unsigned(first));
        entries >= ENTRIES_MIN && span < (entries / (2 * ENTRIES_A_VALUE)) as u64
    }

    fn area(&self, number: u64) -> Option<&Arc<Area>> {
        self.areas.get(usize::try_from(number.wrapping_sub(self.first)).ok()?)?.as_ref()
    }

    #[inline]
    fn found(&self, value: i64) -> Found<'_> {
        let (number, at) = split(value);
        self.area(number).map_or(Found::Words(Run::Narrow(&[])), |area| area.found(at, self.stride))
    }

    /// Adds an entry that is not there; `false`, and nothing done, if its value is too far from the others.
    pub(super) fn insert(&mut self, entry: &[i64]) -> bool {
        let (number, at) = split(entry[0]);
        let Some(place) = self.reach(number) else { return false };
        let there = (self.there + usize::from(self.areas[place].is_none())) * AREA_VALUES;
        let is_more = there > self.there * AREA_VALUES;
        if is_more && there > self.len / ENTRIES_A_VALUE + VALUES_FREE {
            return false;
        }
        self.there = there / AREA_VALUES;
        let area = Arc::make_mut(&mut self.areas)[place].get_or_insert_with(|| Arc::new(Area::new()));
        let area = Arc::make_mut(area);
        let page = at / PAGE_VALUES;
        if area.page_end(page) >= PAGE_ENTRIES_MAX {
            self.page_to_tree(place, page);
            return self.insert(entry);
        }
        let (from, end) = area.bounds(at);
        let used = area.page_end(page);
        match &mut area.pages[page] {
            Page::Tree(tree) => tree.insert(entry, None),
            Page::Words(words) => {
                let run = words.run(from * self.stride..end * self.stride);
                let place = from + run.search(self.stride, &entry[1..=self.width], false);
                words.insert(used * self.stride, place * self.stride, &entry[1..=self.stride]);
                let behind = (page + 1) * PAGE_VALUES;
                area.ends[at..behind].iter_mut().for_each(|end| *end += 1);
            }
        }
        area.len += 1;
        self.len += 1;
        true
    }

    /// Makes an area one of those that are counted, if there are not too many then; where it is.
    fn reach(&mut self, number: u64) -> Option<usize> {
        if self.len == 0 {
            (self.areas, self.first, self.there) = (Arc::new(vec![None]), number, 0);
        }
        let end = self.first + self.areas.len() as u64;
        let (first, end) = (self.first.min(number), end.max(number + 1));
        let count = end - first;
        if count != self.areas.len() as u64 {
            // What is counted goes over all of them.
            if count > (self.len / AREA_ENTRIES_MIN) as u64 + AREAS_FREE {
                return None;
            }
            let areas = Arc::make_mut(&mut self.areas);
            areas.splice(0..0, (first..self.first).map(|_| None));
            areas.resize(count as usize, None);
            self.first = first;
        }
        usize::try_from(number - first).ok()
    }

    /// Removes an entry by what it is found by; whether it was there.
    pub(super) fn remove(&mut self, key: &[i64]) -> bool {
        let Some((place, at)) = self.place(key) else { return false };
        let page = at / PAGE_VALUES;
        let areas = Arc::make_mut(&mut self.areas);
        let Some(area) = areas[place].as_mut().map(Arc::make_mut) else { return false };
        let used = area.page_end(page);
        let (from, end) = area.bounds(at);
        let mut is_few = false;
        match &mut area.pages[page] {
            Page::Tree(tree) => {
                if !tree.remove(key) {
                    return false;
                }
                is_few = tree.len() <= PAGE_ENTRIES_FEW;
            }
            Page::Words(words) => {
                let run = words.run(from * self.stride..end * self.stride);
                let place = from + run.search(self.stride, &key[1..], false);
                words.remove(used * self.stride, place * self.stride, self.stride);
                let behind = (page + 1) * PAGE_VALUES;
                area.ends[at..behind].iter_mut().for_each(|end| *end -= 1);
            }
        }
        area.len -= 1;
        self.len -= 1;
        if area.len == 0 {
            areas[place] = None;
            self.there -= 1;
            self.first += trim(areas);
        } else if is_few {
            self.page_to_words(place, page);
        }
        true
    }

    /// The area that an entry is in, and the place of its value there; none if the entry is not there. Of one in a tree
    /// the tree knows.
    fn place(&self, key: &[i64]) -> Option<(usize, usize)> {
        let (number, at) = split(*key.first()?);
        if let Found::Words(run) = self.found(key[0]) {
            let place = run.search(self.stride, &key[1..], false) * self.stride;
            run.has(place, &key[1..]).then_some(())?;
        }
        Some((usize::try_from(number.checked_sub(self.first)?).ok()?, at))
    }

    /// Writes what an entry covers.
    pub(super) fn cover(&mut self, entry: &[i64]) {
        let key = &entry[..=self.width];
        let Some((place, at)) = self.place(key) else { return };
        let Some(Some(area)) = Arc::make_mut(&mut self.areas).get_mut(place) else { return };
        let area = Arc::make_mut(area);
        let (from, end) = area.bounds(at);
        match &mut area.pages[at / PAGE_VALUES] {
            Page::Tree(tree) => tree.change(key, |entries, _, at| {
                for (word, value) in entry[key.len()..].iter().enumerate() {
                    entries.cover(at, word, *value);
                }
            }),
            Page::Words(words) => {
                let run = words.run(from * self.stride..end * self.stride);
                let place = from + run.search(self.stride, &key[1..], false);
                words.write(place * self.stride + self.width, &entry[key.len()..=self.stride]);
            }
        }
    }

    fn page_to_tree(&mut self, place: usize, page: usize) {
        let mut tree = Tree::new(Words::new(self.width + 1, self.stride - self.width));
        let Some(Some(area)) = Arc::make_mut(&mut self.areas).get_mut(place) else { return };
        let area = Arc::make_mut(area);
        let begin = (self.first + place as u64) * AREA_VALUES as u64;
        for at in page * PAGE_VALUES..(page + 1) * PAGE_VALUES {
            let Found::Words(run) = area.found(at, self.stride) else { return };
            let mut words = Vec::with_capacity(run.len());
            run.append_to(&mut words);
            for rest in words.chunks_exact(self.stride) {
                tree.insert(whole(signed(begin + at as u64), rest).as_slice(), None);
            }
        }
        area.ends[page * PAGE_VALUES..(page + 1) * PAGE_VALUES].fill(0);
        area.pages[page] = Page::Tree(tree);
    }

    fn page_to_words(&mut self, place: usize, page: usize) {
        let Some(Some(area)) = Arc::make_mut(&mut self.areas).get_mut(place) else { return };
        let area = Arc::make_mut(area);
        let Page::Tree(tree) = &area.pages[page] else { return };
        let mut words = Vec::with_capacity(tree.len() * self.stride);
        let ends = &mut area.ends[page * PAGE_VALUES..(page + 1) * PAGE_VALUES];
        let mut walk = tree.walk(None, None, false);
        while walk.advance() {
            let Some((leaf, at)) = walk.here() else { break };
            let entry = leaf.entries.entry(at);
            words.extend_from_slice(&entry[1..]);
            let value = unsigned(entry[0]) as usize % PAGE_VALUES;
            ends[value..].iter_mut().for_each(|end| *end += 1);
        }
        area.pages[page] = Page::Words(Piece::of(&words, ROOM * self.stride));
    }

    /// Whether its values have so few entries that a tree takes less.
    pub(super) fn is_thin(&self) -> bool {
        let values = self.there * AREA_VALUES;
        let areas = self.areas.len() as u64;
        values > 2 * self.len / ENTRIES_A_VALUE + VALUES_FREE
            || areas > 2 * (self.len / AREA_ENTRIES_MIN) as u64 + AREAS_FREE
    }

    /// How many entries are between two limits.
    pub(super) fn count(&self, from: Option<&Limit<Words>>, upto: Option<&Limit<Words>>) -> usize {
        let upto = upto.map_or(self.len, |limit| self.rank(limit));
        upto.saturating_sub(from.map_or(0, |limit| self.rank(limit)))
    }

    fn rank(&self, limit: &Limit<Words>) -> usize {
        let Some((value, rest)) = limit.key().split_first() else {
            return if limit.above { self.len } else { 0 };
        };
        let (number, at) = split(*value);
        let Some(place) = number.checked_sub(self.first) else { return 0 };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let before = &self.areas[..place.min(self.areas.len())];
        let mut rank: usize = before.iter().flatten().map(|area| area.len).sum();
        if let Some(Some(area)) = self.areas.get(place) {
            rank += (0..at / PAGE_VALUES).map(|page| area.page_len(page)).sum::<usize>();
            rank += match area.found(at, self.stride) {
                Found::Words(run) => area.bounds(at).0 + run.search(self.stride, rest, limit.above),
                Found::Tree(tree) => tree.count(None, Some(limit)),
            };
        }
        rank
    }

    /// Walks what is between two limits.
    pub(super) fn walk(
        &self,
        from: Option<Limit<Words>>,
        upto: Option<Limit<Words>>,
        backward: bool,
    ) -> RunsWalk {
        let value =
            |limit: &Option<Limit<Words>>| limit.as_ref().and_then(|limit| limit.key().first().copied());
        let (first, last) = (value(&from).unwrap_or(i64::MIN), value(&upto).unwrap_or(i64::MAX));
        let mut walk = RunsWalk::new(self.stride, backward);
        let mut far = Far { runs: None, next: None, last: 0, from, upto, tree: None };
        if first == last {
            walk.enter(first, self.found(first), &mut far);
        } else if first < last {
            (far.next, far.last) = if backward { (Some(last), first) } else { (Some(first), last) };
            far.runs = Some(self.clone());
        }
        if far.runs.is_some() || far.tree.is_some() {
            walk.far = Some(Box::new(far));
        }
        walk
    }

    /// Walks the entries of another value where a walk of one is at its end; `false`, and nothing done, if it is none.
    #[inline]
    pub(super) fn walk_again(&self, value: i64, walk: &mut RunsWalk) -> bool {
        match self.found(value) {
            Found::Words(run) if walk.is_one() => {
                walk.take(value, run);
                true
            }
            _ => false,
        }
    }

    /// Walks the entries of one value.
    #[inline]
    pub(super) fn walk_one(&self, value: i64, backward: bool) -> RunsWalk {
        match self.found(value) {
            Found::Words(run) => {
                let mut walk = RunsWalk::new(self.stride, backward);
                walk.take(value, run);
                walk
            }
            Found::Tree(_) => {
                let limit = |above| Some(Limit::new(&[value][..], above));
                self.walk(limit(false), limit(true), backward)
            }
        }
    }

    /// The next value from one on, one way or the other, that has entries, and those; of a page that is a tree the first
    /// value looked for.
    pub(super) fn next(&self, from: i64, backward: bool) -> Option<(i64, Found<'_>)> {
        let mut value = unsigned(from);
        if !backward {
            // Without areas the first may be behind the last that there can be.
            value = value.max(self.first.saturating_mul(AREA_VALUES as u64));
        } else {
            // The very last area ends where numbers do.
            let end = (self.first + self.areas.len() as u64).wrapping_mul(AREA_VALUES as u64);
            value = value.min(end.wrapping_sub(1));
        }
        // Goes on behind a page or an area of so many values.
        let beyond = |value: u64, values: u64| match backward {
            true => (value / values * values).checked_sub(1),
            false => (value / values).checked_add(1)?.checked_mul(values),
        };
        loop {
            let (number, at) = (value / AREA_VALUES as u64, value as usize % AREA_VALUES);
            let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
            let Some(area) = self.areas.get(place)? else {
                value = beyond(value, AREA_VALUES as u64)?;
                continue;
            };
            match area.found(at, self.stride) {
                Found::Words(run) if run.len() == 0 => {
                    let is_empty = area.page_end(at / PAGE_VALUES) == 0;
                    value = beyond(value, if is_empty { PAGE_VALUES as u64 } else { 1 })?;
                }
                found => return Some((signed(value), found)),
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        let areas = self.areas.iter().flatten().map(|area| {
            let pages = area.pages.iter().map(|page| match page {
                Page::Words(words) => words.memory(),
                Page::Tree(tree) => tree.memory(),
            });
            COUNT_BYTES + size_of::<Area>() + pages.sum::<usize>()
        });
        areas.sum::<usize>() + self.areas.capacity() * size_of::<usize>()
    }
}

/// An entry of a value.
pub(super) fn whole(value: i64, rest: &[i64]) -> FewWords {
    let mut words = FewWords::of(&[value]);
    rest.iter().for_each(|word| words.push(*word));
    words
}
