//! A sorted set of entries as a B+tree whose copies share nodes: a change copies what a copy still holds of the way from
//! the root, and nothing otherwise. Each node knows how many entries its children have, so that a range is counted
//! without walking it.
//!
//! The tree of a list's keys has with each entry where the row stands; that of an index has not.

use super::entries::{ENTRIES_MAX, Entries, SEPARATORS_MAX, Words};
use super::pages::COUNT_BYTES;
use std::cmp::Ordering;
use triomphe::Arc;

#[derive(Debug, Clone)]
pub(super) struct Tree<E> {
    root: Arc<Node<E>>,
}

#[derive(Debug, Clone)]
enum Node<E> {
    Leaf(Leaf<E>),
    Inner(Inner<E>),
}

#[derive(Debug, Clone)]
pub(super) struct Leaf<E> {
    pub(super) entries: E,
    /// Where the rows stand; of no entry in an index.
    slots: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Inner<E> {
    /// No entry of a child but the first is below the one here, and those of the children before it are.
    separators: E,
    children: Vec<Arc<Node<E>>>,
    /// Entries of each child.
    counts: Vec<u32>,
}

/// What a node that grew too large gives its parent: all that comes behind, and what tells it apart.
struct Split<E> {
    separator: E,
    behind: Arc<Node<E>>,
}

impl<E: Entries> Leaf<E> {
    pub(super) fn slot(&self, at: usize) -> Option<u32> {
        self.slots.get(at).copied()
    }
}

impl<E: Entries> Tree<E> {
    pub(super) fn new(entries: E) -> Tree<E> {
        Tree { root: Arc::new(Node::Leaf(Leaf { entries, slots: Vec::new() })) }
    }

    pub(super) fn len(&self) -> usize {
        self.root.count()
    }

    /// Where the row of a whole key stands; of an index, 0 for an entry that is there.
    pub(super) fn find(&self, key: &E::Key) -> Option<u32> {
        let leaf = self.root.leaf_of(key);
        let at = leaf.entries.lower(key);
        let is_there = at < leaf.entries.len() && leaf.entries.compare(at, key) == Ordering::Equal;
        is_there.then(|| leaf.slot(at).unwrap_or_default())
    }

    /// Adds an entry that is not there, and where its row stands.
    pub(super) fn insert(&mut self, entry: &E::Key, slot: Option<u32>) {
        let Some(Split { separator, behind }) = Node::insert(&mut self.root, entry, slot, true) else {
            return;
        };
        let counts = vec![self.root.count() as u32, behind.count() as u32];
        let children = vec![Arc::clone(&self.root), behind];
        self.root = Arc::new(Node::Inner(Inner { separators: separator, children, counts }));
    }

    /// Removes an entry by its whole key; whether it was there.
    pub(super) fn remove(&mut self, key: &E::Key) -> bool {
        if !Node::remove(&mut self.root, key) {
            return false;
        }
        while let Node::Inner(inner) = &*self.root
            && let [only] = inner.children.as_slice()
        {
            self.root = Arc::clone(only);
        }
        true
    }

    /// Changes an entry of a whole key beside what it is found by.
    pub(super) fn change(&mut self, key: &E::Key, change: impl FnOnce(&mut E, &mut [u32], usize)) {
        let mut node = &mut self.root;
        loop {
            match Arc::make_mut(node) {
                Node::Inner(inner) => {
                    let at = inner.separators.upper(key);
                    node = &mut inner.children[at];
                }
                Node::Leaf(leaf) => {
                    let at = leaf.entries.lower(key);
                    if at < leaf.entries.len() {
                        change(&mut leaf.entries, &mut leaf.slots, at);
                    }
                    return;
                }
            }
        }
    }

