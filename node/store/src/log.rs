//! The log itself: input and output in the order that its promises need.
//!
//! One frame at most is unsynced: [`Log::append`] gives an [`Appended`], which only [`Log::sync`] takes, and the next
//! append is refused until then. What was acknowledged can only be made from [`Synced`].

use crate::frame::{self, FrameHeader, Kind, Place, frame_bytes};
use crate::recovery::{End, Walk};
use crate::segment::{
    FORMAT_VERSION, Header, HeaderError, PAGE, START_PAGES, Sizes, file_name, file_number, secret,
};
use crate::storage::{UNFINISHED, write_whole_with};
use crate::{Change, Cut, FRAME_BYTES_MAX, Storage, StoreError, change};

/// Zeros are written in pieces of this many bytes.
const ZEROS_BYTES: usize = 256 << 10;

/// What [`Log::open`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The counter of this start; its start frame is synced.
    pub run: u64,
    /// Whole frames that were there before this start's.
    pub frames: u64,
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
    sequence: u64,
}

impl Synced {
    /// The last durable frame's number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
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
    next_sequence: u64,
    run: u64,
    /// The hash of the last frame.
    before: [u8; 16],
    unsynced: Option<u64>,
    /// An append or sync failed: whatever was not acknowledged is unknown.
    poisoned: bool,
    /// The frame being laid out; kept for its memory, at most one frame large.
    buffer: Vec<u8>,
}

impl<S: Storage> Log<S> {
    /// Opens the log, or makes one where none is: replays every change into `restore`, in order, then makes the start of
    /// this run durable. `entropy` is fresh and secret.
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
        let numbers = segments(&mut storage)?;
        let mut walk = Walk::BEGINNING;
        let (last, cuts) = replay(&mut storage, &numbers, &mut walk, restore)?;
        let (segment, offset) = match last {
            Some((segment, end)) => (segment, end.offset),
            None => {
                let bytes = sizes.next(None, 0);
                let header = header(fresh_id, 1, bytes, secret_entropy, &walk);
                prepare(&mut storage, &header)?;
                (header, PAGE)
            }
        };
        for cut in &cuts {
            clear(&mut storage, cut).map_err(StoreError::io("clear the torn end of", &cut.file))?;
        }
        let frames = walk.frames;
        let mut log = Self {
            storage,
            sizes,
            entropy: secret_entropy,
            offset,
            next_sequence: walk.next_sequence,
            run: walk.run + 1,
            before: walk.before,
            unsynced: None,
            poisoned: false,
            buffer: Vec::new(),
            segment,
        };
        let started = log.write(Kind::Start, &[])?;
        let synced = log.sync(started)?;
        let last_file = file_name(numbers.last().copied().unwrap_or(1));
        let (mut tail, mended): (Vec<Cut>, Vec<Cut>) =
            cuts.into_iter().partition(|cut| cut.file == last_file);
        let opened = Opened {
            run: log.run,
            frames,
            next_sequence: log.next_sequence,
            log_id: log.segment.log_id,
            synced,
            cut: tail.pop(),
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
        if sequence != self.next_sequence {
            return Err(StoreError::Sequence { expected: self.next_sequence, found: sequence });
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
            return Err(StoreError::Sequence { expected: self.next_sequence, found: sequence });
        }
        let file = file_name(self.segment.number);
        if let Err(source) = self.storage.sync_data(&file) {
            self.poisoned = true;
            return Err(StoreError::Failed { operation: "sync", file, source });
        }
        self.unsynced = None;
        Ok(Synced { sequence })
    }

    /// The storage, for the small files beside the log.
    pub fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    fn write(&mut self, kind: Kind, changes: &[Change]) -> Result<Appended, StoreError> {
        let payload_bytes = if kind == Kind::Start { 0 } else { change::encoded_bytes(changes) };
        self.make_room(kind, frame_bytes(payload_bytes))?;
        let sequence = self.next_sequence;
        let header = FrameHeader { kind, payload_bytes, sequence, run: self.run, before: self.before };
        let place = Place { secret: self.segment.secret, offset: self.offset };
        let hash = frame::encode(&header, changes, place, &mut self.buffer);
        let file = file_name(self.segment.number);
        if let Err(source) = self.storage.write_at(&file, self.offset as u64, &self.buffer) {
            self.poisoned = true;
            return Err(StoreError::Failed { operation: "write", file, source });
        }
        self.offset += self.buffer.len();
        self.before = hash;
        self.next_sequence += 1;
        self.unsynced = Some(sequence);
        Ok(Appended { sequence })
    }

