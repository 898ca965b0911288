//! The links at rest: a flat entry each, found by the peer and by the id in packets that come.
//!
//! An entry says whose link it is, where its packets come in, and what of them is not in the memo place: the numbers that
//! were used. All else is in the place, and read when the link wakes ([`rest`](crate::rest), §10.8). So an entry has no
//! secret. Must not know keys or what wakes a link.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use hashbrown::HashTable;
use sealing::NodeId;

use crate::time::{Span, Time};

/// The table grows by this part of its entries: what is left unused is less than it, and growing costs nine copies of an
/// entry in all.
const GROWTH: usize = 8;

/// The fewest entries that it grows by.
const GROWTH_MIN: usize = 64;

/// The numbers that were used under a root in a pair of runs. None is used again (§9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Of the next packet.
    pub(crate) next: u32,
    /// One above the highest packet number received: all below count as received.
    pub(crate) received: u32,
    /// Of the next hail.
    pub(crate) next_hail: u16,
    /// As `received`, of hails.
    pub(crate) hails_received: u16,
}

/// What is kept in memory of a link at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) node: NodeId,
    /// The id in packets that come.
    pub(crate) id: [u8; 8],
    pub(crate) numbers: Numbers,
    heard_second: u32,
}

impl Resting {
    pub(crate) fn new(node: NodeId, id: [u8; 8], numbers: Numbers, heard: Option<Time>) -> Resting {
        let second = heard.map_or(0, |heard| heard.0 / Span::seconds(1).0);
        Resting { node, id, numbers, heard_second: u32::try_from(second).unwrap_or(u32::MAX) }
    }

    /// When the peer was last heard, to the second.
    pub(crate) fn heard(&self) -> Time {
        Time(u64::from(self.heard_second) * Span::seconds(1).0)
    }
}

/// All links at rest.
pub(crate) struct RestingLinks {
    /// Without holes: the last entry takes the place of one that goes.
    entries: Vec<Resting>,
    by_node: HashTable<u32>,
    by_id: HashTable<u32>,
    /// Hashed before all else: a peer chooses its name, not its place in a table.
    secret: [u8; 8],
}

impl RestingLinks {
    pub(crate) fn new(secret: [u8; 8]) -> RestingLinks {
        RestingLinks { entries: Vec::new(), by_node: HashTable::new(), by_id: HashTable::new(), secret }
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        hash(&self.secret, bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.get(node).is_some()
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&Resting> {
        let hash = self.hash(&node.0);
        let at = self.by_node.find(hash, |at| self.entries[*at as usize].node == node)?;
        self.entries.get(*at as usize)
    }

    /// Whose link has this id in packets that come.
    pub(crate) fn node_of(&self, id: [u8; 8]) -> Option<NodeId> {
        let at = self.by_id.find(self.hash(&id), |at| self.entries[*at as usize].id == id)?;
        Some(self.entries[*at as usize].node)
    }

    /// Keeps an entry of a node that has none. False if there is no place for it.
    pub(crate) fn insert(&mut self, resting: Resting) -> bool {
        debug_assert!(!self.contains(resting.node), "a link is at rest once");
        let Ok(at) = u32::try_from(self.entries.len()) else { return false };
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact((self.entries.len() / GROWTH).max(GROWTH_MIN));
        }
        let (node_hash, id_hash) = (self.hash(&resting.node.0), self.hash(&resting.id));
        self.entries.push(resting);
        let RestingLinks { entries, by_node, by_id, secret } = self;
        by_node.insert_unique(node_hash, at, |at| hash(secret, &entries[*at as usize].node.0));
        by_id.insert_unique(id_hash, at, |at| hash(secret, &entries[*at as usize].id));
        true
    }

    /// Takes the entry of a node.
    pub(crate) fn take(&mut self, node: NodeId) -> Option<Resting> {
        let resting = *self.get(node)?;
        let entry = self.by_node.find_entry(self.hash(&node.0), |at| self.entries[*at as usize].node == node);
        let (at, _) = entry.ok()?.remove();
        if let Ok(entry) = self.by_id.find_entry(self.hash(&resting.id), |found| *found == at) {
            entry.remove();
        }
        self.entries.swap_remove(at as usize);
        if let Some(moved) = self.entries.get(at as usize).copied() {
            let last = self.entries.len() as u32;
            let (node_hash, id_hash) = (self.hash(&moved.node.0), self.hash(&moved.id));
            for found in [
                self.by_node.find_mut(node_hash, |found| *found == last),
                self.by_id.find_mut(id_hash, |found| *found == last),
            ]
            .into_iter()
            .flatten()
            {
                *found = at;
            }
        }
        Some(resting)
    }
}

fn hash(secret: &[u8; 8], bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(secret);
    hasher.write(bytes);
    hasher.finish()
}

impl fmt::Debug for RestingLinks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.entries).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn entry(number: u8) -> Resting {
        let numbers = Numbers { next: u32::from(number), received: 1, next_hail: 2, hails_received: 3 };
        Resting::new(NodeId::from_bytes([number; 32]), [number; 8], numbers, None)
    }

    proptest! {
        /// Whatever goes and comes, each is found by its node and by its id, and nothing else is.
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec((0u8..20, any::<bool>()), 0..200)) {
            let mut links = RestingLinks::new([7; 8]);
            let mut model = BTreeMap::new();
            for (number, comes) in steps {
                if !comes {
                    prop_assert_eq!(links.take(entry(number).node), model.remove(&number));
                } else if let std::collections::btree_map::Entry::Vacant(place) = model.entry(number) {
                    place.insert(entry(number));
                    prop_assert!(links.insert(entry(number)));
                }
                for number in 0..20 {
                    let expected = model.get(&number);
                    prop_assert_eq!(links.get(entry(number).node), expected);
                    prop_assert_eq!(links.node_of([number; 8]), expected.map(|entry| entry.node));
                }
                prop_assert_eq!(links.len(), model.len());
            }
        }
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Resting>(), 56);
    }
}
