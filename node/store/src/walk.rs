//! The walk over a log's frames: which are whole, where the log ends, and whether it is damaged.
//!
//! One frame at most was ever unsynced. So a bad frame with anything later that was begun is damage in the middle and is
//! refused; a bad frame with nothing later is a torn tail and is cut. It must not write: `log` does what is found here.

use std::fmt;

use crate::change::{self, Changes};
use crate::frame::{FrameHeader, Kind, Place};
use crate::segment::{Header, PAGE};
use crate::window::Window;
use crate::{Change, Storage, StoreError};

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

/// A place between two frames of a log, or after its last: no other log, and no other history of this one, has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the frame before; 0 at the beginning.
    pub sequence: u64,
    /// The run of that frame; 0 at the beginning.
    pub run: u64,
    /// The hash of that frame; zero at the beginning.
    pub hash: [u8; 16],
}

impl Position {
    pub const BEGINNING: Self = Self { sequence: 0, run: 0, hash: [0; 16] };
}

/// The end of the log so far, as the walk moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    pub position: Position,
    /// Frames walked.
    pub frames: u64,
    /// The state that the frames up to here made is known: their changes are not handed out.
    pub base: Position,
    /// Bytes of changes that were handed out, and of the frames that they are in.
    pub handed_out: Amount,
}

/// How much was written to the log: what is to be replayed, and what is to be read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount {
    /// Bytes of changes.
    pub changes: u64,
    /// Bytes of whole frames.
    pub frames: u64,
}

impl Amount {
    pub fn add(&mut self, payload: usize, frame: usize) {
        self.changes += payload as u64;
        self.frames += frame as u64;
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            changes: self.changes.saturating_sub(before.changes),
            frames: self.frames.saturating_sub(before.frames),
        }
    }
}

impl Walk {
    /// A walk over the frames that begin with this segment; those after `base` are handed out.
    pub fn from(header: &Header, base: Position) -> Self {
        Self { position: header.position(), frames: 0, base, handed_out: Amount::default() }
    }

    /// Checks that a segment goes on where the walk is. `last` is the segment before: its name, where its frames end, and
    /// its size.
    pub fn enter(&self, file: &str, header: &Header, last: (&str, &End, u64)) -> Result<(), StoreError> {
        if header.position() == self.position {
            return Ok(());
        }
        let (last_file, end, bytes) = last;
        Err(StoreError::Corrupt {
            file: last_file.to_owned(),
            offset: end.offset as u64,
            end: bytes,
            why: format!(
                "{}, while {file} goes on after frame {}",
                end.why.unwrap_or("it ends"),
                header.first_sequence.saturating_sub(1)
            ),
        })
    }

    fn next_sequence(&self) -> u64 {
        self.position.sequence + 1
    }

    /// Whether the walk is at the base's number without being at the base.
    pub fn misses_base(&self) -> bool {
        self.position.sequence == self.base.sequence && self.position != self.base
    }

    /// Walks the frames of one segment, handing their changes to `restore`, to the first page where none is.
    pub fn segment<S: Storage>(
        &mut self,
        file: &str,
        header: &Header,
        segment: &mut Window<'_, S>,
        restore: &mut dyn FnMut(Change),
    ) -> Result<End, StoreError> {
        self.segment_from(file, (header, segment), PAGE, restore)
    }

