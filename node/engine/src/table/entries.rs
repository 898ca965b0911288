//! Sorted entries of one node of a tree, side by side in one piece of memory: words, or strings of bytes.
//!
//! A search is for the beginning of an entry: one that begins so compares as equal.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// Entries of a leaf: a copy of one of three words takes 1.5 KB at most.
pub(super) const ENTRIES_MAX: usize = 64;
/// Separators of an inner node: a million entries are three nodes deep.
pub(super) const SEPARATORS_MAX: usize = 192;
/// Bytes of strings of a node that has some: bounds what an insertion moves.
const STRING_BYTES_MAX: usize = 8 << 10;
/// However long strings are, a node may have so many: a tree of them stays flat.
const STRINGS_MIN: usize = 8;
/// Room that is made at a time for entries to come.
const ROOM: usize = 8;
/// Words of the beginning of an entry that a walk keeps. Longer ones are strings.
pub(super) const WORDS_MAX: usize = 8;

pub(super) trait Entries: Clone + std::fmt::Debug {
    /// The beginning of an entry, or all of it.
    type Key: ?Sized;
    type Owned: Borrow<Self::Key> + Clone + std::fmt::Debug;

    /// None, of the shape of what tells children apart.
    fn separators(&self) -> Self;
    fn len(&self) -> usize;
    fn compare(&self, at: usize, key: &Self::Key) -> Ordering;
    /// What is found by.
    fn key(&self, at: usize) -> &Self::Key;
    fn owned(key: &Self::Key) -> Self::Owned;
    fn insert(&mut self, at: usize, entry: &Self::Key);
    fn remove(&mut self, at: usize);
    fn split_off(&mut self, at: usize) -> Self;
    fn append(&mut self, other: &Self);
    /// Whether they are too many for a node of at most so many.
    fn is_over_full(&self, most: usize) -> bool;
    /// Whether a neighbour should take them, or give some.
    fn is_small(&self, most: usize) -> bool;
    /// Whether they and others are well within one node.
    fn joins(&self, other: &Self, most: usize) -> bool;
    fn memory(&self) -> usize;

    /// How many come before all that begin with a key.
    fn lower(&self, key: &Self::Key) -> usize {
        self.partition(|entries, at| entries.compare(at, key) == Ordering::Less)
    }

    /// How many come before all that are above those that begin with a key.
    fn upper(&self, key: &Self::Key) -> usize {
        self.partition(|entries, at| entries.compare(at, key) != Ordering::Greater)
    }

    fn partition(&self, is_before: impl Fn(&Self, usize) -> bool) -> usize {
        let (mut from, mut count) = (0, self.len());
        while count > 0 {
            let half = count / 2;
            if is_before(self, from + half) {
                from += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        from
    }
}

/// Entries of as many words each.
#[derive(Debug)]
pub(super) struct Words {
    /// Words of an entry; the first `width` are what it is found by.
    stride: usize,
    width: usize,
    words: Vec<i64>,
}

impl Words {
    pub(super) fn new(width: usize, covered: usize) -> Words {
        Words { stride: width + covered, width, words: Vec::new() }
    }

    /// An entry with what it covers.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> &[i64] {
        &self.words[at * self.stride..(at + 1) * self.stride]
    }

    /// Another word in an entry, behind what it is found by.
    pub(super) fn cover(&mut self, at: usize, word: usize, value: i64) {
        self.words[at * self.stride + self.width + word] = value;
    }
}

/// How many of some entries come before a key, or with `above` also those that begin with it. Searches by the first two
/// words without a branch: which way they go cannot be foretold.
#[inline]
pub(super) fn search<W: Copy + Into<i64>>(words: &[W], stride: usize, key: &[i64], above: bool) -> usize {
    match *key {
        [] if above => words.len() / stride,
        [] => 0,
        [first] if above => partition(words, stride, |entry| entry[0].into() <= first),
        [first] => partition(words, stride, |entry| entry[0].into() < first),
        [first, second] if stride > 1 => partition(words, stride, |entry| {
            let (one, other) = (entry[0].into(), entry[1].into());
            let is_before = if above { other <= second } else { other < second };
            (one < first) | ((one == first) & is_before)
        }),
        _ => partition(words, stride, |entry| {
            let wanted = if above { Ordering::Greater } else { Ordering::Equal };
            let differs = |(entry, key): (&W, &i64)| {
                Some(Into::<i64>::into(*entry).cmp(key)).filter(|order| order.is_ne())
            };
            entry.iter().zip(key).find_map(differs).unwrap_or(Ordering::Equal) < wanted
        }),
    }
}

/// How many entries of so many words come before all others.
#[inline]
fn partition<W>(words: &[W], stride: usize, is_before: impl Fn(&[W]) -> bool) -> usize {
    let (mut base, mut count) = (0, words.len() / stride);
    if count == 0 {
        return 0;
    }
    let at = |place: usize| is_before(&words[place * stride..(place + 1) * stride]);
    // Seven at a time: memory is slow, and they are fetched together.
    while count >= 8 {
        let part = count / 8;
        let before: usize = (1..8).map(|place| usize::from(at(base + place * part))).sum();
        base += before * part;
        count -= 7 * part;
    }
    while count > 1 {
        let half = count / 2;
        base = if at(base + half) { base + half } else { base };
        count -= half;
    }
    base + usize::from(at(base))
}

/// A copy is made to be changed: it has room.
impl Clone for Words {
    fn clone(&self) -> Words {
        let mut words = Vec::with_capacity(self.words.len() + ROOM / 2 * self.stride);
        words.extend_from_slice(&self.words);
        Words { words, ..*self }
    }
}

/// A few words, kept in place; of those that are as many the order is that of slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FewWords {
    count: usize,
    words: [i64; WORDS_MAX],
}

