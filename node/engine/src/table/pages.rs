//! A vector whose copies share what they have in common: pages of `N` elements below branches of 64 pages below a root,
//! and behind them a tail of at most `N` that each copy has for itself, so that what comes last, and what is short, is
//! changed without looking who shares it. Changing an element of a page copies its page, its branch and the root where a
//! copy still holds them, and nothing otherwise.

use std::sync::Arc;

/// Pages of a branch.
const BRANCH: usize = 64;

type Page<T, const N: usize> = Arc<[T; N]>;
type Branch<T, const N: usize> = Arc<[Option<Page<T, N>>; BRANCH]>;

#[derive(Debug, Clone)]
pub(super) struct Pages<T, const N: usize> {
    root: Arc<Vec<Branch<T, N>>>,
    /// Elements in pages: whole ones.
    paged: usize,
    /// Those behind.
    tail: Vec<T>,
}

impl<T: Clone + Default, const N: usize> Pages<T, N> {
    pub(super) fn new() -> Self {
        Pages { root: Arc::new(Vec::new()), paged: 0, tail: Vec::new() }
    }

    /// So many times the same element, in one page that all share.
    pub(super) fn filled(element: &T, len: usize) -> Self {
        let page = Arc::new(std::array::from_fn(|_| element.clone()));
        let branch = Arc::new(std::array::from_fn(|_| Some(Arc::clone(&page))));
        let pages = len / N;
        let mut filled = Pages {
            root: Arc::new(vec![branch; pages.div_ceil(BRANCH)]),
            paged: pages * N,
            tail: vec![element.clone(); len % N],
        };
        filled.drop_beyond(pages);
        filled
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.paged + self.tail.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at >= self.paged {
            return self.tail.get(at - self.paged);
        }
        Some(&self.root.get(at / (N * BRANCH))?[at / N % BRANCH].as_ref()?[at % N])
    }

    /// All elements, page by page: `N`, and fewer in the last one.
    pub(super) fn pages(&self) -> impl Iterator<Item = &[T]> {
        let pages = self.root.iter().flat_map(|branch| branch.iter().flatten());
        pages.map(|page| page.as_slice()).take(self.paged / N).chain([self.tail.as_slice()])
    }

    /// The place of an element that is there.
    #[inline(always)]
    pub(super) fn place(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.paged {
            return self.tail.get_mut(at - self.paged);
        }
        let branch = Arc::make_mut(&mut self.root).get_mut(at / (N * BRANCH))?;
        let page = Arc::make_mut(branch)[at / N % BRANCH].as_mut()?;
        Some(&mut Arc::make_mut(page)[at % N])
    }

    #[inline(always)]
    pub(super) fn push(&mut self, element: T) {
        if self.tail.len() == N {
            self.add_page();
        }
        self.tail.push(element);
    }

    /// Makes a page of the tail.
    #[cold]
    fn add_page(&mut self) {
        let number = self.paged / N;
        let root = Arc::make_mut(&mut self.root);
        if number / BRANCH == root.len() {
            root.push(Arc::new(std::array::from_fn(|_| None)));
        }
        let mut tail = self.tail.drain(..);
        let page = Arc::new(std::array::from_fn(|_| tail.next().unwrap_or_default()));
        Arc::make_mut(&mut root[number / BRANCH])[number % BRANCH] = Some(page);
        self.paged += N;
    }

    /// Takes the last element.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.tail.is_empty() {
            let number = self.paged.checked_sub(N)? / N;
            self.tail.extend_from_slice(&self.root.get(number / BRANCH)?[number % BRANCH].as_ref()?[..]);
            self.paged = number * N;
            self.drop_beyond(number);
        }
        self.tail.pop()
    }

    pub(super) fn clear(&mut self) {
        self.tail.clear();
        if self.paged > 0 {
            self.root = Arc::new(Vec::new());
            self.paged = 0;
        }
    }

    /// Gives back all pages but so many.
    fn drop_beyond(&mut self, pages: usize) {
        let root = Arc::make_mut(&mut self.root);
        root.truncate(pages.div_ceil(BRANCH));
        let used = pages % BRANCH;
        if used != 0
            && let Some(branch) = root.last_mut()
        {
            Arc::make_mut(branch)[used..].fill(None);
        }
    }

    /// Bytes, not counting what elements point to.
    pub(super) fn memory(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        let page = counts + N * size_of::<T>();
        let branch = counts + BRANCH * size_of::<usize>();
        let pages = self.paged / N * page + self.tail.capacity() * size_of::<T>();
        counts + self.root.capacity() * size_of::<usize>() + self.root.len() * branch + pages
    }
}
