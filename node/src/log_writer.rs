//! The thread that writes the log: it decides nothing, it appends what the owner hands it and syncs it.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::io;
use std::thread::JoinHandle;
use store::{Change, Folder, Installed, Log, StoreError, Synced};

/// Orders under way: one frame by the store's rule, and one checkpoint that is done.
const ORDERS_UNDER_WAY: usize = 2;

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
    /// A checkpoint is done.
    Checkpointed(Box<Installed>),
}

/// A frame is durable.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// The proof.
    pub synced: Synced,
    /// So much was written that a checkpoint is due.
    pub checkpoint_is_due: bool,
}

/// Starts the thread: where orders go in, where tokens come out, and what to join. It ends when the orders' sender is
/// dropped, or after the first failure, and gives back the log: with it goes the lock of the folder, which must outlive
/// everything that writes there.
///
/// # Errors
/// The system starts no more threads.
#[allow(clippy::type_complexity, reason = "three ends of one thing, taken apart by the one caller")]
pub fn start(
    mut log: Log<Folder>,
) -> io::Result<(Sender<Order>, Receiver<Result<Written, StoreError>>, JoinHandle<Log<Folder>>)> {
    let (orders, taken) = bounded::<Order>(ORDERS_UNDER_WAY);
    let (done, written) = bounded(ORDERS_UNDER_WAY);
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        for order in taken {
            let (sequence, changes) = match order {
                Order::Append { sequence, changes } => (sequence, changes),
                Order::Checkpointed(installed) => {
                    log.checkpointed(*installed);
                    continue;
                }
            };
            let result = log.append(sequence, &changes).and_then(|appended| log.sync(appended));
            let failed = result.is_err();
            let checkpoint_is_due = log.checkpoint_is_due();
            if done.send(result.map(|synced| Written { synced, checkpoint_is_due })).is_err() || failed {
                break;
            }
        }
        log
    })?;
    Ok((orders, written, thread))
}
