//! Checkpoints: all rows after a frame, in a fresh file each time, so that the log before it is not needed any more.
//!
//! A file begins with a page that says after which frame it was made ([`header`]); a redb file follows ([`content`]), in
//! which the rows stand in blocks. [`job`] writes one in steps, reads it back from the medium and only then gives it its
//! name; [`read`] verifies a file before redb is shown a byte of it. Two are kept, and the log after the older one, so that
//! a checkpoint that rots costs time and nothing else.

mod content;
mod header;
mod job;
mod read;

pub use header::CHECKPOINT_FORMAT_VERSION;
pub use job::{Checkpoint, Progress, Rows};
pub use read::{checkpoint_files, read_checkpoint};

pub(crate) use job::Source;
pub(crate) use read::{Newest, newest_good};

use crate::segment::{name_of, number_of};
use crate::walk::{Amount, Position};

const KIND: &str = "checkpoint-";

/// Bytes of rows in one block, at most, unless a single row has more: with redb's own bytes it just fits eight pages.
const BLOCK_BYTES_MAX: usize = 32_500;

/// What a step of a job reads or writes, in bytes, at most, unless a single row has more: a pause between two steps is a
/// pause of the disk.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// The name of the checkpoint after a frame.
fn checkpoint_name(sequence: u64) -> String {
    name_of(KIND, sequence)
}

/// The frame in a checkpoint's file name; none for any other name.
#[must_use]
pub fn checkpoint_number(name: &str) -> Option<u64> {
    number_of(KIND, name)
}

/// Whether a file of this name is a checkpoint.
#[must_use]
pub fn is_checkpoint(name: &str) -> bool {
    checkpoint_number(name).is_some()
}

/// A checkpoint that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Its file.
    pub file: String,
    /// The frame after which it was made.
    pub sequence: u64,
    /// The run of that frame.
    pub run: u64,
    /// The log that it is of.
    pub log_id: [u8; 16],
    /// How many rows it holds.
    pub rows: u64,
    /// Bytes of these rows, as they are laid out.
    pub row_bytes: u64,
    /// Bytes of its file.
    pub file_bytes: u64,
    pub(crate) position: Position,
    /// What the log's own count was at that frame.
    pub(crate) written: Amount,
}

impl CheckpointInfo {
    fn of(header: &header::Header, written: Amount) -> Self {
        Self {
            file: checkpoint_name(header.position.sequence),
            sequence: header.position.sequence,
            run: header.position.run,
            log_id: header.log_id,
            rows: header.rows,
            row_bytes: header.row_bytes,
            file_bytes: header.content_bytes + crate::segment::PAGE as u64,
            position: header.position,
            written,
        }
    }
}
