//! Hellos on their way: the one that this node says to a peer, and pieces of those that come from anybody.

use std::net::SocketAddr;

use rand_core::Rng;
use sealing::hello::HelloPending;
use sha2::{Digest, Sha256};

use crate::datagram::HELLO_PIECE_BYTES;
use crate::limits::{
    ANSWER_INTERVAL_INITIAL, GREETINGS_BEFORE_LONG, HELLO_PIECES_MAX, PROBE_INTERVAL_MAX,
    REASSEMBLY_ENTRIES_MAX,
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
    pub(crate) datagrams: Vec<Vec<u8>>,
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
    pub(crate) bytes: &'a [u8],
}

impl Reassembly {
    /// Takes a piece; the whole hello if it was the last one missing and the whole is what its key says.
    pub(crate) fn take(&mut self, piece: &Piece<'_>, rng: &mut impl Rng) -> Option<Vec<u8>> {
        if piece.count == 1 {
            return (key_of(piece.bytes) == piece.key).then(|| piece.bytes.to_vec());
        }
        let at = self.find_or_make(piece, rng);
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

    fn find_or_make(&mut self, piece: &Piece<'_>, rng: &mut impl Rng) -> usize {
        let same =
            |entry: &Entry| entry.from == piece.from && entry.key == piece.key && entry.count == piece.count;
        if let Some(at) = self.entries.iter().position(same) {
            return at;
        }
        let entry =
            Entry { from: piece.from, key: piece.key, count: piece.count, pieces: Default::default() };
        if self.entries.len() < REASSEMBLY_ENTRIES_MAX {
            self.entries.push(entry);
            return self.entries.len() - 1;
        }
        let at = (rng.next_u32() as usize) % REASSEMBLY_ENTRIES_MAX;
        self.entries[at] = entry;
        at
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
        Piece { from: SocketAddr::from(([127, 0, 0, 1], port)), key: key_of(hello), index, count, bytes }
    }

    #[test]
    fn any_order_and_twice_makes_the_whole() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let hello: Vec<u8> = (0..3000u32).map(|at| at as u8).collect();
        let mut table = Reassembly::default();
        for index in [2, 0, 0, 2] {
            assert_eq!(table.take(&piece(&hello, 1, index), &mut rng), None);
        }
        assert_eq!(table.take(&piece(&hello, 1, 1), &mut rng), Some(hello));
        assert!(table.entries.is_empty());
    }

    #[test]
    fn a_flood_stays_in_the_table() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let hello = vec![7; 3000];
        let mut table = Reassembly::default();
        for port in 0..10_000 {
            assert_eq!(table.take(&piece(&hello, port, 0), &mut rng), None);
        }
        assert_eq!(table.entries.len(), REASSEMBLY_ENTRIES_MAX);
    }
}
