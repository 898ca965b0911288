//! The redb file inside of a checkpoint's file, over the same [`Storage`] as everything else.
//!
//! It stands behind the first page. While it is being made, redb's own syncs do nothing: a file that nobody reads before
//! it is whole is synced once, at its end. redb is never shown bytes that were not verified first.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Builder, Database, ReadOnlyDatabase, ReadableDatabase, StorageBackend, TableDefinition};

use crate::Storage;
use crate::segment::PAGE;

/// Blocks of rows by the list and key of their first row.
pub(crate) const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Memory of redb for pages, in bytes: what one transaction writes fits, so that no page is written twice.
const CACHE_BYTES: usize = 4 << 20;

/// A part of a file, as redb sees one.
#[derive(Debug)]
pub(crate) struct Content<S>(Arc<Mutex<Inner<S>>>);

#[derive(Debug)]
struct Inner<S> {
    storage: S,
    file: String,
    /// The length that redb gave it, in bytes.
    length: u64,
    /// Up to where it was written; zeros follow.
    written: u64,
    /// Whether redb may change it.
    writable: bool,
    /// The first error of the storage, which redb hands on in words only.
    error: Option<io::Error>,
}

impl<S> Clone for Content<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Storage> Content<S> {
    /// The content of a file that is being made.
    pub fn empty(storage: S, file: &str) -> Self {
        Self::of(Inner { storage, file: file.to_owned(), length: 0, written: 0, writable: true, error: None })
    }

    /// The content of a file that is whole.
    pub fn whole(storage: S, file: &str, length: u64) -> Self {
        let file = file.to_owned();
        Self::of(Inner { storage, file, length, written: length, writable: false, error: None })
    }

    fn of(inner: Inner<S>) -> Self {
        Self(Arc::new(Mutex::new(inner)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new redb file in it.
    pub fn create(&self) -> Result<Database, redb::Error> {
        Ok(builder().create_with_backend(self.clone())?)
    }

    /// The redb file that is in it.
    pub fn open(&self) -> Result<ReadOnlyDatabase, redb::Error> {
        Ok(builder().open_read_only_with_backend(self.clone())?)
    }

    /// Makes the file as long as redb wants it, and gives that length, in bytes.
    pub fn fill_up(&self) -> io::Result<u64> {
        let mut inner = self.inner();
        let length = inner.length;
        if inner.written < length {
            inner.put(length - 1, &[0])?;
        }
        Ok(length)
    }

    /// The storage's first error, if it had one.
    pub fn storage_error(&self) -> Option<io::Error> {
        self.inner().error.take()
    }

    /// Why redb failed: the storage's error, if it was one.
    pub fn why(&self, error: &redb::Error) -> io::Error {
        self.storage_error().unwrap_or_else(|| io::Error::other(error.to_string()))
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Some blocks, and the key of the last; none if there was none left.
pub(crate) type Blocks = (Vec<Vec<u8>>, Option<Vec<u8>>);

/// The blocks after one, or from the first, until they have `most` bytes.
pub(crate) fn blocks_after(
    database: &ReadOnlyDatabase,
    after: Option<&[u8]>,
    most: usize,
) -> Result<Blocks, redb::Error> {
    use std::ops::Bound;
    let table = database.begin_read()?.open_table(ROWS)?;
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let (mut blocks, mut last, mut bytes) = (Vec::new(), None, 0);
    for entry in table.range::<&[u8]>((from, Bound::Unbounded))? {
        let (key, block) = entry?;
        bytes += block.value().len();
        blocks.push(block.value().to_vec());
        last = Some(key.value().to_vec());
        if bytes >= most {
            break;
        }
    }
    Ok((blocks, last))
}

impl<S: Storage> Inner<S> {
    fn put(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.storage.write_at(&self.file, offset + PAGE as u64, bytes)?;
        self.written = self.written.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn get(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.written.saturating_sub(offset).min(out.len() as u64);
        // `there` is at most the length of `out`.
        let (filled, zeros) = out.split_at_mut(there as usize);
        zeros.fill(0);
        if filled.is_empty() {
            return Ok(());
        }
        self.storage.read(&self.file, offset + PAGE as u64, filled)
    }

    fn checked(&mut self, result: io::Result<()>) -> io::Result<()> {
        result.map_err(|error| {
            let told = io::Error::new(error.kind(), error.to_string());
            self.error.get_or_insert(error);
            told
        })
    }
}

impl<S: Storage> StorageBackend for Content<S> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut inner = self.inner();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > inner.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let result = inner.get(offset, out);
        inner.checked(result)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.writable {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if inner.written > length {
            // What is cut off must read as zeros if it comes back.
            let (from, zeros) = (length, vec![0; usize::try_from(inner.written - length).unwrap_or(0)]);
            let result = inner.put(from, &zeros);
            inner.checked(result)?;
        }
        inner.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.writable {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let result = inner.put(offset, data);
        inner.checked(result)
    }
}
