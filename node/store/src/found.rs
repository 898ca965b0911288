//! A new log that begins with rows: what was in a backup, in a file of rows, or in what could be read of a damaged folder.

use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::checkpoint::{Checkpoint, CheckpointInfo, Progress, Rows, is_checkpoint};
use crate::log::{halves, prepare};
use crate::segment::{Header, Sizes, is_segment, secret};
use crate::walk::{Amount, Position};
use crate::{Storage, StoreError};

/// After which frame and run a new log goes on: a node that was here before counts on from there, so that its peers never
/// take a start of now for one of before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Founded {
    /// The number of the frame before the first; 0 for a log without a past.
    pub sequence: u64,
    /// The newest run before; the first start has the next one.
    pub run: u64,
}

/// Makes a log of rows in a folder that has none: a checkpoint, then a first segment after it, under an id of its own, so that it
/// is never taken for the log that the rows came from. `entropy` is fresh and secret. A crash in between leaves a
/// checkpoint without a log, which is refused when it is opened.
///
/// # Errors
///
/// [`StoreError::Occupied`] if there is a log or a checkpoint; what [`Checkpoint::step`] can say; [`StoreError::Io`].
pub fn found<S: Storage>(
    storage: &mut S,
    entropy: [u8; 32],
    founded: Founded,
    rows: Rows,
) -> Result<CheckpointInfo, StoreError> {
    let names = storage.list().map_err(StoreError::io("list", "the folder"))?;
    if names.iter().any(|name| is_segment(name) || is_checkpoint(name)) {
        return Err(StoreError::Occupied { folder: PathBuf::from("the folder") });
    }
    let (log_id, secret_entropy) = halves(entropy);
    let Founded { sequence, run } = founded;
    // No frame has this hash: what came before is not here.
    let hash = xxh3_128_with_seed(&log_id, sequence).to_le_bytes();
    let position = Position { sequence, run, hash };
    let mut checkpoint = Checkpoint::at(storage.clone(), log_id, (position, Amount::default()), rows);
    let info = loop {
        if let Progress::Done(info) = checkpoint.step()? {
            break info;
        }
    };
    let header = Header {
        log_id,
        number: 1,
        bytes: Sizes::default().next(None, 0),
        secret: secret(secret_entropy, 1),
        first_sequence: sequence + 1,
        before: hash,
        run,
        used_before: false,
    };
    prepare(storage, &header)?;
    Ok(info)
}
