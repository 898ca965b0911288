//! A source read from its file: text in UTF-8 of bounded size, and only from what ends by itself.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use weft::SOURCE_BYTES_MAX;

/// Why a source was not read. The words go on after the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The system does not let it be read.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is there and is no file: it may never end, or never begin.
    #[error("it is {}, and a source is read from a file only{}", .0.words(), .0.advice())]
    NoFile(NoFile),
    /// It is larger than any source.
    #[error("it has more than {SOURCE_BYTES_MAX} bytes, the most that a source may have")]
    Large,
    /// It is no text.
    #[error("byte {valid} of it is not UTF-8, and a source is text in UTF-8")]
    NoText {
        /// The bytes before it are.
        valid: usize,
    },
}

/// What is there and is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFile {
    /// A folder.
    Folder,
    /// A pipe, with or without a name.
    Pipe,
    /// A device or a socket.
    Other,
}

impl NoFile {
    fn words(self) -> &'static str {
        match self {
            NoFile::Folder => "a folder",
            NoFile::Pipe => "a pipe",
            NoFile::Other => "a device or a socket",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            NoFile::Folder => ": name one in it",
            NoFile::Pipe | NoFile::Other => ": write what it gives to one first",
        }
    }
}

/// Reads a source.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<String, SourceError> {
    // Before it is opened: opening a pipe waits for whoever writes into it.
    check_is_file(&path.metadata()?)?;
    let file = File::open(path)?;
    // Another may stand there by now.
    check_is_file(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > SOURCE_BYTES_MAX {
        return Err(SourceError::Large);
    }
    String::from_utf8(bytes).map_err(|wrong| SourceError::NoText { valid: wrong.utf8_error().valid_up_to() })
}

fn check_is_file(found: &Metadata) -> Result<(), SourceError> {
    if found.is_file() {
        return Ok(());
    }
    #[cfg(unix)]
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type());
    #[cfg(not(unix))]
    let is_pipe = false;
    Err(SourceError::NoFile(match found.is_dir() {
        true => NoFile::Folder,
        false if is_pipe => NoFile::Pipe,
        false => NoFile::Other,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_what_is_a_file_of_text_and_small_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("app.weft"), "app a\n").unwrap();
        std::fs::write(path("latin.weft"), [b'a', 0xe9]).unwrap();
        std::fs::write(path("most.weft"), vec![b' '; SOURCE_BYTES_MAX]).unwrap();
        std::fs::write(path("large.weft"), vec![b' '; SOURCE_BYTES_MAX + 1]).unwrap();
        assert_eq!(read(&path("app.weft")).unwrap(), "app a\n");
        assert_eq!(read(&path("most.weft")).unwrap().len(), SOURCE_BYTES_MAX);
        let check = |path: &Path, expected: &str| {
            let why = read(path).unwrap_err().to_string();
            assert!(why.contains(expected), "{}: {why}", path.display());
        };
        check(&path("none.weft"), "No such file");
        check(folder.path(), "it is a folder, and a source is read from a file only: name one in it");
        check(&path("latin.weft"), "byte 1 of it is not UTF-8, and a source is text in UTF-8");
        check(&path("large.weft"), "more than 1048576 bytes, the most that a source may have");
        #[cfg(unix)]
        {
            let made = std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap();
            assert!(made.success());
            check(&path("pipe"), "it is a pipe, and a source is read from a file only: write what");
            check(Path::new("/dev/zero"), "it is a device or a socket");
        }
    }
}
