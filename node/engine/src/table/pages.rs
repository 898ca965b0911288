//! A vector whose copies share what they have in common: pages below branches of 64 pages below a root. Behind them come
//! the pages that make no branch yet, and a tail shorter than a page: these each copy has for itself, so that what comes
//! last, and what is short, is changed without looking who shares it, and a vector that only grows copies its root once
//! for each branch. Changing an element of a page copies its page, its branch and the root where a copy still holds
//! them, and nothing otherwise.

use triomphe::Arc;

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
        COUNT_BYTES + N * size_of::<T>()
    }
}

/// Bytes of an `Arc`'s count: one, since nothing refers to it weakly, so that asking whether it is shared only reads.
pub(super) const COUNT_BYTES: usize = size_of::<usize>();

#[derive(Debug, Clone)]
pub(super) struct Pages<P: Page> {
    root: Arc<Vec<Arc<[P; BRANCH]>>>,
    /// Fewer than make a branch.
    last: Vec<P>,
    /// Elements in pages: whole ones.
    paged: usize,
    /// Those behind.
    tail: Vec<P::Element>,
}

impl<P: Page> Pages<P> {
    pub(super) fn new() -> Self {
        Pages { root: Arc::new(Vec::new()), last: Vec::new(), paged: 0, tail: Vec::new() }
    }

    /// So many times the same element, in one page that all share.
    pub(super) fn filled(element: &P::Element, len: usize) -> Self {
        let page = P::new(&vec![element.clone(); P::LEN]);
        let branch = Arc::new(std::array::from_fn(|_| page.clone()));
        let pages = len / P::LEN;
        Pages {
            root: Arc::new(vec![branch; pages / BRANCH]),
            last: vec![page; pages % BRANCH],
            paged: pages * P::LEN,
            tail: vec![element.clone(); len % P::LEN],
        }
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
        match self.root.get(number / BRANCH) {
            Some(branch) => Some(&branch[number % BRANCH]),
            None => self.last.get(number - self.root.len() * BRANCH),
        }
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
        let number = at / P::LEN;
        let page = match number.checked_sub(self.root.len() * BRANCH) {
            Some(number) => self.last.get_mut(number)?,
            None => {
                let branch = Arc::make_mut(&mut self.root).get_mut(number / BRANCH)?;
                &mut Arc::make_mut(branch)[number % BRANCH]
            }
        };
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
        self.last.push(P::new(&self.tail));
        self.tail.clear();
        self.paged += P::LEN;
        if self.last.len() == BRANCH
            && let Ok(branch) = <[P; BRANCH]>::try_from(std::mem::take(&mut self.last))
        {
            Arc::make_mut(&mut self.root).push(Arc::new(branch));
        }
    }

    /// Takes the last element.
    pub(super) fn pop(&mut self) -> Option<P::Element> {
        if self.tail.is_empty() {
            if self.last.is_empty() {
                self.last = Arc::make_mut(&mut self.root).pop()?.to_vec();
            }
            let page = self.last.pop()?;
            self.tail.extend((0..P::LEN).map(|at| page.get(at)));
            self.paged -= P::LEN;
        }
        self.tail.pop()
    }

    pub(super) fn clear(&mut self) {
        self.tail.clear();
        self.last.clear();
        if self.paged > 0 {
            self.root = Arc::new(Vec::new());
            self.paged = 0;
        }
    }

    /// Bytes, not counting what elements point to.
    pub(super) fn memory(&self) -> usize {
        let branch = COUNT_BYTES + BRANCH * size_of::<P>();
        let pages = self.root.iter().flat_map(|branch| branch.iter()).chain(&self.last).map(Page::memory);
        let root = COUNT_BYTES + self.root.capacity() * size_of::<usize>() + self.root.len() * branch;
        let last = self.last.capacity() * size_of::<P>();
        root + last + pages.sum::<usize>() + self.tail.capacity() * size_of::<P::Element>()
    }
}