    /// As [`segment`](Self::segment), of the frames from an offset on.
    pub fn segment_from<S: Storage>(
        &mut self,
        file: &str,
        (header, segment): (&Header, &mut Window<'_, S>),
        mut offset: usize,
        restore: &mut dyn FnMut(Change),
    ) -> Result<End, StoreError> {
        let why = loop {
            let place = Place { secret: header.secret, offset };
            match self.frame(segment, place)? {
                Found::Frame { bytes, payload_bytes, changes, position } => {
                    if position.sequence > self.base.sequence {
                        changes.each(restore);
                        self.handed_out.add(payload_bytes, bytes);
                    }
                    self.position = position;
                    self.frames += 1;
                    if self.misses_base() {
                        return Err(self.of_another_history(file, offset, offset + bytes));
                    }
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
        if let Some((later, sequence)) = first_begun(segment, header.secret, offset + PAGE)? {
            return Err(StoreError::Corrupt {
                file: file.to_owned(),
                offset: offset as u64,
                end: later as u64,
                why: format!(
                    "{} where frame {} belongs, while frame {sequence} follows",
                    why.unwrap_or("nothing is there"),
                    self.next_sequence()
                ),
            });
        }
        Ok(end)
    }

    /// Takes the first whole frame from an offset on for the next one, whatever came before it, and says where it begins.
    pub fn skip<S: Storage>(
        &mut self,
        header: &Header,
        segment: &mut Window<'_, S>,
        from: usize,
    ) -> Result<Option<usize>, StoreError> {
        for offset in (from..segment.len()).step_by(PAGE) {
            let place = Place { secret: header.secret, offset };
            let Some(frame) = FrameHeader::decode(segment.at(offset, PAGE)?, place) else { continue };
            if frame.payload(segment.at(offset, frame.frame_bytes())?, place).is_none() {
                continue;
            }
            let run = match frame.kind {
                Kind::Start => frame.run.saturating_sub(1),
                Kind::ChangesOfFormat1 | Kind::Changes => frame.run,
            };
            self.position = Position { sequence: frame.sequence.saturating_sub(1), run, hash: frame.before };
            return Ok(Some(offset));
        }
        Ok(None)
    }

    /// Whether a segment goes on where the walk is.
    pub fn is_at(&self, header: &Header) -> bool {
        header.position() == self.position
    }

    pub fn of_another_history(&self, file: &str, offset: usize, end: usize) -> StoreError {
        StoreError::Corrupt {
            file: file.to_owned(),
            offset: offset as u64,
            end: end as u64,
            why: format!(
                "frame {} is not the one that the checkpoint was made after",
                self.position.sequence
            ),
        }
    }

    /// What stands at a boundary, judged as the next frame.
    fn frame<'w, S: Storage>(
        &self,
        segment: &'w mut Window<'_, S>,
        place: Place,
    ) -> Result<Found<'w>, StoreError> {
        let page = segment.at(place.offset, PAGE)?;
        if page.len() < PAGE || is_zero(page) {
            return Ok(Found::Nothing);
        }
        let Some(header) = FrameHeader::decode(page, place) else {
            return Ok(Found::Bad("no frame begins"));
        };
        let frame = segment.at(place.offset, header.frame_bytes())?;
        Ok(self.judged(&header, frame, place))
    }

    /// A frame that was begun, judged as the next one.
    fn judged<'f>(&self, header: &FrameHeader, frame: &'f [u8], place: Place) -> Found<'f> {
        let Some((payload, hash)) = header.payload(frame, place) else {
            return Found::Bad("a frame has a wrong hash");
        };
        // From here on the bytes are what some program wrote at this place of this segment.
        let bytes = header.frame_bytes();
        let wrong = |why: String| Found::Wrong { bytes, why };
        if header.sequence != self.next_sequence() {
            return wrong(format!(
                "frame {} stands where frame {} belongs",
                header.sequence,
                self.next_sequence()
            ));
        }
        if header.before != self.position.hash {
            return wrong(format!("frame {} does not follow the one before it", header.sequence));
        }
        let run = match header.kind {
            Kind::Start => self.position.run + 1,
            Kind::ChangesOfFormat1 | Kind::Changes => self.position.run,
        };
        if header.run != run || run == 0 {
            return wrong(format!("a frame of run {} stands where one of run {run} belongs", header.run));
        }
        let changes = match header.kind {
            Kind::Start if payload.is_empty() => Some(Changes::Made(Vec::new())),
            Kind::Start => return wrong("the start of a run holds more than a start does".to_owned()),
            Kind::ChangesOfFormat1 => change::decode_format_1(payload).map(Changes::Made),
            Kind::Changes => Changes::read(payload),
        };
        let Some(changes) = changes else {
            return wrong("a frame's changes are laid out wrongly".to_owned());
        };
        let position = Position { sequence: header.sequence, run, hash };
        Found::Frame { bytes, payload_bytes: header.payload_bytes, changes, position }
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
    /// The bytes after the end that must be made zero: what a crash left of a frame, or what is not as it was left. Of a
    /// file that was used before nobody can tell what was left there, and only a frame that was begun matters.
    pub fn cut<S: Storage>(
        &self,
        file: &str,
        header: &Header,
        segment: &mut Window<'_, S>,
    ) -> Result<Option<Cut>, StoreError> {
        let mut end = self.offset;
        if header.used_before {
            let place = Place { secret: header.secret, offset: self.offset };
            let begun = FrameHeader::decode(segment.at(self.offset, PAGE)?, place);
            end += begun.map_or(0, |begun| begun.frame_bytes()).min(segment.len() - self.offset);
        } else {
            for offset in (self.offset..segment.len()).step_by(PAGE) {
                if !is_zero(segment.at(offset, PAGE)?) {
                    end = offset + PAGE;
                }
            }
        }
        let bytes = (end - self.offset) as u64;
        Ok((bytes > 0).then(|| Cut { file: file.to_owned(), offset: self.offset as u64, bytes }))
    }
}

/// A whole frame, wherever it stands.
pub(crate) struct Whole<'s> {
    /// Where it goes on.
    pub before: Position,
    /// Where it ends.
    pub after: Position,
    pub changes: Changes<'s>,
}

