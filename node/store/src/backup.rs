//! Backups: a state as one stream of bytes, which needs no second pass: it goes through a pipe as well as into a file.
//!
//! Little-endian. First 64 bytes: magic 8, format version u32, 0 u32, log id 16, sequence u64, run u64, XXH3-128 of all
//! before. Then *pieces*: kind u32 (1 rows, 2 a file, 3 the end), length of the payload u32, and a hash: XXH3-128 over the
//! hash before (of the piece before, or of the first bytes), kind, length and payload; then the payload. Rows are laid out as
//! those of a checkpoint's block, and ascend in list and key through all pieces. A file is the length of its name u8, the name,
//! its bytes. The end is the count of rows u64, and nothing follows.
//!
//! So a bit that flipped, a piece that is missing, exchanged or of another backup, and an end that is missing are each found.
//! It must not know what the files are, nor where the bytes come from or go to.

use std::io::{self, Read};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::change::{self, Changes};
use crate::checkpoint::{Rows, Source};
use crate::log::Synced;
use crate::segment::{array, number};
use crate::{Change, Contents, FRAME_BYTES_MAX, Row, StoreError};

/// The newest format of a backup that this program writes and reads.
pub const BACKUP_FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SELVBACK";
const HEADER_BYTES: usize = 64;
const HASHED_BYTES: usize = HEADER_BYTES - 16;
const PIECE_HEADER_BYTES: usize = 24;

const ROWS: u32 = 1;
const FILE: u32 = 2;
const END: u32 = 3;

/// The greatest payload of a piece: a row is in a frame, and so at most as large as one.
const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// The greatest file in a backup, in bytes: those beside a log are a few hundred.
const FILE_BYTES_MAX: usize = 64 << 10;

/// Of which state a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// The log that it was of.
    pub log_id: [u8; 16],
    /// The frame after which it was so.
    pub sequence: u64,
    /// The run of that frame.
    pub run: u64,
}

impl BackedUp {
    /// The state after a durable frame.
    #[must_use]
    pub fn after(log_id: [u8; 16], synced: &Synced) -> Self {
        let position = synced.position();
        Self { log_id, sequence: position.sequence, run: position.run }
    }

    /// The state that a folder holds; none if it holds no log.
    #[must_use]
    pub fn of(contents: &Contents) -> Option<Self> {
        let log_id = contents.log_id?;
        Some(Self { log_id, sequence: contents.sequence, run: contents.run })
    }
}

/// A part of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Some of the rows.
    Rows(Vec<Row>),
    /// A small file from beside the log.
    File {
        /// Its name.
        name: String,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// Lays out a backup, part by part.
#[derive(Debug)]
pub struct BackupWriter {
    before: [u8; 16],
    rows: u64,
}

impl BackupWriter {
    /// Begins one: these bytes come first.
    #[must_use]
    pub fn begin(about: &BackedUp) -> (Self, Vec<u8>) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&BACKUP_FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&about.log_id);
        bytes.extend_from_slice(&about.sequence.to_le_bytes());
        bytes.extend_from_slice(&about.run.to_le_bytes());
        let hash = xxh3_128(&bytes).to_le_bytes();
        bytes.extend_from_slice(&hash);
        (Self { before: hash, rows: 0 }, bytes)
    }

    /// The bytes of a part; rows are in ascending order, after those of the parts before.
    pub fn part(&mut self, part: &Part) -> Vec<u8> {
        match part {
            Part::Rows(rows) => {
                let (mut payload, mut before) = (Vec::new(), None);
                for row in rows {
                    change::encode_row(row, before, &mut payload);
                    before = Some(row.list);
                }
                self.rows(&payload, rows.len() as u64)
            }
            Part::File { name, bytes } => {
                // Names are the caller's own, and short.
                let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
                self.piece(FILE, &[&[name.len() as u8][..], name, bytes].concat())
            }
        }
    }

    fn rows(&mut self, payload: &[u8], rows: u64) -> Vec<u8> {
        self.rows += rows;
        self.piece(ROWS, payload)
    }

    /// The last bytes.
    #[must_use]
    pub fn end(mut self) -> Vec<u8> {
        let rows = self.rows.to_le_bytes();
        self.piece(END, &rows)
    }

    fn piece(&mut self, kind: u32, payload: &[u8]) -> Vec<u8> {
        let (kind, length) = (kind.to_le_bytes(), (payload.len() as u32).to_le_bytes());
        self.before = piece_hash(self.before, kind, length, payload);
        [&kind[..], &length, &self.before, payload].concat()
    }
}

fn piece_hash(before: [u8; 16], kind: [u8; 4], length: [u8; 4], payload: &[u8]) -> [u8; 16] {
    let mut hasher = Xxh3::new();
    for bytes in [&before[..], &kind, &length, payload] {
        hasher.update(bytes);
    }
    hasher.digest128().to_le_bytes()
}

/// A backup of rows as they come, piece by piece, to its end. After an error it is over.
pub struct Backup {
    first: Option<Vec<u8>>,
    writer: Option<BackupWriter>,
    rows: Source,
}

