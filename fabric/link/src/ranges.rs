//! Ranges of bytes of a record or of numbers of records: which came, which are to be sent again.

/// Half-open ranges in ascending order, none touching another.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_whole(&self, total: u64) -> bool {
        self.0 == [(0, total)]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// What of these is in the ranges.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let from = self.0.partition_point(|range| range.1 <= start);
        let ranges = self.0[from..].iter().take_while(move |range| range.0 < end);
        ranges.map(move |range| (range.0.max(start), range.1.min(end)))
    }

    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let from = self.0.partition_point(|range| range.1 < start);
        let to = self.0.partition_point(|range| range.0 <= end);
        let joined = match self.0.get(from..to) {
            Some([first, .., last]) => (start.min(first.0), end.max(last.1)),
            Some([only]) => (start.min(only.0), end.max(only.1)),
            _ => (start, end),
        };
        self.0.splice(from..to, [joined]);
    }

    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let from = self.0.partition_point(|range| range.1 <= start);
        let to = self.0.partition_point(|range| range.0 < end);
        let Some((first, last)) = self.0.get(from..to).and_then(|cut| Some((cut.first()?.0, cut.last()?.1)))
        else {
            return;
        };
        let left = [(first, start), (end, last)].into_iter().filter(|(start, end)| start < end);
        self.0.splice(from..to, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((any::<bool>(), 0u64..40, 0u64..12), 0..40)) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            for (inserts, start, length) in steps {
                let end = start + length;
                if inserts {
                    ranges.insert(start, end);
                    model.extend(start..end);
                } else {
                    ranges.remove(start, end);
                    model.retain(|at| !(start..end).contains(at));
                }
                let all: Vec<u64> = ranges.iter().flat_map(|(start, end)| start..end).collect();
                prop_assert_eq!(all, model.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
