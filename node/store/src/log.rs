//! The log itself: input and output in the order that its promises need.
//!
//! One frame at most is unsynced: [`Log::append`] gives an [`Appended`], which only [`Log::sync`] takes, and the next
//! append is refused until then. What was acknowledged can only be made from [`Synced`].

use std::io;

use crate::checkpoint::{CheckpointInfo, checkpoint_number};
use crate::contents::{Found, find, spare_numbers};
use crate::frame::{self, FrameHeader, Kind, Place, frame_bytes};
use crate::keeper::{Checkpoints, Installed, Spare};
use crate::segment::{
    Header, PAGE, SEGMENT_BYTES_MAX, SPARE, START_PAGES, Sizes, file_name, file_number, number_of, secret,
    spare_name,
};
use crate::storage::{UNFINISHED, write_whole_with};
use crate::walk::{Amount, Position};
use crate::{Change, Cut, FRAME_BYTES_MAX, Storage, StoreError, change};

/// Zeros are written in pieces of this many bytes.
pub(crate) const ZEROS_BYTES: usize = 256 << 10;

/// What [`Log::open`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The counter of this start; its start frame is synced.
    pub run: u64,
    /// Whole frames that were read.
    pub frames: u64,
    /// The checkpoint that the rows were begun with.
    pub checkpoint: Option<CheckpointInfo>,
    /// Newer checkpoints that are damaged, and why: the one before was taken, and nothing is lost.
    pub passed_over: Vec<String>,
    /// The sequence number of the first append.
    pub next_sequence: u64,
    /// Names the log; a copy has the same, a new log another.
    pub log_id: [u8; 16],
    /// All that was replayed is durable.
    pub synced: Synced,
    /// The torn tail, if there was one: a crash fell into an append, or the last frame rotted, which looks the same.
    pub cut: Option<Cut>,
    /// Bytes of the unused ends of full segments that were not zero any more: harmless, but the medium rots.
    pub mended: Vec<Cut>,
}

/// A frame that is written, but not known to be durable.
#[derive(Debug)]
#[must_use = "nothing may be told of a frame before it is synced"]
pub struct Appended {
    sequence: u64,
}

impl Appended {
    /// The frame's number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// The proof that a frame, and all before it, are durable. Only a sync makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what leaves a node is made from this"]
pub struct Synced {
    position: Position,
    written: Amount,
}

impl Synced {
    /// The last durable frame's number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.position.sequence
    }

    pub(crate) fn position(&self) -> Position {
        self.position
    }

    pub(crate) fn written(&self) -> Amount {
        self.written
    }
}

/// The log of one node.
#[derive(Debug)]
pub struct Log<S: Storage> {
    storage: S,
    sizes: Sizes,
    /// Secrets of the segments that this process makes come from it.
    entropy: [u8; 16],
    /// The segment that is written.
    segment: Header,
    /// Where in it the next frame begins, in bytes.
    offset: usize,
    /// The last frame.
    position: Position,
    /// The run of this start.
    run: u64,
    unsynced: Option<u64>,
    /// What was written since the checkpoint that this start began with.
    written: Amount,
    /// The newest checkpoint.
    checkpoint: Option<CheckpointInfo>,
    /// Files that the next segments are made of.
    spares: Vec<Spare>,
    /// An append or sync failed: whatever was not acknowledged is unknown.
    poisoned: bool,
    /// The frame being laid out; kept for its memory, at most one frame large.
    buffer: Vec<u8>,
}

impl<S: Storage> Log<S> {
    /// Opens the log, or makes one where none is: hands `restore` the rows of the newest good checkpoint, then every change
    /// of the frames after it, in order, then makes the start of this run durable. `entropy` is fresh and secret.
    ///
    /// # Errors
    ///
    /// Damage, a newer format, a missing or foreign segment: nothing was changed, and what `restore` was given must be
    /// dropped. [`StoreError::NoRoom`], [`StoreError::Io`], [`StoreError::Failed`]: opening again goes on from there.
    pub fn open(
        storage: S,
        entropy: [u8; 32],
        restore: &mut dyn FnMut(Change),
    ) -> Result<(Self, Opened), StoreError> {
        Self::open_sized(storage, Sizes::default(), entropy, restore)
    }

