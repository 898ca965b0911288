//! A stream that this node sends: records from `send` until `settled`, and what of them is on its way.
//!
//! Two lifetimes meet here. Records live until they are settled, whatever happens to the link. What is on its way
//! ([`Flight`]) lives as long as one pair of runs: a new pair declares the stream anew and sends all that is unsettled.
//! Must not know packets: it writes frames into the room it is given and names them as [`Content`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sealing::Tag;

use crate::command::{Declaration, NotTaken, Record};
use crate::credit::Credit;
use crate::fault::PeerMisbehaved;
use crate::frame::{Frame, put_records_head};
use crate::limits::{
    PIECE_BYTES_MIN, RECORDS_PER_FRAME_MAX, WHOLE_RECORD_BYTES_MAX, WINDOW_BYTES, WINDOW_RECORDS, WIRE_BYTES,
    WIRE_RECORDS,
};
use crate::ranges::Ranges;
use crate::recovery::Content;
use crate::wire::put_slice;

#[derive(Debug)]
struct Queued {
    tag: Tag,
    payload: Arc<[u8]>,
}

/// How far the declaration of this pair of runs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Unsent,
    Sent,
    Acknowledged,
}

/// What is on its way in this pair of runs.
#[derive(Debug)]
struct Flight {
    /// As it was said; `None` until the first frame.
    declaration: Option<Declaration>,
    told: Told,
    /// The next record that was never sent.
    next: u64,
    /// Numbers sent whole, not acknowledged.
    flying: Ranges,
    /// Of these, to be sent again.
    lost: Ranges,
    /// Records in pieces that did not arrive whole.
    large: BTreeMap<u64, Large>,
    /// Of these, those with pieces to be sent again.
    torn: BTreeSet<u64>,
    /// The highest number with an outcome in this pair.
    outcome: u64,
    /// Payload bytes of the unsettled records below `next`.
    wire_bytes: usize,
    /// Payload bytes of all records below `next`, from the oldest of the declaration on.
    passed_bytes: u64,
    /// How far the receiver said that it goes; nothing yet.
    credit: Option<Credit>,
    /// It was told that this record waits for credit.
    blocked_told: Option<u64>,
    /// In this process, in whatever pair.
    highest_sent: u64,
    /// The last change between waiting and ready that the peer said.
    turn: u64,
    hold: Option<u64>,
    /// Counts restarts of sending: an acknowledgement of what was sent before one says nothing.
    generation: u64,
}

/// A record that goes in pieces (§2.6).
#[derive(Debug, Default)]
struct Large {
    /// Bytes that were sent at least once.
    sent: u64,
    arrived: Ranges,
    /// To be sent again.
    lost: Ranges,
}

/// What is sent next.
#[derive(Clone, Copy)]
enum Next {
    Whole(u64),
    /// From so many bytes on, up to so many.
    Piece(u64, u64, u64),
}

/// A stream of ours.
#[derive(Debug)]
pub(crate) struct Outgoing {
    handle: u64,
    declared: Declaration,
    /// From `declared.oldest` on, without holes.
    records: VecDeque<Queued>,
    /// Payload bytes of the records without an outcome in this pair of runs.
    unanswered_bytes: usize,
    /// `settled` was said and not acknowledged.
    settled_due: bool,
    settled_told: bool,
    flight: Flight,
}

impl Large {
    /// What of these bytes did not arrive is to be sent again.
    fn lose(&mut self, start: u64, end: u64) {
        self.lost.insert(start, end);
        for (start, end) in self.arrived.iter() {
            self.lost.remove(start, end);
        }
    }
}

impl Flight {
    fn new(oldest: u64, generation: u64) -> Flight {
        Flight {
            declaration: None,
            told: Told::Unsent,
            next: oldest,
            flying: Ranges::default(),
            lost: Ranges::default(),
            large: BTreeMap::new(),
            torn: BTreeSet::new(),
            outcome: oldest - 1,
            wire_bytes: 0,
            passed_bytes: 0,
            credit: None,
            blocked_told: None,
            highest_sent: oldest - 1,
            turn: 0,
            hold: None,
            generation,
        }
    }

    /// Some of a record in pieces got lost, was sent again or came.
    fn note_torn(&mut self, number: u64) {
        let is_torn = self.large.get(&number).is_some_and(|large| large.lost.first().is_some());
        if is_torn {
            self.torn.insert(number);
        } else {
            self.torn.remove(&number);
        }
    }

