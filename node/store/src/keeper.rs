//! Checkpoints beside a log: one job at a time, and afterwards the files that it made needless.
//!
//! Two checkpoints are kept, the new one and the one that was the newest before, and the log after the older of the two:
//! whichever of them rots, the other and the log make up the state. Segments before that become spares for the next
//! ones. The log learns of a spare only when the folder's names are durable: else a power cut could give it back its old
//! name with its new first page.

use crate::checkpoint::{Checkpoint, CheckpointInfo, Progress, Rows, checkpoint_files};
use crate::contents::{SegmentInfo, spare_numbers};
use crate::error::is_full;
use crate::log::{ZEROS_BYTES, write_zeros};
use crate::segment::{Header, PAGE, Sizes, file_name, file_number, spare_name};
use crate::storage::UNFINISHED;
use crate::{Storage, StoreError, Synced};

/// Spares kept beside those that the log needs until the next checkpoint: one that is taken next, one for whoever removes
/// rows on a full disk.
const SPARES_BESIDE: usize = 2;

/// Bytes that are left to the small files beside the log: what is made ahead never takes them.
const LEFT_BYTES: u64 = 1 << 20;

/// A file that is to be a segment; its content is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spare {
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

/// What is in place, for [`Log::checkpointed`](crate::Log::checkpointed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The checkpoint; none if only a spare was made.
    pub checkpoint: Option<CheckpointInfo>,
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
    Spare(NewSpare),
}

/// A spare of written zeros that is being made.
#[derive(Debug)]
struct NewSpare {
    /// Empty until it is begun.
    file: String,
    bytes: u64,
    written: u64,
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

    /// Begins a spare of so many bytes; what was under way is given up.
    pub fn begin_spare(&mut self, bytes: u64) {
        self.job = Some(Job::Spare(NewSpare { file: String::new(), bytes, written: 0 }));
    }

    /// Whether anything is under way.
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
            Job::Write(mut checkpoint) => match self.write_step(&mut checkpoint)? {
                Progress::More => self.job = Some(Job::Write(checkpoint)),
                Progress::Done(info) => {
                    let kept = self.newest.replace(info.clone());
                    self.job = Some(Job::Tidy(Box::new(self.tidy(info, kept.as_ref())?)));
                }
            },
            Job::Spare(mut spare) => {
                if self.spare_step(&mut spare)? {
                    let spares = vec![Spare { file: spare.file, bytes: spare.bytes }];
                    return Ok(Some(Progress::Done(Installed { checkpoint: None, spares })));
                }
                self.job = Some(Job::Spare(spare));
            }
            Job::Tidy(mut tidy) => {
                if self.tidy_step(&mut tidy)? {
                    return Ok(Some(Progress::Done(tidy.installed)));
                }
                self.job = Some(Job::Tidy(tidy));
            }
        }
        Ok(Some(Progress::More))
    }

    /// A step of a checkpoint. One that meets a full disk gives up the older of the two that there are: the newest and the
    /// log after it are enough, and a state that became smaller then has room.
    fn write_step(&mut self, checkpoint: &mut Checkpoint<S>) -> Result<Progress<CheckpointInfo>, StoreError> {
        let result = match self.expected_bytes().filter(|_| !checkpoint.is_begun()) {
            Some(bytes) => self.check_room("a checkpoint", bytes, 0).and_then(|()| checkpoint.step()),
            None => checkpoint.step(),
        };
        if let (Err(StoreError::NoRoom { .. }), Some(newest)) = (&result, &self.newest) {
            let mut others = checkpoint_files(&mut self.storage)?;
            others.retain(|file| *file != newest.file);
            for file in others {
                self.storage.remove(&file).map_err(StoreError::io("remove", &file))?;
            }
        }
        result
    }

    /// What the next checkpoint takes at least, in bytes, by the one before: on a full disk rows were removed since.
    fn expected_bytes(&self) -> Option<u64> {
        self.newest.as_ref().map(|newest| newest.row_bytes / 2)
    }

    /// Nothing is begun that does not fit: a disk that is full is not written to again and again.
    fn check_room(&mut self, file: &str, bytes: u64, left: u64) -> Result<(), StoreError> {
        let free = self.storage.free_bytes().map_err(StoreError::io("measure", "the folder"))?;
        match free < bytes.saturating_add(left) {
            true => Err(StoreError::NoRoom { file: file.to_owned(), bytes }),
            false => Ok(()),
        }
    }

    /// Writes some zeros of a spare; whether it is in place.
    fn spare_step(&mut self, spare: &mut NewSpare) -> Result<bool, StoreError> {
        if spare.file.is_empty() {
            self.create_spare(spare)?;
            return Ok(false);
        }
        let unfinished = format!("{}{UNFINISHED}", spare.file);
        if spare.written < spare.bytes {
            let end = spare.bytes.min(spare.written + ZEROS_BYTES as u64);
            let written = write_zeros(&mut self.storage, &unfinished, spare.written, end)
                .and_then(|()| self.storage.sync_data(&unfinished));
            if let Err(error) = written {
                // What is left behind is harmless: the next start removes it.
                let _ = self.storage.remove(&unfinished);
                return Err(no_room_or_io("write", &spare.file, spare.bytes)(error));
            }
            spare.written = end;
            return Ok(false);
        }
        self.storage.rename(&unfinished, &spare.file).map_err(StoreError::io("rename", &unfinished))?;
        self.storage.close(&spare.file);
        self.storage.sync_folder().map_err(StoreError::io("sync", "the folder"))?;
        Ok(true)
    }

    fn create_spare(&mut self, spare: &mut NewSpare) -> Result<(), StoreError> {
        self.check_room("the next part of the log", spare.bytes, LEFT_BYTES)?;
        let names = self.storage.list().map_err(StoreError::io("list", "the folder"))?;
        let taken = spare_numbers(&names);
        let file = (0..).find(|number| !taken.contains(number)).map(spare_name).unwrap_or_default();
        let unfinished = format!("{file}{UNFINISHED}");
        if names.contains(&unfinished) {
            self.storage.remove(&unfinished).map_err(StoreError::io("remove", &unfinished))?;
        }
        self.storage.create(&unfinished).map_err(no_room_or_io("create", &file, spare.bytes))?;
        spare.file = file;
        Ok(())
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
        // As many as the log went through since the checkpoint before are about as many as it will until the next.
        let wanted = segments.len() + SPARES_BESIDE;
        let free = (0..).filter(|number| !taken.contains(number));
        let mut free_numbers: Vec<u64> = free.take(wanted.saturating_sub(taken.len())).collect();
        free_numbers.reverse();
        let installed = Installed { checkpoint: Some(info), spares: Vec::new() };
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

fn no_room_or_io(
    operation: &'static str,
    file: &str,
    bytes: u64,
) -> impl FnOnce(std::io::Error) -> StoreError {
    move |source| match is_full(&source) {
        true => StoreError::NoRoom { file: file.to_owned(), bytes },
        false => StoreError::Io { operation, file: file.to_owned(), source },
    }
}
