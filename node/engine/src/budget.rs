//! What an event or a view may cost. What is counted is the same on every machine.

use crate::allowance::{Allowance, OWN_BYTES, Share};
use std::sync::Arc;

/// Operations of one event or view: every operation of the code is one, bulk ones count by size.
pub const OPERATIONS_MAX: u64 = 1 << 24;
/// Bytes that one event or view may make, all together: texts, records, lists, arguments, answers.
pub const BYTES_MAX: u64 = 1 << 28;
/// Bytes of the changed rows, sends and answer of one event, all together: what fits a frame of the log (24 MiB) with
/// the 4 MiB that a batch may hold before it.
pub const EVENT_BYTES_MAX: usize = 16 << 20;
/// Bytes of one send's arguments: with the output's name before them they fit a record that a node takes (256 KiB).
pub const SEND_BYTES_MAX: usize = 240 << 10;
/// Bytes of what a transient send carries: with names it fits one packet of a link.
pub(crate) const TRANSIENT_BYTES_MAX: usize = 700;
/// Bytes of what a handler answers a send: with its record's outcome it fits one packet of a link.
pub(crate) const ANSWER_BYTES_MAX: usize = 800;
/// Bytes of one timer's arguments: they are its key.
pub(crate) const TIMER_BYTES_MAX: usize = 4 << 10;
/// Bytes of a key of a row and of an entry of an index (its row's key behind it): each change and each look into a list
/// makes some and compares with others.
pub(crate) const KEY_BYTES_MAX: usize = 4 << 10;
/// Operations of making or removing an entry of an index, beside its bytes: a tree is searched and a part of it moved.
pub(crate) const ENTRY_OPERATIONS: u64 = 8;
/// Bytes of two keys that are compared in one operation.
pub(crate) const COMPARED_BYTES: usize = 64;
/// Sends of one event: bounds what one event adds to the outbox.
pub(crate) const SENDS_MAX: usize = 4_096;

/// Operations that finding so many bytes among so many keys costs beside its own one.
pub(crate) fn search_operations(bytes: usize, keys: usize) -> u64 {
    let rounds = u64::from(usize::BITS - keys.leading_zeros());
    (bytes / COMPARED_BYTES) as u64 * rounds
}

/// Bytes of a value in a record or a list; what it shares with others is not counted.
pub(crate) const VALUE_BYTES: usize = size_of::<weft::Value>();

/// Why code stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// In the app's words or the language's.
    Refused(String),
    /// It cost too much.
    Budget { unit: &'static str, limit: u64 },
}

impl Fault {
    /// A register does not hold what the checker has proven: an error of the compiler, never of the app.
    pub(crate) fn unproven(what: &str) -> Fault {
        Fault::Refused(format!("the compiled code is broken ({what} expected): please report this app"))
    }

    /// What would be kept or sent is not of its declared type: as [`Fault::unproven`].
    #[cold]
    pub(crate) fn of_another_type() -> Fault {
        Fault::unproven("a value of the declared type")
    }
}

/// What is left.
#[derive(Debug)]
pub(crate) struct Budget {
    operations: u64,
    /// How many there were.
    operations_max: u64,
    bytes: u64,
    /// Where more bytes come from, of what is made while others make some.
    share: Option<Share>,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { operations: OPERATIONS_MAX, operations_max: OPERATIONS_MAX, bytes: BYTES_MAX, share: None }
    }

    /// So many operations, no more than there ever are, and bytes of which most are taken of an allowance as they are
    /// needed.
    pub(crate) fn within(operations: u64, allowance: Arc<Allowance>) -> Budget {
        let operations = operations.min(OPERATIONS_MAX);
        Budget {
            operations,
            operations_max: operations,
            bytes: OWN_BYTES,
            share: Some(Share::new(allowance)),
        }
    }

    /// Whether it was stopped because others make too much now.
    pub(crate) fn is_crowded_out(&self) -> bool {
        self.share.as_ref().is_some_and(Share::is_refused)
    }

    pub(crate) fn used(&self) -> u64 {
        self.operations_max - self.operations
    }

    pub(crate) fn operations_left(&self) -> u64 {
        self.operations
    }

    #[inline]
    pub(crate) fn operations(&mut self, count: u64) -> Result<(), Fault> {
        match self.operations.checked_sub(count) {
            Some(left) => {
                self.operations = left;
                Ok(())
            }
            None => {
                self.operations = 0;
                Err(Fault::Budget { unit: "operations", limit: self.operations_max })
            }
        }
    }

    /// Charges operations and bytes, if both are left.
    pub(crate) fn charge(&mut self, operations: u64, bytes: u64) -> Option<()> {
        let operations = self.operations.checked_sub(operations)?;
        self.bytes = self.bytes.checked_sub(bytes)?;
        self.operations = operations;
        Some(())
    }

    /// Charges one operation.
    #[inline(always)]
    pub(crate) fn one(&mut self) -> Result<(), Fault> {
        if self.operations == 0 {
            return self.operations(1);
        }
        self.operations -= 1;
        Ok(())
    }

    /// Charges a search for one name among so many.
    pub(crate) fn searched(&mut self, count: usize) -> Result<(), Fault> {
        self.operations(count as u64 / 16)
    }

    /// Charges bytes, and an operation for every sixteen.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<(), Fault> {
        self.operations(count as u64 / 16)?;
        match self.bytes.checked_sub(count as u64) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => self.bytes_beyond(count as u64),
        }
    }

    #[cold]
    fn bytes_beyond(&mut self, count: u64) -> Result<(), Fault> {
        let lacking = count - self.bytes;
        let more = self.share.as_mut().and_then(|share| share.more(lacking));
        let more = more.ok_or(Fault::Budget { unit: "bytes", limit: BYTES_MAX })?;
        self.bytes = more - lacking;
        Ok(())
    }
}
