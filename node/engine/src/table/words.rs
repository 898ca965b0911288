//! Pages of words as narrow as the words in them allow: most numbers are small, and what is narrow takes less memory, is
//! copied sooner and stays in caches. The first word that is too wide makes a page wider; it stays so.

use super::pages::{COUNT_BYTES, Page};
use triomphe::Arc;

/// Words of a page, 2 KB at most: half as many are as many times more pages to be counted when a branch is copied.
pub(super) const WORDS: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum WordPage {
    W8(Arc<[i8; WORDS]>),
    W16(Arc<[i16; WORDS]>),
    W32(Arc<[i32; WORDS]>),
    W64(Arc<[i64; WORDS]>),
}

/// Words of a narrower type; none if one does not fit.
fn narrowed<N: TryFrom<i64> + Default + Copy>(words: &[i64]) -> Option<Arc<[N; WORDS]>> {
    let mut narrow = [N::default(); WORDS];
    for (place, word) in narrow.iter_mut().zip(words) {
        *place = N::try_from(*word).ok()?;
    }
    Some(Arc::new(narrow))
}

fn widened<N: Into<i64> + Copy>(narrow: &[N; WORDS], words: &mut [i64; WORDS]) {
    for (word, narrow) in words.iter_mut().zip(narrow) {
        *word = (*narrow).into();
    }
}

/// Puts a word that fits, and gives the one that was there.
#[inline(always)]
fn put<N: TryFrom<i64> + Into<i64> + Copy>(page: &mut Arc<[N; WORDS]>, at: usize, word: i64) -> Option<i64> {
    let narrow = N::try_from(word).ok()?;
    Some(std::mem::replace(&mut Arc::make_mut(page)[at], narrow).into())
}

impl WordPage {
    /// All words, where they may be read one behind the other.
    pub(super) fn read<'p>(&'p self, room: &'p mut [i64; WORDS]) -> &'p [i64; WORDS] {
        match self {
            WordPage::W8(words) => widened(words, room),
            WordPage::W16(words) => widened(words, room),
            WordPage::W32(words) => widened(words, room),
            WordPage::W64(words) => return words,
        }
        room
    }

    /// Puts a word that does not fit.
    #[cold]
    fn widen(&mut self, at: usize, word: i64) -> i64 {
        let mut room = [0; WORDS];
        let mut words = *self.read(&mut room);
        let before = std::mem::replace(&mut words[at], word);
        *self = WordPage::new(&words);
        before
    }

    /// Where a word is.
    #[cfg(test)]
    pub(super) fn address(&self, at: usize) -> usize {
        match self {
            WordPage::W8(words) => (&raw const words[at]).addr(),
            WordPage::W16(words) => (&raw const words[at]).addr(),
            WordPage::W32(words) => (&raw const words[at]).addr(),
            WordPage::W64(words) => (&raw const words[at]).addr(),
        }
    }
}

impl Page for WordPage {
    type Element = i64;
    const LEN: usize = WORDS;

    fn new(words: &[i64]) -> WordPage {
        if let Some(words) = narrowed(words) {
            return WordPage::W8(words);
        }
        if let Some(words) = narrowed(words) {
            return WordPage::W16(words);
        }
        match narrowed(words) {
            Some(words) => WordPage::W32(words),
            None => WordPage::W64(Page::new(words)),
        }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> i64 {
        match self {
            WordPage::W8(words) => words[at].into(),
            WordPage::W16(words) => words[at].into(),
            WordPage::W32(words) => words[at].into(),
            WordPage::W64(words) => words[at],
        }
    }

    #[inline(always)]
    fn put(&mut self, at: usize, word: i64) -> i64 {
        let before = match self {
            WordPage::W8(words) => put(words, at, word),
            WordPage::W16(words) => put(words, at, word),
            WordPage::W32(words) => put(words, at, word),
            WordPage::W64(words) => put(words, at, word),
        };
        match before {
            Some(before) => before,
            None => self.widen(at, word),
        }
    }

    fn memory(&self) -> usize {
        let word = match self {
            WordPage::W8(_) => 1,
            WordPage::W16(_) => 2,
            WordPage::W32(_) => 4,
            WordPage::W64(_) => 8,
        };
        COUNT_BYTES + WORDS * word
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::super::tests::Random;
    use super::*;

    #[test]
    fn words_of_any_width_are_what_was_put() {
        for seed in 0..40 {
            let mut random = Random(seed);
            let some = |random: &mut Random| {
                let wide = [7, 8, 15, 16, 31, 32, 63, 64][random.below(1 + seed / 5) as usize];
                let word = (random.next() as i64).checked_shr(64 - wide).unwrap_or_default();
                [word, i64::MIN >> (64 - wide), i64::MAX >> (64 - wide)][random.below(3) as usize]
            };
            let mut pages: Pages<WordPage> = Pages::new();
            let mut model = Vec::new();
            for _ in 0..600 {
                let word = some(&mut random);
                pages.push(word);
                model.push(word);
            }
            let (copy, before) = (pages.clone(), model.clone());
            for _ in 0..300 {
                let (at, word) = (random.below(600) as usize, some(&mut random));
                assert_eq!(pages.put(at, word), Some(std::mem::replace(&mut model[at], word)));
            }
            for (pages, model) in [(&pages, &model), (&copy, &before)] {
                let found: Vec<i64> = (0..pages.len()).filter_map(|at| pages.get(at)).collect();
                assert_eq!(&found, model, "{seed}");
                let mut room = [0; WORDS];
                let page = pages.page(1).map(|page| *page.read(&mut room));
                assert_eq!(page.as_ref().map(|page| page.as_slice()), Some(&model[WORDS..2 * WORDS]));
                assert_eq!(pages.tail(), &model[2 * WORDS..]);
            }
            while let Some(word) = pages.pop() {
                assert_eq!(Some(word), model.pop());
            }
            assert!(model.is_empty());
        }
    }

    #[test]
    fn a_page_is_as_wide_as_its_widest_word() {
        for (word, bytes) in [
            (0, 1),
            (-128, 1),
            (128, 2),
            (-32_768, 2),
            (32_768, 4),
            (-2_147_483_648, 4),
            (2_147_483_648, 8),
            (i64::MIN, 8),
        ] {
            let mut words = [1; WORDS];
            words[7] = word;
            let mut page = WordPage::new(&[1; WORDS]);
            assert_eq!(page.put(7, word), 1);
            for page in [WordPage::new(&words), page] {
                assert_eq!(page.memory(), COUNT_BYTES + bytes * WORDS, "{word}");
                assert_eq!((page.get(6), page.get(7)), (1, word));
            }
        }
    }
}
