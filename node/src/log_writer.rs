//! The thread that writes the log: it decides nothing, it appends what the owner hands it and syncs it.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::io;
use std::thread::JoinHandle;
use store::{Change, Folder, Log, StoreError, Synced};

/// Frames under way: one by the store's rule.
const FRAMES_UNDER_WAY: usize = 1;

/// One frame to be written.
#[derive(Debug)]
pub struct Append {
    /// The batch's number.
    pub sequence: u64,
    /// Its rows.
    pub changes: Vec<Change>,
}

/// Starts the thread: where frames go in, where tokens come out, and what to join. It ends when the frames' sender is
/// dropped, or after the first failure, and gives back the log: with it goes the lock of the folder, which must outlive
/// everything that writes there.
///
/// # Errors
/// The system starts no more threads.
#[allow(clippy::type_complexity, reason = "three ends of one thing, taken apart by the one caller")]
pub fn start(
    mut log: Log<Folder>,
) -> io::Result<(Sender<Append>, Receiver<Result<Synced, StoreError>>, JoinHandle<Log<Folder>>)> {
    let (appends, frames) = bounded::<Append>(FRAMES_UNDER_WAY);
    let (done, synced) = bounded(FRAMES_UNDER_WAY);
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        for Append { sequence, changes } in frames {
            let result = log.append(sequence, &changes).and_then(|appended| log.sync(appended));
            let failed = result.is_err();
            if done.send(result).is_err() || failed {
                break;
            }
        }
        log
    })?;
    Ok((appends, synced, thread))
}
