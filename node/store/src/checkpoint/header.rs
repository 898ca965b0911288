//! The first page of a checkpoint's file (pure).
//!
//! Little-endian: magic 8, format version u32, 0 u32, log id 16, sequence u64, run u64, hash of that frame 16, count of
//! rows u64, bytes of their layout u64, bytes of the redb file that follows u64, XXH3-128 of that file 16, zeros, and in its
//! last 16 bytes XXH3-128 of all before. Magic, version and the place of the hash are the same in every format.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

use crate::segment::{HeaderError, PAGE, array, number};
use crate::walk::Position;

/// The newest format of a checkpoint that this program writes and reads.
pub const CHECKPOINT_FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SELVCHKP";
const VERSION: Range<usize> = 8..12;
const LOG_ID: Range<usize> = 16..32;
const SEQUENCE: Range<usize> = 32..40;
const RUN: Range<usize> = 40..48;
const FRAME_HASH: Range<usize> = 48..64;
const ROWS: Range<usize> = 64..72;
const ROW_BYTES: Range<usize> = 72..80;
const CONTENT_BYTES: Range<usize> = 80..88;
const CONTENT_HASH: Range<usize> = 88..104;
const PADDING: Range<usize> = 104..PAGE - 16;
const HASH: Range<usize> = PAGE - 16..PAGE;

/// What a checkpoint's first page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub log_id: [u8; 16],
    /// After which frame it was made.
    pub position: Position,
    /// How many rows it holds.
    pub rows: u64,
    /// Bytes of their layout.
    pub row_bytes: u64,
    /// Bytes of the redb file.
    pub content_bytes: u64,
    /// XXH3-128 of the redb file.
    pub content_hash: [u8; 16],
}

impl Header {
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[..8].copy_from_slice(&MAGIC);
        page[VERSION].copy_from_slice(&CHECKPOINT_FORMAT_VERSION.to_le_bytes());
        page[LOG_ID].copy_from_slice(&self.log_id);
        page[SEQUENCE].copy_from_slice(&self.position.sequence.to_le_bytes());
        page[RUN].copy_from_slice(&self.position.run.to_le_bytes());
        page[FRAME_HASH].copy_from_slice(&self.position.hash);
        page[ROWS].copy_from_slice(&self.rows.to_le_bytes());
        page[ROW_BYTES].copy_from_slice(&self.row_bytes.to_le_bytes());
        page[CONTENT_BYTES].copy_from_slice(&self.content_bytes.to_le_bytes());
        page[CONTENT_HASH].copy_from_slice(&self.content_hash);
        let hash = xxh3_128(&page[..HASH.start]).to_le_bytes();
        page[HASH].copy_from_slice(&hash);
        page
    }

    /// Reads a header page of [`PAGE`] bytes.
    pub fn decode(page: &[u8]) -> Result<Self, HeaderError> {
        if page.len() != PAGE || page[..8] != MAGIC {
            return Err(HeaderError::Damaged("it does not begin as a checkpoint does"));
        }
        if page[HASH] != xxh3_128(&page[..HASH.start]).to_le_bytes() {
            return Err(HeaderError::Damaged("the hash of its first page is wrong"));
        }
        let version = u32::from_le_bytes(array(&page[VERSION]));
        if version > CHECKPOINT_FORMAT_VERSION {
            return Err(HeaderError::NewerFormat(version));
        }
        let unused = page[VERSION.end..LOG_ID.start].iter().chain(&page[PADDING]);
        if version == 0 || unused.into_iter().any(|byte| *byte != 0) {
            return Err(HeaderError::Damaged("its first page says what no program writes"));
        }
        Ok(Self {
            log_id: array(&page[LOG_ID]),
            position: Position {
                sequence: number(&page[SEQUENCE]),
                run: number(&page[RUN]),
                hash: array(&page[FRAME_HASH]),
            },
            rows: number(&page[ROWS]),
            row_bytes: number(&page[ROW_BYTES]),
            content_bytes: number(&page[CONTENT_BYTES]),
            content_hash: array(&page[CONTENT_HASH]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            log_id: [7; 16],
            position: Position { sequence: 40, run: 3, hash: [9; 16] },
            rows: 12,
            row_bytes: 345,
            content_bytes: 73_728,
            content_hash: [5; 16],
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
        page[VERSION].copy_from_slice(&2u32.to_le_bytes());
        page[PADDING].fill(0xaa);
        let hash = xxh3_128(&page[..HASH.start]).to_le_bytes();
        page[HASH].copy_from_slice(&hash);
        assert_eq!(Header::decode(&page), Err(HeaderError::NewerFormat(2)));
    }
}
