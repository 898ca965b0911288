//! Segments: how the log's files are named and sized, and the page each begins with (pure).
//!
//! Header page, little-endian: magic 8, format version u32, 1 if the file was used before else 0 u32, log id 16, number u64, size in bytes u64, secret u64,
//! first sequence u64, hash of the frame before 16, run u64, zeros, and in its last 16 bytes XXH3-128 of all before.
//! Magic, version and the place of the hash are the same in every format, so that a newer one is told from damage.

use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::walk::Position;

/// The newest format of a segment that this program writes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// The unit of the log in bytes: frames begin on its boundaries, so that an append never rewrites acknowledged bytes.
/// It is the page of the system's cache and of the disks this was measured on.
pub(crate) const PAGE: usize = 4096;

const MAGIC: [u8; 8] = *b"SELVSEGM";
const VERSION: Range<usize> = 8..12;
const USED_BEFORE: Range<usize> = 12..16;
const LOG_ID: Range<usize> = 16..32;
const NUMBER: Range<usize> = 32..40;
const BYTES: Range<usize> = 40..48;
const SECRET: Range<usize> = 48..56;
const FIRST_SEQUENCE: Range<usize> = 56..64;
const BEFORE: Range<usize> = 64..80;
const RUN: Range<usize> = 80..88;
const PADDING: Range<usize> = 88..PAGE - 16;
const HASH: Range<usize> = PAGE - 16..PAGE;

/// Pages at the end of a segment that only starts may use: so many times a full disk's log opens again.
pub(crate) const START_PAGES: usize = 16;

/// No segment is larger, in bytes, whoever wrote it: it holds the largest frame, and offsets in it are small numbers.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// How large segments are, and when a checkpoint is due, in bytes. Segments' sizes are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The first segment's; each next one is twice as large.
    pub first: u64,
    /// The greatest, unless a single frame needs more.
    pub most: u64,
    /// Changes since the last checkpoint that make the next one due, at least.
    pub checkpoint: u64,
}

impl Default for Sizes {
    /// Segments of 1 MiB, so that a small node stays small, to 16 MiB, so that preparing is rare and reading one is quick;
    /// a checkpoint each 16 MiB, so that a small state's is rare and replaying that much takes a moment.
    fn default() -> Self {
        Self { first: 1 << 20, most: 16 << 20, checkpoint: 16 << 20 }
    }
}

impl Sizes {
    /// The size of the next segment in bytes: twice the one before, and enough for a frame of `frame` bytes.
    pub(crate) fn next(self, before: Option<u64>, frame: usize) -> u64 {
        let wanted = before.map_or(self.first, |bytes| (bytes.saturating_mul(2)).min(self.most));
        let needed = (frame + (1 + START_PAGES) * PAGE) as u64;
        wanted.max(needed.next_power_of_two()).min(SEGMENT_BYTES_MAX)
    }
}

/// What the name of a file begins with that was a segment, or is to be one: of any content.
pub(crate) const SPARE: &str = "spare-";

/// The name of a segment's file: sixteen hexadecimal digits, so that names sort as numbers do.
pub(crate) fn file_name(number: u64) -> String {
    name_of("log-", number)
}

/// The name of a spare's file.
pub(crate) fn spare_name(number: u64) -> String {
    name_of(SPARE, number)
}

/// A name that ends with a number.
pub(crate) fn name_of(kind: &str, number: u64) -> String {
    format!("{kind}{number:016x}")
}

/// The number that a name of this kind ends with; none for any other name.
pub(crate) fn number_of(kind: &str, name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_prefix(kind)?, 16).ok()?;
    (name_of(kind, number) == name).then_some(number)
}

/// The number in a segment's file name; none for any other name.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    number_of("log-", name)
}

/// Whether a file of this name is a part of a log: where one is, the folder has had a node.
#[must_use]
pub fn is_segment(name: &str) -> bool {
    file_number(name).is_some()
}

/// Whether a file of this name is what a next segment is made of.
#[must_use]
pub fn is_spare(name: &str) -> bool {
    number_of(SPARE, name).is_some()
}

/// The secret of a segment, from entropy of the process that makes it; no app ever sees it or a hash made with it.
pub(crate) fn secret(entropy: [u8; 16], number: u64) -> u64 {
    xxh3_64_with_seed(&entropy, number)
}

/// What a segment's first page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub log_id: [u8; 16],
    pub number: u64,
    pub bytes: u64,
    pub secret: u64,
    pub first_sequence: u64,
    pub before: [u8; 16],
    pub run: u64,
    /// What stands after its frames may be anything, not only zeros.
    pub used_before: bool,
}