    /// How many entries come before all that begin with a key; with `above`, also those that do.
    pub(super) fn rank(&self, key: &E::Key, above: bool) -> usize {
        let bound = |entries: &E| if above { entries.upper(key) } else { entries.lower(key) };
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match &**node {
                Node::Leaf(leaf) => return rank + bound(&leaf.entries),
                Node::Inner(inner) => {
                    let at = bound(&inner.separators);
                    rank += inner.counts[..at].iter().map(|count| *count as usize).sum::<usize>();
                    node = &inner.children[at];
                }
            }
        }
    }

    /// The first or the last leaf that is not empty.
    fn end(&self, last: bool) -> &Arc<Node<E>> {
        Node::end(&self.root, last)
    }

    pub(super) fn first(&self) -> Option<&E::Key> {
        let leaf = self.end(false).leaf()?;
        (leaf.entries.len() > 0).then(|| leaf.entries.key(0))
    }

    pub(super) fn last(&self) -> Option<&E::Key> {
        let leaf = self.end(true).leaf()?;
        let last = leaf.entries.len().checked_sub(1)?;
        Some(leaf.entries.key(last))
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<usize>() + self.root.memory()
    }
}

impl<E: Entries> Node<E> {
    fn count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.entries.len(),
            Node::Inner(inner) => inner.counts.iter().map(|count| *count as usize).sum(),
        }
    }

    fn leaf(&self) -> Option<&Leaf<E>> {
        match self {
            Node::Leaf(leaf) => Some(leaf),
            Node::Inner(_) => None,
        }
    }

    fn leaf_of(&self, key: &E::Key) -> &Leaf<E> {
        let mut node = self;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = &inner.children[inner.separators.upper(key)],
            }
        }
    }

    fn end(mut node: &Arc<Node<E>>, last: bool) -> &Arc<Node<E>> {
        while let Node::Inner(inner) = &**node {
            node = &inner.children[if last { inner.children.len() - 1 } else { 0 }];
        }
        node
    }

    /// `rightmost`: nothing in the tree comes behind this node.
    fn insert(
        node: &mut Arc<Node<E>>,
        entry: &E::Key,
        slot: Option<u32>,
        rightmost: bool,
    ) -> Option<Split<E>> {
        match Arc::make_mut(node) {
            Node::Leaf(leaf) => {
                let at = leaf.entries.lower(entry);
                leaf.entries.insert(at, entry);
                if let Some(slot) = slot {
                    if leaf.slots.len() == leaf.slots.capacity() {
                        leaf.slots.reserve_exact(8);
                    }
                    leaf.slots.insert(at, slot);
                }
                leaf.entries
                    .is_over_full(ENTRIES_MAX)
                    .then(|| leaf.split(rightmost && at + 1 == leaf.entries.len()))
            }
            Node::Inner(inner) => {
                let at = inner.separators.upper(entry);
                let rightmost = rightmost && at + 1 == inner.children.len();
                let split = Node::insert(&mut inner.children[at], entry, slot, rightmost);
                inner.counts[at] += 1;
                if let Some(Split { separator, behind }) = split {
                    inner.counts[at] -= behind.count() as u32;
                    inner.separators.insert(at, separator.key(0));
                    inner.counts.insert(at + 1, behind.count() as u32);
                    inner.children.insert(at + 1, behind);
                }
                inner.separators.is_over_full(SEPARATORS_MAX).then(|| inner.split(rightmost))
            }
        }
    }

    fn remove(node: &mut Arc<Node<E>>, key: &E::Key) -> bool {
        match Arc::make_mut(node) {
            Node::Leaf(leaf) => {
                let at = leaf.entries.lower(key);
                if at == leaf.entries.len() || leaf.entries.compare(at, key) != Ordering::Equal {
                    return false;
                }
                leaf.entries.remove(at);
                if at < leaf.slots.len() {
                    leaf.slots.remove(at);
                    leaf.slots.shrink_to(leaf.slots.len() + 16);
                }
            }
            Node::Inner(inner) => {
                let at = inner.separators.upper(key);
                if !Node::remove(&mut inner.children[at], key) {
                    return false;
                }
                inner.counts[at] -= 1;
                if inner.children[at].is_small() && inner.children.len() > 1 {
                    inner.mend(at.saturating_sub(1));
                }
            }
        }
        true
    }

    fn is_small(&self) -> bool {
        match self {
            Node::Leaf(leaf) => leaf.entries.is_small(ENTRIES_MAX),
            Node::Inner(inner) => inner.separators.is_small(SEPARATORS_MAX),
        }
    }

    fn memory(&self) -> usize {
        let own = COUNT_BYTES + size_of::<Node<E>>();
        own + match self {
            Node::Leaf(leaf) => leaf.entries.memory() + leaf.slots.capacity() * size_of::<u32>(),
            Node::Inner(inner) => {
                let children: usize = inner.children.iter().map(|child| child.memory()).sum();
                let arrays = inner.children.capacity() * size_of::<usize>()
                    + inner.counts.capacity() * size_of::<u32>();
                inner.separators.memory() + arrays + children
            }
        }
    }
}

