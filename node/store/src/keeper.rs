//! Checkpoints beside a log: one job at a time, and afterwards the files that it made needless.
//!
//! Two checkpoints are kept, the new one and the one that was the newest before, and the log after the older of the two:
//! whichever of them rots, the other and the log make up the state. Segments before that become spares for the next
//! ones. The log learns of a spare only when the folder's names are durable: else a power cut could give it back its old
//! name with its new first page.

use crate::checkpoint::{Checkpoint, CheckpointInfo, Progress, Rows, checkpoint_files};
use crate::contents::{SegmentInfo, spare_numbers};
use crate::segment::{Header, PAGE, Sizes, file_name, file_number, spare_name};
use crate::{Storage, StoreError, Synced};

/// Spares kept beside those that the log needs until the next checkpoint: one that is taken next, one for whoever removes
/// rows on a full disk.
const SPARES_BESIDE: usize = 2;

/// A file that is to be a segment; its content is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spare {
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

/// A checkpoint that is in place, for [`Log::checkpointed`](crate::Log::checkpointed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The checkpoint.
    pub checkpoint: CheckpointInfo,
    /// Files that became free for the next segments.
    pub spares: Vec<Spare>,
}

/// Makes a log's checkpoints.
#[derive(Debug)]
pub struct Checkpoints<S: Storage> {
    storage: S,
    log_id: [u8; 16],
    sizes: Sizes,
    /// The newest checkpoint that is good: it was verified when this process opened the folder, or made it.
    newest: Option<CheckpointInfo>,
    job: Option<Job<S>>,
}

#[derive(Debug)]
enum Job<S: Storage> {
    Write(Box<Checkpoint<S>>),
    Tidy(Box<Tidy>),
}

/// What is left to be done once a checkpoint has its name.
#[derive(Debug)]
struct Tidy {
    installed: Installed,
    /// Checkpoints to be removed.
    checkpoints: Vec<String>,
    /// Segments to be freed, the newest first: they go from the end.
    segments: Vec<SegmentInfo>,
    /// Numbers that no spare has, the lowest last.
    free_numbers: Vec<u64>,
}

impl<S: Storage> Checkpoints<S> {
    pub(crate) fn new(storage: S, log_id: [u8; 16], sizes: Sizes, newest: Option<CheckpointInfo>) -> Self {
        Self { storage, log_id, sizes, newest, job: None }
    }

    /// Begins a checkpoint of the rows as they were after a durable frame; one that was under way is given up.
    pub fn begin(&mut self, synced: Synced, rows: Rows) {
        let checkpoint = Checkpoint::new(self.storage.clone(), self.log_id, synced, rows);
        self.job = Some(Job::Write(Box::new(checkpoint)));
    }

    /// Whether a checkpoint is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Does the next piece of what is under way; none if nothing is. After an error nothing is under way any more: the log
    /// goes on without, and the next checkpoint does what was left.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::step`].
    pub fn step(&mut self) -> Result<Option<Progress<Installed>>, StoreError> {
        let Some(job) = self.job.take() else { return Ok(None) };
        match job {
            Job::Write(mut checkpoint) => match checkpoint.step()? {
                Progress::More => self.job = Some(Job::Write(checkpoint)),
                Progress::Done(info) => {
                    let kept = self.newest.replace(info.clone());
                    self.job = Some(Job::Tidy(Box::new(self.tidy(info, kept.as_ref())?)));
                }
            },
            Job::Tidy(mut tidy) => {
                if self.tidy_step(&mut tidy)? {
                    return Ok(Some(Progress::Done(tidy.installed)));
                }
                self.job = Some(Job::Tidy(tidy));
            }
        }
        Ok(Some(Progress::More))
    }

    /// What a new checkpoint makes needless.
    fn tidy(&mut self, info: CheckpointInfo, kept: Option<&CheckpointInfo>) -> Result<Tidy, StoreError> {
        let is_kept = |file: &String| *file == info.file || kept.is_some_and(|kept| kept.file == *file);
        let mut checkpoints = checkpoint_files(&mut self.storage)?;
        checkpoints.retain(|file| !is_kept(file));
        let names = self.storage.list().map_err(StoreError::io("list", "the folder"))?;
        let segments = match kept {
            Some(kept) => self.before(kept, &names)?,
            None => Vec::new(),
        };
        let taken = spare_numbers(&names);
        let due = info.row_bytes.max(self.sizes.checkpoint);
        // Segments that the log goes through until the next checkpoint, a small number.
        let wanted = usize::try_from(due / self.sizes.most).unwrap_or(0) + SPARES_BESIDE;
        let free = (0..).filter(|number| !taken.contains(number));
        let mut free_numbers: Vec<u64> = free.take(wanted.saturating_sub(taken.len())).collect();
        free_numbers.reverse();
        let installed = Installed { checkpoint: info, spares: Vec::new() };
        Ok(Tidy { installed, checkpoints, segments, free_numbers })
    }

    /// The segments whose frames are all before or at a checkpoint, the newest first. The last segment is never one.
    fn before(&mut self, kept: &CheckpointInfo, names: &[String]) -> Result<Vec<SegmentInfo>, StoreError> {
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
        numbers.sort_unstable();
        let mut needless = Vec::new();
        let mut last: Option<SegmentInfo> = None;
        for number in numbers {
            let segment = self.segment(number)?;
            if segment.first_sequence > kept.sequence + 1 {
                break;
            }
            needless.extend(last.replace(segment));
        }
        needless.reverse();
        Ok(needless)
    }

    /// A segment by its first page, which was verified when the folder was opened, or was written by this process.
    fn segment(&mut self, number: u64) -> Result<SegmentInfo, StoreError> {
        let file = file_name(number);
        let mut page = vec![0; PAGE];
        self.storage.read(&file, 0, &mut page).map_err(StoreError::io("read", &file))?;
        self.storage.close(&file);
        let header = Header::decode(&page).map_err(|_| StoreError::Corrupt {
            file,
            offset: 0,
            end: PAGE as u64,
            why: "its first page is not as it was".to_owned(),
        })?;
        Ok(SegmentInfo::of(&header))
    }

    /// Removes or frees one file; whether nothing is left to do, durably.
    fn tidy_step(&mut self, tidy: &mut Tidy) -> Result<bool, StoreError> {
        if let Some(file) = tidy.checkpoints.pop() {
            self.storage.remove(&file).map_err(StoreError::io("remove", &file))?;
            return Ok(false);
        }
        let Some(SegmentInfo { file, bytes, .. }) = tidy.segments.pop() else {
            self.storage.sync_folder().map_err(StoreError::io("sync", "the folder"))?;
            return Ok(true);
        };
        // Only segments as large as those to come are worth keeping: what a young log began with goes.
        match tidy.free_numbers.last().copied().filter(|_| bytes >= self.sizes.most) {
            Some(number) => {
                let spare = spare_name(number);
                self.storage.rename(&file, &spare).map_err(StoreError::io("rename", &file))?;
                self.storage.close(&spare);
                tidy.free_numbers.pop();
                tidy.installed.spares.push(Spare { file: spare, bytes });
            }
            None => self.storage.remove(&file).map_err(StoreError::io("remove", &file))?,
        }
        Ok(false)
    }
}
