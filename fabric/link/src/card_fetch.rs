//! Fetching the card of a peer of which only a ticket is held: asked for by its hash, piece by piece.

use sealing::{Card, NodeId};

use crate::datagram::{self, CARD_PIECE_BYTES};
use crate::hello::Retry;
use crate::limits::CARD_PIECES_MAX;
use crate::time::Time;

/// A card that is being fetched (§4.6).
#[derive(Debug)]
pub(crate) struct CardFetch {
    node: NodeId,
    hash: [u8; 32],
    pieces: [Option<Vec<u8>>; CARD_PIECES_MAX],
    pub(crate) retry: Retry,
}

impl CardFetch {
    pub(crate) fn new(node: NodeId, hash: [u8; 32], now: Time) -> CardFetch {
        CardFetch { node, hash, pieces: Default::default(), retry: Retry::due(now) }
    }

    /// By which the endpoint finds the link that asks.
    pub(crate) fn key(&self) -> [u8; 8] {
        key_of_card(&self.hash)
    }

    /// Requests for what is missing.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        let missing = self.pieces.iter().enumerate().filter(|(_, piece)| piece.is_none());
        missing.map(|(index, _)| datagram::card_request(self.hash, index as u8)).collect()
    }

    /// Takes a piece; the card if it is whole, of the right node, and of the hash that the ticket has. Pieces that make
    /// no such card are forgotten, all of them, since nobody knows which one is forged.
    pub(crate) fn take(&mut self, hash: &[u8; 32], index: u8, count: u8, piece: &[u8]) -> Option<Card> {
        let count = usize::from(count);
        if *hash != self.hash || count == 0 || count > CARD_PIECES_MAX || piece.len() > CARD_PIECE_BYTES {
            return None;
        }
        let place = self.pieces[..count].get_mut(usize::from(index))?;
        *place = Some(piece.to_vec());
        if self.pieces[..count].iter().any(Option::is_none) {
            return None;
        }
        let whole: Vec<u8> = self.pieces[..count].iter().flatten().flatten().copied().collect();
        self.pieces = Default::default();
        Card::verify(&whole).ok().filter(|card| card.hash() == self.hash && card.node() == self.node)
    }
}

/// The first bytes of the hash of a card.
pub(crate) fn key_of_card(hash: &[u8; 32]) -> [u8; 8] {
    let mut key = [0; 8];
    key.copy_from_slice(&hash[..8]);
    key
}
