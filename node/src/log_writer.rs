//! The thread that writes the log: it decides nothing, it appends what the owner hands it and syncs it. On a full disk it waits
//! for room and says so.

use crate::room::no_room;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Appended, Change, Folder, Installed, Log, StoreError, Synced};

/// Orders under way: one frame by the store's rule, and what was made beside the log.
const ORDERS_UNDER_WAY: usize = 2;

/// How often a full disk is tried again.
const FULL_DISK_WAIT: Duration = Duration::from_secs(1);

/// What the log's thread is to do.
#[derive(Debug)]
pub enum Order {
    /// One frame is to be written.
    Append {
        /// The batch's number.
        sequence: u64,
        /// Its rows.
        changes: Vec<Change>,
    },
    /// A checkpoint or a spare is in place.
    Installed(Box<Installed>),
}

/// What the log's thread says.
#[derive(Debug, Clone)]
pub enum Said {
    /// A frame is durable.
    Written(Written),
    /// There is no room for a frame, in words; it is tried again until there is.
    Full(String),
}

/// A frame is durable.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// The proof.
    pub synced: Synced,
    /// What the log lacks now.
    pub lacks: Lacks,
}

/// What should be made beside the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lacks {
    /// So much was written that a checkpoint is due.
    pub checkpoint: bool,
    /// A spare of so many bytes.
    pub spare: Option<u64>,
    /// If there is no room for a spare, a checkpoint, for what that frees.
    pub any_room: bool,
    /// How many checkpoints and spares the log had taken by then: what it lacked before it took the newest says nothing.
    pub taken: u64,
}

/// Starts the thread: where orders go in, where it says what came of them, and what to join. It ends when the orders' sender
/// is dropped, or after the first failure, and gives back the log: with it goes the lock of the folder, which must outlive
/// everything that writes there.
///
/// # Errors
/// The system starts no more threads.
#[allow(clippy::type_complexity, reason = "three ends of one thing, taken apart by the one caller")]
pub fn start(
    log: Log<Folder>,
) -> io::Result<(Sender<Order>, Receiver<Result<Said, StoreError>>, JoinHandle<Log<Folder>>)> {
    let (orders, taken) = bounded::<Order>(ORDERS_UNDER_WAY);
    let (says, said) = bounded(ORDERS_UNDER_WAY);
    let mut writer = Writer { log, orders: taken, says, taken: 0 };
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        while let Ok(order) = writer.orders.recv() {
            let goes_on = match order {
                Order::Append { sequence, changes } => writer.write(sequence, &changes),
                Order::Installed(installed) => {
                    writer.take(*installed);
                    true
                }
            };
            if !goes_on {
                break;
            }
        }
        writer.log
    })?;
    Ok((orders, said, thread))
}

struct Writer {
    log: Log<Folder>,
    orders: Receiver<Order>,
    says: Sender<Result<Said, StoreError>>,
    /// Checkpoints and spares taken.
    taken: u64,
}

impl Writer {
    fn take(&mut self, installed: Installed) {
        self.log.checkpointed(installed);
        self.taken += 1;
    }

    /// Writes a frame and says so; whether the thread goes on.
    fn write(&mut self, sequence: u64, changes: &[Change]) -> bool {
        let Some(appended) = self.append(sequence, changes) else { return false };
        let result = appended.and_then(|appended| self.log.sync(appended));
        let failed = result.is_err();
        let lacks = Lacks {
            checkpoint: self.log.checkpoint_is_due(),
            spare: self.log.wants_spare(),
            any_room: self.log.is_nearly_out(),
            taken: self.taken,
        };
        self.says.send(result.map(|synced| Said::Written(Written { synced, lacks }))).is_ok() && !failed
    }

    /// Appends, waiting for room as long as the disk is full; none if the owner is gone.
    fn append(&mut self, sequence: u64, changes: &[Change]) -> Option<Result<Appended, StoreError>> {
        let mut is_told = false;
        loop {
            let result = self.log.append(sequence, changes);
            let Some(full) = result.as_ref().err().and_then(no_room) else { return Some(result) };
            if !std::mem::replace(&mut is_told, true) {
                self.says.send(Ok(Said::Full(full))).ok()?;
            }
            match self.orders.recv_timeout(FULL_DISK_WAIT) {
                Ok(Order::Installed(installed)) => self.take(*installed),
                // One frame at a time: the owner sends no other before this one is durable.
                Ok(Order::Append { .. }) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}
