//! What is made beside the log, and whether there is room for it: what the log lacks, what failed for want of room.

use crate::log_writer::Lacks;
use store::StoreError;

/// What is to be made next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// A checkpoint.
    Checkpoint,
    /// A spare of so many bytes.
    Spare(u64),
}

/// What the disk has no room for, in words; none of another error.
pub fn no_room(error: &StoreError) -> Option<String> {
    match error {
        StoreError::NoRoom { file, bytes } => Some(format!("{file} needs {bytes} bytes")),
        _ => None,
    }
}

/// What the owner knows of the disk's room.
#[derive(Debug, Default)]
pub struct Room {
    lacks: Lacks,
    /// Why a frame waits.
    full: Option<String>,
    /// Why there is no checkpoint, or no spare, for want of room.
    checkpoint: Option<String>,
    spare: Option<String>,
    /// What is being made.
    making: Option<Make>,
    /// What was not made last for want of room.
    lacked: Option<Make>,
    /// Checkpoints and spares that were made, each of which the log takes.
    made: u64,
}

impl Room {
    /// A frame is durable, and this is what the log lacks.
    pub fn written(&mut self, lacks: Lacks) {
        self.full = None;
        // A frame that was written before the log took what was made last lacks that: it is not made twice.
        if lacks.taken >= self.made {
            self.lacks = lacks;
        }
    }

    /// A frame waits for room.
    pub fn full(&mut self, why: String) {
        self.full = Some(why);
    }

    /// Why a frame waits for room, if one does.
    pub fn frame_waits(&self) -> Option<&String> {
        self.full.as_ref()
    }

    /// Why there is no room, if there is none.
    pub fn lacking(&self) -> Option<String> {
        self.full.as_ref().or(self.checkpoint.as_ref()).or(self.spare.as_ref()).cloned()
    }

    /// What was being made is in place.
    pub fn made(&mut self) {
        self.lacked = None;
        self.made += 1;
        match self.making.take() {
            Some(Make::Checkpoint) => (self.checkpoint, self.lacks.checkpoint) = (None, false),
            Some(Make::Spare(_)) => (self.spare, self.lacks.spare) = (None, None),
            None => {}
        }
    }

    /// What was being made was not for want of room, and why.
    pub fn not_made(&mut self, why: String) {
        self.lacked = self.making.take();
        match self.lacked {
            Some(Make::Checkpoint) => self.checkpoint = Some(why),
            Some(Make::Spare(_)) => self.spare = Some(why),
            None => {}
        }
    }

    /// What was being made was not for another reason.
    pub fn failed(&mut self) {
        self.making = None;
    }

    /// What is to be made now, one thing at a time: a checkpoint before a spare, but of two that both lack room one after
    /// the other.
    pub fn make_next(&mut self) -> Option<Make> {
        if self.making.is_some() {
            return None;
        }
        let frees_room = self.spare.is_some() && self.lacks.any_room;
        let wants_checkpoint = self.lacks.checkpoint || self.checkpoint.is_some() || frees_room;
        let checkpoint = wants_checkpoint.then_some(Make::Checkpoint);
        let spare = self.lacks.spare.map(Make::Spare);
        self.making = match self.lacked {
            Some(Make::Checkpoint) => spare.or(checkpoint),
            _ => checkpoint.or(spare),
        };
        self.making
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_comes_first_and_what_lacks_room_is_tried_in_turn() {
        let mut room = Room::default();
        assert_eq!((room.make_next(), room.lacking()), (None, None));
        room.written(Lacks { checkpoint: true, spare: Some(7), any_room: false, taken: 0 });
        assert_eq!(room.make_next(), Some(Make::Checkpoint));
        room.not_made("full".to_owned());
        assert_eq!(room.lacking(), Some("full".to_owned()));
        assert_eq!(room.make_next(), Some(Make::Spare(7)));
        room.not_made("full, too".to_owned());
        assert_eq!(room.make_next(), Some(Make::Checkpoint));
        room.made();
        assert_eq!(room.lacking(), Some("full, too".to_owned()));
        assert_eq!(room.make_next(), Some(Make::Spare(7)));
        room.made();
        assert_eq!((room.make_next(), room.lacking()), (None, None));
    }

    #[test]
    fn what_a_frame_lacked_before_the_log_took_it_is_not_made_twice() {
        let mut room = Room::default();
        let lacks = |checkpoint, taken| Lacks { checkpoint, spare: None, any_room: false, taken };
        room.written(lacks(true, 0));
        assert_eq!(room.make_next(), Some(Make::Checkpoint));
        room.made();
        room.written(lacks(true, 0));
        assert_eq!(room.make_next(), None, "the frame was written before the log had taken the checkpoint");
        room.written(lacks(false, 1));
        assert_eq!(room.make_next(), None);
        room.written(lacks(true, 1));
        assert_eq!(room.make_next(), Some(Make::Checkpoint));
    }

    #[test]
    fn a_log_that_is_nearly_out_has_a_checkpoint_made_for_what_that_frees() {
        let mut room = Room::default();
        let lacks = |any_room| Lacks { checkpoint: false, spare: Some(7), any_room, taken: 0 };
        room.written(lacks(false));
        assert_eq!(room.make_next(), Some(Make::Spare(7)));
        assert_eq!(room.make_next(), None, "one thing at a time");
        room.not_made("full".to_owned());
        assert_eq!(room.make_next(), Some(Make::Spare(7)), "there is some room in the log");
        room.not_made("full".to_owned());
        room.written(lacks(true));
        assert_eq!(room.make_next(), Some(Make::Checkpoint));
        room.full("a frame waits".to_owned());
        assert_eq!(room.lacking(), Some("a frame waits".to_owned()));
        room.made();
        room.written(Lacks::default());
        assert_eq!((room.lacking(), room.frame_waits()), (Some("full".to_owned()), None));
    }
}
