//! The log and its checkpoints: what was acknowledged is there after any crash.
//!
//! A node has one log. A batch of changed rows is one frame of it; [`Log::append`] writes a frame, [`Log::sync`] makes
//! it durable and hands out [`Synced`], the only thing from which an answer, or a checkpoint, may be made. [`Log::open`]
//! hands out the rows of the newest checkpoint and the changes after it, and writes the start of a new run.
//! [`Checkpoints`] writes a checkpoint in steps beside the log, and frees what it makes needless. The bytes, what is assumed
//! of the medium, and what happens at each point a crash can fall on stand in `docs/store.md`.
//!
//! The store must not know what an app, a peer or a message is: it sees lists by number, keys and rows as bytes.
//! It has no clock and no random source; entropy is handed in. All input and output goes through [`Storage`].
//!
//! How the parts meet: `frame` and `segment` are the byte layouts (pure), `walk` judges what is there over the
//! bytes of a segment, which `window` reads some at a time, `contents` reads a folder, `log` does the output in order, `checkpoint` writes and reads
//! checkpoints, `keeper` does that beside a log, `found` begins a log with rows, `check` looks at everything past the first
//! damage, `salvage` says what can be saved, `state` gathers rows, `backup` is a state as a stream. [`Folder`] is the real medium, [`Memory`] one that loses power, tears
//! writes and fails on demand, for tests and simulators.

mod backup;
mod change;
mod check;
mod checkpoint;
mod contents;
mod error;
mod folder;
mod found;
mod frame;
mod keeper;
mod log;
mod memory;
mod salvage;
mod segment;
mod state;
mod storage;
mod walk;
mod window;

pub use backup::{BACKUP_FORMAT_VERSION, BackedUp, Backup, BackupReader, BackupWriter, Part};
pub use change::{Change, Row};
pub use check::{Checked, Damage, check};
pub use checkpoint::{
    CHECKPOINT_FORMAT_VERSION, Checkpoint, CheckpointInfo, Progress, Rows, checkpoint_files,
    checkpoint_number, is_checkpoint, read_checkpoint,
};
pub use contents::{Contents, SegmentInfo, read, segments};
pub use error::StoreError;
pub use folder::Folder;
pub use found::{Founded, found};
pub use keeper::{Checkpoints, Installed, Spare};
pub use log::{Appended, Log, Opened, Synced};
pub use memory::{Fault, Memory};
pub use salvage::{Salvaged, salvage};
pub use segment::{FORMAT_VERSION, Sizes, is_segment, is_spare};
pub use state::State;
pub use storage::{Storage, write_whole};
pub use walk::Cut;

/// The greatest encoded size of the changes of one frame, in bytes: a batch is 4 MiB and one event's changes 20 MiB at
/// most, so one that began just below the batch's bound still fits.
pub const FRAME_BYTES_MAX: usize = 24 << 20;
