//! Reading a checkpoint: every byte is verified before redb or anybody else sees it.

use std::io;

use xxhash_rust::xxh3::Xxh3;

use super::content::{Content, blocks_after};
use super::header::{CHECKPOINT_FORMAT_VERSION, Header};
use super::{CheckpointInfo, PIECE_BYTES, checkpoint_name, checkpoint_number};
use crate::change::Changes;
use crate::segment::{HeaderError, PAGE};
use crate::walk::Amount;
use crate::{Change, Storage, StoreError};

/// The names of a folder's checkpoints, newest first. Nothing of them is read.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be listed.
pub fn checkpoint_files(storage: &mut impl Storage) -> Result<Vec<String>, StoreError> {
    let names = storage.list().map_err(StoreError::io("list", "the folder"))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| checkpoint_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers.into_iter().rev().map(checkpoint_name).collect())
}

/// Verifies a checkpoint's file, whole and as the medium has it, then hands out its rows in order of list and key.
///
/// # Errors
///
/// [`StoreError::Corrupt`], [`StoreError::NewerFormat`]: nothing was handed out, unless redb itself finds fault with
/// bytes that are as they were written. [`StoreError::Io`].
pub fn read_checkpoint<S: Storage>(
    storage: &mut S,
    file: &str,
    restore: &mut dyn FnMut(Change),
) -> Result<CheckpointInfo, StoreError> {
    let header = read_header(storage, file)?;
    verify(storage, file, &header)?;
    let content = Content::whole(storage.clone(), file, header.content_bytes);
    let wrong = |what: &str| damaged(file, 0, header.content_bytes, what);
    let fault = |error: &redb::Error| match content.storage_error() {
        Some(source) => StoreError::Io { operation: "read", file: file.to_owned(), source },
        None => wrong(&error.to_string()),
    };
    let database = content.open().map_err(|error| fault(&error))?;
    let (mut after, mut rows) = (None, 0);
    loop {
        let read = blocks_after(&database, after.as_deref(), PIECE_BYTES);
        let (blocks, last) = read.map_err(|error| fault(&error))?;
        if last.is_none() {
            break;
        }
        after = last;
        for block in blocks {
            let changes = Changes::read(&block).ok_or_else(|| wrong("a block is laid out wrongly"))?;
            rows += changes.count();
            changes.each(restore);
        }
    }
    if rows != header.rows {
        return Err(wrong(&format!("it holds {rows} rows where it was made of {}", header.rows)));
    }
    Ok(CheckpointInfo::of(&header, Amount::default()))
}

/// A checkpoint's first page.
fn read_header<S: Storage>(storage: &mut S, file: &str) -> Result<Header, StoreError> {
    storage.drop_cache(file).map_err(StoreError::io("drop the cache of", file))?;
    let length = storage.length(file).map_err(StoreError::io("measure", file))?;
    if length < PAGE as u64 {
        return Err(damaged(file, 0, length, "it is shorter than its first page"));
    }
    let mut page = vec![0; PAGE];
    storage.read(file, 0, &mut page).map_err(StoreError::io("read", file))?;
    let header = Header::decode(&page).map_err(|error| match error {
        HeaderError::Damaged(why) => damaged(file, 0, PAGE as u64, why),
        HeaderError::NewerFormat(found) => {
            StoreError::NewerFormat { file: file.to_owned(), found, known: CHECKPOINT_FORMAT_VERSION }
        }
    })?;
    let named = checkpoint_name(header.position.sequence);
    if named != file {
        return Err(damaged(file, 0, PAGE as u64, &format!("it says that it is {named}")));
    }
    if length - (PAGE as u64) < header.content_bytes {
        let why = format!("it has {length} bytes where it was made with more");
        return Err(damaged(file, 0, length, &why));
    }
    Ok(header)
}

fn verify<S: Storage>(storage: &mut S, file: &str, header: &Header) -> Result<(), StoreError> {
    let mut hasher = ContentHasher::new(header.content_bytes);
    while !hasher.is_done() {
        hasher.step(storage, file).map_err(StoreError::io("read", file))?;
    }
    if hasher.hash() == header.content_hash {
        return Ok(());
    }
    Err(damaged(file, PAGE as u64, PAGE as u64 + header.content_bytes, "the hash of its rows is wrong"))
}

/// The hash of a checkpoint's content, taken a piece at a time.
pub(super) struct ContentHasher {
    hasher: Box<Xxh3>,
    offset: u64,
    bytes: u64,
    piece: Vec<u8>,
}

impl ContentHasher {
    pub fn new(bytes: u64) -> Self {
        Self { hasher: Box::new(Xxh3::new()), offset: 0, bytes, piece: Vec::new() }
    }

    pub fn is_done(&self) -> bool {
        self.offset == self.bytes
    }

    pub fn step(&mut self, storage: &mut impl Storage, file: &str) -> io::Result<()> {
        // A piece's size, a usize.
        let piece = (self.bytes - self.offset).min(PIECE_BYTES as u64) as usize;
        self.piece.resize(piece, 0);
        storage.read(file, self.offset + PAGE as u64, &mut self.piece)?;
        self.hasher.update(&self.piece);
        self.offset += piece as u64;
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn hash(&self) -> [u8; 16] {
        self.hasher.digest128().to_le_bytes()
    }
}

fn damaged(file: &str, offset: u64, end: u64, why: &str) -> StoreError {
    StoreError::Corrupt { file: file.to_owned(), offset, end, why: why.to_owned() }
}

/// What the checkpoints of a folder give.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// The newest one that is as it was written.
    pub good: Option<CheckpointInfo>,
    /// The newer ones that are not, in words.
    pub passed_over: Vec<String>,
    /// Why one of those could not be read.
    pub unread: Option<StoreError>,
}

/// The newest checkpoint that is as it was written, its rows handed out.
///
/// A damaged file is passed over, since the one before it and the log after that are there; one of a newer format or of
/// another log (`log_id`) is refused.
pub(crate) fn newest_good<S: Storage>(
    storage: &mut S,
    log_id: [u8; 16],
    restore: &mut dyn FnMut(Change),
) -> Result<Newest, StoreError> {
    let mut newest = Newest::default();
    for file in checkpoint_files(storage)? {
        let mut rows = 0u64;
        let read = read_checkpoint(storage, &file, &mut |change| {
            rows += 1;
            restore(change);
        });
        match read {
            Ok(info) if info.log_id != log_id => return Err(StoreError::Foreign { file }),
            Ok(info) => {
                newest.good = Some(info);
                return Ok(newest);
            }
            Err(StoreError::Corrupt { file, why, .. }) if rows == 0 => {
                newest.passed_over.push(format!("{file} is damaged: {why}"));
            }
            Err(error @ StoreError::Io { .. }) if rows == 0 => {
                newest.passed_over.push(error.to_string());
                newest.unread.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(newest)
}