    /// As [`Log::open`], with segments of other sizes: for tests and simulators, which want many small ones.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn open_sized(
        mut storage: S,
        sizes: Sizes,
        entropy: [u8; 32],
        restore: &mut dyn FnMut(Change),
    ) -> Result<(Self, Opened), StoreError> {
        let (fresh_id, secret_entropy): ([u8; 16], [u8; 16]) = halves(entropy);
        let found = find(&mut storage, restore)?;
        remove_unfinished(&mut storage, &found.names)?;
        let (segment, offset) = match (found.headers.last(), found.end) {
            (Some(header), Some(end)) => (header.clone(), end.offset),
            _ => {
                let header = Header {
                    log_id: fresh_id,
                    number: 1,
                    bytes: sizes.next(None, 0),
                    secret: secret(secret_entropy, 1),
                    first_sequence: 1,
                    before: Position::BEGINNING.hash,
                    run: Position::BEGINNING.run,
                    used_before: false,
                };
                prepare(&mut storage, &header)?;
                (header, PAGE)
            }
        };
        for cut in &found.cuts {
            clear(&mut storage, cut).map_err(StoreError::io("clear the torn end of", &cut.file))?;
        }
        let spares = spares(&mut storage, &found)?;
        let mut log = Self {
            storage,
            sizes,
            entropy: secret_entropy,
            offset,
            position: found.walk.position,
            run: found.walk.position.run + 1,
            unsynced: None,
            written: found.walk.handed_out,
            checkpoint: found.checkpoint.clone(),
            spares,
            poisoned: false,
            buffer: Vec::new(),
            segment,
        };
        let started = log.write(Kind::Start, &[])?;
        let synced = log.sync(started)?;
        let (cut, mended) = found.split_cuts();
        let opened = Opened {
            run: log.run,
            frames: found.walk.frames,
            next_sequence: log.next_sequence(),
            log_id: log.segment.log_id,
            checkpoint: found.checkpoint,
            passed_over: found.passed_over,
            synced,
            cut,
            mended,
        };
        Ok((log, opened))
    }

    /// Writes one frame of changes; `sequence` is the number after the last one's.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoRoom`], [`StoreError::TooLarge`]: nothing was written, the log goes on. [`StoreError::Unsynced`],
    /// [`StoreError::Sequence`]: the caller's bug, nothing was written. [`StoreError::Failed`]: the log takes nothing
    /// more, [`StoreError::Poisoned`] from then on.
    pub fn append(&mut self, sequence: u64, changes: &[Change]) -> Result<Appended, StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        if let Some(sequence) = self.unsynced {
            return Err(StoreError::Unsynced { sequence });
        }
        if sequence != self.next_sequence() {
            return Err(StoreError::Sequence { expected: self.next_sequence(), found: sequence });
        }
        let bytes = change::encoded_bytes(changes);
        if bytes > FRAME_BYTES_MAX {
            return Err(StoreError::TooLarge { bytes, limit: FRAME_BYTES_MAX });
        }
        self.write(Kind::Changes, changes)
    }

    /// Makes the appended frame durable.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]: the log takes nothing more; a sync is never tried again, since the system may have
    /// dropped what it could not write. [`StoreError::Poisoned`] from then on.
    pub fn sync(&mut self, appended: Appended) -> Result<Synced, StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        let Appended { sequence } = appended;
        if self.unsynced != Some(sequence) {
            return Err(StoreError::Sequence { expected: self.next_sequence(), found: sequence });
        }
        let file = file_name(self.segment.number);
        if let Err(source) = self.storage.sync_data(&file) {
            self.poisoned = true;
            return Err(StoreError::Failed { operation: "sync", file, source });
        }
        self.unsynced = None;
        Ok(Synced { position: self.position, written: self.written })
    }

    /// The storage, for the small files beside the log.
    pub fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Another handle on the folder, by which checkpoints are made of this log. There is one at a time.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints<S> {
        Checkpoints::new(self.storage.clone(), self.segment.log_id, self.sizes, self.checkpoint.clone())
    }

    /// Whether so much was written since the last checkpoint that another one saves more than it costs: as many bytes of
    /// changes as the state had, or four times that in whole frames, so that what is replayed, read and kept is bounded.
    #[must_use]
    pub fn checkpoint_is_due(&self) -> bool {
        let (rows, written) =
            self.checkpoint.as_ref().map_or((0, Amount::default()), |last| (last.row_bytes, last.written));
        let due = rows.max(self.sizes.checkpoint);
        let since = self.written.since(written);
        since.changes >= due || since.frames >= due.saturating_mul(4)
    }

    /// The size of a spare that should be made ahead, in bytes: the segment that is written is half full, and there is none
    /// for the next. None if there is no need: mostly checkpoints free enough.
    #[must_use]
    pub fn wants_spare(&self) -> Option<u64> {
        let next = self.sizes.next(Some(self.segment.bytes), 0);
        let is_half_full = self.offset as u64 > self.segment.bytes / 2;
        let has_one = self.spares.iter().any(|spare| spare.bytes >= next);
        (is_half_full && !has_one).then_some(next)
    }

    /// Whether a checkpoint is worth making before it is due, for the files that it frees: the last segment is nearly full,
    /// and there is no spare.
    #[must_use]
    pub fn is_nearly_out(&self) -> bool {
        self.spares.is_empty() && self.offset as u64 > self.segment.bytes / 4 * 3
    }

    /// A checkpoint was made, or a spare: the log counts from there, and takes the files that it made free.
    pub fn checkpointed(&mut self, installed: Installed) {
        self.checkpoint = installed.checkpoint.or(self.checkpoint.take());
        self.spares.extend(installed.spares);
    }

    fn next_sequence(&self) -> u64 {
        self.position.sequence + 1
    }

    fn write(&mut self, kind: Kind, changes: &[Change]) -> Result<Appended, StoreError> {
        let payload_bytes = if kind == Kind::Start { 0 } else { change::encoded_bytes(changes) };
        self.make_room(kind, frame_bytes(payload_bytes))?;
        let sequence = self.next_sequence();
        let header = FrameHeader { kind, payload_bytes, sequence, run: self.run, before: self.position.hash };
        let place = Place { secret: self.segment.secret, offset: self.offset };
        let hash = frame::encode(&header, changes, place, &mut self.buffer);
        let file = file_name(self.segment.number);
        if let Err(source) = self.storage.write_at(&file, self.offset as u64, &self.buffer) {
            self.poisoned = true;
            return Err(StoreError::Failed { operation: "write", file, source });
        }
        self.offset += self.buffer.len();
        self.written.add(payload_bytes, self.buffer.len());
        self.position = Position { sequence, run: self.run, hash };
        self.unsynced = Some(sequence);
        Ok(Appended { sequence })
    }

    /// Goes on to a new segment if the frame does not fit into this one.
    fn make_room(&mut self, kind: Kind, frame: usize) -> Result<(), StoreError> {
        let kept = if kind == Kind::Start { 0 } else { START_PAGES * PAGE };
        if (self.offset + frame + kept) as u64 <= self.segment.bytes {
            return Ok(());
        }
        let number = self.segment.number + 1;
        let mut header = Header {
            log_id: self.segment.log_id,
            number,
            bytes: self.sizes.next(Some(self.segment.bytes), frame),
            secret: secret(self.entropy, number),
            first_sequence: self.next_sequence(),
            before: self.position.hash,
            // The run of the last frame: a start that needs a new segment is the first of its run.
            run: self.position.run,
            used_before: false,
        };
        let needed = (frame + (1 + START_PAGES) * PAGE) as u64;
        if !self.use_spare(&mut header, needed)? {
            prepare(&mut self.storage, &header).map_err(|error| self.failed_to_prepare(error))?;
        }
        // Its last frame is durable: no error of it can come any more.
        self.storage.close(&file_name(self.segment.number));
        self.segment = header;
        self.offset = PAGE;
        Ok(())
    }

    /// Makes the segment of the smallest spare that is large enough; whether there was one. Its first page is durable
    /// before it gets its name, and what it held before has hashes by another secret.
    fn use_spare(&mut self, header: &mut Header, needed: u64) -> Result<bool, StoreError> {
        let enough = self.spares.iter().enumerate().filter(|(_, spare)| spare.bytes >= needed);
        let Some(at) = enough.min_by_key(|(_, spare)| spare.bytes).map(|(at, _)| at) else {
            return Ok(false);
        };
        let spare = self.spares.swap_remove(at);
        (header.bytes, header.used_before) = (spare.bytes, true);
        let file = file_name(header.number);
        self.storage
            .write_at(&spare.file, 0, &header.encode())
            .and_then(|()| self.storage.sync_data(&spare.file))
            .and_then(|()| self.storage.rename(&spare.file, &file))
            .and_then(|()| self.storage.sync_folder())
            .map_err(|source| {
                self.poisoned = true;
                StoreError::Failed { operation: "make a segment of a used one:", file, source }
            })?;
        Ok(true)
    }

    /// Only a full disk leaves the log as it was; after anything else the folder's state is not known.
    fn failed_to_prepare(&mut self, error: StoreError) -> StoreError {
        match error {
            StoreError::Io { operation, file, source } => {
                self.poisoned = true;
                StoreError::Failed { operation, file, source }
            }
            other => other,
        }
    }
}

