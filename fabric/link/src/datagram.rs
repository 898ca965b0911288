//! Datagrams before any key is used: what kind they are and where their parts lie (docs/link.md, "Datagrams").

use sealing::{ADDRESS_TOKEN_BYTES, RUN_BYTES, Run, TAG_BYTES};

use crate::limits::{DATAGRAM_BYTES_LARGEST, DATAGRAM_BYTES_MAX, HELLO_PIECES_MAX};
use crate::wire::{Reader, Truncated};

const HELLO: u8 = 0x51;
const ANSWER: u8 = 0x52;
const PACKET: u8 = 0x53;
const HAIL: u8 = 0x54;
const HINT: u8 = 0x55;
const CARD_REQUEST: u8 = 0x56;
const CARD_ANSWER: u8 = 0x57;
const TOKEN: u8 = 0x58;
const HELLO_WITH_TOKEN: u8 = 0x59;

/// Bytes of a packet around its frames: kind, id, packet number, tag.
pub(crate) const PACKET_OVERHEAD_BYTES: usize = PACKET_HEADER_BYTES + TAG_BYTES;
/// Bytes of a hail around its frames: a packet's, the run of the hailer, and (sealed) the run that it knows.
pub(crate) const HAIL_OVERHEAD_BYTES: usize = PACKET_OVERHEAD_BYTES + 2 * RUN_BYTES;
/// Bytes of a piece of a hello or a card before the piece itself.
const HELLO_HEADER_BYTES: usize = 1 + 8 + 2;
const CARD_HEADER_BYTES: usize = 1 + 32 + 2;
const PACKET_HEADER_BYTES: usize = 1 + 8 + 4;
const HINT_BYTES: usize = 1 + 8 + 8;
const TOKEN_BYTES: usize = 1 + 8 + ADDRESS_TOKEN_BYTES;
/// Bytes of a hello in one datagram.
pub(crate) const HELLO_PIECE_BYTES: usize = DATAGRAM_BYTES_MAX - HELLO_HEADER_BYTES;
/// Bytes of a hello in one datagram, beside a token.
pub(crate) const HELLO_PIECE_BYTES_WITH_TOKEN: usize = HELLO_PIECE_BYTES - ADDRESS_TOKEN_BYTES;
/// Bytes of a card in one datagram.
pub(crate) const CARD_PIECE_BYTES: usize = DATAGRAM_BYTES_MAX - CARD_HEADER_BYTES;

/// A datagram, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Datagram<'a> {
    /// One piece of a hello; `key` is the start of the hash of the whole.
    Hello {
        key: [u8; 8],
        index: u8,
        count: u8,
        /// That its sender gets what goes to where it comes from.
        token: Option<[u8; ADDRESS_TOKEN_BYTES]>,
        piece: &'a [u8],
    },
    /// The hello with this key is to be said again with this token.
    Token {
        key: [u8; 8],
        token: [u8; ADDRESS_TOKEN_BYTES],
    },
    /// An accept or a decline of the hello with this key.
    Answer {
        key: [u8; 8],
        bytes: &'a [u8],
    },
    Packet(Sealed<'a>),
    /// Like a packet, under the keys of a hail of this run.
    Hail {
        run: Run,
        sealed: Sealed<'a>,
    },
    /// "I know no link of this id": the id and tag of the packet that caused it.
    Hint {
        id: [u8; 8],
        cause: [u8; 8],
    },
    CardRequest {
        hash: [u8; 32],
        index: u8,
    },
    CardAnswer {
        hash: [u8; 32],
        index: u8,
        count: u8,
        piece: &'a [u8],
    },
}

/// The sealed part of a packet or hail and what its header says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sealed<'a> {
    pub(crate) id: [u8; 8],
    /// The lower half of the packet number.
    pub(crate) number: u32,
    pub(crate) header: &'a [u8],
    pub(crate) ciphertext: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// What a hint echoes: the end of the seal, which nobody can guess who did not see the datagram.
    pub(crate) fn cause(&self) -> [u8; 8] {
        cause_of(self.ciphertext)
    }
}

/// The end of the seal of a datagram.
pub(crate) fn cause_of(datagram: &[u8]) -> [u8; 8] {
    datagram.last_chunk::<8>().copied().unwrap_or_default()
}

/// Takes a datagram apart. What is of no kind or too short is noise (§1.1).
pub(crate) fn parse(bytes: &[u8]) -> Result<Datagram<'_>, Truncated> {
    let mut reader = Reader(bytes);
    match reader.byte()? {
        HELLO => parse_hello(&mut reader, false),
        HELLO_WITH_TOKEN => parse_hello(&mut reader, true),
        TOKEN if bytes.len() == TOKEN_BYTES => {
            Ok(Datagram::Token { key: reader.array()?, token: reader.array()? })
        }
        ANSWER => Ok(Datagram::Answer { key: reader.array()?, bytes: reader.0 }),
        PACKET => parse_sealed(bytes, 0).map(Datagram::Packet),
        HAIL => {
            let sealed = parse_sealed(bytes, RUN_BYTES)?;
            let run = sealed.header.last_chunk::<RUN_BYTES>().ok_or(Truncated)?;
            Ok(Datagram::Hail { run: Run::from_bytes(run), sealed })
        }
        HINT if bytes.len() == HINT_BYTES => {
            Ok(Datagram::Hint { id: reader.array()?, cause: reader.array()? })
        }
        // A request is as large as any answer, so that nobody is sent more than was asked with.
        CARD_REQUEST if bytes.len() == DATAGRAM_BYTES_MAX => {
            Ok(Datagram::CardRequest { hash: reader.array()?, index: reader.byte()? })
        }
        CARD_ANSWER => Ok(Datagram::CardAnswer {
            hash: reader.array()?,
            index: reader.byte()?,
            count: reader.byte()?,
            piece: reader.0,
        }),
        _ => Err(Truncated),
    }
}

