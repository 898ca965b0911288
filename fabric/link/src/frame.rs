//! The frames inside packets, hails and hellos: bytes to borrowed values and back (docs/link.md, "Frames").
//!
//! Decoding checks form alone; whether a frame fits the state of its link is checked before any frame is applied.

use sealing::{OFFER_ACCEPT_BYTES, Tag};

use crate::command::{Declaration, Outcome, StreamId};
use crate::credit::Credit;
use crate::epoch::{OFFER_PART_BYTES, OFFER_PARTS};
use crate::fault::PeerMisbehaved;
use crate::limits::{
    ACK_RANGES_MAX, ANSWER_BYTES_MAX, APP_NAME_BYTES_MAX, RECORD_BYTES_MAX, TRANSIENT_BYTES_MAX,
};
use crate::wire::{Reader, Truncated, put_slice, put_varint};

const PADDING: u8 = 0x00;
const PING: u8 = 0x01;
const ACK: u8 = 0x02;
const PATH_CHALLENGE: u8 = 0x03;
const PATH_RESPONSE: u8 = 0x04;
const CLOSE: u8 = 0x05;
const HAILED: u8 = 0x06;
const OFFER: u8 = 0x07;
const ACCEPT: u8 = 0x08;
const DECLARATION: u8 = 0x10;
const RECORDS: u8 = 0x11;
const PIECE: u8 = 0x12;
const SETTLED: u8 = 0x13;
const TRANSIENT: u8 = 0x14;
const BLOCKED: u8 = 0x15;
const STORED: u8 = 0x20;
const WAITING: u8 = 0x21;
const READY: u8 = 0x22;
const FORKED: u8 = 0x23;
const ANSWERED: u8 = 0x24;
const CREDIT: u8 = 0x25;

/// What an outcome in [`ANSWERED`] is.
const REFUSAL: u8 = 0;
const ANSWER: u8 = 1;

