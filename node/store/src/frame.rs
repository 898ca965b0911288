//! Frames: the unit of the log, whole or not there (pure).
//!
//! Layout, little-endian: magic 4, kind u32, payload length u64, sequence u64, run u64, hash of the frame before 16,
//! hash of this frame 16, header check u64, payload, zeros to the page's end. Both hashes are seeded with the segment's
//! secret and begin with the frame's offset, so that bytes an app stored, be they a copy of the log itself, are never
//! taken for a frame: the hash of this is XXH3-128 over everything but itself, the check XXH3-64 over the 48 bytes
//! before the hashes. A right check alone proves that the frame was begun, and makes a wrong length cheap to refuse.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::segment::{PAGE, array, number};
use crate::{Change, FRAME_BYTES_MAX, change};

const MAGIC: [u8; 4] = *b"SELF";
const KIND: Range<usize> = 4..8;
const LENGTH: Range<usize> = 8..16;
const SEQUENCE: Range<usize> = 16..24;
const RUN: Range<usize> = 24..32;
const BEFORE: Range<usize> = 32..48;
const HASH: Range<usize> = 48..64;
const CHECK: Range<usize> = 64..72;

/// Bytes before the payload.
pub(crate) const FRAME_HEADER_BYTES: usize = 72;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first frame of a run: a process opened the log. No payload.
    Start,
    /// Changed rows, laid out as format 1 had them; read, never written.
    ChangesOfFormat1,
    /// Changed rows.
    Changes,
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Self::Start => 1,
            Self::ChangesOfFormat1 => 2,
            Self::Changes => 3,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        [Self::Start, Self::ChangesOfFormat1, Self::Changes].into_iter().find(|kind| kind.code() == code)
    }
}

/// Where a frame is in the log, and after which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The secret of the segment.
    pub secret: u64,
    /// The offset in the segment, in bytes; a multiple of [`PAGE`].
    pub offset: usize,
}

/// What a frame's first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub kind: Kind,
    pub payload_bytes: usize,
    pub sequence: u64,
    pub run: u64,
    pub before: [u8; 16],
}

/// The size of a frame on the medium, in bytes: whole pages.
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    (FRAME_HEADER_BYTES + payload_bytes).next_multiple_of(PAGE)
}

/// Lays out a frame in `frame`, whatever that held, and returns its hash. `changes` is empty for a start.
pub(crate) fn encode(
    header: &FrameHeader,
    changes: &[Change],
    place: Place,
    frame: &mut Vec<u8>,
) -> [u8; 16] {
    frame.clear();
    frame.resize(FRAME_HEADER_BYTES, 0);
    frame[..4].copy_from_slice(&MAGIC);
    frame[KIND].copy_from_slice(&header.kind.code().to_le_bytes());
    frame[LENGTH].copy_from_slice(&(header.payload_bytes as u64).to_le_bytes());
    frame[SEQUENCE].copy_from_slice(&header.sequence.to_le_bytes());
    frame[RUN].copy_from_slice(&header.run.to_le_bytes());
    frame[BEFORE].copy_from_slice(&header.before);
    let check = check(&frame[..HASH.start], place);
    frame[CHECK].copy_from_slice(&check);
    if header.kind == Kind::Changes {
        change::encode(changes, frame);
    }
    frame.resize(frame_bytes(header.payload_bytes), 0);
    let hash = hash(frame, place);
    frame[HASH].copy_from_slice(&hash);
    hash
}

impl FrameHeader {
    /// Reads the header of what begins at `place`, of which `bytes` are the first; none if no frame was begun there.
    pub fn decode(bytes: &[u8], place: Place) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER_BYTES)?;
        if bytes[..4] != MAGIC || bytes[CHECK] != check(&bytes[..HASH.start], place) {
            return None;
        }
        let payload_bytes =
            usize::try_from(number(&bytes[LENGTH])).ok().filter(|bytes| *bytes <= FRAME_BYTES_MAX)?;
        Some(Self {
            kind: Kind::from_code(u32::from_le_bytes(array(&bytes[KIND])))?,
            payload_bytes,
            sequence: number(&bytes[SEQUENCE]),
            run: number(&bytes[RUN]),
            before: array(&bytes[BEFORE]),
        })
    }

    /// The size of the frame on the medium.
    pub fn frame_bytes(&self) -> usize {
        frame_bytes(self.payload_bytes)
    }

    /// The payload and the hash of the frame that begins at `place`, of which `bytes` are the first; none if a bit of it is
    /// not as written.
    pub fn payload<'a>(&self, bytes: &'a [u8], place: Place) -> Option<(&'a [u8], [u8; 16])> {
        let frame = bytes.get(..self.frame_bytes())?;
        let stored: [u8; 16] = array(&frame[HASH]);
        (stored == hash(frame, place))
            .then(|| (&frame[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + self.payload_bytes], stored))
    }
}

fn hash(frame: &[u8], place: Place) -> [u8; 16] {
    let mut hasher = Xxh3::with_seed(place.secret);
    hasher.update(&(place.offset as u64).to_le_bytes());
    hasher.update(&frame[..HASH.start]);
    hasher.update(&frame[HASH.end..]);
    hasher.digest128().to_le_bytes()
}

fn check(before_hashes: &[u8], place: Place) -> [u8; 8] {
    let mut hasher = Xxh3::with_seed(place.secret);
    hasher.update(&(place.offset as u64).to_le_bytes());
    hasher.update(before_hashes);
    hasher.digest().to_le_bytes()
}
