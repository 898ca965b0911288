//! What is in a folder: the newest good checkpoint and the log after it. It changes nothing.

use crate::checkpoint::{CheckpointInfo, Newest, checkpoint_files, newest_good};
use crate::segment::{FORMAT_VERSION, Header, HeaderError, PAGE, SPARE, file_name, file_number, number_of};
use crate::walk::{Cut, End, Position, Walk};
use crate::window::Window;
use crate::{Change, Storage, StoreError};

/// What [`read`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Names the log; a copy has the same, a new log another. None where no log is.
    pub log_id: Option<[u8; 16]>,
    /// The run of the last frame.
    pub run: u64,
    /// The number of the last frame.
    pub sequence: u64,
    /// The checkpoint that the rows were begun with.
    pub checkpoint: Option<CheckpointInfo>,
    /// Newer checkpoints that are damaged, and why.
    pub passed_over: Vec<String>,
    /// Bytes of the frames after the checkpoint.
    pub replayed_bytes: u64,
    /// Bytes of the changes in them.
    pub changed_bytes: u64,
    /// The torn tail, if there is one.
    pub cut: Option<Cut>,
    /// Bytes of the unused ends of full segments that are not zero any more.
    pub mended: Vec<Cut>,
}

/// A segment, as its first page has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its file.
    pub file: String,
    /// Its number.
    pub number: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of its first frame.
    pub first_sequence: u64,
}

impl SegmentInfo {
    pub(crate) fn of(header: &Header) -> Self {
        Self {
            file: file_name(header.number),
            number: header.number,
            bytes: header.bytes,
            first_sequence: header.first_sequence,
        }
    }
}

/// Reads the state that a folder holds: first the rows of its newest good checkpoint, then the changes of the frames after it,
/// in order. Nothing is written; what a killed process left in the system's memory is synced before it is believed.
///
/// # Errors
///
/// As [`Log::open`](crate::Log::open), but for what only writing meets. What `restore` was given must be dropped then.
pub fn read<S: Storage>(storage: &mut S, restore: &mut dyn FnMut(Change)) -> Result<Contents, StoreError> {
    Ok(find(storage, restore)?.contents())
}

/// The log's segments, oldest first.
///
/// # Errors
///
/// [`StoreError::Missing`], [`StoreError::Foreign`], [`StoreError::Corrupt`], [`StoreError::NewerFormat`],
/// [`StoreError::Io`].
pub fn segments<S: Storage>(storage: &mut S) -> Result<Vec<SegmentInfo>, StoreError> {
    let names = storage.list().map_err(StoreError::io("list", FOLDER))?;
    Ok(headers(storage, &names)?.iter().map(SegmentInfo::of).collect())
}

const FOLDER: &str = "the folder";

/// What is in a folder, for whoever goes on with it.
pub(crate) struct Found {
    pub names: Vec<String>,
    /// Oldest first.
    pub headers: Vec<Header>,
    pub checkpoint: Option<CheckpointInfo>,
    pub passed_over: Vec<String>,
    pub walk: Walk,
    /// Where the frames of the last segment end; none without a segment.
    pub end: Option<End>,
    pub cuts: Vec<Cut>,
}

impl Found {
    /// The torn end of the last segment, and what was changed elsewhere.
    pub fn split_cuts(&self) -> (Option<Cut>, Vec<Cut>) {
        let last = self.headers.last().map(|header| file_name(header.number));
        let (mut tail, mended): (Vec<Cut>, Vec<Cut>) =
            self.cuts.iter().cloned().partition(|cut| Some(&cut.file) == last.as_ref());
        (tail.pop(), mended)
    }

    fn contents(self) -> Contents {
        let (cut, mended) = self.split_cuts();
        Contents {
            log_id: self.headers.first().map(|header| header.log_id),
            run: self.walk.position.run,
            sequence: self.walk.position.sequence,
            checkpoint: self.checkpoint,
            passed_over: self.passed_over,
            replayed_bytes: self.walk.handed_out.frames,
            changed_bytes: self.walk.handed_out.changes,
            cut,
            mended,
        }
    }
}

