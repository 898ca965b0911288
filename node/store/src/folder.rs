//! The real medium: a folder that one process owns.
//!
//! The folder is 0700 and its files are 0600; looser ones are refused, since what lies there is private. Only a new or
//! empty folder is taken for a new one; a folder with the file `lock` in it was taken before. The file `lock` is
//! locked while the folder is open and holds the owner's process number, for people.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Storage, StoreError};

/// The file that is locked while a process owns the folder.
const LOCK: &str = "lock";

/// A folder on a disk, owned by this process until dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Open files by name. They stay open, so that an error of writing back is reported to the sync that must hear it.
    files: HashMap<String, File>,
    lock: Arc<File>,
    /// Whether this process may write there.
    is_writable: bool,
}

impl Clone for Folder {
    /// Another handle, which opens its own files; the folder stays locked until the last is dropped.
    fn clone(&self) -> Self {
        Self {
            path: self.path.clone(),
            files: HashMap::new(),
            lock: Arc::clone(&self.lock),
            is_writable: self.is_writable,
        }
    }
}

impl Folder {
    /// Opens a folder, made with mode 0700 if it is not there, and locks it. Its parent must be there. An empty one that
    /// others may use is closed to them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] if another process owns it, [`StoreError::Permissions`] if others may use it or a file in
    /// it, [`StoreError::Occupied`] if it holds something else, [`StoreError::NotAFolder`], [`StoreError::NoParent`],
    /// [`StoreError::CannotMake`], [`StoreError::Io`] if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let shown = path.display().to_string();
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(StoreError::NotAFolder { path: path.to_owned() });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
            Ok(_) | Err(_) => {}
        }
        let path = path.canonicalize().map_err(StoreError::io("open the folder", &shown))?;
        if !path.join(LOCK).exists() {
            take_if_empty(&path, &shown)?;
        }
        check_permissions(&path, &path)?;
        let lock = lock(&path)?;
        check_all_permissions(&path)?;
        Ok(Self { path, files: HashMap::new(), lock: Arc::new(lock), is_writable: true })
    }

    /// Opens a folder that is there, of which nothing will be changed: also one that this process may not write, where it
    /// is locked if it can be, and others' permissions are nothing that could be mended.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] if another process owns it, [`StoreError::Permissions`] as [`Folder::open`],
    /// [`StoreError::NotAFolder`], [`StoreError::Io`].
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let shown = path.display().to_string();
        let path = path.canonicalize().map_err(StoreError::io("open the folder", &shown))?;
        if !path.is_dir() {
            return Err(StoreError::NotAFolder { path });
        }
        let (lock, is_writable) = match lock(&path) {
            Err(StoreError::Io { source, .. }) if is_closed_to_writing(&source) => {
                (lock_to_read(&path)?, false)
            }
            lock => (lock?, true),
        };
        if is_writable {
            check_permissions(&path, &path)?;
            check_all_permissions(&path)?;
        }
        Ok(Self { path, files: HashMap::new(), lock: Arc::new(lock), is_writable })
    }

    /// The folder's path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process that owns a folder now; none if nobody does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the folder's lock cannot be read.
    pub fn owner(path: &Path) -> Result<Option<u32>, StoreError> {
        let file = path.join(LOCK);
        let shown = file.display().to_string();
        let mut lock = match File::open(&file) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("open", &shown)(error)),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(None),
            // The owner writes its number right after it locked; until then 0 stands for it.
            Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut lock).unwrap_or(0))),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &shown)(error)),
        }
    }

    fn file(&mut self, name: &str) -> io::Result<&File> {
        let path = self.inside(name)?;
        if !self.files.contains_key(name) {
            let file = OpenOptions::new().read(true).write(self.is_writable).open(path)?;
            self.files.insert(name.to_owned(), file);
        }
        Ok(&self.files[name])
    }

    fn inside(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." || name == LOCK {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no plain file name"),
            ));
        }
        Ok(self.path.join(name))
    }
}