impl<E: Entries> Leaf<E> {
    /// In the middle; what was added at the end of all goes alone, as more of its kind will follow.
    fn split(&mut self, alone: bool) -> Split<E> {
        let at = if alone { self.entries.len() - 1 } else { self.entries.len() / 2 };
        let entries = self.entries.split_off(at);
        let slots = self.slots[at.min(self.slots.len())..].to_vec();
        self.slots.truncate(at);
        self.slots.shrink_to(at + 8);
        let mut separator = entries.separators();
        separator.insert(0, entries.key(0));
        Split { separator, behind: Arc::new(Node::Leaf(Leaf { entries, slots })) }
    }
}

impl<E: Entries> Inner<E> {
    fn split(&mut self, alone: bool) -> Split<E> {
        let at = if alone { self.children.len() - 2 } else { self.children.len() / 2 };
        let mut separators = self.separators.split_off(at - 1);
        let separator = take_first(&mut separators);
        let (children, counts) = (self.children.split_off(at), self.counts.split_off(at));
        Split { separator, behind: Arc::new(Node::Inner(Inner { separators, children, counts })) }
    }

    /// Joins a child and the one behind it, or gives both as much.
    fn mend(&mut self, at: usize) {
        let behind = self.children.remove(at + 1);
        self.counts.remove(at + 1);
        let mut separator = self.separators.split_off(at);
        let later = separator.split_off(1);
        let split = match (Arc::make_mut(&mut self.children[at]), &*behind) {
            (Node::Leaf(before), Node::Leaf(behind)) => {
                let joins = before.entries.joins(&behind.entries, ENTRIES_MAX);
                before.entries.append(&behind.entries);
                before.slots.reserve_exact(behind.slots.len());
                before.slots.extend_from_slice(&behind.slots);
                (!joins).then(|| before.split(false))
            }
            (Node::Inner(before), Node::Inner(behind)) => {
                let joins = before.separators.joins(&behind.separators, SEPARATORS_MAX);
                before.separators.append(&separator);
                before.separators.append(&behind.separators);
                before.children.extend(behind.children.iter().cloned());
                before.counts.extend_from_slice(&behind.counts);
                (!joins).then(|| before.split(false))
            }
            // All leaves are as deep.
            _ => None,
        };
        self.counts[at] = self.children[at].count() as u32;
        if let Some(Split { separator, behind }) = split {
            self.separators.append(&separator);
            self.counts.insert(at + 1, behind.count() as u32);
            self.children.insert(at + 1, behind);
        }
        self.separators.append(&later);
    }
}

/// Takes the first of some entries.
fn take_first<E: Entries>(entries: &mut E) -> E {
    let mut first = entries.separators();
    first.insert(0, entries.key(0));
    entries.remove(0);
    first
}

