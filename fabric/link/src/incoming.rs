//! A stream that a peer sends, in this pair of runs: what was handed over, what came before its turn, what is to be said.
//!
//! It knows nothing durable: the ledger of the store decides what is applied. It keeps order, whole records and bounds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealing::Tag;

use crate::command::{Declaration, Outcome};
use crate::credit::{Credit, Lent};
use crate::frame::{Frame, Told};
use crate::limits::{
    ANSWER_BYTES_MAX, PIECE_BYTES_MIN, REASON_BYTES_MAX, REORDER_BYTES_PER_PEER_MAX, REORDER_ENTRY_BYTES,
    TURN_BYTES_PER_PEER_MAX, WHOLE_RECORD_BYTES_MAX,
};
use crate::ranges::Ranges;
use crate::recovery::Content;

/// What the streams of a peer hold together, bounded whatever it sends (§5.10).
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Of records that came before their turn, whole or in part.
    pub(crate) reorder_bytes: usize,
    /// Of records in pieces that are the next of their streams.
    pub(crate) turn_bytes: usize,
    pub(crate) lent: Lent,
}

/// What a record that is held counts as.
#[derive(Clone, Copy, Debug)]
enum Charge {
    Early(usize),
    Turn(usize),
}

impl Held {
    fn give_back(&mut self, charge: Charge) {
        match charge {
            Charge::Early(bytes) => self.reorder_bytes -= bytes,
            Charge::Turn(bytes) => self.turn_bytes -= bytes,
        }
    }

    /// Room for a record that came before its turn.
    fn reserve_early(&mut self, bytes: usize) -> Option<Charge> {
        let bytes = bytes + REORDER_ENTRY_BYTES;
        let fits = self.reorder_bytes + bytes <= REORDER_BYTES_PER_PEER_MAX;
        fits.then(|| self.reorder_bytes += bytes).map(|()| Charge::Early(bytes))
    }

    /// Room for the next record of a stream, in pieces.
    fn reserve_turn(&mut self, bytes: usize) -> Option<Charge> {
        let fits = self.turn_bytes + bytes <= TURN_BYTES_PER_PEER_MAX;
        fits.then(|| self.turn_bytes += bytes).map(|()| Charge::Turn(bytes))
    }
}

/// A record that is complete and in its turn.
pub(crate) struct Delivery {
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    pub(crate) payload: Vec<u8>,
}

/// A record that is not handed over: not in its turn, or not whole.
#[derive(Debug)]
struct Part {
    tag: Tag,
    charge: Charge,
    bytes: Vec<u8>,
    /// Which bytes came; none if all did.
    arrived: Option<Ranges>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Taking {
    Records,
    Nothing { reason: String },
    Forked,
}

/// A stream of a peer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) declaration: Arc<Declaration>,
    /// The number that is handed over next.
    cursor: u64,
    parts: BTreeMap<u64, Part>,
    /// Bytes of what was handed over and is not stored, the oldest first, and their sum.
    open: VecDeque<usize>,
    open_bytes: usize,
    /// The highest number that the store here said.
    stored: u64,
    /// The highest number that the owner is done with, stored now or before, and the bytes up to it.
    released: u64,
    released_bytes: u64,
    credit: Credit,
    /// As the sender was last told, or takes it to be.
    credit_told: Credit,
    credit_due: bool,
    is_credit_told: bool,
    /// The sender has no more to go by, and waits.
    is_blocked: bool,
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
    pub(crate) fn new(declaration: Declaration, held: &mut Held) -> Incoming {
        let implied = Credit::implied(declaration.oldest);
        let mut incoming = Incoming {
            cursor: declaration.oldest,
            stored: declaration.oldest - 1,
            released: declaration.oldest - 1,
            released_bytes: 0,
            credit: Credit::default(),
            credit_told: implied,
            credit_due: false,
            is_credit_told: false,
            is_blocked: false,
            settled: declaration.oldest - 1,
            declaration: Arc::new(declaration),
            parts: BTreeMap::new(),
            open: VecDeque::new(),
            open_bytes: 0,
            outcomes: BTreeMap::new(),
            stored_version: 0,
            stored_due: false,
            taking: Taking::Records,
            turn: 0,
            turn_due: false,
            forked_due: false,
        };
        incoming.give_credit(held);
        // It takes for granted what there may not be.
        incoming.credit_due =
            incoming.credit.number < implied.number || incoming.credit.bytes < implied.bytes;
        incoming
    }

