//! Hellos on their way: the one that this node says to a peer, and pieces of those that come from anybody.

use std::net::SocketAddr;

use rand_core::Rng;
use sealing::hello::HelloPending;
use sha2::{Digest, Sha256};

use crate::datagram::HELLO_PIECE_BYTES;
use crate::limits::{
    ANSWER_INTERVAL_INITIAL, GREETINGS_BEFORE_LONG, HELLO_PIECES_MAX, PROBE_INTERVAL_MAX,
    REASSEMBLY_ENTRIES_MAX, REASSEMBLY_ENTRIES_PER_ADDRESS, REASSEMBLY_ENTRIES_WITHOUT_TOKEN,
    REASSEMBLY_SPAN,
};
use crate::time::{Span, Time};

/// The first bytes of the hash of a hello, by which its pieces and its answer find it (§1.2).
pub(crate) fn key_of(hello: &[u8]) -> [u8; 8] {
    let hash = Sha256::digest(hello);
    let mut key = [0; 8];
    key.copy_from_slice(&hash[..8]);
    key
}

/// A hello that was said: sealed once, sent again unchanged until it is answered.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) key: [u8; 8],
    pub(crate) bytes: Vec<u8>,
    pub(crate) datagrams: Vec<Vec<u8>>,
    /// Tokens that came since it was last said of itself.
    pub(crate) tokens: u32,
    pub(crate) pending: HelloPending,
    pub(crate) retry: Retry,
    /// Times it was sent, whatever was heard between.
    pub(crate) times: u32,
    /// It stands for one that the peer had heard before.
    pub(crate) is_second: bool,
    /// The peer answered that it has not added this node.
    pub(crate) is_declined: bool,
}

impl Said {
    /// How the one that is said in place of this one goes on.
    pub(crate) fn retry_of(&self) -> (Retry, u32, bool) {
        (self.retry, self.times, true)
    }
}

/// When something that is not answered is sent again: doubling from a second to a minute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retry {
    pub(crate) at: Time,
    /// Times it was sent.
    pub(crate) count: u32,
    /// It waits longer than anything waits for which somebody waits.
    is_long: bool,
}

impl Retry {
    /// Due at once.
    pub(crate) fn due(now: Time) -> Retry {
        Retry { at: now, count: 0, is_long: false }
    }

    /// Due after the first wait.
    pub(crate) fn after(now: Time) -> Retry {
        let mut retry = Retry::due(now);
        retry.sent(now);
        retry
    }

    /// It was sent now.
    pub(crate) fn sent(&mut self, now: Time) {
        let wait = ANSWER_INTERVAL_INITIAL.times(1 << self.count.min(10)).min(PROBE_INTERVAL_MAX);
        self.count = self.count.saturating_add(1);
        self.at = now + wait;
        self.is_long = false;
    }

    /// It was sent now and nobody waits for it: once it was sent often, it has time.
    pub(crate) fn sent_idly(&mut self, now: Time, long: Span) {
        self.sent(now);
        if self.count > GREETINGS_BEFORE_LONG {
            self.at = now + long;
            self.is_long = true;
        }
    }

    /// Whether it has time.
    pub(crate) fn is_long(&self) -> bool {
        self.is_long
    }

    /// Somebody waits for it now.
    pub(crate) fn hasten(&mut self, now: Time) {
        if self.is_long {
            self.at = now;
            self.is_long = false;
        }
    }

    /// The peer was heard in some way: the backoff starts anew, and the next time is no later than its first wait.
    pub(crate) fn heard(&mut self, now: Time) {
        self.count = self.count.min(1);
        self.is_long = false;
        self.at = self.at.min(now + ANSWER_INTERVAL_INITIAL);
    }
}

#[derive(Debug)]
struct Entry {
    from: SocketAddr,
    key: [u8; 8],
    count: u8,
    /// Its pieces are cut otherwise, and its sender is where it says.
    has_token: bool,
    since: Time,
    pieces: [Option<Vec<u8>>; HELLO_PIECES_MAX],
}

/// Hellos that are being put together, of anybody: a fixed table, from which a random entry goes when it is full.
/// (§3.2, §9.2)
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    entries: Vec<Entry>,
}

/// One piece as it came.
pub(crate) struct Piece<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) key: [u8; 8],
    pub(crate) index: u8,
    pub(crate) count: u8,
    /// Its token was right.
    pub(crate) has_token: bool,
    pub(crate) bytes: &'a [u8],
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was the last one missing, and the whole is what its key says.
    Whole(Vec<u8>),
    /// There is more to come, or it is of no use.
    Part,
    /// The table has no room for a sender of whom nothing is proven.
    NeedsToken,
}

impl Reassembly {
    /// Takes a piece.
    pub(crate) fn take(&mut self, now: Time, piece: &Piece<'_>, rng: &mut impl Rng) -> Taken {
        if piece.count == 1 {
            return match key_of(piece.bytes) == piece.key {
                true => Taken::Whole(piece.bytes.to_vec()),
                false => Taken::Part,
            };
        }
        let Some(at) = self.find_or_make(now, piece, rng) else { return Taken::NeedsToken };
        self.put(at, piece).map_or(Taken::Part, Taken::Whole)
    }

