//! Looking at every frame and every row of a folder, past the first thing that is wrong.
//!
//! [`read`] stops at damage, as a start does. Here the walk goes on behind it, at the next whole frame, so that all that is
//! wrong is named at once. It writes nothing. It must not judge better than a start: whether the folder opens is what
//! [`read`] says.

use crate::checkpoint::{CheckpointInfo, checkpoint_files, read_checkpoint};
use crate::contents::{Contents, SegmentInfo, read, read_header};
use crate::segment::{Header, PAGE, file_name, file_number};
use crate::walk::{Cut, End, Walk};
use crate::window::Window;
use crate::{Storage, StoreError};

/// Damages named at most: a disk that fails everywhere is not told page by page.
const DAMAGES_MAX: usize = 1_000;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Which bytes, the end excluded; none if it is the whole file, or not known.
    pub bytes: Option<(u64, u64)>,
    /// What is wrong.
    pub why: String,
}

/// What [`check`] found.
#[derive(Debug)]
pub struct Checked {
    /// The segments whose first page is right, oldest first.
    pub segments: Vec<SegmentInfo>,
    /// The checkpoints that are whole, newest first.
    pub checkpoints: Vec<CheckpointInfo>,
    /// Frames that are whole.
    pub frames: u64,
    /// Changes in them.
    pub changes: u64,
    /// All that is wrong, the first thousand.
    pub damages: Vec<Damage>,
    /// How many more there are.
    pub more_damages: u64,
    /// What a start would find: the state, or why it would refuse.
    pub opens: Result<Contents, StoreError>,
}

impl Checked {
    /// Whether nothing is wrong. What a crash left of the last frame is nothing wrong.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damages.is_empty() && self.opens.is_ok()
    }

    fn damage(&mut self, file: &str, bytes: Option<(u64, u64)>, why: String) {
        if self.damages.len() == DAMAGES_MAX {
            self.more_damages += 1;
        } else {
            self.damages.push(Damage { file: file.to_owned(), bytes, why });
        }
    }

    fn failure(&mut self, file: &str, error: StoreError) {
        match error {
            StoreError::Corrupt { file, offset, end, why } => self.damage(&file, Some((offset, end)), why),
            error => self.damage(file, None, error.to_string()),
        }
    }
}

/// Looks at every frame of every segment and every row of every checkpoint. Nothing is written; what a killed process left
/// in the system's memory is synced before it is believed.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be listed. Whatever else is wrong is in what is returned.
pub fn check<S: Storage>(storage: &mut S) -> Result<Checked, StoreError> {
    let names = storage.list().map_err(StoreError::io("list", "the folder"))?;
    let mut checked = Checked {
        segments: Vec::new(),
        checkpoints: Vec::new(),
        frames: 0,
        changes: 0,
        damages: Vec::new(),
        more_damages: 0,
        opens: read(storage, &mut |_| {}),
    };
    for file in checkpoint_files(storage)? {
        match read_checkpoint(storage, &file, &mut |_| {}) {
            Ok(info) => checked.checkpoints.push(info),
            Err(error) => checked.failure(&file, error),
        }
    }
    check_log(storage, &names, &mut checked);
    let log_id = checked.segments.first().and(checked.opens.as_ref().ok()).and_then(|found| found.log_id);
    let others = checked.checkpoints.iter().filter(|info| log_id.is_some_and(|log_id| log_id != info.log_id));
    for file in others.map(|info| info.file.clone()).collect::<Vec<_>>() {
        checked.damage(&file, None, "it is of another log".to_owned());
    }
    Ok(checked)
}

/// All segments, as far as their first pages are right.
fn check_log<S: Storage>(storage: &mut S, names: &[String], checked: &mut Checked) {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    let last = numbers.last().copied();
    let mut before: Option<(u64, Walk, [u8; 16])> = None;
    for number in numbers {
        let file = file_name(number);
        let header = match read_header(storage, number) {
            Ok(header) => header,
            Err(error) => {
                checked.failure(&file, error);
                continue;
            }
        };
        match &before {
            Some((_, _, log_id)) if *log_id != header.log_id => {
                checked.damage(&file, None, "it is of another log".to_owned());
                continue;
            }
            Some((number_before, ..)) if number_before + 1 != number => {
                // What is unreadable was named where it was met; what is not there is named here.
                for missing in
                    (number_before + 1..number).filter(|missing| !names.contains(&file_name(*missing)))
                {
                    checked.damage(&file_name(missing), None, "it is missing".to_owned());
                    if checked.more_damages > 0 {
                        break;
                    }
                }
            }
            Some((number_before, walk, _)) if !walk.is_at(&header) => {
                let goes_on = header.first_sequence.saturating_sub(1);
                let why = format!(
                    "its frames end after {}, while {file} goes on after frame {goes_on}",
                    walk.position.sequence
                );
                checked.damage(&file_name(*number_before), None, why);
            }
            _ => {}
        }
        let segment = Window::new(storage, &header);
        let walk = check_segment(&header, segment, last == Some(number), checked);
        checked.segments.push(SegmentInfo::of(&header));
        before = Some((number, walk, header.log_id));
    }
}

/// The frames of one segment, behind each that is wrong too. Where the walk is at its end: at the last whole frame, so that
/// a hole is told where the next segment goes on elsewhere.
fn check_segment<S: Storage>(
    header: &Header,
    mut segment: Window<'_, S>,
    is_last: bool,
    checked: &mut Checked,
) -> Walk {
    let file = file_name(header.number);
    let mut walk = Walk::from(header, header.position());
    if let Err(error) = check_frames((header, &mut segment), &mut walk, is_last, checked) {
        checked.failure(&file, error);
    }
    checked.frames += walk.frames;
    walk
}

fn check_frames<S: Storage>(
    (header, segment): (&Header, &mut Window<'_, S>),
    walk: &mut Walk,
    is_last: bool,
    checked: &mut Checked,
) -> Result<(), StoreError> {
    let file = file_name(header.number);
    let mut offset = PAGE;
    loop {
        let mut changes = 0;
        let walked = walk.segment_from(&file, (header, segment), offset, &mut |_| changes += 1);
        checked.changes += changes;
        match walked {
            Ok(end) => {
                if let Some(cut) = end.cut(&file, header, segment)? {
                    rest(&file, end, &cut, is_last, checked);
                }
                return Ok(());
            }
            Err(StoreError::Corrupt { offset: from, end, why, .. }) => {
                let next = walk.skip(header, segment, usize::try_from(end).unwrap_or(segment.len()))?;
                let end = next.map_or(end, |next| next as u64);
                checked.damage(&file, Some((from, end)), why);
                match next {
                    Some(next) => offset = next,
                    None => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// What stands behind the last frame of a segment. At the end of the log that is what a crash left, and no damage.
fn rest(file: &str, end: End, cut: &Cut, is_last: bool, checked: &mut Checked) {
    if !is_last {
        let why = match end.why {
            Some(why) => why.to_owned(),
            None => "what was not used is not zero any more; it harms nothing, but the disk may be failing"
                .to_owned(),
        };
        checked.damage(file, Some((cut.offset, cut.offset + cut.bytes)), why);
    }
}
