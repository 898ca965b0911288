//! What a log's bytes say after a crash: which frames are whole, where the log ends, and whether it is damaged (pure over
//! the bytes of one segment at a time).
//!
//! One frame at most was ever unsynced. So a bad frame with anything later that was begun is damage in the middle and is
//! refused; a bad frame with nothing later is a torn tail and is cut. It must not write: `log` does what is found here.

use std::fmt;

use crate::frame::{FrameHeader, Kind, Place, frame_bytes};
use crate::segment::{Header, PAGE};
use crate::{Change, StoreError, change};

/// Bytes after the last whole frame of a segment that are not what was left there, and that were made zero again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: String,
    /// Where they began.
    pub offset: u64,
    /// How many there were, to the end of the last page that was not zero.
    pub bytes: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes of {} from byte {} on", self.bytes, self.file, self.offset)
    }
}

/// The end of the log so far, as the walk moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The sequence number of the next frame.
    pub next_sequence: u64,
    /// The run of the last frame; 0 before the first.
    pub run: u64,
    /// The hash of the last frame; zero before the first.
    pub before: [u8; 16],
    /// Frames walked.
    pub frames: u64,
}

impl Walk {
    pub const BEGINNING: Self = Self { next_sequence: 1, run: 0, before: [0; 16], frames: 0 };

    /// Checks that a segment goes on where the walk is. `last` names the segment before, and its size.
    pub fn enter(
        &self,
        file: &str,
        header: &Header,
        last: Option<(&str, &End, u64)>,
    ) -> Result<(), StoreError> {
        if header.first_sequence == self.next_sequence
            && header.before == self.before
            && header.run == self.run
        {
            return Ok(());
        }
        Err(match last {
            Some((last_file, end, bytes)) => StoreError::Corrupt {
                file: last_file.to_owned(),
                offset: end.offset as u64,
                end: bytes,
                why: format!(
                    "{}, while {file} goes on after frame {}",
                    end.why.unwrap_or("it ends"),
                    header.first_sequence.saturating_sub(1)
                ),
            },
            None => StoreError::Missing { file: format!("what comes before {file}") },
        })
    }

    /// Walks the frames of one segment, handing their changes to `restore`, to the first page where none is.
    pub fn segment(
        &mut self,
        file: &str,
        header: &Header,
        segment: &[u8],
        restore: &mut dyn FnMut(Change),
    ) -> Result<End, StoreError> {
        let mut offset = PAGE;
        let why = loop {
            let place = Place { secret: header.secret, offset };
            match self.frame(segment, place) {
                Found::Frame { bytes, changes, hash, run } => {
                    changes.into_iter().for_each(&mut *restore);
                    *self = Self {
                        next_sequence: self.next_sequence + 1,
                        run,
                        before: hash,
                        frames: self.frames + 1,
                    };
                    offset += bytes;
                }
                Found::Nothing => break None,
                Found::Bad(why) => break Some(why),
                Found::Wrong { bytes, why } => {
                    return Err(StoreError::Corrupt {
                        file: file.to_owned(),
                        offset: offset as u64,
                        end: (offset + bytes) as u64,
                        why,
                    });
                }
            }
        };
        let end = End { offset, why };
        if let Some((later, sequence)) = first_begun(segment, header.secret, offset + PAGE) {
            return Err(StoreError::Corrupt {
                file: file.to_owned(),
                offset: offset as u64,
                end: later as u64,
                why: format!(
                    "{} where frame {} belongs, while frame {sequence} follows",
                    why.unwrap_or("nothing is there"),
                    self.next_sequence
                ),
            });
        }
        Ok(end)
    }

    /// What stands at a boundary, judged as the next frame.
    fn frame(&self, segment: &[u8], place: Place) -> Found {
        let Some(page) = segment.get(place.offset..place.offset + PAGE) else {
            return Found::Nothing;
        };
        if is_zero(page) {
            return Found::Nothing;
        }
        let Some(header) = FrameHeader::decode(segment, place) else {
            return Found::Bad("no frame begins");
        };
        let Some((payload, hash)) = header.payload(segment, place) else {
            return Found::Bad("a frame has a wrong hash");
        };
        // From here on the bytes are what some program wrote at this place of this segment.
        let bytes = frame_bytes(header.payload_bytes);
        let wrong = |why: String| Found::Wrong { bytes, why };
        if header.sequence != self.next_sequence {
            return wrong(format!(
                "frame {} stands where frame {} belongs",
                header.sequence, self.next_sequence
            ));
        }
        if header.before != self.before {
            return wrong(format!("frame {} does not follow the one before it", header.sequence));
        }
        let run = match header.kind {
            Kind::Start => self.run + 1,
            Kind::Changes => self.run,
        };
        if header.run != run || run == 0 {
            return wrong(format!("a frame of run {} stands where one of run {run} belongs", header.run));
        }
        let changes = match header.kind {
            Kind::Start if payload.is_empty() => Vec::new(),
            Kind::Start => return wrong("the start of a run holds more than a start does".to_owned()),
            Kind::Changes => match change::decode(payload) {
                Some(changes) => changes,
                None => return wrong("a frame's changes are laid out wrongly".to_owned()),
            },
        };
        Found::Frame { bytes, changes, hash, run }
    }
}