impl FewWords {
    /// Some words, but no more than fit.
    pub(super) fn of(words: &[i64]) -> FewWords {
        let mut few = FewWords { count: words.len().min(WORDS_MAX), words: [0; WORDS_MAX] };
        few.words[..few.count].copy_from_slice(&words[..few.count]);
        few
    }

    /// Appends one, if there is room.
    pub(super) fn push(&mut self, word: i64) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[i64] {
        &self.words[..self.count]
    }
}

impl Borrow<[i64]> for FewWords {
    fn borrow(&self) -> &[i64] {
        self.as_slice()
    }
}

impl Entries for Words {
    type Key = [i64];
    type Owned = FewWords;

    fn separators(&self) -> Words {
        Words::new(self.width, 0)
    }

    fn len(&self) -> usize {
        self.words.len() / self.stride
    }

    #[inline]
    fn compare(&self, at: usize, key: &[i64]) -> Ordering {
        let entry = &self.words[at * self.stride..][..self.stride];
        for (entry, key) in entry.iter().zip(key) {
            if entry != key {
                return entry.cmp(key);
            }
        }
        Ordering::Equal
    }

    fn lower(&self, key: &[i64]) -> usize {
        search(&self.words, self.stride, key, false)
    }

    fn upper(&self, key: &[i64]) -> usize {
        search(&self.words, self.stride, key, true)
    }

    fn key(&self, at: usize) -> &[i64] {
        &self.words[at * self.stride..][..self.width]
    }

    fn owned(key: &[i64]) -> FewWords {
        FewWords::of(key)
    }

    fn insert(&mut self, at: usize, entry: &[i64]) {
        if self.words.len() + self.stride > self.words.capacity() {
            self.words.reserve_exact(ROOM * self.stride);
        }
        let (at, end) = (at * self.stride, self.words.len());
        self.words.resize(end + self.stride, 0);
        self.words.copy_within(at..end, at + self.stride);
        self.words[at..at + self.stride].copy_from_slice(&entry[..self.stride]);
    }

    fn remove(&mut self, at: usize) {
        self.words.drain(at * self.stride..(at + 1) * self.stride);
        if self.words.capacity() - self.words.len() > 2 * ROOM * self.stride {
            self.words.shrink_to(self.words.len() + ROOM * self.stride);
        }
    }

    fn split_off(&mut self, at: usize) -> Words {
        let behind = Words { words: self.words[at * self.stride..].to_vec(), ..*self };
        self.words.truncate(at * self.stride);
        self.words.shrink_to((at + ROOM) * self.stride);
        behind
    }

    fn append(&mut self, other: &Words) {
        self.words.reserve_exact(other.words.len());
        self.words.extend_from_slice(&other.words);
    }

    fn is_over_full(&self, most: usize) -> bool {
        self.len() > most
    }

    fn is_small(&self, most: usize) -> bool {
        self.len() < most / 3
    }

    fn joins(&self, other: &Words, most: usize) -> bool {
        self.len() + other.len() <= most * 7 / 8
    }

    fn memory(&self) -> usize {
        self.words.capacity() * size_of::<i64>()
    }
}

/// Strings of bytes, one behind the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Strings {
    /// Where each ends.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    fn bounds(&self, at: usize) -> (usize, usize) {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        (from as usize, self.ends[at] as usize)
    }
}

impl Entries for Strings {
    type Key = [u8];
    type Owned = Vec<u8>;

    fn separators(&self) -> Strings {
        Strings::default()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn compare(&self, at: usize, key: &[u8]) -> Ordering {
        let entry = self.key(at);
        entry[..entry.len().min(key.len())].cmp(key)
    }

    fn key(&self, at: usize) -> &[u8] {
        let (from, end) = self.bounds(at);
        &self.bytes[from..end]
    }

    fn owned(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }

    fn insert(&mut self, at: usize, entry: &[u8]) {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let (end, size) = (self.bytes.len(), entry.len());
        self.bytes.resize(end + size, 0);
        self.bytes.copy_within(from..end, from + size);
        self.bytes[from..from + size].copy_from_slice(entry);
        self.ends.insert(at, from as u32);
        for end in &mut self.ends[at..] {
            *end += size as u32;
        }
    }

    fn remove(&mut self, at: usize) {
        let (from, end) = self.bounds(at);
        self.bytes.drain(from..end);
        self.ends.remove(at);
        for later in &mut self.ends[at..] {
            *later -= (end - from) as u32;
        }
    }

    fn split_off(&mut self, at: usize) -> Strings {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends = self.ends[at..].iter().map(|end| end - from).collect();
        let behind = Strings { ends, bytes: self.bytes[from as usize..].to_vec() };
        self.ends.truncate(at);
        self.bytes.truncate(from as usize);
        self.bytes.shrink_to_fit();
        behind
    }

    fn append(&mut self, other: &Strings) {
        let from = self.bytes.len() as u32;
        self.ends.extend(other.ends.iter().map(|end| end + from));
        self.bytes.extend_from_slice(&other.bytes);
    }

    fn is_over_full(&self, most: usize) -> bool {
        self.len() > most || self.bytes.len() > STRING_BYTES_MAX && self.len() > STRINGS_MIN
    }

    fn is_small(&self, most: usize) -> bool {
        self.len() < STRINGS_MIN / 2 || self.len() < most / 3 && self.bytes.len() < STRING_BYTES_MAX / 3
    }

    fn joins(&self, other: &Strings, most: usize) -> bool {
        let (count, bytes) = (self.len() + other.len(), self.bytes.len() + other.bytes.len());
        count < STRINGS_MIN || count <= most * 7 / 8 && bytes <= STRING_BYTES_MAX * 7 / 8
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}
