//! A stream that a peer sends, in this pair of runs: what was handed over, what came before its turn, what is to be said.
//!
//! It knows nothing durable: the ledger of the store decides what is applied. It keeps order, whole records and bounds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealing::Tag;

use crate::command::{Declaration, Outcome};
use crate::frame::{Frame, Told};
use crate::limits::{
    ANSWER_BYTES_MAX, ASSEMBLIES_PER_PEER_MAX, PIECE_BYTES, REASON_BYTES_MAX, REORDER_BYTES_PER_PEER_MAX,
    WHOLE_RECORD_BYTES_MAX, WIRE_BYTES, WIRE_RECORDS,
};
use crate::recovery::Content;

/// What the streams of a peer hold together, bounded whatever it sends.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) reorder_bytes: usize,
    pub(crate) assemblies: usize,
}

/// A record that is complete and in its turn.
pub(crate) struct Delivery {
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    pub(crate) payload: Vec<u8>,
}

/// A large record that is put together; it is the next of its stream.
struct Assembly {
    tag: Tag,
    bytes: Vec<u8>,
    missing: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Taking {
    Records,
    Nothing { reason: String },
    Forked,
}

/// A stream of a peer.
pub(crate) struct Incoming {
    pub(crate) declaration: Arc<Declaration>,
    /// The number that is handed over next.
    cursor: u64,
    early: BTreeMap<u64, (Tag, Vec<u8>)>,
    assembly: Option<Assembly>,
    /// Bytes of what was handed over and is not stored, the oldest first, and their sum.
    open: VecDeque<usize>,
    open_bytes: usize,
    /// The highest number that the store here said.
    stored: u64,
    /// The highest number that the sender said is settled.
    settled: u64,
    /// Refusals and answers that the sender did not settle.
    outcomes: BTreeMap<u64, Outcome>,
    /// Counts what `stored` would say; a lost older one is not said again.
    stored_version: u64,
    stored_due: bool,
    taking: Taking,
    turn: u64,
    turn_due: bool,
    forked_due: bool,
}

impl Incoming {
    pub(crate) fn new(declaration: Declaration) -> Incoming {
        Incoming {
            cursor: declaration.oldest,
            stored: declaration.oldest - 1,
            settled: declaration.oldest - 1,
            declaration: Arc::new(declaration),
            early: BTreeMap::new(),
            assembly: None,
            open: VecDeque::new(),
            open_bytes: 0,
            outcomes: BTreeMap::new(),
            stored_version: 0,
            stored_due: false,
            taking: Taking::Records,
            turn: 0,
            turn_due: false,
            forked_due: false,
        }
    }

    /// A newer declaration in the same pair of runs: the sender settled what was not handed over yet.
    pub(crate) fn declare_again(&mut self, declaration: Declaration, held: &mut Held) -> bool {
        if declaration.oldest <= self.cursor {
            return false;
        }
        self.clear(held);
        let (turn, taking) = (self.turn, self.taking.clone());
        *self = Incoming::new(declaration);
        if taking == Taking::Forked {
            self.taking = taking;
        } else if turn > 0 {
            // A wait that was said before may still be on its way, and is over.
            self.turn = turn + 1;
            self.turn_due = true;
        }
        true
    }

    /// Gives back what this stream holds.
    pub(crate) fn clear(&mut self, held: &mut Held) {
        let early: usize = self.early.values().map(|(_, payload)| payload.len() + 1).sum();
        held.reorder_bytes -= early;
        self.early.clear();
        if self.assembly.take().is_some() {
            held.assemblies -= 1;
        }
    }

    /// Takes a whole record. False if it cannot be kept: then its packet is not acknowledged.
    pub(crate) fn take(
        &mut self,
        number: u64,
        tag: Tag,
        payload: &[u8],
        held: &mut Held,
        deliver: &mut Vec<Delivery>,
    ) -> bool {
        if self.taking != Taking::Records || number < self.cursor || self.early.contains_key(&number) {
            return true;
        }
        if number > self.stored.saturating_add(WIRE_RECORDS as u64) || payload.len() > WHOLE_RECORD_BYTES_MAX
        {
            return false;
        }
        if number > self.cursor {
            // One byte more than the payload, so that empty records are not free.
            let bytes = payload.len() + 1;
            if held.reorder_bytes + bytes > REORDER_BYTES_PER_PEER_MAX {
                return false;
            }
            held.reorder_bytes += bytes;
            self.early.insert(number, (tag, payload.to_vec()));
            return true;
        }
        if !self.has_room(payload.len()) {
            return false;
        }
        self.hand_over(tag, payload.to_vec(), deliver);
        self.hand_over_early(held, deliver);
        true
    }

