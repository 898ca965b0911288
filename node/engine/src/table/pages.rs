//! A vector whose copies share what they have in common: pages below branches of 64 pages below a root, and behind them a
//! tail shorter than a page that each copy has for itself, so that what comes last, and what is short, is
//! changed without looking who shares it. Changing an element of a page copies its page, its branch and the root where a
//! copy still holds them, and nothing otherwise.

use std::sync::Arc;

/// Pages of a branch.
const BRANCH: usize = 64;

/// Elements that copies share: so many as its type says.
pub(super) trait Page: Clone {
    type Element: Clone + Default;
    /// How many elements it has.
    const LEN: usize;

    /// Of as many elements.
    fn new(elements: &[Self::Element]) -> Self;

    /// One that is there.
    fn get(&self, at: usize) -> Self::Element;

    /// Puts another one where one is, and gives that; nobody else sees it.
    fn put(&mut self, at: usize, element: Self::Element) -> Self::Element;

    /// Bytes, not counting what elements point to.
    fn memory(&self) -> usize;
}

impl<T: Clone + Default, const N: usize> Page for Arc<[T; N]> {
    type Element = T;
    const LEN: usize = N;

    fn new(elements: &[T]) -> Self {
        Arc::new(std::array::from_fn(|at| elements.get(at).cloned().unwrap_or_default()))
    }

    #[inline(always)]
    fn get(&self, at: usize) -> T {
        self[at].clone()
    }

    #[inline(always)]
    fn put(&mut self, at: usize, element: T) -> T {
        std::mem::replace(&mut Arc::make_mut(self)[at], element)
    }

    fn memory(&self) -> usize {
        COUNTS + N * size_of::<T>()
    }
}

/// Bytes of an `Arc`'s counts.
pub(super) const COUNTS: usize = 2 * size_of::<usize>();

#[derive(Debug, Clone)]
pub(super) struct Pages<P: Page> {
    root: Arc<Vec<Arc<[Option<P>; BRANCH]>>>,
    /// Elements in pages: whole ones.
    paged: usize,
    /// Those behind.
    tail: Vec<P::Element>,
}

impl<P: Page> Pages<P> {
    pub(super) fn new() -> Self {
        Pages { root: Arc::new(Vec::new()), paged: 0, tail: Vec::new() }
    }

    /// So many times the same element, in one page that all share.
    pub(super) fn filled(element: &P::Element, len: usize) -> Self {
        let page = P::new(&vec![element.clone(); P::LEN]);
        let branch = Arc::new(std::array::from_fn(|_| Some(page.clone())));
        let pages = len / P::LEN;
        let mut filled = Pages {
            root: Arc::new(vec![branch; pages.div_ceil(BRANCH)]),
            paged: pages * P::LEN,
            tail: vec![element.clone(); len % P::LEN],
        };
        filled.drop_beyond(pages);
        filled
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.paged + self.tail.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<P::Element> {
        if at >= self.paged {
            return self.tail.get(at - self.paged).cloned();
        }
        Some(self.page(at / P::LEN)?.get(at % P::LEN))
    }

    /// A whole page.
    #[inline]
    pub(super) fn page(&self, number: usize) -> Option<&P> {
        self.root.get(number / BRANCH)?[number % BRANCH].as_ref()
    }

    /// What stands behind the whole pages.
    pub(super) fn tail(&self) -> &[P::Element] {
        &self.tail
    }

    /// Puts another element where one is, and gives that.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, element: P::Element) -> Option<P::Element> {
        if at >= self.paged {
            return Some(std::mem::replace(self.tail.get_mut(at - self.paged)?, element));
        }
        let branch = Arc::make_mut(&mut self.root).get_mut(at / (P::LEN * BRANCH))?;
        let page = Arc::make_mut(branch)[at / P::LEN % BRANCH].as_mut()?;
        Some(page.put(at % P::LEN, element))
    }

    #[inline(always)]
    pub(super) fn push(&mut self, element: P::Element) {
        if self.tail.len() == P::LEN {
            self.add_page();
        }
        self.tail.push(element);
    }

    /// Makes a page of the tail.
    #[cold]
    fn add_page(&mut self) {
        let number = self.paged / P::LEN;
        let root = Arc::make_mut(&mut self.root);
        if number / BRANCH == root.len() {
            root.push(Arc::new(std::array::from_fn(|_| None)));
        }
        Arc::make_mut(&mut root[number / BRANCH])[number % BRANCH] = Some(P::new(&self.tail));
        self.tail.clear();
        self.paged += P::LEN;
    }

    /// Takes the last element.
    pub(super) fn pop(&mut self) -> Option<P::Element> {
        if self.tail.is_empty() {
            let number = self.paged.checked_sub(P::LEN)? / P::LEN;
            let page = self.root.get(number / BRANCH)?[number % BRANCH].as_ref()?;
            self.tail.extend((0..P::LEN).map(|at| page.get(at)));
            self.paged = number * P::LEN;
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
        let branch = COUNTS + BRANCH * size_of::<Option<P>>();
        let pages = self.root.iter().flat_map(|branch| branch.iter().flatten()).map(Page::memory);
        let root = COUNTS + self.root.capacity() * size_of::<usize>() + self.root.len() * branch;
        root + pages.sum::<usize>() + self.tail.capacity() * size_of::<P::Element>()
    }
}
