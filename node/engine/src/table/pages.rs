//! A vector whose copies share what they have in common: pages of `N` elements below branches of 64 pages below a root.
//! Changing an element copies its page, its branch and the root where a copy still holds them, and nothing otherwise.

use std::sync::Arc;

/// Pages of a branch.
const BRANCH: usize = 64;

type Page<T, const N: usize> = Arc<[T; N]>;
type Branch<T, const N: usize> = Arc<[Option<Page<T, N>>; BRANCH]>;

#[derive(Debug, Clone)]
pub(super) struct Pages<T, const N: usize> {
    root: Arc<Vec<Branch<T, N>>>,
    len: usize,
}

impl<T: Clone + Default, const N: usize> Pages<T, N> {
    pub(super) fn new() -> Self {
        Pages { root: Arc::new(Vec::new()), len: 0 }
    }

    /// So many times the same element, in one page that all share.
    #[allow(dead_code, reason = "a change of a module uses it from the next step on")]
    pub(super) fn filled(element: &T, len: usize) -> Self {
        let page = Arc::new(std::array::from_fn(|_| element.clone()));
        let branch = Arc::new(std::array::from_fn(|_| Some(Arc::clone(&page))));
        Pages { root: Arc::new(vec![branch; len.div_ceil(N * BRANCH)]), len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        Some(&self.root.get(at / (N * BRANCH))?[at / N % BRANCH].as_ref()?[at % N])
    }

    /// The place of an element that is there.
    pub(super) fn place(&mut self, at: usize) -> Option<&mut T> {
        let branch = Arc::make_mut(&mut self.root).get_mut(at / (N * BRANCH))?;
        let page = Arc::make_mut(branch)[at / N % BRANCH].as_mut()?;
        Some(&mut Arc::make_mut(page)[at % N])
    }

    pub(super) fn push(&mut self, element: T) {
        let at = self.len;
        self.len += 1;
        let root = Arc::make_mut(&mut self.root);
        if at / (N * BRANCH) == root.len() {
            root.push(Arc::new(std::array::from_fn(|_| None)));
        }
        let branch = Arc::make_mut(&mut root[at / (N * BRANCH)]);
        let page =
            branch[at / N % BRANCH].get_or_insert_with(|| Arc::new(std::array::from_fn(|_| T::default())));
        Arc::make_mut(page)[at % N] = element;
    }

    /// Takes the last element.
    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let element = std::mem::take(self.place(last)?);
        self.len = last;
        if last.is_multiple_of(N) {
            self.drop_beyond();
        }
        Some(element)
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        if std::mem::needs_drop::<T>() {
            self.root = Arc::new(Vec::new());
        } else {
            self.drop_beyond();
        }
    }

    /// Gives back the pages behind the last element but one, so that a vector that grows and shrinks by one at a page's
    /// end does not make and drop a page each time.
    fn drop_beyond(&mut self) {
        let root = Arc::make_mut(&mut self.root);
        let pages = self.len.div_ceil(N) + 1;
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
        let pages = self.len.div_ceil(N);
        let counts = 2 * size_of::<usize>();
        let page = counts + N * size_of::<T>();
        let branch = counts + BRANCH * size_of::<usize>();
        counts + self.root.capacity() * size_of::<usize>() + self.root.len() * branch + pages * page
    }
}
