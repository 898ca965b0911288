//! What lies in a node's folder: looked at while no node runs on it, without changing anything.

use crate::folder;
use crate::process::NodeError;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use store::{Checked, Contents, Damage, Folder, SegmentInfo, State, Storage, StoreError};

/// Why nothing was looked at.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The folder holds no log.
    #[error("{} is no node's folder: there is no log in it (the files log-*)", .0.display())]
    NoLog(PathBuf),
    /// The folder cannot be opened, or what is in it cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of it cannot be looked at.
    #[error("cannot look at {file}: {source}")]
    File {
        /// Which.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// How much a folder holds.
#[derive(Debug)]
pub struct Stat {
    /// What a start would find.
    pub contents: Contents,
    /// The log's segments, oldest first.
    pub segments: Vec<SegmentInfo>,
    /// Rows of the state.
    pub rows: u64,
    /// Bytes of their keys and themselves.
    pub row_bytes: u64,
    /// Checkpoints and bytes of them.
    pub checkpoints: (u64, u64),
    /// Files that the next segments are made of, and bytes of them.
    pub spares: (u64, u64),
    /// Bytes of all files of the folder.
    pub file_bytes: u64,
    /// How long ago the checkpoint was made that a start begins with, by the file's time.
    pub checkpoint_seconds: Option<u64>,
}

/// Looks at every frame and row of a folder, and at its identity.
///
/// # Errors
/// The folder is no node's, or cannot be opened: a node runs on it, for example.
pub fn check(dir: &Path) -> Result<Checked, StoredError> {
    let mut folder = open(dir)?;
    let mut checked = store::check(&mut folder)?;
    let identity = match folder::is_nodes(dir) {
        true => folder::read_identity(dir).err(),
        false => Some(NodeError::Identity { path: dir.join("identity"), what: "it is missing".to_owned() }),
    };
    if let Some(error) = identity {
        checked.damages.push(Damage { file: "identity".to_owned(), bytes: None, why: error.to_string() });
    }
    Ok(checked)
}

/// Measures a folder.
///
/// # Errors
/// As [`check`]; the log is damaged.
pub fn stat(dir: &Path) -> Result<Stat, StoredError> {
    let mut folder = open(dir)?;
    let mut state = State::default();
    let contents = store::read(&mut folder, &mut |change| state.change(change))?;
    let mut stat = Stat {
        segments: store::segments(&mut folder)?,
        rows: state.rows(),
        row_bytes: state.bytes(),
        checkpoints: (0, 0),
        spares: (0, 0),
        file_bytes: 0,
        checkpoint_seconds: None,
        contents,
    };
    for name in list(&mut folder, dir)? {
        let file = |source| StoredError::File { file: dir.join(&name).display().to_string(), source };
        let metadata = std::fs::metadata(dir.join(&name)).map_err(file)?;
        stat.file_bytes += metadata.len();
        let count = match &name {
            name if store::is_checkpoint(name) => &mut stat.checkpoints,
            name if store::is_spare(name) => &mut stat.spares,
            _ => continue,
        };
        *count = (count.0 + 1, count.1 + metadata.len());
        if stat.contents.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.file == name) {
            let made = metadata.modified().map_err(file)?;
            // A clock that was set back makes it no older than now.
            let age = SystemTime::now().duration_since(made).unwrap_or_default();
            stat.checkpoint_seconds = Some(age.as_secs());
        }
    }
    Ok(stat)
}

/// A folder with a log. Another is not even locked: a path that was mistyped is left as it is.
pub(crate) fn open(dir: &Path) -> Result<Folder, StoredError> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut logs = names.filter(|entry| entry.file_name().to_str().is_some_and(store::is_segment));
    if logs.next().is_none() && !folder::is_nodes(dir) {
        return Err(StoredError::NoLog(dir.to_owned()));
    }
    Ok(Folder::open_to_read(dir)?)
}

fn list(folder: &mut Folder, dir: &Path) -> Result<Vec<String>, StoredError> {
    let shown = |source| StoredError::File { file: dir.display().to_string(), source };
    folder.list().map_err(shown)
}
