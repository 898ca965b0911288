//! The log: what was acknowledged is there after any crash.
//!
//! A node has one log. A batch of changed rows is one frame of it; [`Log::append`] writes a frame, [`Log::sync`] makes
//! it durable and hands out [`Synced`], the only thing from which an answer may be made. [`Log::open`] replays the log
//! and writes the start of a new run. The bytes, what is assumed of the medium, and what happens at each point a crash
//! can fall on stand in `docs/store.md`.
//!
//! The store must not know what an app, a peer or a message is: it sees lists by number, keys and rows as bytes.
//! It has no clock and no random source; entropy is handed in. All input and output goes through [`Storage`].
//!
//! How the parts meet: `frame` and `segment` are the byte layouts (pure), `recovery` walks what is there (pure over the
//! bytes of a segment), `log` does the input and output in order. [`Folder`] is the real medium, [`Memory`] a medium
//! that loses power, tears writes and fails on demand, for tests and simulators.

mod change;
mod error;
mod folder;
mod frame;
mod log;
mod memory;
mod recovery;
mod segment;
mod storage;

pub use change::Change;
pub use error::StoreError;
pub use folder::Folder;
pub use log::{Appended, Log, Opened, Synced};
pub use memory::{Fault, Memory};
pub use recovery::Cut;
pub use segment::{FORMAT_VERSION, Sizes, is_segment};
pub use storage::{Storage, write_whole};

/// The greatest encoded size of the changes of one frame, in bytes: a batch is 4 MiB and one event's changes 20 MiB at
/// most, so one that began just below the batch's bound still fits.
pub const FRAME_BYTES_MAX: usize = 24 << 20;