/// Makes the folder, and not those it would be in: a path that was mistyped makes nothing.
fn make(path: &Path) -> Result<(), StoreError> {
    let folder = path.to_owned();
    DirBuilder::new().mode(0o700).create(path).map_err(|source| match path.parent() {
        // Some folders take no others, and say so in the same words.
        Some(parent) if source.kind() == io::ErrorKind::NotFound && !parent.exists() => {
            StoreError::NoParent { folder, parent: parent.to_owned() }
        }
        _ => StoreError::CannotMake { folder, source },
    })
}

/// A folder in which this program never was must be empty; then it is closed to others.
fn take_if_empty(path: &Path, shown: &str) -> Result<(), StoreError> {
    let mut entries = fs::read_dir(path).map_err(StoreError::io("list", shown))?;
    if entries.next().is_some() {
        return Err(StoreError::Occupied { folder: path.to_owned() });
    }
    let permissions = fs::metadata(path).map_err(StoreError::io("look at", shown))?.permissions();
    if permissions.mode() & 0o077 != 0 {
        // Another user's folder stays as it is, and is refused for that.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let shown = path.display().to_string();
    let mut lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StoreError::io("open", &shown))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Locked { folder: folder.to_owned(), pid: read_pid(&mut lock) });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &shown)(error)),
    }
    lock.set_len(0)
        .and_then(|()| lock.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(StoreError::io("write", &shown))?;
    Ok(lock)
}

/// Whether an error means that nothing can be written there.
fn is_closed_to_writing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Locks a folder that cannot be written, beside others who only read. Without its lock's file nobody ever owned it.
fn lock_to_read(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let shown = path.display().to_string();
    let mut lock = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return File::open(folder).map_err(StoreError::io("open the folder", &shown));
        }
        lock => lock.map_err(StoreError::io("open", &shown))?,
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            Err(StoreError::Locked { folder: folder.to_owned(), pid: read_pid(&mut lock) })
        }
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &shown)(error)),
    }
}

fn read_pid(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn check_all_permissions(folder: &Path) -> Result<(), StoreError> {
    let shown = folder.display().to_string();
    for entry in fs::read_dir(folder).map_err(StoreError::io("list", &shown))? {
        let entry = entry.map_err(StoreError::io("list", &shown))?;
        check_permissions(folder, &entry.path())?;
    }
    Ok(())
}

/// Refuses what its group or others may use.
fn check_permissions(folder: &Path, path: &Path) -> Result<(), StoreError> {
    let metadata =
        fs::symlink_metadata(path).map_err(StoreError::io("look at", &path.display().to_string()))?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_symlink() || mode & 0o077 == 0 {
        return Ok(());
    }
    let command = format!("chmod -R go= '{}'", folder.display().to_string().replace('\'', r"'\''"));
    Err(StoreError::Permissions { path: path.to_owned(), mode, command })
}

/// A medium that takes no writes has nothing to be synced, and may say so.
fn synced(result: io::Result<()>, is_writable: bool) -> io::Result<()> {
    match result {
        Err(error) if !is_writable && error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        result => result,
    }
}

impl Storage for Folder {
    fn list(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && name != LOCK
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        let path = self.inside(name)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        self.files.insert(name.to_owned(), file);
        Ok(())
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        Ok(self.file(name)?.metadata()?.len())
    }

    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file(name)?.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all_at(bytes, offset)
    }

    fn sync_data(&mut self, name: &str) -> io::Result<()> {
        let is_writable = self.is_writable;
        synced(self.file(name)?.sync_data(), is_writable)
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        synced(File::open(&self.path)?.sync_all(), self.is_writable)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.inside(from)?, self.inside(to)?)?;
        self.files.remove(to);
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.inside(name)?)?;
        self.files.remove(name);
        Ok(())
    }

    fn free_bytes(&mut self) -> io::Result<u64> {
        let medium = rustix::fs::statvfs(&self.path)?;
        Ok(medium.f_bavail.saturating_mul(medium.f_frsize))
    }

    fn close(&mut self, name: &str) {
        self.files.remove(name);
    }

    fn drop_cache(&mut self, name: &str) -> io::Result<()> {
        let file = self.file(name)?;
        Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
    }
}