    /// Hands over what came before its turn. What the store has no room for stays: it was acknowledged.
    fn hand_over_early(&mut self, held: &mut Held, deliver: &mut Vec<Delivery>) {
        while let Some(early) = self.early.first_entry().filter(|early| *early.key() == self.cursor)
            && self.open_bytes + early.get().1.len() <= WIRE_BYTES
        {
            let (tag, payload) = early.remove();
            held.reorder_bytes -= payload.len() + 1;
            self.hand_over(tag, payload, deliver);
        }
    }

    /// Whether the store has room for so many bytes more.
    fn has_room(&self, bytes: usize) -> bool {
        self.open_bytes + bytes <= WIRE_BYTES
    }

    /// Hands over the next record, for which there is room.
    fn hand_over(&mut self, tag: Tag, payload: Vec<u8>, deliver: &mut Vec<Delivery>) {
        self.open_bytes += payload.len();
        self.open.push_back(payload.len());
        deliver.push(Delivery { number: self.cursor, tag, payload });
        self.cursor += 1;
    }

    /// Takes a piece of a large record. False if it cannot be kept.
    pub(crate) fn take_piece(
        &mut self,
        (number, tag): (u64, Tag),
        (total, offset): (u64, u64),
        bytes: &[u8],
        held: &mut Held,
        deliver: &mut Vec<Delivery>,
    ) -> bool {
        if self.taking != Taking::Records || number < self.cursor {
            return true;
        }
        let (total, offset) = (total as usize, offset as usize);
        let whole_piece =
            bytes.len() == PIECE_BYTES.min(total - offset) && offset.is_multiple_of(PIECE_BYTES);
        if number > self.cursor || !whole_piece || total <= WHOLE_RECORD_BYTES_MAX {
            return false;
        }
        if self.assembly.is_none() {
            // Nothing is handed over before it is whole, so the room that there is now will be there then.
            let is_full = held.assemblies == ASSEMBLIES_PER_PEER_MAX || !self.has_room(total);
            if is_full || number > self.stored + WIRE_RECORDS as u64 {
                return false;
            }
            held.assemblies += 1;
            let missing = vec![true; total.div_ceil(PIECE_BYTES)];
            self.assembly = Some(Assembly { tag, bytes: vec![0; total], missing });
        }
        let Some(assembly) = &mut self.assembly else { return false };
        if assembly.tag != tag || assembly.bytes.len() != total {
            return false;
        }
        assembly.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        assembly.missing[offset / PIECE_BYTES] = false;
        if assembly.missing.contains(&true) {
            return true;
        }
        let Some(Assembly { tag, bytes, .. }) = self.assembly.take() else { return false };
        held.assemblies -= 1;
        self.hand_over(tag, bytes, deliver);
        self.hand_over_early(held, deliver);
        true
    }

    /// The store here has all up to `upto`. What was not handed over in this pair of runs cannot be meant.
    pub(crate) fn store(
        &mut self,
        upto: u64,
        outcomes: Vec<(u64, Outcome)>,
        held: &mut Held,
        deliver: &mut Vec<Delivery>,
    ) {
        if self.taking == Taking::Forked || upto >= self.cursor || upto < self.stored {
            return;
        }
        for _ in self.stored..upto {
            self.open_bytes -= self.open.pop_front().unwrap_or(0);
        }
        self.stored = upto;
        // What the sender settled while the store synced is not said again: it might leave no room for what is news.
        let unsettled = outcomes.into_iter().filter(|(number, _)| *number > self.settled);
        self.outcomes = unsettled.filter_map(|(number, told)| Some((number, fitting(told)?))).collect();
        self.say_stored();
        self.hand_over_early(held, deliver);
    }

    fn say_stored(&mut self) {
        self.stored_version += 1;
        self.stored_due = true;
    }

    /// The sender settled up to `upto`: what did not fit may fit now.
    pub(crate) fn settle(&mut self, upto: u64) {
        self.settled = self.settled.max(upto);
        let before = self.outcomes.len();
        self.outcomes.retain(|number, _| *number > upto);
        if self.outcomes.len() < before {
            self.say_stored();
        }
    }

