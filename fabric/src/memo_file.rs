//! `links.memo`: the places of all links in one file, 256 bytes each, overwritten in place.
//!
//! The file is a row of places; which peer's a place is stands in it, under its checksum. A place of zeros, or one that
//! does not decode, is free: the link that had it says hello. Places are overwritten, never moved, so that an erased root
//! is gone from the file (as far as the medium overwrites). It holds secrets: mode 0600, and another mode is refused.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sealing::NodeId;
use sealing::memo::{Memo, PLACE_BYTES, Place};

use crate::error::FabricError;

/// The file's name in a node's folder.
pub const MEMO_FILE: &str = "links.memo";

/// Places in the file, so peers of a node: 16 MiB of file, read whole at the start.
pub const MEMO_PLACES_MAX: usize = 65_536;

/// Read and write by the owner, nothing by others.
const MODE: u32 = 0o600;

/// The open file and which place is whose.
#[derive(Debug)]
pub(crate) struct MemoFile {
    file: File,
    path: PathBuf,
    places: HashMap<NodeId, usize>,
    /// Places that hold nothing, below `length`.
    free: BTreeSet<usize>,
    /// Places in the file, free ones too.
    length: usize,
    /// Whether something was written and not synced.
    unsynced: bool,
}

impl MemoFile {
    /// Opens the file in `folder`, or makes it.
    pub(crate) fn open(folder: &Path) -> Result<MemoFile, FabricError> {
        let path = folder.join(MEMO_FILE);
        let existed = path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .open(&path)
            .map_err(failed("open", &path))?;
        let metadata = file.metadata().map_err(failed("open", &path))?;
        let mode = metadata.mode() & 0o777;
        if mode & !MODE != 0 {
            return Err(FabricError::Permissions { path, mode });
        }
        if !existed {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("make", &path))?;
        }
        let places = usize::try_from(metadata.len()).unwrap_or(usize::MAX).div_ceil(PLACE_BYTES);
        let length = places.min(MEMO_PLACES_MAX);
        let mut memo =
            MemoFile { file, path, places: HashMap::new(), free: BTreeSet::new(), length, unsynced: false };
        memo.scan()?;
        Ok(memo)
    }

    /// The place of a peer's link as last saved; none if it has none that decodes.
    pub(crate) fn load(&self, peer: NodeId) -> Result<Option<Place>, FabricError> {
        self.places.get(&peer).map(|index| self.read(*index)).transpose()
    }

    /// Writes a peer's place. It is on the disk after [`MemoFile::sync`]. Beyond [`MEMO_PLACES_MAX`] peers nothing is
    /// kept: then the link's memo is lost at a restart, which a link survives by a hello.
    pub(crate) fn save(&mut self, peer: NodeId, place: &Place) -> Result<(), FabricError> {
        let Some(index) = self.place_of(peer) else {
            return Ok(());
        };
        self.unsynced = true;
        self.write(index, place)
    }

    /// Overwrites a peer's place with zeros, on the disk when this returns; another peer may have it then.
    pub(crate) fn erase(&mut self, peer: NodeId) -> Result<(), FabricError> {
        let Some(index) = self.places.get(&peer).copied() else {
            return Ok(());
        };
        self.unsynced = true;
        self.write(index, &[0; PLACE_BYTES])?;
        self.sync()?;
        self.places.remove(&peer);
        self.free.insert(index);
        Ok(())
    }

    /// All that was saved is on the disk when this returns.
    pub(crate) fn sync(&mut self) -> Result<(), FabricError> {
        if self.unsynced {
            self.file.sync_data().map_err(failed("sync", &self.path))?;
            self.unsynced = false;
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), FabricError> {
        for index in 0..self.length {
            let peer = Memo::decode(&self.read(index)?).map(|memo| memo.peer);
            match peer {
                Ok(peer) if !self.places.contains_key(&peer) => {
                    self.places.insert(peer, index);
                }
                _ => {
                    self.free.insert(index);
                }
            }
        }
        Ok(())
    }

    fn place_of(&mut self, peer: NodeId) -> Option<usize> {
        if let Some(index) = self.places.get(&peer) {
            return Some(*index);
        }
        let index = match self.free.pop_first() {
            Some(index) => index,
            None if self.length < MEMO_PLACES_MAX => {
                self.length += 1;
                self.length - 1
            }
            None => return None,
        };
        self.places.insert(peer, index);
        Some(index)
    }

    /// A place; what is beyond the end of the file reads as zeros, so a last place cut short does not decode.
    fn read(&self, index: usize) -> Result<Place, FabricError> {
        let mut place = [0; PLACE_BYTES];
        let mut filled = 0;
        while filled < PLACE_BYTES {
            match self.file.read_at(&mut place[filled..], offset(index) + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &self.path)(error)),
            }
        }
        Ok(place)
    }

    fn write(&self, index: usize, place: &Place) -> Result<(), FabricError> {
        self.file.write_all_at(place, offset(index)).map_err(failed("write", &self.path))
    }

    /// With the file open for reading only: every write fails.
    #[cfg(test)]
    pub(crate) fn open_broken(folder: &Path) -> MemoFile {
        let mut memo = MemoFile::open(folder).unwrap();
        memo.file = File::open(&memo.path).unwrap();
        memo
    }
}