    /// Goes on to a new segment if the frame does not fit into this one.
    fn make_room(&mut self, kind: Kind, frame: usize) -> Result<(), StoreError> {
        let kept = if kind == Kind::Start { 0 } else { START_PAGES * PAGE };
        if (self.offset + frame + kept) as u64 <= self.segment.bytes {
            return Ok(());
        }
        let walk = Walk {
            next_sequence: self.next_sequence,
            // The run of the last frame: a start that needs a new segment is the first of its run.
            run: if kind == Kind::Start { self.run - 1 } else { self.run },
            before: self.before,
            frames: 0,
        };
        let bytes = self.sizes.next(Some(self.segment.bytes), frame);
        let header = header(self.segment.log_id, self.segment.number + 1, bytes, self.entropy, &walk);
        prepare(&mut self.storage, &header).map_err(|error| self.failed_to_prepare(error))?;
        self.segment = header;
        self.offset = PAGE;
        Ok(())
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

fn halves(entropy: [u8; 32]) -> ([u8; 16], [u8; 16]) {
    let (mut first, mut second) = ([0; 16], [0; 16]);
    first.copy_from_slice(&entropy[..16]);
    second.copy_from_slice(&entropy[16..]);
    (first, second)
}

fn header(log_id: [u8; 16], number: u64, bytes: u64, entropy: [u8; 16], walk: &Walk) -> Header {
    Header {
        log_id,
        number,
        bytes,
        secret: secret(entropy, number),
        first_sequence: walk.next_sequence,
        before: walk.before,
        run: walk.run,
    }
}

/// Makes a segment of written zeros and its header, durable before it is used under its name.
fn prepare<S: Storage>(storage: &mut S, header: &Header) -> Result<(), StoreError> {
    write_whole_with(storage, &file_name(header.number), header.bytes, |storage, unfinished| {
        write_zeros(storage, unfinished, 0, header.bytes)?;
        storage.write_at(unfinished, 0, &header.encode())
    })
}

fn write_zeros<S: Storage>(storage: &mut S, name: &str, from: u64, to: u64) -> std::io::Result<()> {
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
fn clear<S: Storage>(storage: &mut S, cut: &Cut) -> std::io::Result<()> {
    write_zeros(storage, &cut.file, cut.offset, cut.offset + cut.bytes)?;
    storage.sync_data(&cut.file)
}

/// The numbers of the log's segments, from 1 and without a hole; what a crash left unfinished is removed.
fn segments<S: Storage>(storage: &mut S) -> Result<Vec<u64>, StoreError> {
    let folder = "the folder";
    // A rename that is not durable yet must not be answered for.
    storage.sync_folder().map_err(StoreError::io("sync", folder))?;
    let names = storage.list().map_err(StoreError::io("list", folder))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    if let Some((_, missing)) = numbers.iter().zip(1..).find(|(number, expected)| *number != expected) {
        return Err(StoreError::Missing { file: file_name(missing) });
    }
    for name in &names {
        if name.strip_suffix(UNFINISHED).and_then(file_number).is_some() {
            storage.remove(name).map_err(StoreError::io("remove", name))?;
        }
    }
    Ok(numbers)
}

type Last = Option<(Header, End)>;

/// Walks all segments and finds what must be cleared, changing nothing.
fn replay<S: Storage>(
    storage: &mut S,
    numbers: &[u64],
    walk: &mut Walk,
    restore: &mut dyn FnMut(Change),
) -> Result<(Last, Vec<Cut>), StoreError> {
    let mut last: Last = None;
    let mut cuts = Vec::new();
    for number in numbers {
        let file = file_name(*number);
        let (header, bytes) = read_segment(storage, *number)?;
        match &last {
            None => walk.enter(&file, &header, None)?,
            Some((before, _)) if before.log_id != header.log_id => return Err(StoreError::Foreign { file }),
            Some((before, end)) => {
                walk.enter(&file, &header, Some((&file_name(before.number), end, before.bytes)))?;
            }
        }
        let end = walk.segment(&file, &header, &bytes, restore)?;
        cuts.extend(end.cut(&file, &bytes));
        last = Some((header, end));
    }
    Ok((last, cuts))
}

/// Reads a segment from the medium, not from what the system remembers of it: a frame that was never synced must be
/// made durable before it is answered for, and a page whose sync failed must be read as it really is.
fn read_segment<S: Storage>(storage: &mut S, number: u64) -> Result<(Header, Vec<u8>), StoreError> {
    let file = file_name(number);
    storage.sync_data(&file).map_err(StoreError::io("sync", &file))?;
    storage.drop_cache(&file).map_err(StoreError::io("drop the cache of", &file))?;
    let length = storage.length(&file).map_err(StoreError::io("measure", &file))?;
    let damaged =
        |why: &str, end: u64| StoreError::Corrupt { file: file.clone(), offset: 0, end, why: why.to_owned() };
    if length < PAGE as u64 {
        return Err(damaged("it is shorter than its first page", length));
    }
    let mut page = vec![0; PAGE];
    storage.read(&file, 0, &mut page).map_err(StoreError::io("read", &file))?;
    let header = match Header::decode(&page) {
        Ok(header) => header,
        Err(HeaderError::Damaged(why)) => return Err(damaged(why, PAGE as u64)),
        Err(HeaderError::NewerFormat(found)) => {
            return Err(StoreError::NewerFormat { file, found, known: FORMAT_VERSION });
        }
    };
    if header.number != number {
        return Err(damaged(&format!("it says that it is {}", file_name(header.number)), PAGE as u64));
    }
    if header.bytes != length {
        let why = format!("it has {length} bytes where it was made with {}", header.bytes);
        return Err(damaged(&why, header.bytes.max(length)));
    }
    let mut bytes =
        vec![0; usize::try_from(length).map_err(|_| damaged("it is larger than memory", length))?];
    storage.read(&file, 0, &mut bytes).map_err(StoreError::io("read", &file))?;
    Ok((header, bytes))
}