/// A refusal or an answer, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told<'a> {
    Refused(&'a str),
    Answered(&'a [u8]),
}

impl<'a> Told<'a> {
    pub(crate) fn of(outcome: &'a Outcome) -> Told<'a> {
        match outcome {
            Outcome::Refused(reason) => Told::Refused(reason),
            Outcome::Answered(answer) => Told::Answered(answer),
        }
    }

    pub(crate) fn to_outcome(self) -> Outcome {
        match self {
            Told::Refused(reason) => Outcome::Refused(reason.to_owned()),
            Told::Answered(answer) => Outcome::Answered(answer.to_vec()),
        }
    }

    /// Bytes in a frame, at most, with its number before it.
    pub(crate) fn bytes(self) -> usize {
        8 + 1 + 2 + self.slice().len()
    }

    fn slice(self) -> &'a [u8] {
        match self {
            Told::Refused(reason) => reason.as_bytes(),
            Told::Answered(answer) => answer,
        }
    }
}

/// One frame, its texts and payloads borrowed from the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Padding,
    Ping,
    /// Inclusive ranges of packet numbers, the highest first; the delay in microseconds.
    Ack {
        ranges: Vec<(u64, u64)>,
        delay: u64,
    },
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    Close,
    /// The hail of this number was opened and its frames applied.
    Hailed(u64),
    /// A part of a key for the next epoch.
    Offer {
        key: [u8; 8],
        index: u8,
        bytes: &'a [u8; OFFER_PART_BYTES],
    },
    /// The offer of this key is accepted with this ciphertext.
    Accept {
        key: [u8; 8],
        ciphertext: &'a [u8; OFFER_ACCEPT_BYTES],
    },
    Declaration {
        handle: u64,
        declaration: Declaration,
    },
    /// Whole records in a row, all with the same tag.
    Records {
        handle: u64,
        first: u64,
        tag: Tag,
        payloads: Vec<&'a [u8]>,
    },
    Piece {
        handle: u64,
        number: u64,
        tag: Tag,
        total: u64,
        offset: u64,
        bytes: &'a [u8],
    },
    Settled {
        handle: u64,
        upto: u64,
    },
    /// There is no credit for this record and those behind it.
    Blocked {
        handle: u64,
        number: u64,
    },
    /// What is worth something now or never.
    Transient {
        from_app: &'a str,
        to_app: &'a str,
        payload: &'a [u8],
    },
    Stored {
        handle: u64,
        upto: u64,
        /// It is 0x20 if all are refusals, 0x24 otherwise.
        outcomes: Vec<(u64, Told<'a>)>,
    },
    Waiting {
        handle: u64,
        turn: u64,
        number: u64,
        reason: &'a str,
    },
    Ready {
        handle: u64,
        turn: u64,
        number: u64,
    },
    Forked {
        handle: u64,
    },
    /// How far a stream declared from `oldest` on may be sent.
    Credit {
        handle: u64,
        oldest: u64,
        credit: Credit,
    },
}

impl From<Truncated> for PeerMisbehaved {
    fn from(_: Truncated) -> PeerMisbehaved {
        PeerMisbehaved::MalformedFrame
    }
}

impl Frame<'_> {
    /// Whether a packet with this frame asks to be acknowledged (§2.3).
    pub(crate) fn is_eliciting(&self) -> bool {
        match self {
            Frame::Padding | Frame::Ack { .. } | Frame::PathResponse(_) | Frame::Close => false,
            Frame::Transient { .. } => false,
            Frame::Ping | Frame::PathChallenge(_) | Frame::Hailed(_) => true,
            Frame::Offer { .. } | Frame::Accept { .. } => true,
            Frame::Declaration { .. }
            | Frame::Records { .. }
            | Frame::Piece { .. }
            | Frame::Settled { .. }
            | Frame::Blocked { .. } => true,
            Frame::Stored { .. } | Frame::Waiting { .. } | Frame::Ready { .. } | Frame::Forked { .. } => true,
            Frame::Credit { .. } => true,
        }
    }

    /// Whether this frame tells more than that the two ends are there: then its epoch carried something (§10.1).
    pub(crate) fn carries(&self) -> bool {
        match self {
            Frame::Padding | Frame::Ping | Frame::Ack { .. } | Frame::Close | Frame::Hailed(_) => false,
            Frame::PathChallenge(_) | Frame::PathResponse(_) => false,
            Frame::Offer { .. } | Frame::Accept { .. } => false,
            Frame::Declaration { .. }
            | Frame::Records { .. }
            | Frame::Piece { .. }
            | Frame::Settled { .. }
            | Frame::Blocked { .. }
            | Frame::Transient { .. } => true,
            Frame::Stored { .. } | Frame::Waiting { .. } | Frame::Ready { .. } | Frame::Forked { .. } => true,
            Frame::Credit { .. } => true,
        }
    }

    /// Whether this frame speaks of what the receiver of it sent in the pair of runs that its sender knows.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self,
            Frame::Ack { .. }
                | Frame::Hailed(_)
                | Frame::Stored { .. }
                | Frame::Waiting { .. }
                | Frame::Ready { .. }
                | Frame::Forked { .. }
                | Frame::Credit { .. }
        )
    }

    /// Whether a hello may carry this frame: what begins streams, before anything is known of the receiver (§2.4).
    pub(crate) fn may_be_in_hello(&self) -> bool {
        match self {
            Frame::Padding | Frame::Ping => true,
            Frame::Declaration { .. }
            | Frame::Records { .. }
            | Frame::Piece { .. }
            | Frame::Settled { .. } => true,
            Frame::Ack { .. } | Frame::PathChallenge(_) | Frame::PathResponse(_) => false,
            Frame::Close | Frame::Hailed(_) | Frame::Transient { .. } => false,
            Frame::Offer { .. } | Frame::Accept { .. } => false,
            Frame::Stored { .. } | Frame::Waiting { .. } | Frame::Ready { .. } | Frame::Forked { .. } => {
                false
            }
            Frame::Blocked { .. } | Frame::Credit { .. } => false,
        }
    }

    /// Whether a hail may carry this frame: what a hello may, and what is said of the other side's streams and hails.
    /// (§2.4)
    pub(crate) fn may_be_in_hail(&self) -> bool {
        match self {
            Frame::Hailed(_) | Frame::Blocked { .. } | Frame::Credit { .. } => true,
            Frame::Stored { .. } | Frame::Waiting { .. } | Frame::Ready { .. } | Frame::Forked { .. } => true,
            frame => frame.may_be_in_hello(),
        }
    }

    /// Appends this frame if it ends at or before `end`; false if it does not fit.
    pub(crate) fn append(&self, out: &mut Vec<u8>, end: usize) -> bool {
        let start = out.len();
        self.encode(out);
        let fits = out.len() <= end;
        if !fits {
            out.truncate(start);
        }
        fits
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Padding => out.push(PADDING),
            Frame::Ping => out.push(PING),
            Frame::Ack { ranges, delay } => encode_ack(out, ranges, *delay),
            Frame::PathChallenge(data) => put(out, PATH_CHALLENGE, &[], data),
            Frame::PathResponse(data) => put(out, PATH_RESPONSE, &[], data),
            Frame::Close => out.push(CLOSE),
            Frame::Hailed(number) => put(out, HAILED, &[*number], &[]),
            Frame::Offer { key, index, bytes } => {
                out.push(OFFER);
                out.extend_from_slice(key);
                out.push(*index);
                out.extend_from_slice(*bytes);
            }
            Frame::Accept { key, ciphertext } => {
                out.push(ACCEPT);
                out.extend_from_slice(key);
                out.extend_from_slice(*ciphertext);
            }
            Frame::Declaration { handle, declaration } => encode_declaration(out, *handle, declaration),
            Frame::Records { handle, first, tag, payloads } => {
                put_records_head(out, *handle, *first, *tag);
                put_varint(out, payloads.len() as u64);
                for payload in payloads {
                    put_slice(out, payload);
                }
            }
            Frame::Piece { handle, number, tag, total, offset, bytes } => {
                put(out, PIECE, &[*handle, *number], &tag.0);
                put_varint(out, *total);
                put_varint(out, *offset);
                put_slice(out, bytes);
            }
            Frame::Settled { handle, upto } => put(out, SETTLED, &[*handle, *upto], &[]),
            Frame::Blocked { handle, number } => put(out, BLOCKED, &[*handle, *number], &[]),
            Frame::Transient { from_app, to_app, payload } => {
                out.push(TRANSIENT);
                put_slice(out, from_app.as_bytes());
                put_slice(out, to_app.as_bytes());
                put_slice(out, payload);
            }
            Frame::Stored { handle, upto, outcomes } => encode_stored(out, *handle, *upto, outcomes),
            Frame::Waiting { handle, turn, number, reason } => {
                put(out, WAITING, &[*handle, *turn, *number], &[]);
                put_slice(out, reason.as_bytes());
            }
            Frame::Ready { handle, turn, number } => put(out, READY, &[*handle, *turn, *number], &[]),
            Frame::Forked { handle } => put(out, FORKED, &[*handle], &[]),
            Frame::Credit { handle, oldest, credit } => {
                put(out, CREDIT, &[*handle, *oldest, credit.number, credit.bytes], &[]);
            }
        }
    }
}