fn offset(index: usize) -> u64 {
    (index * PLACE_BYTES) as u64
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FabricError {
    move |source| FabricError::Memo { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use sealing::Run;
    use sealing::memo::HelloCounters;

    use super::*;

    fn peer(number: u8) -> NodeId {
        NodeId::from_bytes([number; 32])
    }

    fn place(number: u8, counter: u64) -> Place {
        let run = Run { counter, random: [0; 16] };
        let hello_heard = HelloCounters { run_counter: run.counter, hello_sequence: 0 };
        Memo {
            peer: peer(number),
            current: None,
            pending: None,
            hello_heard,
            address: None,
            is_fenced: false,
        }
        .encode()
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// A file with the places of peers 1, 2 and 3.
    fn three(folder: &Path) -> MemoFile {
        let mut memo = MemoFile::open(folder).unwrap();
        for number in 1..=3 {
            memo.save(peer(number), &place(number, 1)).unwrap();
        }
        memo.sync().unwrap();
        memo
    }

    fn bytes(folder: &Path) -> Vec<u8> {
        std::fs::read(folder.join(MEMO_FILE)).unwrap()
    }

    #[test]
    fn a_place_is_there_after_a_restart_and_is_overwritten_where_it_is() {
        let folder = folder();
        let mut memo = three(folder.path());
        memo.save(peer(2), &place(2, 7)).unwrap();
        drop(memo);
        assert_eq!(bytes(folder.path()), [place(1, 1), place(2, 7), place(3, 1)].concat());
        let memo = MemoFile::open(folder.path()).unwrap();
        assert_eq!(memo.load(peer(2)).unwrap(), Some(place(2, 7)));
        assert_eq!(memo.load(peer(4)).unwrap(), None);
    }

    /// What became of the file, and whose places are then still there.
    #[test]
    fn a_damaged_place_is_lost_and_no_other() {
        type Damage = fn(&mut Vec<u8>);
        let table: [(&str, Damage, [bool; 3]); 6] = [
            ("nothing", |_| (), [true, true, true]),
            ("a flipped bit", |bytes| bytes[PLACE_BYTES + 40] ^= 1, [true, false, true]),
            ("zeros", |bytes| bytes[..PLACE_BYTES].fill(0), [false, true, true]),
            ("a torn end", |bytes| bytes.truncate(2 * PLACE_BYTES + 100), [true, true, false]),
            (
                "twice the same",
                |bytes| bytes.copy_within(..PLACE_BYTES, 2 * PLACE_BYTES),
                [true, true, false],
            ),
            ("noise", |bytes| bytes.fill(0xa5), [false, false, false]),
        ];
        for (name, damage, expected) in table {
            let folder = folder();
            drop(three(folder.path()));
            let mut damaged = bytes(folder.path());
            damage(&mut damaged);
            std::fs::write(folder.path().join(MEMO_FILE), damaged).unwrap();
            let mut memo = MemoFile::open(folder.path()).unwrap();
            let found = [1, 2, 3].map(|number| memo.load(peer(number)).unwrap().is_some());
            assert_eq!(found, expected, "{name}");
            for number in 1..=4 {
                memo.save(peer(number), &place(number, 9)).unwrap();
            }
            drop(memo);
            let memo = MemoFile::open(folder.path()).unwrap();
            for number in 1..=4 {
                assert_eq!(memo.load(peer(number)).unwrap(), Some(place(number, 9)), "{name}: {number}");
            }
            assert_eq!(bytes(folder.path()).len(), 4 * PLACE_BYTES, "{name}: a lost place is used again");
        }
    }

    #[test]
    fn an_erased_place_is_zeros_and_the_next_peer_has_it() {
        let folder = folder();
        let mut memo = three(folder.path());
        memo.erase(peer(2)).unwrap();
        memo.erase(peer(9)).unwrap();
        assert_eq!(bytes(folder.path())[PLACE_BYTES..2 * PLACE_BYTES], [0; PLACE_BYTES]);
        assert_eq!(memo.load(peer(2)).unwrap(), None);
        memo.save(peer(4), &place(4, 1)).unwrap();
        assert_eq!(bytes(folder.path()), [place(1, 1), place(4, 1), place(3, 1)].concat());
    }

    #[test]
    fn the_file_is_the_owners_alone() {
        let folder = folder();
        drop(three(folder.path()));
        let path = folder.path().join(MEMO_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let text = MemoFile::open(folder.path()).unwrap_err().to_string();
        assert!(text.contains("mode 640") && text.contains(MEMO_FILE), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_had_or_written_is_named() {
        let folder = folder();
        let missing = MemoFile::open(&folder.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("cannot open") && missing.contains("missing/links.memo"), "{missing}");
        let broken =
            MemoFile::open_broken(folder.path()).save(peer(1), &place(1, 1)).unwrap_err().to_string();
        assert!(broken.contains("cannot write") && broken.contains("free or repair the disk"), "{broken}");
    }
}
