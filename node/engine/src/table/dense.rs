//! Where the rows of keys that lie close together stand: a place for each key between the first and the last, in pages
//! of 64 below areas of 4,096 keys. What has no row costs nothing where a whole page has none, and where rows stand in the
//! order of their keys, as `next_id` makes them, a page is one number. The area where a row came last is held beside the
//! others, so that keys that only grow do not copy the way to all areas after each snapshot.

use super::pages::COUNT_BYTES;
use triomphe::Arc;

/// Keys of a page, and pages of an area.
const FAN: usize = 64;
/// Bytes that pages may take for each row of the time when there were most: those of pages a quarter full. A tree takes
/// about as many.
const ROW_BYTES: usize = 16;
/// Bytes a row that they may take where most rows were removed: those of pages a sixteenth full. They are not more than
/// there were, and are filled again where new keys follow.
const THIN_ROW_BYTES: usize = 72;
/// Bytes that they may take beside: a list of a few rows is never worth a tree.
const FREE_BYTES: usize = 4 << 10;

/// Bytes a row that they may take of a list that is soon gone, and beside: each row may make a page. Keys that come in no
/// order are far apart at first, and who made the list has paid for its bytes.
const LOOSE_ROW_BYTES: usize = 320;
const LOOSE_FREE_BYTES: usize = 512 << 10;

/// The place of each of its keys that has a row.
type Page = [u32; FAN];

#[derive(Debug, Clone)]
struct Area {
    rows: u32,
    /// A bit for each key that has a row, so that asking whether it has one looks at few bytes.
    has: [u64; FAN],
    /// Of each page that is none the place of its first key: those behind it stand in the places behind.
    firsts: [u32; FAN],
    pages: [Option<Arc<Page>>; FAN],
}

impl Default for Area {
    fn default() -> Area {
        Area { rows: 0, has: [0; FAN], firsts: [0; FAN], pages: std::array::from_fn(|_| None) }
    }
}

impl Area {
    /// The place of a key that has a row.
    #[inline(always)]
    fn slot(&self, page: usize, at: usize) -> u32 {
        match &self.pages[page] {
            Some(slots) => slots[at],
            None => self.firsts[page].wrapping_add(at as u32),
        }
    }

    /// Whether putting a place makes a page.
    fn needs_page(&self, page: usize, at: usize, slot: u32) -> bool {
        self.has[page] & !(1 << at) != 0 && self.pages[page].is_none() && self.slot(page, at) != slot
    }

    /// Puts the place of a key; whether it made a page.
    fn put(&mut self, page: usize, at: usize, slot: u32) -> bool {
        let makes = self.needs_page(page, at, slot);
        if makes {
            let first = self.firsts[page];
            self.pages[page] = Some(Arc::new(std::array::from_fn(|at| first.wrapping_add(at as u32))));
        }
        match &mut self.pages[page] {
            Some(slots) => Arc::make_mut(slots)[at] = slot,
            None => self.firsts[page] = slot.wrapping_sub(at as u32),
        }
        makes
    }
}

/// Rows for each area between the first and the last.
const AREA_ROWS_MIN: usize = FAN * FAN / 4;
/// Areas that there may be beside.
const AREAS_FREE: u64 = 64;
/// The same of a list that is soon gone.
const LOOSE_AREAS_FREE: u64 = 256;

/// Keys are counted from the least int.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dense {
    areas: Arc<Vec<Option<Arc<Area>>>>,
    /// The number of the first area.
    first: u64,
    /// The area where a row came last, by its number: none among the others meanwhile.
    latest: Option<(u64, Arc<Area>)>,
    rows: usize,
    /// The last key, where there is one: `next_id` asks for it each time.
    last: i64,
    /// Rows when there were most.
    most: usize,
    /// Bytes of the areas and pages that are there.
    bytes: usize,
    /// Whether it is of a list that is soon gone.
    loose: bool,
}

const PAGE_BYTES: usize = size_of::<Page>() + COUNT_BYTES;
const AREA_BYTES: usize = size_of::<Area>() + COUNT_BYTES;

/// A key counted from the least int: its area, its page there and its place in the page.
fn split(key: i64) -> (u64, usize, usize) {
    let key = unsigned(key);
    (key >> 12, (key >> 6) as usize % FAN, key as usize % FAN)
}

/// A number counted from the least int.
pub(super) fn unsigned(key: i64) -> u64 {
    key as u64 ^ (1 << 63)
}

pub(super) fn signed(key: u64) -> i64 {
    (key ^ (1 << 63)) as i64
}

/// Gives up areas at both ends that are not there; how many those before the others were.
pub(super) fn trim<A>(areas: &mut Vec<Option<Arc<A>>>) -> u64 {
    let behind = areas.iter().rev().take_while(|area| area.is_none()).count();
    areas.truncate(areas.len() - behind);
    let before = areas.iter().take_while(|area| area.is_none()).count();
    areas.drain(..before);
    before as u64
}