    /// The first number that is to be sent again whole.
    fn first_lost(&self) -> Option<u64> {
        self.lost.first().map(|(first, _)| first)
    }
}

impl Outgoing {
    pub(crate) fn new(handle: u64, declared: Declaration) -> Outgoing {
        let flight = Flight::new(declared.oldest, 0);
        Outgoing {
            handle,
            declared,
            records: VecDeque::new(),
            unanswered_bytes: 0,
            settled_due: false,
            settled_told: false,
            flight,
        }
    }

    pub(crate) fn declared(&self) -> &Declaration {
        &self.declared
    }

    fn highest(&self) -> u64 {
        self.declared.oldest + self.records.len() as u64 - 1
    }

    fn get(&self, number: u64) -> Option<&Queued> {
        let at = number.checked_sub(self.declared.oldest)?;
        self.records.get(usize::try_from(at).ok()?)
    }

    fn bytes_of(&self, numbers: std::ops::Range<u64>) -> usize {
        numbers.filter_map(|number| self.get(number)).map(|queued| queued.payload.len()).sum()
    }

    /// Takes the next record.
    pub(crate) fn push(&mut self, record: Record) -> Result<(), NotTaken> {
        let expected = self.highest() + 1;
        if record.number != expected {
            return Err(NotTaken::OutOfOrder { number: record.number, expected });
        }
        let records = (expected - 1 - self.flight.outcome) as usize;
        let bytes = self.unanswered_bytes;
        let full = bytes + record.payload.len() > WINDOW_BYTES && records > 0;
        if records >= WINDOW_RECORDS || full {
            return Err(NotTaken::Full { records, bytes });
        }
        self.declared.last = self.declared.last.max(record.number);
        self.unanswered_bytes += record.payload.len();
        self.records.push_back(Queued { tag: record.tag, payload: record.payload });
        Ok(())
    }

    /// Rows up to `upto` are gone. If the peer has not told their outcome in this pair of runs, it is asked to begin
    /// behind them by a newer declaration (§5.6).
    pub(crate) fn settle(&mut self, upto: u64) {
        while self.declared.oldest <= upto
            && let Some(queued) = self.records.pop_front()
        {
            if self.declared.oldest < self.flight.next {
                self.flight.wire_bytes -= queued.payload.len();
            }
            if self.declared.oldest > self.flight.outcome {
                self.unanswered_bytes -= queued.payload.len();
            }
            self.declared.tag_before = queued.tag;
            self.declared.oldest += 1;
            self.settled_due = true;
            self.settled_told = false;
        }
        if self.flight.outcome < self.declared.oldest - 1 {
            self.restart();
        }
    }

    /// A new pair of runs, or a newer declaration: all that is unsettled is sent anew.
    pub(crate) fn restart(&mut self) {
        let (turn, highest_sent) = (self.flight.turn, self.flight.highest_sent);
        self.flight = Flight::new(self.declared.oldest, self.flight.generation + 1);
        self.flight.turn = turn;
        self.flight.highest_sent = self.flight.highest_sent.max(highest_sent);
        self.settled_told = false;
        self.unanswered_bytes = self.bytes_of(self.declared.oldest..self.highest() + 1);
    }

    /// A new pair of runs: the peer counts its turns anew. It may have stored what a hail carried before its run was
    /// known here, so what was sent in this process counts as sent.
    pub(crate) fn new_pair(&mut self) {
        self.restart();
        self.flight.turn = 0;
    }

    /// Whether the peer has not told how a record ended.
    pub(crate) fn awaits_outcome(&self) -> bool {
        self.highest() > self.flight.outcome
    }

    /// Whether all is settled, and the peer knows.
    pub(crate) fn is_quiet(&self) -> bool {
        self.records.is_empty() && !self.settled_due && !self.wants()
    }

    /// Whether something is to be sent now.
    pub(crate) fn wants(&self) -> bool {
        (self.settled_due && !self.settled_told)
            || self.next_to_send().is_some()
            || self.declaration_lost()
            || self.is_to_say_blocked()
    }

    /// A declaration that was said, got lost, and stands for what flies without it.
    fn declaration_lost(&self) -> bool {
        self.flight.declaration.is_some() && self.flight.told == Told::Unsent
    }

