//! What can be saved of a log that is damaged in the middle: the state up to the damage, and what is lost behind it.
//!
//! [`read`](crate::read) refuses such a folder, and [`check`](crate::check) says what is wrong in it. Here the rows of the
//! newest good checkpoint are taken, and the frames that follow it without a gap. What comes behind the first gap is not: it
//! may have been made of what is missing. It is counted, as far as it can be read. Nothing is written.

use std::collections::BTreeMap;

use crate::checkpoint::{CheckpointInfo, checkpoint_files, read_checkpoint};
use crate::contents::read_header;
use crate::frame::{FrameHeader, Place};
use crate::segment::{Header, PAGE, file_number};
use crate::walk::{Position, Whole, each_whole_frame};
use crate::window::Window;
use crate::{Change, Founded, Storage, StoreError};

/// What can be saved of a folder.
#[derive(Debug)]
pub struct Salvaged {
    /// The last frame before the first gap, and its run: the state that was handed out is the one after it.
    pub kept: Founded,
    /// The highest frame and run that are known to have been: a log of the rows goes on after these.
    pub founded: Founded,
    /// The checkpoint that the rows were begun with.
    pub checkpoint: Option<CheckpointInfo>,
    /// Frames that are whole, and behind the gap.
    pub lost_frames: u64,
    /// Changes in these, by their lists.
    pub lost_changes: BTreeMap<u64, u64>,
}

impl Salvaged {
    /// Whether all frames that are known to have been are in the state.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.kept.sequence == self.founded.sequence && self.lost_frames == 0
    }

    /// A frame is known to have been.
    fn knows(&mut self, sequence: u64, run: u64) {
        self.founded.sequence = self.founded.sequence.max(sequence);
        self.founded.run = self.founded.run.max(run);
    }
}

/// Reads what can be saved of a folder, as [`read`](crate::read) does: rows of a checkpoint, then changes in order.
///
/// # Errors
///
/// What `restore` was given must be dropped then. [`StoreError::NothingToSave`] if neither a checkpoint nor the log's beginning can be read; [`StoreError::NewerFormat`];
/// [`StoreError::Io`] if the folder cannot be listed.
pub fn salvage<S: Storage>(storage: &mut S, restore: &mut dyn FnMut(Change)) -> Result<Salvaged, StoreError> {
    let segments = readable_segments(storage)?;
    let (base, mut salvaged) = base(storage, &segments, restore)?;
    let mut position = base;
    let mut is_gone = false;
    for header in &segments {
        salvaged.knows(header.first_sequence.saturating_sub(1), header.run);
        // A page that cannot be read is as good as one that rotted.
        let mut segment = Window::reading_on(storage, header);
        for offset in (PAGE..segment.len()).step_by(PAGE) {
            let page = segment.at(offset, PAGE)?;
            // A frame that was begun is known by its first bytes, whatever became of the rest.
            if let Some(begun) = FrameHeader::decode(page, Place { secret: header.secret, offset }) {
                salvaged.knows(begun.sequence, begun.run);
            }
        }
        each_whole_frame(header, &mut segment, &mut |Whole { before, after, changes }| {
            if before == position && !is_gone {
                changes.each(restore);
                position = after;
            } else if after.sequence > base.sequence {
                is_gone = true;
                salvaged.lost_frames += 1;
                changes.each(&mut |change| *salvaged.lost_changes.entry(change.list).or_default() += 1);
            }
        })?;
    }
    salvaged.kept = Founded { sequence: position.sequence, run: position.run };
    salvaged.knows(position.sequence, position.run);
    Ok(salvaged)
}

/// The segments whose first pages are right, oldest first, of the log that the newest of them is of.
fn readable_segments<S: Storage>(storage: &mut S) -> Result<Vec<Header>, StoreError> {
    let names = storage.list().map_err(StoreError::io("list", "the folder"))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    let mut headers = Vec::new();
    for number in numbers {
        match read_header(storage, number) {
            Ok(header) => headers.push(header),
            Err(error @ StoreError::NewerFormat { .. }) => return Err(error),
            Err(_) => {}
        }
    }
    if let Some(log_id) = headers.last().map(|header| header.log_id) {
        headers.retain(|header| header.log_id == log_id);
    }
    Ok(headers)
}

/// The newest checkpoint that is whole, or the beginning of the log.
fn base<S: Storage>(
    storage: &mut S,
    segments: &[Header],
    restore: &mut dyn FnMut(Change),
) -> Result<(Position, Salvaged), StoreError> {
    let mut salvaged = Salvaged {
        kept: Founded::default(),
        founded: Founded::default(),
        checkpoint: None,
        lost_frames: 0,
        lost_changes: BTreeMap::new(),
    };
    let log_id = segments.first().map(|header| header.log_id);
    for file in checkpoint_files(storage)? {
        // Rows of a file that turns out to be another log's are not handed out.
        let mut rows = Vec::new();
        match read_checkpoint(storage, &file, &mut |change| rows.push(change)) {
            Ok(info) if log_id.is_none_or(|log_id| log_id == info.log_id) => {
                rows.into_iter().for_each(restore);
                salvaged.knows(info.sequence, info.run);
                salvaged.checkpoint = Some(info.clone());
                return Ok((info.position, salvaged));
            }
            Err(error @ StoreError::NewerFormat { .. }) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    match segments.first() {
        Some(first) if first.position() == Position::BEGINNING => Ok((Position::BEGINNING, salvaged)),
        _ => Err(StoreError::NothingToSave),
    }
}
