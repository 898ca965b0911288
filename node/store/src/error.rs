//! What can go wrong, with which file and value, and what a person can do.

use std::io;
use std::path::PathBuf;

/// Why the store refused or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An operation failed before anything of the log was at stake: while opening, or on a file beside it.
    #[error("cannot {operation} {file}: {source}{}", advice(source))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file or folder.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// An append or a sync failed. Whether the frame is durable is not known, and the log takes nothing more.
    #[error(
        "cannot {operation} {file}: {source}. Whether the last changes were kept is not known, so nothing more is \
         written: mend the disk, then start the node again, which finds out what was kept"
    )]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// The segment.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// An append or sync failed earlier; the outcome of what it carried is unknown until the log is opened again.
    #[error(
        "the log stopped at an earlier failure; what it carried then may or may not have been kept. Start the node \
         again, which finds out"
    )]
    Poisoned,
    /// There is no room for the next segment. Nothing was harmed; the same append may be tried again.
    #[error(
        "no room on the disk for {file} ({bytes} bytes): nothing was written. Free some space and try again"
    )]
    NoRoom {
        /// The segment that could not be prepared.
        file: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A change set larger than a frame may be. Nothing was written.
    #[error("changes of {bytes} bytes are more than one frame may hold ({limit} bytes)")]
    TooLarge {
        /// Encoded size in bytes.
        bytes: usize,
        /// The greatest size in bytes.
        limit: usize,
    },
    /// A checkpoint was written, and the medium gives back something else. The checkpoint before and the log are as they
    /// were.
    #[error(
        "the disk does not give back what was written to {file}: {why}. It may be failing; the checkpoint before and the \
         log after it are as they were"
    )]
    NotGivenBack {
        /// The checkpoint.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// The rows of a checkpoint are not in ascending order of list and key: a bug of the caller.
    #[error("the rows of list {list} were given in no order")]
    Order {
        /// The list.
        list: u64,
    },
    /// The caller's sequence number is not the next one: a bug of the caller.
    #[error("frame {found} was appended where {expected} is next")]
    Sequence {
        /// The next number.
        expected: u64,
        /// The number given.
        found: u64,
    },
    /// The frame before was not synced yet: a bug of the caller.
    #[error("frame {sequence} is not synced yet; one unsynced frame at most")]
    Unsynced {
        /// The unsynced frame.
        sequence: u64,
    },
    /// The folder's path is a file's.
    #[error("{path} is a file, not a folder: name a new or empty folder")]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A folder that holds something and was never opened by this program.
    #[error("{folder} is not empty and no node's folder: name a new or empty one")]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder in which the folder would be is not there.
    #[error(
        "cannot make the folder {folder}: there is no folder {parent}. Make that one first, or name another"
    )]
    NoParent {
        /// The folder.
        folder: PathBuf,
        /// Where it would be.
        parent: PathBuf,
    },
    /// The folder cannot be made.
    #[error("cannot make the folder {folder}: {source}. Name one in a folder that you may write to")]
    CannotMake {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process owns the folder.
    #[error("{folder} is in use by {}; stop it first", match pid { Some(pid) => format!("process {pid}"), None => "another process".to_owned() })]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The owner, where it wrote its number already.
        pid: Option<u32>,
    },
    /// A file or folder that others can read or write.
    #[error("{path} may be used by others (mode {mode:04o}), and it holds secrets. Mend it with: {command}")]
    Permissions {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The command that mends it.
        command: String,
    },
    /// Written by a newer version of the program.
    #[error(
        "{file} has format {found}; this program knows formats up to {known}. Nothing was changed: use the newer \
         program that wrote it, or another folder"
    )]
    NewerFormat {
        /// The segment.
        file: String,
        /// Its format version.
        found: u32,
        /// The newest known here.
        known: u32,
    },
    /// Bytes in the middle of the log are wrong while later ones are right: this is no crash, but damage.
    #[error(
        "{file} is damaged from byte {offset} to byte {end}: {why}. Nothing was changed. Keep a copy of the folder and \
         restore a backup; without one `selvedge store salvage` says what can be saved. A copy made of a running node's \
         folder looks like this too: `selvedge store backup` makes a good one"
    )]
    Corrupt {
        /// The segment.
        file: String,
        /// First damaged byte.
        offset: u64,
        /// The byte after the last that may be damaged.
        end: u64,
        /// What is wrong.
        why: String,
    },
    /// Bytes of a backup are not what was written.
    #[error(
        "{file} is damaged from byte {offset} to byte {end}: {why}. Nothing was restored: use another copy of it, or another \
         backup"
    )]
    DamagedBackup {
        /// The backup.
        file: String,
        /// First damaged byte.
        offset: u64,
        /// The byte after the last that may be damaged.
        end: u64,
        /// What is wrong.
        why: String,
    },
    /// Neither a checkpoint nor the beginning of a log can be read.
    #[error(
        "nothing can be saved: neither a checkpoint nor the beginning of the log can be read. Nothing was changed: restore a \
         backup"
    )]
    NothingToSave,
    /// Something else than a backup.
    #[error("{file} is no backup: `selvedge store backup` makes one")]
    NoBackup {
        /// The file.
        file: String,
    },
    /// A segment is not there while later ones are.
    #[error(
        "{file} is missing while later parts of the log are there. Nothing was changed: put it back, or restore a backup"
    )]
    Missing {
        /// The missing segment.
        file: String,
    },
    /// A segment of another log.
    #[error(
        "{file} belongs to another log. Nothing was changed: remove it if you know where it came from, or restore a backup"
    )]
    Foreign {
        /// The segment.
        file: String,
    },
}

impl StoreError {
    /// Whether it is unknown if the changes of the failed call were kept: then nobody may be told either outcome.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Poisoned)
    }

    pub(crate) fn io(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { operation, file: file.to_owned(), source }
    }
}

/// What to do where it is not the system's reason that says it.
fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            ". It may be another user's: run this as the user whose node it is, or name another folder"
        }
        _ => "",
    }
}

/// Whether an error means that the medium is full (or a quota is), so that nothing but room is lacking.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_is_told_what_to_do() {
        let said = |kind: io::ErrorKind| StoreError::io("list", "/a")(io::Error::from(kind)).to_string();
        assert!(
            said(io::ErrorKind::PermissionDenied)
                .ends_with("run this as the user whose node it is, or name another folder")
        );
        assert_eq!(said(io::ErrorKind::TimedOut), "cannot list /a: timed out");
    }
}