pub(crate) fn halves(entropy: [u8; 32]) -> ([u8; 16], [u8; 16]) {
    let (mut first, mut second) = ([0; 16], [0; 16]);
    first.copy_from_slice(&entropy[..16]);
    second.copy_from_slice(&entropy[16..]);
    (first, second)
}

/// Makes a segment of written zeros and its header, durable before it is used under its name.
pub(crate) fn prepare<S: Storage>(storage: &mut S, header: &Header) -> Result<(), StoreError> {
    write_whole_with(storage, &file_name(header.number), header.bytes, |storage, unfinished| {
        write_zeros(storage, unfinished, 0, header.bytes)?;
        storage.write_at(unfinished, 0, &header.encode())
    })
}

pub(crate) fn write_zeros<S: Storage>(storage: &mut S, name: &str, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES.min(usize::try_from(to - from).unwrap_or(ZEROS_BYTES))];
    let mut offset = from;
    while offset < to {
        let piece = (to - offset).min(zeros.len() as u64);
        // `piece` is at most ZEROS_BYTES.
        storage.write_at(name, offset, &zeros[..piece as usize])?;
        offset += piece;
    }
    Ok(())
}

/// Makes the bytes of a cut zero again, durably, before anything is written in their place: else a crash could leave a
/// mixture of the torn frame and a new one.
fn clear<S: Storage>(storage: &mut S, cut: &Cut) -> io::Result<()> {
    write_zeros(storage, &cut.file, cut.offset, cut.offset + cut.bytes)?;
    storage.sync_data(&cut.file)
}

/// Removes what a crash left unfinished.
fn remove_unfinished<S: Storage>(storage: &mut S, names: &[String]) -> Result<(), StoreError> {
    let is_ours =
        |name: &str| file_number(name).or(checkpoint_number(name)).or(number_of(SPARE, name)).is_some();
    for name in names {
        if name.strip_suffix(UNFINISHED).is_some_and(is_ours) {
            storage.remove(name).map_err(StoreError::io("remove", name))?;
        }
    }
    Ok(())
}

/// The spares of a folder that can be segments.
fn spares<S: Storage>(storage: &mut S, found: &Found) -> Result<Vec<Spare>, StoreError> {
    let mut spares = Vec::new();
    for number in spare_numbers(&found.names) {
        let file = spare_name(number);
        let bytes = storage.length(&file).map_err(StoreError::io("measure", &file))?;
        if bytes.is_multiple_of(PAGE as u64) && bytes <= SEGMENT_BYTES_MAX {
            spares.push(Spare { file, bytes });
        }
    }
    Ok(spares)
}