/// What a frame of records begins with: their count and each of them behind its length follow.
pub(crate) fn put_records_head(out: &mut Vec<u8>, handle: u64, first: u64, tag: Tag) {
    put(out, RECORDS, &[handle, first], &tag.0);
}

fn put(out: &mut Vec<u8>, kind: u8, numbers: &[u64], raw: &[u8]) {
    out.push(kind);
    for number in numbers {
        put_varint(out, *number);
    }
    out.extend_from_slice(raw);
}

/// As RFC 9000, 19.3: largest, delay, count of further ranges, length of the first, then gap and length of each.
fn encode_ack(out: &mut Vec<u8>, ranges: &[(u64, u64)], delay: u64) {
    let Some(((start, largest), rest)) = ranges.split_first() else { return };
    put(out, ACK, &[*largest, delay, rest.len() as u64, largest - start], &[]);
    let mut below = *start;
    for (start, end) in rest {
        put_varint(out, below - end - 2);
        put_varint(out, end - start);
        below = *start;
    }
}

fn encode_stored(out: &mut Vec<u8>, handle: u64, upto: u64, outcomes: &[(u64, Told<'_>)]) {
    let answers = outcomes.iter().any(|(_, told)| matches!(told, Told::Answered(_)));
    let kind = if answers { ANSWERED } else { STORED };
    put(out, kind, &[handle, upto, outcomes.len() as u64], &[]);
    for (number, told) in outcomes {
        put_varint(out, *number);
        match told {
            _ if !answers => {}
            Told::Refused(_) => out.push(REFUSAL),
            Told::Answered(_) => out.push(ANSWER),
        }
        put_slice(out, told.slice());
    }
}

fn encode_declaration(out: &mut Vec<u8>, handle: u64, declaration: &Declaration) {
    put(out, DECLARATION, &[handle], &declaration.stream.0);
    put_varint(out, declaration.oldest);
    put_varint(out, declaration.last);
    out.extend_from_slice(&declaration.tag_before.0);
    put_slice(out, declaration.from_app.as_bytes());
    put_slice(out, declaration.to_app.as_bytes());
}

/// All frames of a packet, or what is wrong with it.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Frame<'_>>, PeerMisbehaved> {
    let mut reader = Reader(bytes);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        match decode_one(&mut reader)? {
            Frame::Padding => {}
            frame => frames.push(frame),
        }
    }
    if frames.is_empty() { Err(PeerMisbehaved::EmptyPacket) } else { Ok(frames) }
}

