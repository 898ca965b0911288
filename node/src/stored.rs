//! What lies in a node's folder: looked at without changing anything. While a node runs on it, that is asked for its rows.

use crate::folder;
use crate::process::NodeError;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use store::{BackedUp, BackupReader, Checked, Damage, Folder, Part, State, StoreError};

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
#[derive(Debug, Default)]
pub struct Stat {
    /// Starts until now.
    pub run: u64,
    /// The last frame.
    pub sequence: u64,
    /// Rows of the state.
    pub rows: u64,
    /// Bytes of their keys and themselves.
    pub row_bytes: u64,
    /// The log's segments and bytes of them.
    pub segments: (u64, u64),
    /// Checkpoints and bytes of them.
    pub checkpoints: (u64, u64),
    /// Files that the next segments are made of, and bytes of them.
    pub spares: (u64, u64),
    /// Bytes of all files of the folder.
    pub file_bytes: u64,
    /// The checkpoint that a start begins with.
    pub checkpoint: Option<CheckpointStat>,
    /// Bytes of the frames after it, and of the changes in them; none while a node runs, for only a start reads them.
    pub replayed: Option<(u64, u64)>,
}

/// A checkpoint that a start begins with.
#[derive(Debug)]
pub struct CheckpointStat {
    /// Its file.
    pub file: String,
    /// The frame after which it was made.
    pub sequence: u64,
    /// How long ago it was made, by the file's time.
    pub seconds: u64,
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

/// Measures a folder on which no node runs.
///
/// # Errors
/// As [`check`]; the log is damaged.
pub fn stat(dir: &Path) -> Result<Stat, StoredError> {
    let mut folder = open(dir)?;
    let mut state = State::default();
    let contents = store::read(&mut folder, &mut |change| state.change(change))?;
    let mut stat = Stat {
        run: contents.run,
        sequence: contents.sequence,
        rows: state.rows(),
        row_bytes: state.bytes(),
        replayed: Some((contents.replayed_bytes, contents.changed_bytes)),
        ..Stat::default()
    };
    let file = contents.checkpoint.map(|checkpoint| checkpoint.file);
    measure_files(dir, |name| Some(name) == file.as_deref(), &mut stat)?;
    Ok(stat)
}

/// Measures a folder on which a node runs, of which `said` is the backup that it makes of itself.
///
/// # Errors
/// The node ended before its backup did; the folder cannot be listed.
pub fn stat_of_node(dir: &Path, said: impl Read) -> Result<Stat, StoredError> {
    let reader = BackupReader::open(said, "what the node says")?;
    let BackedUp { sequence, run, .. } = *reader.about();
    let mut stat = Stat { run, sequence, ..Stat::default() };
    for part in reader {
        if let Part::Rows(rows) = part? {
            stat.rows += rows.len() as u64;
            stat.row_bytes += rows.iter().map(|row| (row.key.len() + row.row.len()) as u64).sum::<u64>();
        }
    }
    // A running node's newest is good: it was read back before it had its name.
    measure_files(dir, store::is_checkpoint, &mut stat)?;
    Ok(stat)
}

/// Measures a folder's files; the newest checkpoint of those that a start may begin with is that with which it does.
fn measure_files(dir: &Path, begins: impl Fn(&str) -> bool, stat: &mut Stat) -> Result<(), StoredError> {
    let failed = |source| StoredError::File { file: dir.display().to_string(), source };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, metadata) = (entry.file_name(), entry.metadata());
        let metadata = match metadata {
            // A running node removes what it needs no more.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            metadata => metadata.map_err(failed)?,
        };
        let Some(name) = name.to_str().filter(|_| metadata.is_file()) else { continue };
        stat.file_bytes += metadata.len();
        let count = match name {
            name if store::is_segment(name) => &mut stat.segments,
            name if store::is_checkpoint(name) => &mut stat.checkpoints,
            name if store::is_spare(name) => &mut stat.spares,
            _ => continue,
        };
        *count = (count.0 + 1, count.1 + metadata.len());
        let sequence = store::checkpoint_number(name).filter(|_| begins(name));
        if let Some(sequence) = sequence
            .filter(|sequence| stat.checkpoint.as_ref().is_none_or(|other| other.sequence < *sequence))
        {
            let made = metadata.modified().map_err(failed)?;
            // A clock that was set back makes it no older than now.
            let seconds = SystemTime::now().duration_since(made).unwrap_or_default().as_secs();
            stat.checkpoint = Some(CheckpointStat { file: name.to_owned(), sequence, seconds });
        }
    }
    Ok(())
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