/// Hands out the whole frames of a segment in the order in which they stand there, whatever is between them.
pub(crate) fn each_whole_frame<S: Storage>(
    header: &Header,
    segment: &mut Window<'_, S>,
    take: &mut dyn FnMut(Whole<'_>),
) -> Result<(), StoreError> {
    let mut walk = Walk::from(header, header.position());
    let mut offset = PAGE;
    while let Some(at) = walk.skip(header, segment, offset)? {
        let before = walk.position;
        offset = match walk.frame(segment, Place { secret: header.secret, offset: at })? {
            Found::Frame { bytes, changes, position, .. } => {
                take(Whole { before, after: position, changes });
                at + bytes
            }
            // Its changes are laid out wrongly: it is as good as none.
            _ => at + PAGE,
        };
    }
    Ok(())
}

enum Found<'s> {
    Frame {
        bytes: usize,
        payload_bytes: usize,
        changes: Changes<'s>,
        position: Position,
    },
    /// Zeros, or the end of the segment.
    Nothing,
    /// Not a whole frame: torn or damaged, or never one.
    Bad(&'static str),
    /// A whole frame, but not the next one: no crash leaves that.
    Wrong {
        bytes: usize,
        why: String,
    },
}

/// The first boundary from `from` on at which a frame was begun, and its sequence number.
fn first_begun<S: Storage>(
    segment: &mut Window<'_, S>,
    secret: u64,
    from: usize,
) -> Result<Option<(usize, u64)>, StoreError> {
    for offset in (from..segment.len()).step_by(PAGE) {
        if let Some(begun) = FrameHeader::decode(segment.at(offset, PAGE)?, Place { secret, offset }) {
            return Ok(Some((offset, begun.sequence)));
        }
    }
    Ok(None)
}

fn is_zero(page: &[u8]) -> bool {
    const ZEROS: [u8; PAGE] = [0; PAGE];
    page == &ZEROS[..page.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::file_name;
    use crate::{Memory, frame};

    const SECRET: u64 = 5;

    /// A segment of single-page frames with right hashes, each following the one before but for `alter`.
    fn segment(alter: impl Fn(usize, &mut FrameHeader)) -> (Header, Vec<u8>) {
        let mut bytes = vec![0; PAGE];
        let mut before = [0; 16];
        for index in 0..3 {
            let kind = if index == 0 { Kind::Start } else { Kind::Changes };
            let payload_bytes = 0;
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
            used_before: false,
        };
        (header, bytes)
    }

    #[test]
    fn whole_frames_that_do_not_follow_are_damage_whatever_their_hash() {
        let check = |alter: &dyn Fn(usize, &mut FrameHeader), expected: &str| {
            let (header, bytes) = segment(alter);
            let mut storage = Memory::new(1);
            let file = file_name(header.number);
            let written = storage.create(&file).and_then(|()| storage.write_at(&file, 0, &bytes));
            assert!(written.is_ok());
            let mut walk = Walk::from(&header, Position::BEGINNING);
            let mut window = Window::new(&mut storage, &header);
            let found = match walk.segment("log", &header, &mut window, &mut |_| {}) {
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
