//! The door to the medium: a flat folder of files, and the few operations whose order the store's promises rest on.
//!
//! It must not know what is in the files.

use std::fmt;
use std::io;

use crate::StoreError;
use crate::error::is_full;

/// A flat folder of files.
///
/// A write is in the system's memory until [`sync_data`](Self::sync_data) of its file returned; a creation, renaming or
/// removal until [`sync_folder`](Self::sync_folder) did. Names are plain: no separators, none of `.` and `..`. A clone is
/// another handle on the same folder, for another job; two handles never write to the same file.
pub trait Storage: Clone + fmt::Debug + Send + 'static {
    /// The names of all files, in no order.
    fn list(&mut self) -> io::Result<Vec<String>>;
    /// Makes an empty file that only its owner may read; an existing one is an error.
    fn create(&mut self, name: &str) -> io::Result<()>;
    /// The length of a file in bytes.
    fn length(&mut self, name: &str) -> io::Result<u64>;
    /// Fills `buffer` from the file, beginning at `offset`; a shorter file is an error.
    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all bytes at `offset`, making the file longer where needed.
    fn write_at(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything written to the file is on the medium. After an error nothing is known of it.
    fn sync_data(&mut self, name: &str) -> io::Result<()>;
    /// Returns when the folder's names are on the medium.
    fn sync_folder(&mut self) -> io::Result<()>;
    /// Renames a file, replacing one that has the new name.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// How many bytes may still be written to new places, as far as the medium can tell.
    fn free_bytes(&mut self) -> io::Result<u64>;
    /// Lets go of a file that is not used for now: nothing but what an open file costs.
    fn close(&mut self, name: &str);
    /// Forgets what the system's memory holds of the synced file, so that the next read is answered by the medium.
    fn drop_cache(&mut self, name: &str) -> io::Result<()>;
}

/// What a file is called until it is whole; recovery removes those that a crash left.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// Writes a small file whole or not at all: under another name, synced, renamed, the folder synced.
///
/// # Errors
///
/// [`StoreError::NoRoom`] if the medium is full, else [`StoreError::Io`]; the file is then what it was before, or
/// (only if the folder's sync failed) perhaps the new one.
pub fn write_whole(storage: &mut impl Storage, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    write_whole_with(storage, name, bytes.len() as u64, |storage, unfinished| {
        storage.write_at(unfinished, 0, bytes)
    })
}

/// As [`write_whole`], the bytes written by `fill`.
pub(crate) fn write_whole_with<S: Storage>(
    storage: &mut S,
    name: &str,
    bytes: u64,
    fill: impl FnOnce(&mut S, &str) -> io::Result<()>,
) -> Result<(), StoreError> {
    let unfinished = format!("{name}{UNFINISHED}");
    if storage.list().map_err(StoreError::io("list the files beside", name))?.contains(&unfinished) {
        storage.remove(&unfinished).map_err(StoreError::io("remove", &unfinished))?;
    }
    let written = storage
        .create(&unfinished)
        .and_then(|()| fill(storage, &unfinished))
        .and_then(|()| storage.sync_data(&unfinished));
    if let Err(source) = written {
        // What is left behind is harmless: the next attempt, or the next start, removes it.
        let _ = storage.remove(&unfinished);
        return Err(if is_full(&source) {
            StoreError::NoRoom { file: name.to_owned(), bytes }
        } else {
            StoreError::Io { operation: "write", file: unfinished, source }
        });
    }
    storage.rename(&unfinished, name).map_err(StoreError::io("rename", &unfinished))?;
    storage.sync_folder().map_err(StoreError::io("sync the folder of", name))
}
