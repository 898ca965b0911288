//! What all views that run at the same time may make together, beside what each may.

use crate::budget::BYTES_MAX;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that each view makes without asking: what a usual one makes, so that a few large ones refuse none of those.
pub(crate) const OWN_BYTES: u64 = 1 << 20;
/// Bytes that are taken of an allowance at once: asking costs nothing beside making so many.
const PIECE_BYTES: u64 = 1 << 20;

/// Bytes that views may make between them, each up to its own budget. What one took is there again when it is done.
///
/// Where an allowance is spent depends on what else runs: so it is for views alone, which change nothing.
#[derive(Debug)]
pub struct Allowance {
    bytes: AtomicU64,
    most: u64,
}

impl Allowance {
    /// An allowance of so many bytes; of fewer than one view may make, none could use its budget.
    pub fn new(bytes: u64) -> Arc<Allowance> {
        let most = bytes.max(BYTES_MAX);
        Arc::new(Allowance { bytes: AtomicU64::new(most), most })
    }

    /// The most that views make between them.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// What is left now.
    pub fn left(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// What one view took, until it is done.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Allowance>,
    taken: u64,
    /// What its own budget lets it take yet.
    budget: u64,
    is_refused: bool,
}

impl Share {
    pub(crate) fn new(of: Arc<Allowance>) -> Share {
        Share { of, taken: 0, budget: BYTES_MAX - OWN_BYTES, is_refused: false }
    }

    /// Takes at least so many bytes; none if its budget or the allowance has fewer.
    pub(crate) fn more(&mut self, bytes: u64) -> Option<u64> {
        if bytes > self.budget {
            return None;
        }
        let taken = bytes.max(PIECE_BYTES).min(self.budget);
        if !self.of.take(taken) {
            self.is_refused = true;
            return None;
        }
        self.taken += taken;
        self.budget -= taken;
        Some(taken)
    }

    /// Whether it was the allowance that had too few.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.bytes.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, ViewError, ViewLimits};
    use sealing::NodeId;

    #[test]
    fn what_is_taken_is_there_again_afterwards() {
        let allowance = Allowance::new(0);
        assert_eq!(allowance.most(), BYTES_MAX);
        let mut first = Share::new(Arc::clone(&allowance));
        assert_eq!(first.more(1), Some(PIECE_BYTES));
        assert_eq!(first.more(3 * PIECE_BYTES), Some(3 * PIECE_BYTES));
        assert_eq!(first.more(BYTES_MAX), None);
        assert!(!first.is_refused(), "its own budget has no more");
        let mut second = Share::new(Arc::clone(&allowance));
        assert_eq!(second.more(BYTES_MAX - 2 * PIECE_BYTES), None);
        assert!(second.is_refused());
        assert_eq!(allowance.left(), BYTES_MAX - 4 * PIECE_BYTES);
        drop((first, second));
        assert_eq!(allowance.left(), BYTES_MAX);
        // What is left of a budget is given even if it is less than a piece.
        let mut third = Share::new(Arc::clone(&allowance));
        assert_eq!(third.more(BYTES_MAX - OWN_BYTES - 7), Some(BYTES_MAX - OWN_BYTES - 7));
        assert_eq!(third.more(7), Some(7));
        assert_eq!(third.more(1), None);
    }

    #[test]
    fn a_view_that_others_leave_no_room_for_is_told_so_and_small_ones_go_on() {
        let source = "app a\nview of(n: int) = count(m for m in [i for i in 1 .. n] where m > 1)\n";
        let module = weft::compile(source, "a.weft").expect("the app is right");
        let snapshot = App::new(Arc::new(module), NodeId([1; 32])).snapshot();
        let allowance = Allowance::new(0);
        let of = |n: &str| {
            let limits = ViewLimits { operations: u64::MAX, result_bytes: usize::MAX, allowance: &allowance };
            snapshot.view_within("of", &[("n".into(), n.into())], "local", 0, limits)
        };
        assert_eq!(of("200000"), Ok("199999".into()));
        let mut others = Share::new(Arc::clone(&allowance));
        assert!(others.more(BYTES_MAX - OWN_BYTES).is_some());
        assert_eq!(of("200000"), Err(ViewError::Crowded { limit: BYTES_MAX }));
        assert_eq!(of("20"), Ok("19".into()));
        drop(others);
        assert_eq!(of("200000"), Ok("199999".into()));
        // What went over its own budget was not crowded out.
        assert!(matches!(of("100000000"), Err(ViewError::Budget { .. })));
        assert_eq!(allowance.left(), BYTES_MAX);
    }
}