fn decode_one<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    Ok(match reader.byte()? {
        PADDING => Frame::Padding,
        PING => Frame::Ping,
        ACK => decode_ack(reader)?,
        PATH_CHALLENGE => Frame::PathChallenge(reader.array()?),
        PATH_RESPONSE => Frame::PathResponse(reader.array()?),
        CLOSE => Frame::Close,
        HAILED => Frame::Hailed(reader.varint()?),
        OFFER => decode_offer(reader)?,
        ACCEPT => Frame::Accept { key: reader.array()?, ciphertext: reader.chunk()? },
        DECLARATION => decode_declaration(reader)?,
        RECORDS => decode_records(reader)?,
        PIECE => decode_piece(reader)?,
        SETTLED => Frame::Settled { handle: reader.varint()?, upto: reader.varint()? },
        BLOCKED => Frame::Blocked { handle: reader.varint()?, number: reader.varint()? },
        TRANSIENT => decode_transient(reader)?,
        kind @ (STORED | ANSWERED) => decode_stored(reader, kind == ANSWERED)?,
        WAITING => Frame::Waiting {
            handle: reader.varint()?,
            turn: reader.varint()?,
            number: reader.varint()?,
            reason: reader.text()?,
        },
        READY => Frame::Ready { handle: reader.varint()?, turn: reader.varint()?, number: reader.varint()? },
        FORKED => Frame::Forked { handle: reader.varint()? },
        CREDIT => Frame::Credit {
            handle: reader.varint()?,
            oldest: reader.varint()?,
            credit: Credit { number: reader.varint()?, bytes: reader.varint()? },
        },
        kind => return Err(PeerMisbehaved::UnknownFrame(kind)),
    })
}

fn decode_offer<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let (key, index, bytes) = (reader.array()?, reader.byte()?, reader.chunk()?);
    if usize::from(index) >= OFFER_PARTS {
        return Err(PeerMisbehaved::MalformedFrame);
    }
    Ok(Frame::Offer { key, index, bytes })
}

fn decode_ack<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let (largest, delay) = (reader.varint()?, reader.varint()?);
    let (count, first) = (reader.varint()?, reader.varint()?);
    if count >= ACK_RANGES_MAX as u64 {
        return Err(PeerMisbehaved::MalformedRanges);
    }
    let mut start = largest.checked_sub(first).ok_or(PeerMisbehaved::MalformedRanges)?;
    let mut ranges = vec![(start, largest)];
    for _ in 0..count {
        let (gap, length) = (reader.varint()?, reader.varint()?);
        let end = start.checked_sub(gap + 2).ok_or(PeerMisbehaved::MalformedRanges)?;
        start = end.checked_sub(length).ok_or(PeerMisbehaved::MalformedRanges)?;
        ranges.push((start, end));
    }
    Ok(Frame::Ack { ranges, delay })
}

fn decode_declaration<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let handle = reader.varint()?;
    let stream = StreamId(reader.array()?);
    let (oldest, last) = (reader.varint()?, reader.varint()?);
    let tag_before = Tag(reader.array()?);
    let (from_app, to_app) = (reader.text()?, reader.text()?);
    let named = |name: &str| (1..=APP_NAME_BYTES_MAX).contains(&name.len());
    if oldest == 0 || last < oldest - 1 || !named(from_app) || !named(to_app) {
        return Err(PeerMisbehaved::MalformedDeclaration);
    }
    let (from_app, to_app) = (from_app.to_owned(), to_app.to_owned());
    Ok(Frame::Declaration {
        handle,
        declaration: Declaration { stream, from_app, to_app, oldest, tag_before, last },
    })
}