    fn put(&mut self, at: usize, piece: &Piece<'_>) -> Option<Vec<u8>> {
        let entry = &mut self.entries[at];
        let count = usize::from(piece.count).min(HELLO_PIECES_MAX);
        *entry.pieces.get_mut(usize::from(piece.index))? = Some(piece.bytes.to_vec());
        if !entry.pieces[..count].iter().all(Option::is_some) {
            return None;
        }
        let entry = self.entries.swap_remove(at);
        let mut whole = Vec::with_capacity(HELLO_PIECES_MAX * HELLO_PIECE_BYTES);
        entry.pieces.iter().flatten().for_each(|bytes| whole.extend_from_slice(bytes));
        (key_of(&whole) == piece.key).then_some(whole)
    }

    /// The place of the piece's hello; none if there is none for it (§3.2).
    fn find_or_make(&mut self, now: Time, piece: &Piece<'_>, rng: &mut impl Rng) -> Option<usize> {
        let same = |entry: &Entry| {
            let pieces = (entry.key, entry.count, entry.has_token);
            entry.from == piece.from && pieces == (piece.key, piece.count, piece.has_token)
        };
        if let Some(at) = self.entries.iter().position(same) {
            return Some(at);
        }
        self.entries.retain(|entry| now - entry.since < REASSEMBLY_SPAN);
        if !piece.has_token && self.entries.len() >= REASSEMBLY_ENTRIES_WITHOUT_TOKEN {
            return None;
        }
        let entry = Entry {
            from: piece.from,
            key: piece.key,
            count: piece.count,
            has_token: piece.has_token,
            since: now,
            pieces: Default::default(),
        };
        // Who sends in the name of an address takes none of its own places.
        let is_same = |entry: &Entry| (entry.from, entry.has_token) == (piece.from, piece.has_token);
        let of_address = self.entries.iter().enumerate().filter(|(_, entry)| is_same(entry));
        let of_address: Vec<usize> = of_address.map(|(at, _)| at).collect();
        let gives_way = if of_address.len() >= REASSEMBLY_ENTRIES_PER_ADDRESS {
            Some(of_address[rng.next_u32() as usize % of_address.len()])
        } else if self.entries.len() >= REASSEMBLY_ENTRIES_MAX {
            Some(rng.next_u32() as usize % self.entries.len())
        } else {
            None
        };
        match gives_way {
            Some(at) => self.entries[at] = entry,
            None => self.entries.push(entry),
        }
        Some(gives_way.unwrap_or(self.entries.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn piece(hello: &[u8], port: u16, index: u8) -> Piece<'_> {
        let bytes = hello.chunks(HELLO_PIECE_BYTES).nth(usize::from(index)).unwrap();
        let count = hello.len().div_ceil(HELLO_PIECE_BYTES) as u8;
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        Piece { from, key: key_of(hello), index, count, has_token: false, bytes }
    }

    fn proven(hello: &[u8], port: u16, index: u8) -> Piece<'_> {
        Piece { has_token: true, ..piece(hello, port, index) }
    }

    #[test]
    fn any_order_and_twice_makes_the_whole() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let hello: Vec<u8> = (0..3000u32).map(|at| at as u8).collect();
        let mut table = Reassembly::default();
        for index in [2, 0, 0, 2] {
            assert_eq!(table.take(Time(0), &piece(&hello, 1, index), &mut rng), Taken::Part);
        }
        assert_eq!(table.take(Time(0), &piece(&hello, 1, 1), &mut rng), Taken::Whole(hello));
        assert!(table.entries.is_empty());
    }

    /// Whoever floods has no token, or floods from where it is: half of the table, and four places an address (§3.2).
    #[test]
    fn a_flood_stays_in_the_table_and_leaves_room() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let (hello, honest) = (vec![7; 3000], vec![8; 3000]);
        let mut table = Reassembly::default();
        for port in 0..10_000 {
            table.take(Time(0), &piece(&hello, port, 0), &mut rng);
        }
        assert_eq!(table.entries.len(), REASSEMBLY_ENTRIES_WITHOUT_TOKEN);
        assert_eq!(table.take(Time(0), &piece(&honest, 1, 0), &mut rng), Taken::NeedsToken);
        for first in 0..1_000u32 {
            let other = [&first.to_be_bytes()[..], &[7; 2996]].concat();
            assert_eq!(table.take(Time(0), &proven(&other, 9, 0), &mut rng), Taken::Part);
        }
        assert_eq!(table.entries.len(), REASSEMBLY_ENTRIES_WITHOUT_TOKEN + REASSEMBLY_ENTRIES_PER_ADDRESS);
        for (index, expected) in [(0, Taken::Part), (1, Taken::Part), (2, Taken::Whole(honest.clone()))] {
            assert_eq!(table.take(Time(0), &proven(&honest, 1, index), &mut rng), expected);
        }
        for port in 0..10_000 {
            table.take(Time(0), &proven(&hello, port, 0), &mut rng);
        }
        assert_eq!(table.entries.len(), REASSEMBLY_ENTRIES_MAX);
        assert_eq!(table.take(Time(0) + REASSEMBLY_SPAN, &piece(&honest, 1, 0), &mut rng), Taken::Part);
        assert_eq!(table.entries.len(), 1, "the rest is too old");
    }
}