    /// Record `number` cannot be taken now.
    pub(crate) fn wait(&mut self, number: u64, reason: String, held: &mut Held) {
        if self.taking == Taking::Forked || number <= self.stored || number >= self.cursor {
            return;
        }
        self.clear(held);
        for _ in number..self.cursor {
            self.open_bytes -= self.open.pop_back().unwrap_or(0);
        }
        self.cursor = number;
        self.taking = Taking::Nothing { reason: cut(reason) };
        self.turn += 1;
        self.turn_due = true;
    }

    /// What this stream waits for has come.
    pub(crate) fn go_on(&mut self) {
        if matches!(self.taking, Taking::Nothing { .. }) {
            self.taking = Taking::Records;
            self.turn += 1;
            self.turn_due = true;
        }
    }

    /// The sender was set back: nothing more of this stream.
    pub(crate) fn fork(&mut self, held: &mut Held) {
        self.clear(held);
        self.taking = Taking::Forked;
        self.forked_due = true;
        self.stored_due = false;
        self.turn_due = false;
    }

    /// Whether something is to be said; a fork only to a peer that is proven to be there.
    pub(crate) fn wants(&self, proven: bool) -> bool {
        self.stored_due || self.turn_due || (self.forked_due && proven)
    }

    /// Writes what is due and fits.
    pub(crate) fn write(
        &mut self,
        handle: u64,
        proven: bool,
        out: &mut Vec<u8>,
        room: usize,
        said: &mut Vec<Content>,
    ) {
        let end = out.len() + room;
        if self.forked_due && proven && (Frame::Forked { handle }).append(out, end) {
            self.forked_due = false;
            said.push(Content::Forked { handle });
        }
        if self.stored_due && self.write_stored(handle, out, end) {
            self.stored_due = false;
            said.push(Content::Stored { handle, version: self.stored_version });
        }
        if self.turn_due {
            let (turn, number) = (self.turn, self.cursor);
            let frame = match &self.taking {
                Taking::Nothing { reason } => Frame::Waiting { handle, turn, number, reason },
                _ => Frame::Ready { handle, turn, number },
            };
            if frame.append(out, end) {
                self.turn_due = false;
                said.push(Content::Turn { handle, turn });
            }
        }
    }

    /// In one frame a number and all refusals and answers up to it, so that no refusal is ever taken for delivered and no
    /// answer is missing: if they do not fit, a lower number. The rest is said when the sender settled these. False if not even one fits beside the rest.
    fn write_stored(&self, handle: u64, out: &mut Vec<u8>, end: usize) -> bool {
        let mut room = end.saturating_sub(out.len()).saturating_sub(1 + 8 + 8 + 2);
        let mut outcomes: Vec<(u64, Told<'_>)> = Vec::new();
        let mut upto = self.stored;
        for (number, outcome) in self.outcomes.range(..=self.stored) {
            let told = Told::of(outcome);
            let bytes = told.bytes();
            if bytes > room {
                upto = number - 1;
                break;
            }
            room -= bytes;
            outcomes.push((*number, told));
        }
        let nothing_fits = outcomes.is_empty() && upto < self.stored;
        !nothing_fits && Frame::Stored { handle, upto, outcomes }.append(out, end)
    }

    /// A frame of ours about this stream is lost.
    pub(crate) fn lost(&mut self, content: &Content) {
        match *content {
            Content::Stored { version, .. } if version == self.stored_version => self.stored_due = true,
            Content::Turn { turn, .. } if turn == self.turn => self.turn_due = true,
            Content::Forked { .. } => self.forked_due = true,
            _ => {}
        }
        if self.taking == Taking::Forked {
            self.stored_due = false;
            self.turn_due = false;
        }
    }
}

/// An outcome that fits a frame. An answer that does not is none: whoever made it should have refused the record.
fn fitting(outcome: Outcome) -> Option<Outcome> {
    match outcome {
        Outcome::Refused(reason) => Some(Outcome::Refused(cut(reason))),
        Outcome::Answered(answer) => (answer.len() <= ANSWER_BYTES_MAX).then_some(Outcome::Answered(answer)),
    }
}

/// A reason no longer than one may be, cut at a character.
fn cut(mut reason: String) -> String {
    if reason.len() > REASON_BYTES_MAX {
        let end = (0..=REASON_BYTES_MAX).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or(0);
        reason.truncate(end);
    }
    reason
}
