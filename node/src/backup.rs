//! Backups of a node: made of a folder, or of what a running node says at `/-/backup`; and folders made of them.

use crate::folder::{self, IDENTITY};
use crate::foundation::{Foundation, FoundationError};
use crate::process::NodeError;
use crate::stored::{self, StoredError};
use node_core::Recovery;
use sealing::NodeId;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::{BackedUp, BackupReader, BackupWriter, Founded, Part, Row, StoreError};
use zeroize::Zeroizing;

pub use crate::foundation::Restored;

/// Rows of one part of a backup that is made of a folder, in bytes, about.
const PART_BYTES: usize = 32 << 10;

/// Why there is no backup. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder cannot be read.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// What was read is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The identity cannot be read.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// There is a file of this name.
    #[error("{} is there already: name another file, or remove it", .0.display())]
    Exists(PathBuf),
    /// It cannot be written.
    #[error("cannot write {file}: {source}")]
    Write {
        /// Where to.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk gives back something else.
    #[error(
        "the disk does not give back what was written to {file}: {source}. It may be failing: write it elsewhere"
    )]
    NotGivenBack {
        /// The backup.
        file: String,
        /// What is wrong.
        source: Box<StoreError>,
    },
}

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A backup that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The state that it is of.
    pub about: BackedUp,
    /// Whose it is; none if no node was ever started on the folder.
    pub node: Option<NodeId>,
    /// How much it is.
    pub amount: Amount,
    /// Whether the identity is in it.
    pub has_identity: bool,
}

/// What is backed up.
#[derive(Debug)]
pub struct Wanted<'w> {
    /// The node's folder.
    pub dir: &'w Path,
    /// Whether the identity goes into the backup.
    pub with_identity: bool,
}

/// The rows of what is backed up, in parts.
type Parts<'p> = Box<dyn Iterator<Item = Result<Part, StoreError>> + 'p>;

impl Wanted<'_> {
    /// Backs up a folder on which no node runs.
    ///
    /// # Errors
    /// The folder cannot be read; the backup cannot be written.
    pub fn of_folder(
        &self,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(Amount),
    ) -> Result<Made, BackupError> {
        let mut folder = stored::open(self.dir)?;
        let mut recovery = Recovery::default();
        let contents = store::read(&mut folder, &mut |change| recovery.change(change))?;
        let about = BackedUp::of(&contents).ok_or_else(|| StoredError::NoLog(self.dir.to_owned()))?;
        let mut rows = recovery.into_rows().map_err(NodeError::from)?;
        let parts = std::iter::from_fn(|| some(&mut rows).map(|rows| Ok(Part::Rows(rows))));
        self.write(&about, Box::new(parts), out, progress)
    }

    /// Passes on the backup that a running node makes of itself, each part verified.
    ///
    /// # Errors
    /// The node ended before the backup did; the backup cannot be written.
    pub fn of_node(
        &self,
        said: impl Read,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(Amount),
    ) -> Result<Made, BackupError> {
        let reader = BackupReader::open(said, "what the node says")?;
        let about = *reader.about();
        self.write(&about, Box::new(reader), out, progress)
    }

    fn write(
        &self,
        about: &BackedUp,
        parts: Parts<'_>,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(Amount),
    ) -> Result<Made, BackupError> {
        let mut amount = Amount::default();
        let mut node = None;
        let mut put = |bytes: &[u8]| {
            out.write_all(bytes)
                .map_err(|source| BackupError::Write { file: "the backup".to_owned(), source })
                .map(|()| bytes.len() as u64)
        };
        let (mut writer, first) = BackupWriter::begin(about);
        amount.bytes += put(&first)?;
        for part in parts {
            let part = part?;
            if let Part::Rows(rows) = &part {
                node = node.or_else(|| rows.iter().find_map(node_core::owner));
                amount.rows += rows.len() as u64;
            }
            amount.bytes += put(&writer.part(&part))?;
            progress(amount);
        }
        if self.with_identity {
            let (_, bytes) = folder::read_identity_file(&self.dir.join(IDENTITY))?;
            let part = Part::File { name: IDENTITY.to_owned(), bytes: bytes.to_vec() };
            amount.bytes += put(&Zeroizing::new(writer.part(&part)))?;
        }
        amount.bytes += put(&writer.end())?;
        out.flush().map_err(|source| BackupError::Write { file: "the backup".to_owned(), source })?;
        Ok(Made { about: *about, node, amount, has_identity: self.with_identity })
    }
}

