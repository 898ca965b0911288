//! What may leave, by type: nothing leaves before the sync of what it read.

use store::Synced;

/// Something that may leave the node: everything it was made from is on disk.
///
/// It can only be made from a token of the sync, so that no path can answer, publish or send what a crash could take
/// back.
#[derive(Debug)]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Releases `value`, which read the state up to batch `read`.
    pub(crate) fn new(value: T, read: u64, synced: &Synced) -> Released<T> {
        assert!(read <= synced.sequence(), "batch {read} was read, {} is synced", synced.sequence());
        Released(value)
    }

    /// What was released.
    pub fn into_inner(self) -> T {
        self.0
    }
}