/// Why a page is no header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged(&'static str),
    NewerFormat(u32),
}

impl Header {
    /// Where its first frame goes on.
    pub fn position(&self) -> Position {
        Position { sequence: self.first_sequence.saturating_sub(1), run: self.run, hash: self.before }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[..8].copy_from_slice(&MAGIC);
        page[VERSION].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        page[USED_BEFORE].copy_from_slice(&u32::from(self.used_before).to_le_bytes());
        page[LOG_ID].copy_from_slice(&self.log_id);
        page[NUMBER].copy_from_slice(&self.number.to_le_bytes());
        page[BYTES].copy_from_slice(&self.bytes.to_le_bytes());
        page[SECRET].copy_from_slice(&self.secret.to_le_bytes());
        page[FIRST_SEQUENCE].copy_from_slice(&self.first_sequence.to_le_bytes());
        page[BEFORE].copy_from_slice(&self.before);
        page[RUN].copy_from_slice(&self.run.to_le_bytes());
        let hash = xxh3_128(&page[..HASH.start]).to_le_bytes();
        page[HASH].copy_from_slice(&hash);
        page
    }

    /// Reads a header page of [`PAGE`] bytes.
    pub fn decode(page: &[u8]) -> Result<Self, HeaderError> {
        if page.len() != PAGE || page[..8] != MAGIC {
            return Err(HeaderError::Damaged("it does not begin as a segment does"));
        }
        if page[HASH] != xxh3_128(&page[..HASH.start]).to_le_bytes() {
            return Err(HeaderError::Damaged("the hash of its first page is wrong"));
        }
        let version = u32::from_le_bytes(array(&page[VERSION]));
        if version > FORMAT_VERSION {
            return Err(HeaderError::NewerFormat(version));
        }
        let header = Self {
            log_id: array(&page[LOG_ID]),
            number: number(&page[NUMBER]),
            bytes: number(&page[BYTES]),
            secret: number(&page[SECRET]),
            first_sequence: number(&page[FIRST_SEQUENCE]),
            before: array(&page[BEFORE]),
            run: number(&page[RUN]),
            used_before: page[USED_BEFORE] == 1u32.to_le_bytes(),
        };
        let used = u32::from_le_bytes(array(&page[USED_BEFORE]));
        if version == 0
            || used > u32::from(version > 1)
            || page[PADDING].iter().any(|byte| *byte != 0)
            || !header.bytes.is_multiple_of(PAGE as u64)
            || header.bytes > SEGMENT_BYTES_MAX
        {
            return Err(HeaderError::Damaged("its first page says what no program writes"));
        }
        Ok(header)
    }
}

/// The bytes of a field; the slice has the field's length by its constant range.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("fields are read by constant ranges of their length")
}

/// A 64-bit field.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(array(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            log_id: [7; 16],
            number: 3,
            bytes: 1 << 20,
            secret: 11,
            first_sequence: 40,
            before: [9; 16],
            run: 2,
            used_before: true,
        }
    }

    #[test]
    fn a_header_is_read_as_written_and_no_flipped_bit_passes() {
        let page = header().encode();
        assert_eq!(Header::decode(&page), Ok(header()));
        for bit in 0..page.len() * 8 {
            let mut flipped = page.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Header::decode(&flipped), Err(HeaderError::Damaged(_))), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut page = header().encode();
        page[VERSION].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
        page[PADDING].fill(0xaa);
        let hash = xxh3_128(&page[..HASH.start]).to_le_bytes();
        page[HASH].copy_from_slice(&hash);
        assert_eq!(Header::decode(&page), Err(HeaderError::NewerFormat(FORMAT_VERSION + 1)));
    }

    #[test]
    fn segments_double_to_a_bound_and_hold_any_frame() {
        let sizes = Sizes::default();
        let mut bytes = sizes.next(None, 0);
        let mut all = vec![bytes];
        while all.len() < 9 {
            bytes = sizes.next(Some(bytes), 0);
            all.push(bytes);
        }
        assert_eq!(all.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 16, 16, 16, 16]);
        let largest = crate::FRAME_BYTES_MAX + PAGE;
        assert!(sizes.next(None, largest) >= (largest + (1 + START_PAGES) * PAGE) as u64);
    }

    #[test]
    fn only_names_that_the_log_makes_are_segments() {
        assert_eq!(file_number(&file_name(0xab)), Some(0xab));
        for other in ["log-1", "log-00000000000000AB", "log-00000000000000ab.unfinished", "identity", "log-"]
        {
            assert_eq!(file_number(other), None, "{other}");
        }
    }
}
