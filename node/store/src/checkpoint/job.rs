//! Writing a checkpoint, in steps that others may go between: rows in, the file closed, read back from the medium and
//! compared, its first page written, its name given; then what it makes needless is removed or kept for the next segments.
//!
//! Until it has its name nobody reads it, and a job that fails or is dropped leaves nothing that matters.

use std::fmt;

use redb::{Database, ReadOnlyDatabase};
use xxhash_rust::xxh3::Xxh3;

use super::content::{Content, ROWS, blocks_after};
use super::header::Header;
use super::read::ContentHasher;
use super::{BLOCK_BYTES_MAX, CheckpointInfo, PIECE_BYTES, checkpoint_name};
use crate::change::{self, Row};
use crate::error::is_full;
use crate::storage::UNFINISHED;
use crate::walk::{Amount, Position};
use crate::{Storage, StoreError, Synced};

/// Pieces written between two syncs: the medium's queue stays short for the log, whose frames wait no longer than for one piece.
const PIECES_PER_SYNC: u32 = 1;

/// The rows of a checkpoint, in ascending order of list and key.
pub type Rows = Box<dyn Iterator<Item = Row> + Send>;

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<T> {
    /// There is more to do.
    More,
    /// All is done.
    Done(T),
}

/// A checkpoint that is being written.
pub struct Checkpoint<S: Storage> {
    storage: S,
    log_id: [u8; 16],
    position: Position,
    written: Amount,
    name: String,
    unfinished: String,
    content: Content<S>,
    rows: u64,
    row_bytes: u64,
    row_hash: Box<Xxh3>,
    stage: Stage,
}

enum Stage {
    Create(Rows),
    Fill {
        database: Database,
        source: Source,
        pieces: u32,
    },
    Close(Database),
    Hash(ContentHasher),
    Compare {
        database: ReadOnlyDatabase,
        after: Option<Vec<u8>>,
        hash: Box<Xxh3>,
        content: (u64, [u8; 16]),
    },
    Seal(Header),
    Install(Header),
    /// Done, or failed.
    Over,
}

/// Rows as they come, and the one that did not fit into the block before.
pub(crate) struct Source {
    rows: Rows,
    next: Option<Row>,
}

/// Some rows and where they go.
pub(crate) struct Block {
    key: Vec<u8>,
    pub bytes: Vec<u8>,
    pub rows: u64,
}

impl<S: Storage> fmt::Debug for Checkpoint<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Checkpoint").field("name", &self.name).field("rows", &self.rows).finish()
    }
}

fn block_key(row: &Row) -> Vec<u8> {
    [&row.list.to_be_bytes()[..], &row.key].concat()
}

impl Source {
    pub fn new(mut rows: Rows) -> Self {
        let next = rows.next();
        Self { rows, next }
    }

    /// The next block; none if there is no row left.
    pub fn block(&mut self) -> Result<Option<Block>, StoreError> {
        let Some(first) = &self.next else { return Ok(None) };
        let mut block = Block { key: block_key(first), bytes: Vec::new(), rows: 0 };
        let mut before = None;
        while let Some(row) = self.next.take_if(|row| {
            block.rows == 0 || block.bytes.len() + change::row_bytes(row, before) <= BLOCK_BYTES_MAX
        }) {
            change::encode_row(&row, before, &mut block.bytes);
            block.rows += 1;
            before = Some(row.list);
            self.next = self.rows.next();
            if self.next.as_ref().is_some_and(|next| (next.list, &next.key) <= (row.list, &row.key)) {
                return Err(StoreError::Order { list: row.list });
            }
        }
        Ok(Some(block))
    }
}

impl<S: Storage> Checkpoint<S> {
    /// A checkpoint of the log `log_id`, of the rows as they were after a durable frame. In `storage` it gets a name by the
    /// frame's number; nothing is done yet.
    pub fn new(storage: S, log_id: [u8; 16], synced: Synced, rows: Rows) -> Self {
        Self::at(storage, log_id, (synced.position(), synced.written()), rows)
    }

    pub(crate) fn at(
        storage: S,
        log_id: [u8; 16],
        (position, written): (Position, Amount),
        rows: Rows,
    ) -> Self {
        let name = checkpoint_name(position.sequence);
        let unfinished = format!("{name}{UNFINISHED}");
        Self {
            content: Content::empty(storage.clone(), &unfinished),
            storage,
            log_id,
            position,
            written,
            name,
            unfinished,
            rows: 0,
            row_bytes: 0,
            row_hash: Box::new(Xxh3::new()),
            stage: Stage::Create(rows),
        }
    }

    /// Whether anything was written.
    pub(crate) fn is_begun(&self) -> bool {
        !matches!(self.stage, Stage::Create(_))
    }