fn decode_records<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let (handle, first) = (reader.varint()?, reader.varint()?);
    let tag = Tag(reader.array()?);
    let count = reader.varint()?;
    if first == 0 || count == 0 {
        return Err(PeerMisbehaved::MalformedFrame);
    }
    let mut payloads = Vec::new();
    for _ in 0..count {
        payloads.push(reader.slice()?);
    }
    Ok(Frame::Records { handle, first, tag, payloads })
}

fn decode_piece<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let (handle, number) = (reader.varint()?, reader.varint()?);
    let tag = Tag(reader.array()?);
    let (total, offset) = (reader.varint()?, reader.varint()?);
    let bytes = reader.slice()?;
    if number == 0 || bytes.is_empty() {
        return Err(PeerMisbehaved::MalformedFrame);
    }
    if total > RECORD_BYTES_MAX as u64 || offset.saturating_add(bytes.len() as u64) > total {
        return Err(PeerMisbehaved::RecordTooLarge);
    }
    Ok(Frame::Piece { handle, number, tag, total, offset, bytes })
}

fn decode_transient<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, PeerMisbehaved> {
    let (from_app, to_app, payload) = (reader.text()?, reader.text()?, reader.slice()?);
    let named = |name: &str| (1..=APP_NAME_BYTES_MAX).contains(&name.len());
    if !named(from_app) || !named(to_app) || payload.len() > TRANSIENT_BYTES_MAX {
        return Err(PeerMisbehaved::MalformedFrame);
    }
    Ok(Frame::Transient { from_app, to_app, payload })
}

fn decode_stored<'a>(reader: &mut Reader<'a>, has_answers: bool) -> Result<Frame<'a>, PeerMisbehaved> {
    let (handle, upto, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let mut outcomes = Vec::new();
    let mut before = 0;
    for _ in 0..count {
        let number = reader.varint()?;
        let told = match if has_answers { reader.byte()? } else { REFUSAL } {
            REFUSAL => Told::Refused(reader.text()?),
            ANSWER => Told::Answered(reader.slice()?),
            _ => return Err(PeerMisbehaved::MalformedOutcomes),
        };
        let too_long = matches!(told, Told::Answered(answer) if answer.len() > ANSWER_BYTES_MAX);
        if number <= before || number > upto || too_long {
            return Err(PeerMisbehaved::MalformedOutcomes);
        }
        before = number;
        outcomes.push((number, told));
    }
    Ok(Frame::Stored { handle, upto, outcomes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame is these bytes, and is read from them.
    fn check(outcomes: Vec<(u64, Told<'_>)>, bytes: &[u8]) {
        let frame = Frame::Stored { handle: 2, upto: 9, outcomes };
        let mut encoded = Vec::new();
        frame.encode(&mut encoded);
        assert_eq!(encoded, bytes, "{frame:?}");
        assert_eq!(decode(bytes), Ok(vec![frame]));
    }

    #[test]
    fn stored_keeps_its_layout_and_has_another_with_answers() {
        check(vec![], &[0x20, 2, 9, 0]);
        check(vec![(7, Told::Refused("no"))], &[0x20, 2, 9, 1, 7, 2, b'n', b'o']);
        check(vec![(8, Told::Answered(&[5]))], &[0x24, 2, 9, 1, 8, 1, 1, 5]);
        let both = vec![(7, Told::Refused("no")), (8, Told::Answered(&[5, 6])), (9, Told::Answered(&[]))];
        check(both, &[0x24, 2, 9, 3, 7, 0, 2, b'n', b'o', 8, 1, 2, 5, 6, 9, 1, 0]);
        let large = [&[0x24, 2, 9, 1, 8, 1, 0x43, 0x21][..], &[0; 801]].concat();
        for wrong in [&[0x24, 2, 9, 1, 8, 2, 0][..], &[0x24, 2, 9, 1, 10, 1, 0], &large] {
            assert_eq!(decode(wrong), Err(PeerMisbehaved::MalformedOutcomes), "{wrong:?}");
        }
    }
}