    fn next_to_send(&self) -> Option<Next> {
        let flight = &self.flight;
        let again =
            flight.torn.first().and_then(|number| Some((*number, flight.large.get(number)?.lost.first()?)));
        match (flight.first_lost(), again) {
            (Some(whole), again) if again.is_none_or(|(number, _)| whole < number) => {
                return Some(Next::Whole(whole));
            }
            (_, Some((number, (start, end)))) => return Some(Next::Piece(number, start, end)),
            _ => {}
        }
        if let Some((number, large)) = flight.large.last_key_value() {
            let total = self.get(*number)?.payload.len() as u64;
            if large.sent < total {
                return Some(Next::Piece(*number, large.sent, total));
            }
        }
        let length = self.get(flight.next)?.payload.len();
        if self.is_held_up(length) || self.lacks_credit() {
            return None;
        }
        Some(match length > WHOLE_RECORD_BYTES_MAX {
            true => Next::Piece(flight.next, 0, length as u64),
            false => Next::Whole(flight.next),
        })
    }

    /// Whether the next record waits whatever the receiver gives.
    fn is_held_up(&self, length: usize) -> bool {
        let flight = &self.flight;
        let held = flight.hold.is_some_and(|hold| flight.next >= hold);
        let records_full = flight.next >= self.declared.oldest + WIRE_RECORDS as u64;
        // One that has no other before it goes, however large it is: the receiver has nothing of this stream open then.
        let bytes_full = flight.wire_bytes + length > WIRE_BYTES && flight.next > flight.outcome + 1;
        held || records_full || bytes_full
    }

    fn lacks_credit(&self) -> bool {
        let flight = &self.flight;
        flight.credit.is_some_and(|credit| !credit.covers(flight.next, flight.passed_bytes))
    }

    /// Whether the next record waits for credit alone.
    pub(crate) fn waits_for_credit(&self) -> bool {
        let next = self.get(self.flight.next);
        self.lacks_credit() && next.is_some_and(|queued| !self.is_held_up(queued.payload.len()))
    }

    /// Whether it does, and the receiver was not told.
    fn is_to_say_blocked(&self) -> bool {
        self.flight.blocked_told != Some(self.flight.next) && self.waits_for_credit()
    }

    /// The receiver of a stream declared from `oldest` on says how far it goes. The first that comes may be less than was
    /// taken for granted: what was sent beyond is sent again (§5.12).
    pub(crate) fn take_credit(&mut self, oldest: u64, credit: Credit) {
        let is_of_this = self.flight.declaration.as_ref().is_some_and(|said| said.oldest == oldest);
        if !is_of_this {
            return;
        }
        let is_first = self.flight.credit.is_none();
        self.flight.credit = Some(self.flight.credit.map_or(credit, |before| before.max(credit)));
        let (mut next, mut bytes) = (self.flight.next, self.flight.passed_bytes);
        while is_first && next > self.flight.outcome + 1 {
            let before = bytes - self.get(next - 1).map_or(0, |queued| queued.payload.len() as u64);
            if credit.covers(next - 1, before) {
                break;
            }
            (next, bytes) = (next - 1, before);
        }
        self.rewind(next);
    }