/// Runs over a range of a tree as it was when it began, forward or backward.
#[derive(Debug, Clone)]
pub(super) struct TreeWalk<E: Entries> {
    /// Of no use, and not held, where all is in one leaf.
    root: Option<Arc<Node<E>>>,
    /// A leaf; after the end the last one.
    leaf: Arc<Node<E>>,
    /// The node above the leaf, and which of its children that is; known after the first turn.
    parent: Option<(Arc<Node<E>>, usize)>,
    /// What is left of the leaf.
    from: usize,
    end: usize,
    /// The entry that was given last.
    here: usize,
    /// Where the range begins or, backward, where it ends; not kept where that is in the first leaf.
    limit: Option<Box<Limit<E>>>,
    backward: bool,
    /// The leaf is the last one of the range.
    is_last: bool,
}

/// An end of a range: the entries that begin with a key, or all up to them.
#[derive(Debug, Clone)]
pub(super) struct Limit<E: Entries> {
    key: E::Owned,
    /// Those that begin with the key come before the end.
    pub(super) above: bool,
}

impl<E: Entries> Limit<E> {
    pub(super) fn new(key: &E::Key, above: bool) -> Limit<E> {
        Limit { key: E::owned(key), above }
    }

    pub(super) fn key(&self) -> &E::Key {
        std::borrow::Borrow::borrow(&self.key)
    }

    /// How many of some entries come before it.
    fn place(&self, entries: &E) -> usize {
        if self.above { entries.upper(self.key()) } else { entries.lower(self.key()) }
    }
}

impl<E: Entries> Tree<E> {
    /// Walks what is between two limits.
    pub(super) fn walk(&self, from: Option<Limit<E>>, upto: Option<Limit<E>>, backward: bool) -> TreeWalk<E> {
        let (begin, limit) = if backward { (upto, from) } else { (from, upto) };
        let leaf = Arc::clone(Node::leaf_at(&self.root, begin.as_ref(), backward));
        let (root, parent) = (None, None);
        let mut walk =
            TreeWalk { root, leaf, parent, from: 0, end: 0, here: 0, limit: None, backward, is_last: false };
        walk.enter(begin.as_ref(), limit.as_ref());
        if !walk.is_last {
            walk.root = Some(Arc::clone(&self.root));
            walk.limit = limit.map(Box::new);
        }
        walk
    }

    /// How many entries are between two limits.
    pub(super) fn count(&self, from: Option<&Limit<E>>, upto: Option<&Limit<E>>) -> usize {
        let rank = |limit: &Limit<E>| self.rank(limit.key(), limit.above);
        upto.map_or_else(|| self.len(), rank).saturating_sub(from.map_or(0, rank))
    }
}

impl<E: Entries> Node<E> {
    /// The leaf where a limit is; without one, that at the end where a walk begins.
    fn leaf_at<'t>(mut node: &'t Arc<Node<E>>, limit: Option<&Limit<E>>, backward: bool) -> &'t Arc<Node<E>> {
        let Some(limit) = limit else { return Node::end(node, backward) };
        while let Node::Inner(inner) = &**node {
            node = &inner.children[limit.place(&inner.separators)];
        }
        node
    }

    /// The leaf beside the one that has a key: the node above it, and which of its children it is.
    fn neighbour<'t>(
        root: &'t Arc<Node<E>>,
        key: &E::Key,
        backward: bool,
    ) -> Option<(&'t Arc<Node<E>>, usize)> {
        let (mut node, mut beside) = (root, None);
        while let Node::Inner(inner) = &**node {
            let at = inner.separators.upper(key);
            let next = if backward { at.checked_sub(1) } else { Some(at + 1) };
            let next = next.filter(|next| *next < inner.children.len());
            beside = next.map(|next| (node, next)).or(beside);
            node = &inner.children[at];
        }
        let (mut node, mut at) = beside?;
        while let Node::Inner(inner) = &**node
            && let Node::Inner(below) = &*inner.children[at]
        {
            (node, at) = (&inner.children[at], if backward { below.children.len() - 1 } else { 0 });
        }
        Some((node, at))
    }

    fn child(&self, at: usize) -> Option<&Arc<Node<E>>> {
        match self {
            Node::Leaf(_) => None,
            Node::Inner(inner) => inner.children.get(at),
        }
    }
}