    /// Does the next piece. After an error the job is over, and what it wrote is removed.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoRoom`] if the medium is full; [`StoreError::Order`] if the rows are in no order, the caller's bug;
    /// [`StoreError::NotGivenBack`] if the medium does not keep what was written; [`StoreError::Io`].
    pub fn step(&mut self) -> Result<Progress<CheckpointInfo>, StoreError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let next = self.next(stage);
        match next {
            Ok(Progress::More) => {}
            Ok(Progress::Done(_)) => {}
            Err(_) => {
                // What is left behind is harmless: the next start removes it.
                let _ = self.storage.remove(&self.unfinished);
            }
        }
        next
    }

    fn next(&mut self, stage: Stage) -> Result<Progress<CheckpointInfo>, StoreError> {
        self.stage = match stage {
            Stage::Create(rows) => self.create(rows)?,
            Stage::Fill { database, source, pieces } => self.fill(database, source, pieces)?,
            Stage::Close(database) => self.close(database)?,
            Stage::Hash(hasher) => self.hash(hasher)?,
            Stage::Compare { database, after, hash, content } => {
                self.compare(database, after, hash, content)?
            }
            Stage::Seal(header) => self.seal(header)?,
            Stage::Install(header) => {
                self.install()?;
                return Ok(Progress::Done(CheckpointInfo::of(&header, self.written)));
            }
            Stage::Over => {
                let source = std::io::Error::other("the checkpoint is over");
                return Err(StoreError::Io { operation: "go on with", file: self.name.clone(), source });
            }
        };
        Ok(Progress::More)
    }

    fn create(&mut self, rows: Rows) -> Result<Stage, StoreError> {
        let there = self.storage.list().map_err(StoreError::io("list the files beside", &self.name))?;
        if there.contains(&self.unfinished) {
            self.storage.remove(&self.unfinished).map_err(StoreError::io("remove", &self.unfinished))?;
        }
        self.storage.create(&self.unfinished).map_err(|error| self.failed("create", error))?;
        let database = self.content.create().map_err(|error| self.failed_redb(&error))?;
        Ok(Stage::Fill { database, source: Source::new(rows), pieces: 0 })
    }

    fn fill(&mut self, database: Database, mut source: Source, pieces: u32) -> Result<Stage, StoreError> {
        let mut piece = Vec::new();
        let mut bytes = 0;
        while bytes < PIECE_BYTES
            && let Some(block) = source.block()?
        {
            bytes += block.bytes.len();
            self.row_bytes += block.bytes.len() as u64;
            self.rows += block.rows;
            self.row_hash.update(&block.bytes);
            piece.push(block);
        }
        write_blocks(&database, &piece).map_err(|error| self.failed_redb(&error))?;
        if (pieces + 1).is_multiple_of(PIECES_PER_SYNC) {
            self.storage.sync_data(&self.unfinished).map_err(|error| self.failed("sync", error))?;
        }
        Ok(match source.next {
            Some(_) => Stage::Fill { database, source, pieces: pieces + 1 },
            None => Stage::Close(database),
        })
    }

    fn close(&mut self, database: Database) -> Result<Stage, StoreError> {
        database.close().map_err(|error| self.failed_redb(&error.into()))?;
        let bytes = self.content.fill_up().map_err(|error| self.failed("write", error))?;
        self.storage.sync_data(&self.unfinished).map_err(|error| self.failed("sync", error))?;
        self.storage.drop_cache(&self.unfinished).map_err(|error| self.failed("drop the cache of", error))?;
        Ok(Stage::Hash(ContentHasher::new(bytes)))
    }

    fn hash(&mut self, mut hasher: ContentHasher) -> Result<Stage, StoreError> {
        if !hasher.is_done() {
            hasher
                .step(&mut self.storage, &self.unfinished)
                .map_err(|error| self.failed("read back", error))?;
            return Ok(Stage::Hash(hasher));
        }
        let content = (hasher.bytes(), hasher.hash());
        self.content = Content::whole(self.storage.clone(), &self.unfinished, content.0);
        let database = self.content.open().map_err(|error| self.not_read_back(&error))?;
        Ok(Stage::Compare { database, after: None, hash: Box::new(Xxh3::new()), content })
    }

    /// Whether what the medium gives back is what was written.
    fn compare(
        &mut self,
        database: ReadOnlyDatabase,
        after: Option<Vec<u8>>,
        mut hash: Box<Xxh3>,
        content: (u64, [u8; 16]),
    ) -> Result<Stage, StoreError> {
        let read = blocks_after(&database, after.as_deref(), PIECE_BYTES);
        let (blocks, last) = read.map_err(|error| self.not_read_back(&error))?;
        blocks.iter().for_each(|block| hash.update(block));
        if last.is_some() {
            return Ok(Stage::Compare { database, after: last, hash, content });
        }
        if hash.digest128() != self.row_hash.digest128() {
            return Err(self.not_given_back("its rows are not the ones that were written"));
        }
        Ok(Stage::Seal(Header {
            log_id: self.log_id,
            position: self.position,
            rows: self.rows,
            row_bytes: self.row_bytes,
            content_bytes: content.0,
            content_hash: content.1,
        }))
    }

    fn seal(&mut self, header: Header) -> Result<Stage, StoreError> {
        self.storage
            .write_at(&self.unfinished, 0, &header.encode())
            .and_then(|()| self.storage.sync_data(&self.unfinished))
            .map_err(|error| self.failed("write", error))?;
        Ok(Stage::Install(header))
    }

    fn install(&mut self) -> Result<(), StoreError> {
        self.storage.rename(&self.unfinished, &self.name).map_err(|error| self.failed("rename", error))?;
        self.storage.sync_folder().map_err(|error| self.failed("sync the folder of", error))
    }

    fn failed(&self, operation: &'static str, source: std::io::Error) -> StoreError {
        let file = self.name.clone();
        if is_full(&source) {
            return StoreError::NoRoom { file, bytes: self.row_bytes };
        }
        StoreError::Io { operation, file, source }
    }

    fn failed_redb(&self, error: &redb::Error) -> StoreError {
        self.failed("write", self.content.why(error))
    }

    fn not_read_back(&self, error: &redb::Error) -> StoreError {
        match self.content.storage_error() {
            Some(source) => self.failed("read back", source),
            None => self.not_given_back(&error.to_string()),
        }
    }

    fn not_given_back(&self, why: &str) -> StoreError {
        StoreError::NotGivenBack { file: self.name.clone(), why: why.to_owned() }
    }
}

fn write_blocks(database: &Database, blocks: &[Block]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(ROWS)?;
        for block in blocks {
            table.insert(block.key.as_slice(), block.bytes.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}