/// Some of the rows; none if none is left.
fn some(rows: &mut impl Iterator<Item = Row>) -> Option<Vec<Row>> {
    let (mut some, mut bytes) = (Vec::new(), 0);
    while bytes < PART_BYTES
        && let Some(row) = rows.next()
    {
        bytes += row.key.len() + row.row.len();
        some.push(row);
    }
    (!some.is_empty()).then_some(some)
}

/// Writes a backup into a new file that only its owner may read, whole or not at all: under another name, synced, read back
/// from the medium, then renamed.
///
/// # Errors
/// There is a file of this name; it cannot be written; what `make` says.
pub fn into_file(
    path: &Path,
    make: impl FnOnce(&mut dyn Write) -> Result<Made, BackupError>,
) -> Result<Made, BackupError> {
    whole_file(path, |file| {
        let mut out = BufWriter::new(file);
        let made = make(&mut out)?;
        let file = out.into_inner().map_err(|error| written(path)(error.into_error()))?;
        file.sync_all().map_err(written(path))?;
        read_back(path, file)?;
        Ok(made)
    })
}

fn read_back(path: &Path, file: &mut File) -> Result<(), BackupError> {
    let shown = path.display().to_string();
    rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|error| written(path)(error.into()))?;
    io::Seek::rewind(file).map_err(written(path))?;
    let verified = BackupReader::open(BufReader::new(file), &shown)
        .and_then(|mut reader| reader.try_for_each(|part| part.map(drop)));
    verified.map_err(|source| BackupError::NotGivenBack { file: shown, source: Box::new(source) })
}

fn written(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let file = path.display().to_string();
    move |source| BackupError::Write { file, source }
}

/// Makes a file whole or not at all.
///
/// # Errors
/// As [`into_file`].
pub(crate) fn whole_file<T>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    if path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    // What a crash left of an earlier one.
    let _ = std::fs::remove_file(&unfinished);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(written(path))?;
    let filled = fill(&mut file).and_then(|filled| {
        std::fs::rename(&unfinished, path).map_err(written(path))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = File::open(parent.unwrap_or(Path::new("."))).map_err(written(path))?;
        parent.sync_all().map_err(written(path))?;
        Ok(filled)
    });
    if filled.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    filled
}

/// Makes a node's folder of a backup. `identity` is a file with the node's identity, where the backup's is not to be taken, or
/// it has none.
///
/// # Errors
/// The backup is damaged, then nothing is made; or the folder cannot be made, and then nothing is left of it.
pub fn restore(
    from: impl Read,
    name: &str,
    identity: Option<&Path>,
    dir: &Path,
) -> Result<Restored, FoundationError> {
    let reader = BackupReader::open(from, name)?;
    let founded = Founded { sequence: reader.about().sequence, run: reader.about().run };
    let mut foundation = Foundation { name: name.to_owned(), founded, rows: Vec::new(), identity: None };
    for part in reader {
        match part? {
            Part::Rows(rows) => foundation.rows.extend(rows),
            Part::File { name: file, bytes } if file == IDENTITY => {
                foundation.identity = Some((PathBuf::from(name).join(file), Zeroizing::new(bytes)));
            }
            // A later program's: what it is for is not known here.
            Part::File { .. } => {}
        }
    }
    if let Some(file) = identity {
        let (_, bytes) = folder::read_identity_file(file)?;
        foundation.identity = Some((file.to_owned(), bytes));
    }
    foundation.lay(dir)
}