impl Dense {
    pub(super) fn new(loose: bool) -> Dense {
        Dense { loose, ..Dense::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn last(&self) -> Option<i64> {
        (self.rows > 0).then_some(self.last)
    }

    #[inline]
    pub(super) fn find(&self, key: i64) -> Option<u32> {
        let (area, page, at) = split(key);
        let area = self.area(area)?;
        (area.has[page] >> at & 1 == 1).then(|| area.slot(page, at))
    }

    /// Whether a key has a row.
    #[inline]
    pub(crate) fn has(&self, key: i64) -> bool {
        let (area, page, at) = split(key);
        self.area(area).is_some_and(|area| area.has[page] >> at & 1 == 1)
    }

    /// Whether an area is between the first and the last.
    #[inline(always)]
    fn is_counted(&self, number: u64) -> bool {
        number.wrapping_sub(self.first) < self.areas.len() as u64
    }

    /// An area, if it is there.
    #[inline(always)]
    fn area(&self, number: u64) -> Option<&Area> {
        match &self.latest {
            Some((latest, area)) if *latest == number => Some(area),
            _ => self.areas.get(usize::try_from(number.wrapping_sub(self.first)).ok()?)?.as_deref(),
        }
    }

    /// An area that is there, to be changed.
    fn area_mut(&mut self, number: u64) -> Option<&mut Area> {
        match &mut self.latest {
            Some((latest, area)) if *latest == number => Some(Arc::make_mut(area)),
            _ => {
                let at = usize::try_from(number.wrapping_sub(self.first)).ok()?;
                Arc::make_mut(&mut self.areas).get_mut(at)?.as_mut().map(Arc::make_mut)
            }
        }
    }

    /// The area where a row comes, one of those that are counted.
    #[inline(always)]
    fn area_of_row(&mut self, number: u64) -> &mut Area {
        if self.latest.as_ref().is_none_or(|(latest, _)| *latest != number) {
            self.put_latest_back();
            let at = (number - self.first) as usize;
            let area = Arc::make_mut(&mut self.areas).get_mut(at).and_then(Option::take);
            self.latest = Some((number, area.unwrap_or_default()));
        }
        let (_, area) = self.latest.get_or_insert_default();
        Arc::make_mut(area)
    }

    fn put_latest_back(&mut self) {
        if let Some((number, area)) = self.latest.take()
            && let Some(place) = Arc::make_mut(&mut self.areas).get_mut((number - self.first) as usize)
        {
            *place = Some(area);
        }
    }

    /// Puts a row's place; `false`, and nothing done, when there is no room for its key at a fair price.
    pub(super) fn insert(&mut self, key: i64, slot: u32) -> bool {
        let (number, page, at) = split(key);
        if !self.reach(number) {
            return false;
        }
        let rows = self.rows + 1;
        let allowed = match self.loose {
            true => LOOSE_ROW_BYTES * rows + LOOSE_FREE_BYTES,
            false => (ROW_BYTES * self.most.max(rows)).min(THIN_ROW_BYTES * rows) + FREE_BYTES,
        };
        let more = match self.area(number) {
            Some(area) if area.needs_page(page, at, slot) => PAGE_BYTES,
            Some(_) => 0,
            None => AREA_BYTES,
        };
        if more != 0 && self.bytes + more > allowed {
            return false;
        }
        self.bytes += more;
        let area = self.area_of_row(number);
        area.put(page, at, slot);
        if area.has[page] >> at & 1 == 0 {
            area.has[page] |= 1 << at;
            area.rows += 1;
            self.last = if self.rows == 0 { key } else { self.last.max(key) };
            self.rows += 1;
            self.most = self.most.max(self.rows);
        }
        true
    }

    /// Makes an area one of those that are counted, if there are not too many then; whether it is one.
    fn reach(&mut self, area: u64) -> bool {
        if self.rows == 0 {
            (self.areas, self.latest) = (Arc::new(vec![None]), None);
            (self.first, self.bytes, self.most) = (area, 0, 0);
        }
        let end = self.first + self.areas.len() as u64;
        let (first, end) = (self.first.min(area), end.max(area + 1));
        let count = end - first;
        if count == self.areas.len() as u64 {
            return true;
        }
        // Those of keys a quarter full, and some: what is done at an end or counted goes over all.
        let free = if self.loose { LOOSE_AREAS_FREE } else { AREAS_FREE };
        if count > (self.most / AREA_ROWS_MIN) as u64 + free {
            return false;
        }
        let areas = Arc::make_mut(&mut self.areas);
        areas.splice(0..0, (first..self.first).map(|_| None));
        areas.resize(count as usize, None);
        self.first = first;
        true
    }

    pub(super) fn remove(&mut self, key: i64) -> Option<u32> {
        let slot = self.find(key)?;
        let (number, page, at) = split(key);
        let area = self.area_mut(number)?;
        area.has[page] &= !(1 << at);
        area.rows -= 1;
        let is_page_empty = area.has[page] == 0 && area.pages[page].take().is_some();
        let is_empty = area.rows == 0;
        self.rows -= 1;
        if is_page_empty {
            self.bytes -= PAGE_BYTES;
        }
        if is_empty {
            self.bytes -= AREA_BYTES;
            self.drop_area(number);
        }
        if key == self.last
            && let Some((last, _)) = self.at_or_before(key)
        {
            self.last = last;
        }
        Some(slot)
    }

    /// Gives up an area, and those at both ends that are not there: keys that only grow leave none behind.
    fn drop_area(&mut self, number: u64) {
        self.put_latest_back();
        let areas = Arc::make_mut(&mut self.areas);
        if let Some(place) = areas.get_mut((number - self.first) as usize) {
            *place = None;
        }
        self.first += trim(areas);
    }

    /// Whether so few of its keys have rows that a tree takes far less.
    pub(super) fn is_thin(&self) -> bool {
        let bytes = self.bytes + self.areas.len() * size_of::<usize>();
        match self.loose {
            true => bytes > self.rows * LOOSE_ROW_BYTES + 2 * LOOSE_FREE_BYTES,
            false => bytes > self.rows * THIN_ROW_BYTES + 2 * FREE_BYTES,
        }
    }

    /// Whether so many keys between two ends are enough: a third, so that what was made a tree stays one for a while.
    pub(super) fn would_hold(rows: usize, first: i64, last: i64) -> bool {
        let span = unsigned(last).saturating_sub(unsigned(first));
        span < (rows as u64).saturating_mul(3)
    }

    /// Another place for a key that has one.
    pub(super) fn replace(&mut self, key: i64, slot: u32) {
        let (number, page, at) = split(key);
        if self.area_mut(number).is_some_and(|area| area.put(page, at, slot)) {
            self.bytes += PAGE_BYTES;
        }
    }

    /// The first row of a key from this one on.
    #[inline]
    pub(super) fn at_or_after(&self, key: i64) -> Option<(i64, u32)> {
        let mut at = unsigned(key).max(self.first << 12);
        loop {
            if !self.is_counted(at >> 12) {
                return None;
            }
            let Some(there) = self.area(at >> 12) else {
                at = ((at >> 12) + 1).checked_mul(1 << 12)?;
                continue;
            };
            let (page, from) = ((at >> 6) as usize % FAN, at as usize % FAN);
            let has = there.has[page] >> from;
            if has != 0 {
                let found = has.trailing_zeros() as usize;
                return Some((signed(at + found as u64), there.slot(page, from + found)));
            }
            at = (at | 63).checked_add(1)?;
        }
    }

    /// The last row of a key up to this one.
    #[inline]
    pub(super) fn at_or_before(&self, key: i64) -> Option<(i64, u32)> {
        let end = (self.first + self.areas.len() as u64) << 12;
        // The very last area ends where numbers do.
        let mut at = unsigned(key).min(end.wrapping_sub(1));
        loop {
            if !self.is_counted(at >> 12) {
                return None;
            }
            let Some(there) = self.area(at >> 12) else {
                at = ((at >> 12) << 12).checked_sub(1)?;
                continue;
            };
            let (page, upto) = ((at >> 6) as usize % FAN, at as usize % FAN);
            let has = there.has[page] << (FAN - 1 - upto);
            if has != 0 {
                let before = has.leading_zeros() as usize;
                return Some((signed(at - before as u64), there.slot(page, upto - before)));
            }
            at = ((at >> 6) << 6).checked_sub(1)?;
        }
    }

    /// How many rows have a key below this one.
    pub(super) fn rank(&self, key: i64) -> usize {
        let (number, page, at) = split(key);
        let Some(before) = number.checked_sub(self.first) else { return 0 };
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(self.areas.len());
        let latest = self.latest.iter().filter(|(latest, _)| *latest < number).map(|(_, area)| area);
        let before = self.areas[..before].iter().flatten().chain(latest);
        let mut rank: usize = before.map(|area| area.rows as usize).sum();
        if let Some(area) = self.area(number) {
            let below = area.has[page] & ((1 << at) - 1);
            rank +=
                area.has[..page].iter().chain([&below]).map(|has| has.count_ones() as usize).sum::<usize>();
        }
        rank
    }

    /// Bytes of its areas and pages: the same wherever the same was done.
    pub(super) fn page_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes + self.areas.capacity() * size_of::<usize>()
    }
}