/// Where the frames of a segment end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// The first boundary at which no whole frame begins; the segment's size if it is full.
    pub offset: usize,
    /// What is bad there; none if the page is zero or the segment full.
    pub why: Option<&'static str>,
}

impl End {
    /// The bytes after the end that are not zero as they were left.
    pub fn cut(&self, file: &str, segment: &[u8]) -> Option<Cut> {
        let rest = segment.get(self.offset..)?;
        let bytes = rest.chunks(PAGE).rposition(|page| !is_zero(page)).map(|last| (last + 1) * PAGE)?;
        Some(Cut { file: file.to_owned(), offset: self.offset as u64, bytes: bytes as u64 })
    }
}

enum Found {
    Frame {
        bytes: usize,
        changes: Vec<Change>,
        hash: [u8; 16],
        run: u64,
    },
    /// Zeros, or the end of the segment.
    Nothing,
    /// Not a whole frame: torn or damaged.
    Bad(&'static str),
    /// A whole frame, but not the next one: no crash leaves that.
    Wrong {
        bytes: usize,
        why: String,
    },
}

/// The first boundary from `from` on at which a frame was begun, and its sequence number.
fn first_begun(segment: &[u8], secret: u64, from: usize) -> Option<(usize, u64)> {
    (from..segment.len()).step_by(PAGE).find_map(|offset| {
        FrameHeader::decode(segment, Place { secret, offset }).map(|header| (offset, header.sequence))
    })
}

fn is_zero(page: &[u8]) -> bool {
    const ZEROS: [u8; PAGE] = [0; PAGE];
    page == &ZEROS[..page.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    const SECRET: u64 = 5;

    /// A segment of single-page frames with right hashes, each following the one before but for `alter`.
    fn segment(alter: impl Fn(usize, &mut FrameHeader)) -> (Header, Vec<u8>) {
        let mut bytes = vec![0; PAGE];
        let mut before = [0; 16];
        for index in 0..3 {
            let kind = if index == 0 { Kind::Start } else { Kind::Changes };
            let payload_bytes = if index == 0 { 0 } else { 4 };
            let mut header = FrameHeader { kind, payload_bytes, sequence: index as u64 + 1, run: 1, before };
            alter(index, &mut header);
            let mut frame = Vec::new();
            before = frame::encode(&header, &[], Place { secret: SECRET, offset: bytes.len() }, &mut frame);
            bytes.extend(frame);
        }
        bytes.resize(8 * PAGE, 0);
        let header = Header {
            log_id: [1; 16],
            number: 1,
            bytes: bytes.len() as u64,
            secret: SECRET,
            first_sequence: 1,
            before: [0; 16],
            run: 0,
        };
        (header, bytes)
    }

    #[test]
    fn whole_frames_that_do_not_follow_are_damage_whatever_their_hash() {
        let check = |alter: &dyn Fn(usize, &mut FrameHeader), expected: &str| {
            let (header, bytes) = segment(alter);
            let mut walk = Walk::BEGINNING;
            let found = match walk.segment("log", &header, &bytes, &mut |_| {}) {
                Ok(end) => format!("{} frames to {}", walk.frames, end.offset),
                Err(error) => error.to_string().split(". Nothing").next().unwrap_or_default().to_owned(),
            };
            assert_eq!(found, expected);
        };
        check(&|_, _| {}, "3 frames to 16384");
        check(
            &|index, header| header.sequence += u64::from(index == 2),
            "log is damaged from byte 12288 to byte 16384: frame 4 stands where frame 3 belongs",
        );
        check(
            &|index, header| header.before[0] ^= u8::from(index == 1),
            "log is damaged from byte 8192 to byte 12288: frame 2 does not follow the one before it",
        );
        check(
            &|index, header| header.run += u64::from(index == 2),
            "log is damaged from byte 12288 to byte 16384: a frame of run 2 stands where one of run 1 belongs",
        );
        check(
            &|index, header| header.kind = if index == 2 { Kind::Start } else { header.kind },
            "log is damaged from byte 12288 to byte 16384: a frame of run 1 stands where one of run 2 belongs",
        );
        check(
            &|index, header| header.kind = if index == 0 { Kind::Changes } else { header.kind },
            "log is damaged from byte 4096 to byte 8192: a frame of run 1 stands where one of run 0 belongs",
        );
        check(
            &|index, header| header.payload_bytes += usize::from(index == 1),
            "log is damaged from byte 8192 to byte 12288: a frame's changes are laid out wrongly",
        );
    }
}