    /// More credit, as far as the owner is done with what came; it is said once it is worth a frame (§5.12).
    pub(crate) fn give_credit(&mut self, held: &mut Held) {
        let lent = &mut held.lent;
        // The last record may have been larger than what was left.
        let from = self.credit.bytes.max(self.released_bytes);
        let bytes = from + lent.more(from - self.released_bytes);
        let credits = lent.credits;
        let number = self.released.saturating_add(credits.records.max(1));
        self.credit = self.credit.max(Credit { number, bytes });
        let numbers = self.credit.number.saturating_sub(self.credit_told.number);
        let bytes = self.credit.bytes.saturating_sub(self.credit_told.bytes);
        let is_much = 2 * numbers >= credits.records || 2 * bytes >= credits.bytes;
        self.credit_due |= is_much || (self.is_blocked && (numbers > 0 || bytes > 0));
    }

    /// Bytes of credit beyond what the owner is done with.
    fn credit_left(&self) -> u64 {
        self.credit.bytes.saturating_sub(self.released_bytes)
    }

    /// The sender asks how far it may go.
    pub(crate) fn blocked(&mut self) {
        self.is_blocked = true;
        self.credit_due = self.taking != Taking::Forked;
    }

    /// The owner is done with all up to `upto`.
    fn release(&mut self, upto: u64, held: &mut Held) {
        let left = self.credit_left();
        while self.released < upto {
            let bytes = self.open.pop_front().unwrap_or(0);
            self.open_bytes -= bytes;
            self.released_bytes += bytes as u64;
            self.released += 1;
        }
        held.lent.give_back(left - self.credit_left());
        self.give_credit(held);
    }

    /// The owner had what came up to `upto` before.
    pub(crate) fn taken(&mut self, upto: u64, held: &mut Held, deliver: &mut Vec<Delivery>) {
        if self.taking == Taking::Forked || upto >= self.cursor || upto <= self.released {
            return;
        }
        self.release(upto, held);
        self.hand_over_held(held, deliver);
    }

    /// A newer declaration in the same pair of runs: the sender settled what was not handed over yet (§5.3).
    pub(crate) fn declare_again(&mut self, declaration: Declaration, held: &mut Held) -> bool {
        if declaration.oldest <= self.cursor {
            return false;
        }
        self.clear(held);
        held.lent.give_back(self.credit_left());
        let (turn, taking) = (self.turn, self.taking.clone());
        *self = Incoming::new(declaration, held);
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
        for part in std::mem::take(&mut self.parts).into_values() {
            held.give_back(part.charge);
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
        if self.taking != Taking::Records || number < self.cursor || self.parts.contains_key(&number) {
            return true;
        }
        if self.is_beyond(number) || payload.len() > WHOLE_RECORD_BYTES_MAX {
            return false;
        }
        if number > self.cursor {
            let Some(charge) = held.reserve_early(payload.len()) else { return false };
            self.parts.insert(number, Part { tag, charge, bytes: payload.to_vec(), arrived: None });
            return true;
        }
        if !self.has_room() {
            return false;
        }
        self.hand_over(tag, payload.to_vec(), deliver);
        self.hand_over_held(held, deliver);
        true
    }

    /// Whether no sender has a record of this number on the wire.
    fn is_beyond(&self, number: u64) -> bool {
        number > self.limit().number
    }

    /// Hands over what is whole and in its turn. What the store has no room for stays: it was acknowledged (§5.2).
    fn hand_over_held(&mut self, held: &mut Held, deliver: &mut Vec<Delivery>) {
        while self.parts.get(&self.cursor).is_some_and(|part| part.arrived.is_none())
            && self.has_room()
            && let Some(Part { tag, charge, bytes, .. }) = self.parts.remove(&self.cursor)
        {
            held.give_back(charge);
            self.hand_over(tag, bytes, deliver);
        }
    }

    /// Whether there is credit for the next record.
    fn has_room(&self) -> bool {
        self.limit().covers(self.cursor, self.released_bytes + self.open_bytes as u64)
    }

    /// How far the sender may be. What it takes for granted counts until it was told otherwise: what a hello carried is
    /// acknowledged with it, so it has to be kept.
    fn limit(&self) -> Credit {
        if self.is_credit_told {
            self.credit
        } else {
            self.credit.max(Credit::implied(self.declaration.oldest))
        }
    }

    /// Hands over the next record, for which there is room.
    fn hand_over(&mut self, tag: Tag, payload: Vec<u8>, deliver: &mut Vec<Delivery>) {
        self.open_bytes += payload.len();
        self.open.push_back(payload.len());
        deliver.push(Delivery { number: self.cursor, tag, payload });
        self.cursor += 1;
    }

    /// Takes a piece of a record. False if it cannot be kept (§2.6, §5.10).
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
        let (total, start) = (total as usize, offset as usize);
        let is_known = self.parts.contains_key(&number);
        if !is_known && !self.begin_part((number, tag), total, held) {
            return false;
        }
        let Some(part) = self.parts.get_mut(&number) else { return false };
        if part.tag != tag || part.bytes.len() != total {
            return false;
        }
        let Some(arrived) = &mut part.arrived else { return true };
        // A sender's pieces are no smaller than that, so that its ranges are never more.
        if arrived.count() > total / PIECE_BYTES_MIN {
            return false;
        }
        part.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        arrived.insert(offset, offset + bytes.len() as u64);
        if arrived.is_whole(total as u64) {
            part.arrived = None;
            self.hand_over_held(held, deliver);
        }
        true
    }