impl<E: Entries> TreeWalk<E> {
    /// Takes what is in the range of the leaf that it came to.
    fn enter(&mut self, begin: Option<&Limit<E>>, limit: Option<&Limit<E>>) {
        let Some(leaf) = self.leaf.leaf() else { return };
        let count = leaf.entries.len();
        let begin = begin.map(|begin| begin.place(&leaf.entries));
        let limit = limit.map(|limit| limit.place(&leaf.entries));
        (self.from, self.end) = match self.backward {
            false => (begin.unwrap_or(0), limit.unwrap_or(count)),
            true => (limit.unwrap_or(0), begin.unwrap_or(count)),
        };
        self.is_last = if self.backward { self.from > 0 } else { self.end < count };
    }

    /// Goes to the next leaf; whether there is one.
    fn turn(&mut self) -> bool {
        if self.is_last {
            return false;
        }
        let beside = self.parent.take().and_then(|(parent, at)| {
            let at = if self.backward { at.checked_sub(1)? } else { at + 1 };
            let leaf = Arc::clone(parent.child(at)?);
            Some((parent, at, leaf))
        });
        let next = beside.or_else(|| {
            let leaf = self.leaf.leaf()?;
            let last = leaf.entries.len().checked_sub(1)?;
            let edge = leaf.entries.key(if self.backward { 0 } else { last });
            let (parent, at) = Node::neighbour(self.root.as_ref()?, edge, self.backward)?;
            Some((Arc::clone(parent), at, Arc::clone(parent.child(at)?)))
        });
        let Some((parent, at, next)) = next else {
            self.is_last = true;
            return false;
        };
        self.parent = Some((parent, at));
        self.leaf = next;
        let limit = self.limit.take();
        self.enter(None, limit.as_deref());
        self.limit = limit;
        true
    }

    /// Goes to the next entry; whether there is one.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        while self.from >= self.end {
            if !self.turn() {
                return false;
            }
        }
        if self.backward {
            self.end -= 1;
            self.here = self.end;
        } else {
            self.here = self.from;
            self.from += 1;
        }
        true
    }

    /// The leaf and the place there of the entry that it is at.
    #[inline]
    pub(super) fn here(&self) -> Option<(&Leaf<E>, usize)> {
        Some((self.leaf.leaf()?, self.here))
    }

    /// Leaves out what is left of the entries that begin with a key.
    pub(super) fn skip(&mut self, key: &E::Key) {
        let limit = Limit::new(key, !self.backward);
        let Some(leaf) = self.leaf.leaf() else { return };
        let at = limit.place(&leaf.entries);
        if self.backward {
            self.end = self.end.min(at);
        } else {
            self.from = self.from.max(at);
        }
        if self.from < self.end || self.is_last {
            return;
        }
        let Some(root) = &self.root else { return };
        self.leaf = Arc::clone(Node::leaf_at(root, Some(&limit), self.backward));
        self.parent = None;
        let end = self.limit.take();
        self.enter(Some(&limit), end.as_deref());
        self.limit = end;
    }
}

impl TreeWalk<Words> {
    /// Whether the entry before the one that it is at, in its leaf, is another in its first so many words.
    pub(super) fn is_alone(&self, width: usize) -> bool {
        let Some((leaf, at)) = self.here() else { return false };
        let begins = |at: usize| &leaf.entries.entry(at)[..width];
        at.checked_sub(1).is_some_and(|before| begins(before) != begins(at))
    }
}
