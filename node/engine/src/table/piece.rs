//! Words side by side in one piece of memory that copies share: of 32 bits each while all of them fit into that, so that
//! half as much comes from memory that is far away; of 64 from the first one on that does not.

use super::entries::{WORDS_MAX, search};
use std::ops::Range;
use std::sync::Arc;

/// Room that is made at a time for entries to come.
pub(super) const ROOM: usize = 4;

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Narrow(Arc<[i32]>),
    Wide(Arc<[i64]>),
}

/// Some words of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) enum Run<'p> {
    Narrow(&'p [i32]),
    Wide(&'p [i64]),
}

impl Default for Piece {
    fn default() -> Piece {
        Piece::Narrow(Arc::default())
    }
}

impl Piece {
    /// Words, with room behind them.
    pub(super) fn of(words: &[i64], room: usize) -> Piece {
        let count = words.len() + room;
        match words.iter().map(|word| i32::try_from(*word)).collect::<Result<Vec<i32>, _>>() {
            Ok(narrow) => Piece::Narrow(resized(&narrow, narrow.len(), count)),
            Err(_) => Piece::Wide(resized(words, words.len(), count)),
        }
    }

    /// Those of a range; none of one that is not there.
    #[inline]
    pub(super) fn run(&self, range: Range<usize>) -> Run<'_> {
        match self {
            Piece::Narrow(words) => Run::Narrow(words.get(range).unwrap_or_default()),
            Piece::Wide(words) => Run::Wide(words.get(range).unwrap_or_default()),
        }
    }

    /// Puts an entry at a place among the words that are used.
    pub(super) fn insert(&mut self, used: usize, at: usize, entry: &[i64]) {
        let narrow = self.narrow(entry);
        match self {
            Piece::Narrow(words) => insert(words, used, at, &narrow[..entry.len()]),
            Piece::Wide(words) => insert(words, used, at, entry),
        }
    }

    /// Takes some words out of those that are used.
    pub(super) fn remove(&mut self, used: usize, at: usize, count: usize) {
        if used == count {
            *self = Piece::default();
            return;
        }
        match self {
            Piece::Narrow(words) => remove(words, used, at, count),
            Piece::Wide(words) => remove(words, used, at, count),
        }
    }

    /// Writes other words over those at a place.
    pub(super) fn write(&mut self, at: usize, over: &[i64]) {
        let (narrow, there) = (self.narrow(over), at..at + over.len());
        match self {
            Piece::Narrow(words) => Arc::make_mut(words)[there].copy_from_slice(&narrow[..over.len()]),
            Piece::Wide(words) => Arc::make_mut(words)[there].copy_from_slice(over),
        }
    }

    /// The words of an entry that comes, narrow; where they do not fit into that, all become wide.
    fn narrow(&mut self, words: &[i64]) -> [i32; WORDS_MAX] {
        let mut narrow = [0; WORDS_MAX];
        let mut fits = true;
        for (place, word) in narrow.iter_mut().zip(words) {
            *place = *word as i32;
            fits &= i64::from(*place) == *word;
        }
        if let (Piece::Narrow(there), false) = (&*self, fits) {
            *self = Piece::Wide(there.iter().map(|word| i64::from(*word)).collect());
        }
        narrow
    }

    pub(super) fn memory(&self) -> usize {
        let bytes = match self {
            Piece::Narrow(words) => size_of_val::<[i32]>(words),
            Piece::Wide(words) => size_of_val::<[i64]>(words),
        };
        if bytes == 0 { 0 } else { bytes + 2 * size_of::<usize>() }
    }
}

impl<'p> Run<'p> {
    /// Words.
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Run::Narrow(words) => words.len(),
            Run::Wide(words) => words.len(),
        }
    }

    pub(super) fn slice(self, range: Range<usize>) -> Run<'p> {
        match self {
            Run::Narrow(words) => Run::Narrow(&words[range]),
            Run::Wide(words) => Run::Wide(&words[range]),
        }
    }

    /// How many entries come before a key, or with `above` also those that begin with it.
    pub(super) fn search(self, stride: usize, key: &[i64], above: bool) -> usize {
        match self {
            Run::Narrow(words) => search(words, stride, key, above),
            Run::Wide(words) => search(words, stride, key, above),
        }
    }

    /// Whether these words stand at a place.
    pub(super) fn has(self, at: usize, key: &[i64]) -> bool {
        match self {
            Run::Narrow(words) => words
                .get(at..at + key.len())
                .is_some_and(|words| words.iter().zip(key).all(|(word, key)| i64::from(*word) == *key)),
            Run::Wide(words) => words.get(at..at + key.len()) == Some(key),
        }
    }

    /// Appends them to others.
    #[inline]
    pub(super) fn append_to(self, out: &mut Vec<i64>) {
        match self {
            Run::Narrow(words) => out.extend(words.iter().map(|word| i64::from(*word))),
            Run::Wide(words) => out.extend_from_slice(words),
        }
    }
}

/// Words of which the first `used` are taken, with room for so many.
fn resized<W: Copy + Default>(words: &[W], used: usize, count: usize) -> Arc<[W]> {
    let mut resized: Arc<[W]> = std::iter::repeat_n(W::default(), count).collect();
    Arc::make_mut(&mut resized)[..used].copy_from_slice(&words[..used]);
    resized
}

fn insert<W: Copy + Default>(words: &mut Arc<[W]>, used: usize, at: usize, entry: &[W]) {
    if used + entry.len() > words.len() {
        *words = resized(words, used, used + ROOM * entry.len());
    }
    let words = Arc::make_mut(words);
    words.copy_within(at..used, at + entry.len());
    words[at..at + entry.len()].copy_from_slice(entry);
}

fn remove<W: Copy + Default>(words: &mut Arc<[W]>, used: usize, at: usize, count: usize) {
    Arc::make_mut(words).copy_within(at + count..used, at);
    let left = used - count;
    if words.len() > left + 2 * ROOM * count {
        *words = resized(words, left, left + ROOM * count);
    }
}