    /// Makes room for a record in pieces.
    fn begin_part(&mut self, (number, tag): (u64, Tag), total: usize, held: &mut Held) -> bool {
        if self.is_beyond(number) || total <= WHOLE_RECORD_BYTES_MAX {
            return false;
        }
        let charge = match number == self.cursor {
            // Nothing is handed over before it is whole, so the room that there is now will be there then.
            true if !self.has_room() => None,
            true => held.reserve_turn(total),
            false => held.reserve_early(total),
        };
        let Some(charge) = charge else { return false };
        self.parts
            .insert(number, Part { tag, charge, bytes: vec![0; total], arrived: Some(Ranges::default()) });
        true
    }

    /// The store here has all up to `upto`. What was not handed over in this pair of runs cannot be meant (§5.5).
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
        self.release(upto, held);
        self.stored = upto;
        // What the sender settled while the store synced is not said again: it might leave no room for what is news.
        let unsettled = outcomes.into_iter().filter(|(number, _)| *number > self.settled);
        self.outcomes = unsettled.filter_map(|(number, told)| Some((number, fitting(told)?))).collect();
        self.say_stored();
        self.hand_over_held(held, deliver);
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

    /// Record `number` cannot be taken now (§5.7).
    pub(crate) fn wait(&mut self, number: u64, reason: String, held: &mut Held) {
        if self.taking == Taking::Forked || number <= self.released || number >= self.cursor {
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

    /// Whether it waits for its app.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.taking, Taking::Nothing { .. })
    }

    /// What this stream waits for has come.
    pub(crate) fn go_on(&mut self) {
        if matches!(self.taking, Taking::Nothing { .. }) {
            self.taking = Taking::Records;
            self.turn += 1;
            self.turn_due = true;
        }
    }

    /// The sender was set back: nothing more of this stream (§5.8).
    pub(crate) fn fork(&mut self, held: &mut Held) {
        self.clear(held);
        self.taking = Taking::Forked;
        self.forked_due = true;
        self.stored_due = false;
        self.turn_due = false;
        self.credit_due = false;
    }

    /// Whether something is to be said; a fork only to a peer that is proven to be there.
    pub(crate) fn wants(&self, proven: bool) -> bool {
        self.stored_due || self.turn_due || self.credit_due || (self.forked_due && proven)
    }

    /// Whether nothing of it is open, waits or is to be said.
    pub(crate) fn is_quiet(&self) -> bool {
        match self.taking {
            Taking::Records => self.open.is_empty() && self.parts.is_empty() && !self.wants(true),
            Taking::Nothing { .. } => false,
            Taking::Forked => !self.forked_due,
        }
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
        if self.credit_due {
            let (oldest, credit) = (self.declaration.oldest, self.credit);
            if (Frame::Credit { handle, oldest, credit }).append(out, end) {
                self.credit_due = false;
                self.is_credit_told = true;
                self.is_blocked &= credit == self.credit_told;
                self.credit_told = credit;
                said.push(Content::Credit { handle, credit });
            }
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
    /// (§5.4)
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
            Content::Credit { credit, .. } if credit == self.credit_told => self.credit_due = true,
            Content::Turn { turn, .. } if turn == self.turn => self.turn_due = true,
            Content::Forked { .. } => self.forked_due = true,
            _ => {}
        }
        if self.taking == Taking::Forked {
            self.stored_due = false;
            self.turn_due = false;
            self.credit_due = false;
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