pub(crate) fn find<S: Storage>(
    storage: &mut S,
    restore: &mut dyn FnMut(Change),
) -> Result<Found, StoreError> {
    // A renaming that is not durable yet must not be answered for.
    storage.sync_folder().map_err(StoreError::io("sync", FOLDER))?;
    let names = storage.list().map_err(StoreError::io("list", FOLDER))?;
    let headers = headers(storage, &names)?;
    let log_id = headers.first().map(|header| header.log_id);
    let newest = match log_id {
        Some(log_id) => newest_good(storage, log_id, restore)?,
        None => without_log(storage)?,
    };
    let Newest { good: checkpoint, passed_over, unread } = newest;
    let base = checkpoint.as_ref().map_or(Position::BEGINNING, |checkpoint| checkpoint.position);
    if let Err(missing) = check_beginning(&headers, base, &passed_over) {
        return Err(unread.unwrap_or(missing));
    }
    let from = headers.iter().rposition(|header| header.first_sequence <= base.sequence + 1).unwrap_or(0);
    let mut found = Found {
        names,
        checkpoint,
        passed_over,
        walk: Walk { position: base, frames: 0, base, handed_out: Default::default() },
        end: None,
        cuts: Vec::new(),
        headers,
    };
    walk(storage, &mut found, from, restore)?;
    Ok(found)
}

/// Checkpoints without a log: it was there when they were made.
fn without_log<S: Storage>(storage: &mut S) -> Result<Newest, StoreError> {
    match checkpoint_files(storage)?.first() {
        Some(checkpoint) => {
            Err(StoreError::Missing { file: format!("the log after {checkpoint} (the files log-*)") })
        }
        None => Ok(Newest::default()),
    }
}

/// The log must go on from the checkpoint, or be there from its beginning.
fn check_beginning(headers: &[Header], base: Position, passed_over: &[String]) -> Result<(), StoreError> {
    let Some(first) = headers.first() else { return Ok(()) };
    if first.first_sequence <= base.sequence + 1 {
        return Ok(());
    }
    let file = file_name(first.number);
    Err(StoreError::Missing {
        file: match (base.sequence, passed_over) {
            (0, []) => format!("what comes before {file}, log or checkpoint,"),
            (0, passed_over) => format!("what comes before {file} ({})", passed_over.join("; ")),
            (sequence, _) => format!("the log from frame {} to {file}", sequence + 1),
        },
    })
}

/// Walks the segments from one on.
fn walk<S: Storage>(
    storage: &mut S,
    found: &mut Found,
    from: usize,
    restore: &mut dyn FnMut(Change),
) -> Result<(), StoreError> {
    let mut last: Option<(String, End, u64)> = None;
    for header in found.headers.iter().skip(from) {
        let file = file_name(header.number);
        match &last {
            None => found.walk = Walk::from(header, found.walk.base),
            Some((file_before, end, bytes)) => found.walk.enter(&file, header, (file_before, end, *bytes))?,
        }
        if found.walk.misses_base() {
            return Err(found.walk.of_another_history(&file, 0, PAGE));
        }
        let mut segment = Window::new(storage, header);
        let end = found.walk.segment(&file, header, &mut segment, restore)?;
        found.cuts.extend(end.cut(&file, header, &mut segment)?);
        found.end = Some(end);
        last = Some((file, end, header.bytes));
    }
    let (reached, base) = (found.walk.position.sequence, found.walk.base.sequence);
    match last {
        Some((file, end, bytes)) if reached < base => Err(StoreError::Corrupt {
            file,
            offset: end.offset as u64,
            end: bytes,
            why: format!(
                "the log ends after frame {reached}, while a checkpoint was made after frame {base}"
            ),
        }),
        _ => Ok(()),
    }
}

/// The first pages of all segments, oldest first and without a hole.
fn headers<S: Storage>(storage: &mut S, names: &[String]) -> Result<Vec<Header>, StoreError> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    let first = numbers.first().copied().unwrap_or(1);
    if let Some((_, missing)) = numbers.iter().zip(first..).find(|(number, expected)| *number != expected) {
        return Err(StoreError::Missing { file: file_name(missing) });
    }
    let mut headers: Vec<Header> = Vec::new();
    for number in numbers {
        let header = read_header(storage, number)?;
        if headers.last().is_some_and(|before| before.log_id != header.log_id) {
            return Err(StoreError::Foreign { file: file_name(number) });
        }
        headers.push(header);
    }
    Ok(headers)
}

/// A segment's first page, from the medium, not from what the system remembers of it: a page whose sync failed must be
/// read as it really is. The whole segment is synced and its cache dropped here, so a frame that was never synced is durable
/// before it is answered for.
pub(crate) fn read_header<S: Storage>(storage: &mut S, number: u64) -> Result<Header, StoreError> {
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
    Ok(header)
}

/// The spares among names.
pub(crate) fn spare_numbers(names: &[String]) -> Vec<u64> {
    names.iter().filter_map(|name| number_of(SPARE, name)).collect()
}
