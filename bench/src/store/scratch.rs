//! A folder on a disk that goes with its owner, what the disk's files cost there, and how the system is made to forget them.

use crate::BenchError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// File systems that are memory: nothing measured there is of a disk.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "devtmpfs"];
/// Bytes of what the system calls a sector, whatever the disk has.
const SECTOR_BYTES: u64 = 512;

/// A folder of this run alone.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes one where temporary files go, if that is a disk.
    pub fn new() -> Result<Scratch, BenchError> {
        let folder =
            tempfile::Builder::new().prefix("selvedge-bench-").tempdir().map_err(BenchError::Disk)?;
        let kind = file_system(folder.path())?.kind;
        if IN_MEMORY.contains(&kind.as_str()) {
            let path = folder.path().display();
            return Err(BenchError::Machine(format!(
                "{path} is on {kind}, which is memory: set TMPDIR to a folder on the disk to be measured"
            )));
        }
        Ok(Scratch { folder })
    }

    /// A path inside.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file system and the disk it is on, for the settings of a figure.
    pub fn medium(&self) -> Result<String, BenchError> {
        let system = file_system(self.folder.path())?;
        Ok(format!("{} on {}", system.kind, system.device))
    }
}

/// What a folder is on.
struct FileSystem {
    kind: String,
    device: String,
    /// Major and minor number, as /sys/dev/block has them.
    number: String,
}

fn file_system(path: &Path) -> Result<FileSystem, BenchError> {
    let device = fs::metadata(path).map_err(BenchError::Disk)?.dev();
    // makedev(3) of Linux.
    let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
    let minor = device & 0xff | device >> 12 & 0xffff_ff00;
    let number = format!("{major}:{minor}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(BenchError::Disk)?;
    // proc(5): 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    let of = |line: &str| {
        let (head, tail) = line.split_once(" - ")?;
        let mut tail = tail.split(' ');
        (head.split(' ').nth(2)? == number).then_some((tail.next()?.to_owned(), tail.next()?.to_owned()))
    };
    let (kind, device) = mounts.lines().find_map(of).unwrap_or_else(|| ("unknown".into(), number.clone()));
    Ok(FileSystem { kind, device, number })
}

/// Bytes written so far.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// By this process: what it handed to the system.
    pub process: u64,
    /// To the disk, by whomever; none where that is no plain disk.
    pub disk: Option<u64>,
}

impl Written {
    /// Reads the counters, once all that was written has reached the disk.
    pub fn now(folder: &Path) -> Result<Written, BenchError> {
        rustix::fs::syncfs(fs::File::open(folder).map_err(BenchError::Disk)?)
            .map_err(|error| BenchError::Disk(error.into()))?;
        let io = fs::read_to_string("/proc/self/io").map_err(BenchError::Disk)?;
        // Not `write_bytes`: that counts all of the memory's piece that a written page is in, which is many pages of a large file.
        let process = io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok());
        let process = process.ok_or_else(|| BenchError::Machine("/proc/self/io has no wchar".into()))?;
        let number = file_system(folder)?.number;
        // Documentation/block/stat.rst: the seventh is sectors written.
        let stat = fs::read_to_string(format!("/sys/dev/block/{number}/stat")).unwrap_or_default();
        let sectors = stat.split_whitespace().nth(6).and_then(|sectors| sectors.parse::<u64>().ok());
        Ok(Written { process, disk: sectors.map(|sectors| sectors * SECTOR_BYTES) })
    }

    /// What was written from then to now.
    pub fn since(self, then: Written) -> Written {
        let disk = self.disk.zip(then.disk).map(|(now, then)| now.saturating_sub(then));
        Written { process: self.process.saturating_sub(then.process), disk }
    }
}

/// Has the system forget what it holds in memory of a folder's files (`posix_fadvise`, once they are synced): the next read of
/// each is answered by the disk.
pub fn forget(folder: &Path) -> Result<(), BenchError> {
    for entry in fs::read_dir(folder).map_err(BenchError::Disk)? {
        let path = entry.map_err(BenchError::Disk)?.path();
        let file = fs::File::open(&path).map_err(BenchError::Disk)?;
        file.sync_all().map_err(BenchError::Disk)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| BenchError::Disk(error.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_counted_and_the_folder_goes() -> Result<(), BenchError> {
        let scratch = Scratch::new()?;
        let (path, folder) = (scratch.path("file"), scratch.folder.path().to_owned());
        let before = Written::now(&folder)?;
        fs::write(&path, vec![7; 1 << 20]).map_err(BenchError::Disk)?;
        forget(&folder)?;
        assert!(Written::now(&folder)?.since(before).process >= 1 << 20);
        drop(scratch);
        assert!(!folder.exists());
        Ok(())
    }
}