    /// Writes what is due and fits into `room` bytes (§5.1).
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, room: usize, contents: &mut Vec<Content>) {
        if !self.wants() {
            return;
        }
        let end = out.len() + room;
        let declaration = self.flight.declaration.get_or_insert_with(|| self.declared.clone());
        let said = contents.len();
        let start = out.len();
        if self.flight.told != Told::Acknowledged {
            let oldest = declaration.oldest;
            let frame = Frame::Declaration { handle: self.handle, declaration: declaration.clone() };
            if !frame.append(out, end) {
                return;
            }
            contents.push(Content::Declaration { handle: self.handle, oldest });
        }
        let behind = out.len();
        self.write_settled(out, end, contents);
        self.write_blocked(out, end, contents);
        while self.write_records(out, end, contents) {}
        if out.len() == behind && self.flight.told == Told::Sent {
            // Nothing fits beside a declaration that is on its way already.
            out.truncate(start);
            contents.truncate(said);
            while self.write_records(out, end, contents) {}
        } else if self.flight.told == Told::Unsent {
            self.flight.told = Told::Sent;
        }
    }

    fn write_settled(&mut self, out: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        if !self.settled_due || self.settled_told {
            return;
        }
        let upto = self.declared.oldest - 1;
        let frame = Frame::Settled { handle: self.handle, upto };
        if frame.append(out, end) {
            contents.push(Content::Settled { handle: self.handle, upto });
            self.settled_told = true;
        }
    }

    fn write_blocked(&mut self, out: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        let (handle, number) = (self.handle, self.flight.next);
        if self.is_to_say_blocked() && (Frame::Blocked { handle, number }).append(out, end) {
            self.flight.blocked_told = Some(number);
            contents.push(Content::Blocked { handle, number });
        }
    }

    /// Writes one frame of records or of a piece; false if nothing is due or nothing more fits.
    fn write_records(&mut self, out: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) -> bool {
        let first = match self.next_to_send() {
            None => return false,
            Some(Next::Piece(number, start, upto)) => {
                return self.write_piece(number, (start, upto), out, end, contents);
            }
            Some(Next::Whole(first)) => first,
        };
        let Some(tag) = self.get(first).map(|queued| queued.tag) else { return false };
        let start = out.len();
        put_records_head(out, self.handle, first, tag);
        let count_at = out.len();
        out.push(0);
        let mut number = first;
        while number - first < RECORDS_PER_FRAME_MAX
            && matches!(self.next_to_send(), Some(Next::Whole(next)) if next == number)
            && let Some(queued) = self.get(number)
            && queued.tag == tag
            && out.len() + queued.payload.len() + 2 <= end
        {
            put_slice(out, &queued.payload);
            self.whole_was_sent(number);
            number += 1;
        }
        let count = number - first;
        if count == 0 {
            out.truncate(start);
            return false;
        }
        // One byte, as a varint of so few is.
        out[count_at] = count as u8;
        let generation = self.flight.generation;
        contents.push(Content::Records { handle: self.handle, generation, first, count });
        true
    }

    fn whole_was_sent(&mut self, number: u64) {
        self.flight.flying.insert(number, number + 1);
        if number == self.flight.next {
            self.advance(number);
        } else {
            self.flight.lost.remove(number, number + 1);
        }
    }

    /// A record was sent that never was before.
    fn advance(&mut self, number: u64) {
        let bytes = self.get(number).map_or(0, |queued| queued.payload.len());
        self.flight.wire_bytes += bytes;
        self.flight.passed_bytes += bytes as u64;
        self.flight.next = number + 1;
        self.flight.highest_sent = self.flight.highest_sent.max(number);
    }

    fn write_piece(
        &mut self,
        number: u64,
        (start, upto): (u64, u64),
        out: &mut Vec<u8>,
        end: usize,
        contents: &mut Vec<Content>,
    ) -> bool {
        let (handle, generation) = (self.handle, self.flight.generation);
        let Some(Queued { tag, payload }) = self.get(number) else { return false };
        let (tag, payload) = (*tag, payload.clone());
        // Kind, handle, number, tag, total, offset and length: at most this many bytes.
        let room = (end - out.len()).saturating_sub(1 + 8 + 8 + 8 + 4 + 4 + 4) as u64;
        let stop = upto.min(start + room);
        if stop == start || (stop < upto && stop - start < PIECE_BYTES_MIN as u64) {
            return false;
        }
        let bytes = &payload[start as usize..stop as usize];
        Frame::Piece { handle, number, tag, total: payload.len() as u64, offset: start, bytes }.encode(out);
        if number == self.flight.next {
            self.advance(number);
        }
        let large = self.flight.large.entry(number).or_default();
        large.lost.remove(start, stop);
        large.sent = large.sent.max(stop);
        self.flight.note_torn(number);
        contents.push(Content::Piece { handle, generation, number, start, end: stop });
        true
    }

    /// A frame of ours arrived.
    pub(crate) fn acknowledged(&mut self, content: &Content) {
        let flight = &mut self.flight;
        match *content {
            Content::Declaration { oldest, .. }
                if flight.declaration.as_ref().is_some_and(|said| said.oldest == oldest) =>
            {
                flight.told = Told::Acknowledged;
            }
            Content::Records { generation, first, count, .. } if generation == flight.generation => {
                flight.flying.remove(first, first + count);
                flight.lost.remove(first, first + count);
            }
            Content::Piece { generation, number, start, end, .. } if generation == flight.generation => {
                if let Some(large) = flight.large.get_mut(&number) {
                    large.arrived.insert(start, end);
                    large.lost.remove(start, end);
                    self.forget_arrived(number);
                    self.flight.note_torn(number);
                }
            }
            Content::Settled { upto, .. } if upto == self.declared.oldest - 1 => self.settled_due = false,
            _ => {}
        }
    }

    /// A record in pieces that arrived whole is on its way no more.
    fn forget_arrived(&mut self, number: u64) {
        let total = self.get(number).map_or(0, |queued| queued.payload.len() as u64);
        if self.flight.large.get(&number).is_some_and(|large| large.arrived.is_whole(total)) {
            self.flight.large.remove(&number);
        }
    }

    /// A frame of ours is lost: it is due again unless it arrived in another packet or is out of date.
    pub(crate) fn lost(&mut self, content: &Content) {
        let flight = &mut self.flight;
        match *content {
            Content::Declaration { oldest, .. } => {
                let current = flight.declaration.as_ref().is_some_and(|said| said.oldest == oldest);
                if current && flight.told == Told::Sent {
                    flight.told = Told::Unsent;
                }
            }
            Content::Records { generation, first, count, .. } if generation == flight.generation => {
                for (start, end) in flight.flying.within(first, first + count) {
                    flight.lost.insert(start, end);
                }
            }
            Content::Piece { generation, number, start, end, .. } if generation == flight.generation => {
                if let Some(large) = flight.large.get_mut(&number) {
                    large.lose(start, end);
                    flight.note_torn(number);
                }
            }
            Content::Settled { upto, .. } if upto == self.declared.oldest - 1 => self.settled_told = false,
            Content::Blocked { number, .. } if flight.blocked_told == Some(number) => {
                flight.blocked_told = None
            }
            _ => {}
        }
    }

    /// Whether the peer may say `stored` of this number.
    pub(crate) fn check_stored(&self, upto: u64) -> Result<(), PeerMisbehaved> {
        if upto > self.flight.highest_sent { Err(PeerMisbehaved::StoredUnsent(upto)) } else { Ok(()) }
    }

    /// The peer stored all up to `upto`. Returns whether that is news in this pair of runs.
    pub(crate) fn stored(&mut self, upto: u64) -> bool {
        if upto <= self.flight.outcome {
            return false;
        }
        self.unanswered_bytes -= self.bytes_of(self.flight.outcome + 1..upto + 1);
        let passed_over = self.bytes_of(self.flight.next..upto + 1);
        let flight = &mut self.flight;
        flight.wire_bytes += passed_over;
        flight.passed_bytes += passed_over as u64;
        flight.outcome = upto;
        flight.next = flight.next.max(upto + 1);
        flight.flying.remove(0, upto + 1);
        flight.lost.remove(0, upto + 1);
        flight.large = flight.large.split_off(&(upto + 1));
        flight.torn = flight.torn.split_off(&(upto + 1));
        true
    }

    /// Whether the peer may ask to wait or go on at this number, as far as the turn is news.
    pub(crate) fn check_turn(&self, turn: u64, number: u64) -> Result<(), PeerMisbehaved> {
        if turn > self.flight.turn && number > self.flight.highest_sent + 1 {
            return Err(PeerMisbehaved::TurnOutOfRange(number));
        }
        Ok(())
    }

    /// The peer cannot take `number` now. Returns whether that is news (§5.7).
    pub(crate) fn wait(&mut self, turn: u64, number: u64) -> bool {
        let news = turn > self.flight.turn;
        self.flight.turn = turn.max(self.flight.turn);
        // What has an outcome since then does not wait any more.
        let waits = news && number > self.flight.outcome;
        if waits {
            self.rewind(number);
            self.flight.hold = Some(number);
        }
        waits
    }

    /// The peer takes `number` now, if it waited.
    pub(crate) fn go_on(&mut self, turn: u64, number: u64) {
        if turn > self.flight.turn {
            self.flight.turn = turn;
            self.flight.hold = None;
            self.rewind(number.max(self.flight.outcome + 1));
        }
    }

    /// What was sent from `number` on is to be sent again.
    fn rewind(&mut self, number: u64) {
        if number >= self.flight.next {
            return;
        }
        let taken_back = self.bytes_of(number..self.flight.next);
        let flight = &mut self.flight;
        flight.wire_bytes -= taken_back;
        flight.passed_bytes -= taken_back as u64;
        flight.next = number;
        flight.flying.remove(number, u64::MAX);
        flight.lost.remove(number, u64::MAX);
        flight.large.split_off(&number);
        // What flies from below `number` is sent again too: its acknowledgement is of an older generation.
        flight.generation += 1;
        for (start, end) in flight.flying.iter() {
            flight.lost.insert(start, end);
        }
        flight.large.values_mut().for_each(|large| large.lose(0, large.sent));
        let is_torn = |(number, large): (&u64, &Large)| large.lost.first().map(|_| *number);
        flight.torn = flight.large.iter().filter_map(is_torn).collect();
    }
}