impl Backup {
    /// A backup of a state's rows, in ascending order of list and key.
    #[must_use]
    pub fn new(about: &BackedUp, rows: Rows) -> Self {
        let (writer, first) = BackupWriter::begin(about);
        Self { first: Some(first), writer: Some(writer), rows: Source::new(rows) }
    }
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Backup").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl Iterator for Backup {
    type Item = Result<Vec<u8>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let mut writer = self.writer.take()?;
        match self.rows.block() {
            Ok(Some(block)) => {
                let piece = writer.rows(&block.bytes, block.rows);
                self.writer = Some(writer);
                Some(Ok(piece))
            }
            Ok(None) => Some(Ok(writer.end())),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Reads a backup, and verifies each part before it hands it out. It is whole only when the parts ended without an error.
#[derive(Debug)]
pub struct BackupReader<R> {
    input: R,
    /// What it is called, for people.
    name: String,
    about: BackedUp,
    offset: u64,
    before: [u8; 16],
    rows: u64,
    last: Option<(u64, Vec<u8>)>,
    is_over: bool,
}

impl<R: Read> BackupReader<R> {
    /// Reads the first bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoBackup`], [`StoreError::DamagedBackup`], [`StoreError::NewerFormat`]; [`StoreError::Io`].
    pub fn open(input: R, name: &str) -> Result<Self, StoreError> {
        let about = BackedUp { log_id: [0; 16], sequence: 0, run: 0 };
        let name = name.to_owned();
        let mut reader =
            Self { input, name, about, offset: 0, before: [0; 16], rows: 0, last: None, is_over: false };
        let first = reader.bytes(HEADER_BYTES);
        let header = match first {
            Err(StoreError::DamagedBackup { .. }) => return Err(reader.not_one()),
            header => header?,
        };
        if header[..8] != MAGIC {
            return Err(reader.not_one());
        }
        let hash: [u8; 16] = array(&header[HASHED_BYTES..]);
        if hash != xxh3_128(&header[..HASHED_BYTES]).to_le_bytes() {
            return Err(reader.damaged(0, "its first bytes have a wrong hash"));
        }
        let version = u32::from_le_bytes(array(&header[8..12]));
        if version > BACKUP_FORMAT_VERSION {
            let (file, found, known) = (reader.name, version, BACKUP_FORMAT_VERSION);
            return Err(StoreError::NewerFormat { file, found, known });
        }
        if version == 0 || header[12..16] != [0; 4] {
            return Err(reader.damaged(0, "its first bytes say what no program writes"));
        }
        reader.about = BackedUp {
            log_id: array(&header[16..32]),
            sequence: number(&header[32..40]),
            run: number(&header[40..48]),
        };
        reader.before = hash;
        Ok(reader)
    }

    /// Of which state it is.
    pub fn about(&self) -> &BackedUp {
        &self.about
    }

    fn part(&mut self) -> Result<Option<Part>, StoreError> {
        let from = self.offset;
        let header = self.bytes(PIECE_HEADER_BYTES)?;
        let (kind, length): ([u8; 4], [u8; 4]) = (array(&header[..4]), array(&header[4..8]));
        let bytes = u32::from_le_bytes(length) as usize;
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(self.damaged(from, "a piece has more bytes than any has"));
        }
        let payload = self.bytes(bytes)?;
        let hash = piece_hash(self.before, kind, length, &payload);
        if header[8..] != hash {
            return Err(self.damaged(from, "a piece has a wrong hash"));
        }
        self.before = hash;
        let part = match u32::from_le_bytes(kind) {
            ROWS => self.rows(&payload).map(|rows| Some(Part::Rows(rows))),
            FILE => file(&payload).map(Some),
            END if payload == self.rows.to_le_bytes() => {
                self.ends()?;
                return Ok(None);
            }
            _ => None,
        };
        part.ok_or_else(|| self.damaged(from, "a piece is laid out as no program does"))
    }

    fn rows(&mut self, payload: &[u8]) -> Option<Vec<Row>> {
        let (mut rows, mut are_rows) = (Vec::new(), true);
        Changes::read(payload)?.each(&mut |Change { list, key, row }| match row {
            Some(row) => rows.push(Row { list, key, row }),
            None => are_rows = false,
        });
        for row in &rows {
            let place = (row.list, row.key.clone());
            if self.last.as_ref().is_some_and(|last| *last >= place) {
                return None;
            }
            self.last = Some(place);
        }
        if !are_rows {
            return None;
        }
        self.rows += rows.len() as u64;
        Some(rows)
    }

    /// Nothing follows the end.
    fn ends(&mut self) -> Result<(), StoreError> {
        let from = self.offset;
        let mut byte = [0; 1];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(()),
                Ok(_) => return Err(self.damaged(from, "something follows its end")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("read", &self.name)(error)),
            }
        }
    }

    fn bytes(&mut self, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let from = self.offset;
        // No more is set aside than there is, whatever a length says.
        let mut taken = Vec::new();
        let limited = self.input.by_ref().take(bytes as u64).read_to_end(&mut taken);
        limited.map_err(StoreError::io("read", &self.name))?;
        self.offset += taken.len() as u64;
        if taken.len() < bytes {
            return Err(
                self.damaged(from, "it ends too early: it was not written, or not copied, to its end")
            );
        }
        Ok(taken)
    }

    fn damaged(&self, offset: u64, why: &str) -> StoreError {
        let (file, end) = (self.name.clone(), self.offset);
        StoreError::DamagedBackup { file, offset, end, why: why.to_owned() }
    }

    fn not_one(self) -> StoreError {
        StoreError::NoBackup { file: self.name }
    }
}

impl<R: Read> Iterator for BackupReader<R> {
    type Item = Result<Part, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let part = self.part().transpose();
        self.is_over = !matches!(part, Some(Ok(_)));
        part
    }
}

fn file(payload: &[u8]) -> Option<Part> {
    let (length, rest) = payload.split_first()?;
    let (name, bytes) = rest.split_at_checked(usize::from(*length))?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    (bytes.len() <= FILE_BYTES_MAX).then(|| Part::File { name, bytes: bytes.to_vec() })
}
