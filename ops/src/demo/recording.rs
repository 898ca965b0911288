//! What passes between the two nodes, in a file: the magic `SELVREC1`, then for each datagram the time (u64,
//! microseconds since 1970), the direction (u8, see [`Direction`]), the length (u32) and the bytes; little-endian.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

/// First bytes of a recording: what it is, and the version of its format.
pub const MAGIC: [u8; 8] = *b"SELVREC1";

/// A demo that is forgotten does not fill the disk: recording ends at so many bytes.
const RECORDING_BYTES_MAX: u64 = 1 << 30;

const RECORD_HEADER_BYTES: usize = 8 + 1 + 4;

/// Who sent a datagram to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From ann to ben; 0 in the file.
    AnnToBen,
    /// From ben to ann; 1 in the file.
    BenToAnn,
}

impl Direction {
    fn code(self) -> u8 {
        match self {
            Self::AnnToBen => 0,
            Self::BenToAnn => 1,
        }
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    file: File,
    /// How much was recorded.
    pub so_far: Recorded,
}

/// How much was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The file is as large as it may be; nothing more is recorded.
    pub full: bool,
}

impl Recording {
    /// Begins a recording; an older one of that name is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::begin(OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?)
    }

    /// Begins a recording in an empty file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(mut file: File) -> io::Result<Self> {
        file.write_all(&MAGIC)?;
        Ok(Self { file, so_far: Recorded { bytes: MAGIC.len() as u64, ..Recorded::default() } })
    }

    /// Records one datagram.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn datagram(&mut self, time: SystemTime, direction: Direction, bytes: &[u8]) -> io::Result<()> {
        let record = encode(time, direction, bytes);
        if self.so_far.bytes + record.len() as u64 > RECORDING_BYTES_MAX {
            self.so_far.full = true;
            return Ok(());
        }
        // Whole and unbuffered: whoever reads along never meets half a record for long.
        self.file.write_all(&record)?;
        self.so_far.datagrams += 1;
        self.so_far.bytes += record.len() as u64;
        Ok(())
    }
}

fn encode(time: SystemTime, direction: Direction, bytes: &[u8]) -> Vec<u8> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut record = Vec::with_capacity(RECORD_HEADER_BYTES + bytes.len());
    record.extend_from_slice(&u64::try_from(since.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
    record.push(direction.code());
    record.extend_from_slice(
        &u32::try_from(bytes.len()).expect("a datagram has at most 65,535 bytes").to_le_bytes(),
    );
    record.extend_from_slice(bytes);
    record
}

/// Reads a recording back, as its format says; none if it is not one.
#[cfg(test)]
pub fn read(bytes: &[u8]) -> Option<Vec<(u64, u8, Vec<u8>)>> {
    let mut rest = bytes.strip_prefix(&MAGIC)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(RECORD_HEADER_BYTES)?;
        let length = u32::from_le_bytes(header[9..].try_into().ok()?) as usize;
        let (payload, after) = after.split_at_checked(length)?;
        records.push((u64::from_le_bytes(header[..8].try_into().ok()?), header[8], payload.to_vec()));
        rest = after;
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_format_is_as_documented_to_the_byte() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(0x0102);
        let expected = [2, 1, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(encode(time, Direction::BenToAnn, b"abc"), expected);
    }

    #[test]
    fn what_is_recorded_is_read_back_and_an_older_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recording");
        for _ in 0..2 {
            let mut recording = Recording::create(&path).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_micros(5);
            recording.datagram(time, Direction::AnnToBen, b"first").unwrap();
            recording.datagram(time, Direction::BenToAnn, &[]).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(read(&bytes), Some(vec![(5, 0, b"first".to_vec()), (5, 1, vec![])]));
            assert_eq!(recording.so_far, Recorded { datagrams: 2, bytes: bytes.len() as u64, full: false });
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_recording_ends_at_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(&dir.path().join("recording")).unwrap();
        recording.so_far.bytes = RECORDING_BYTES_MAX - 20;
        recording.datagram(SystemTime::now(), Direction::AnnToBen, &[1; 8]).unwrap();
        assert!(recording.so_far.full && recording.so_far.datagrams == 0);
    }
}