/// All pieces but the last are full, so that a whole hello has one form and the table one size.
fn parse_hello<'a>(reader: &mut Reader<'a>, has_token: bool) -> Result<Datagram<'a>, Truncated> {
    let (key, index, count) = (reader.array()?, reader.byte()?, reader.byte()?);
    let token = if has_token { Some(reader.array()?) } else { None };
    let full = if has_token { HELLO_PIECE_BYTES_WITH_TOKEN } else { HELLO_PIECE_BYTES };
    if usize::from(count) > HELLO_PIECES_MAX || index >= count {
        return Err(Truncated);
    }
    let piece = reader.0;
    let sized = match index + 1 == count {
        true => (1..=full).contains(&piece.len()),
        false => piece.len() == full,
    };
    if !sized {
        return Err(Truncated);
    }
    Ok(Datagram::Hello { key, index, count, token, piece })
}

fn parse_sealed(bytes: &[u8], extra: usize) -> Result<Sealed<'_>, Truncated> {
    let (header, ciphertext) = bytes.split_at_checked(PACKET_HEADER_BYTES + extra).ok_or(Truncated)?;
    if ciphertext.len() <= TAG_BYTES || bytes.len() > DATAGRAM_BYTES_LARGEST {
        return Err(Truncated);
    }
    let mut reader = Reader(&header[1..]);
    Ok(Sealed { id: reader.array()?, number: u32::from_be_bytes(reader.array()?), header, ciphertext })
}

/// The pieces of a hello as datagrams.
pub(crate) fn hello(key: [u8; 8], hello: &[u8]) -> Vec<Vec<u8>> {
    let count = hello.len().div_ceil(HELLO_PIECE_BYTES);
    let pieces = hello.chunks(HELLO_PIECE_BYTES).enumerate();
    pieces.map(|(index, piece)| [&[HELLO], &key[..], &[index as u8, count as u8], piece].concat()).collect()
}

/// The pieces of a hello as datagrams with a token.
pub(crate) fn hello_with_token(key: [u8; 8], token: [u8; ADDRESS_TOKEN_BYTES], hello: &[u8]) -> Vec<Vec<u8>> {
    let count = hello.len().div_ceil(HELLO_PIECE_BYTES_WITH_TOKEN);
    let pieces = hello.chunks(HELLO_PIECE_BYTES_WITH_TOKEN).enumerate();
    let head = |index| [&[HELLO_WITH_TOKEN], &key[..], &[index as u8, count as u8], &token[..]].concat();
    pieces.map(|(index, piece)| [&head(index)[..], piece].concat()).collect()
}

/// The answer to a piece of a hello without the token that it needs; `None` if it would not be smaller than its cause.
pub(crate) fn token(key: [u8; 8], token: [u8; ADDRESS_TOKEN_BYTES], cause_bytes: usize) -> Option<Vec<u8>> {
    (TOKEN_BYTES < cause_bytes).then(|| [&[TOKEN], &key[..], &token[..]].concat())
}

/// An accept or a decline.
pub(crate) fn answer(key: [u8; 8], bytes: &[u8]) -> Vec<u8> {
    [&[ANSWER], &key[..], bytes].concat()
}

/// The header of a packet (§1.3).
pub(crate) fn packet_header(id: [u8; 8], number: u64) -> [u8; PACKET_HEADER_BYTES] {
    let mut header = [PACKET; PACKET_HEADER_BYTES];
    header[1..9].copy_from_slice(&id);
    header[9..].copy_from_slice(&(number as u32).to_be_bytes());
    header
}

/// The header of a hail.
pub(crate) fn hail_header(id: [u8; 8], number: u64, run: &Run) -> Vec<u8> {
    [&[HAIL], &id[..], &(number as u32).to_be_bytes(), &run.to_bytes()].concat()
}

/// The answer to a packet of an unknown link; `None` if it would not be smaller than its cause.
pub(crate) fn hint(cause: &Sealed<'_>) -> Option<Vec<u8>> {
    let smaller = HINT_BYTES < cause.header.len() + cause.ciphertext.len();
    smaller.then(|| [&[HINT], &cause.id[..], &cause.cause()].concat())
}

/// A request for one piece of a card, as large as any answer.
pub(crate) fn card_request(hash: [u8; 32], index: u8) -> Vec<u8> {
    let mut bytes = [&[CARD_REQUEST], &hash[..], &[index]].concat();
    bytes.resize(DATAGRAM_BYTES_MAX, 0);
    bytes
}

/// One piece of a card; `None` if there is no such piece.
pub(crate) fn card_answer(hash: [u8; 32], index: u8, card: &[u8]) -> Option<Vec<u8>> {
    let count = card.len().div_ceil(CARD_PIECE_BYTES) as u8;
    let piece = card.chunks(CARD_PIECE_BYTES).nth(usize::from(index))?;
    Some([&[CARD_ANSWER], &hash[..], &[index, count], piece].concat())
}
