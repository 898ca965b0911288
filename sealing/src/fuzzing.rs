//! What the fuzz targets need to come behind signatures and checksums: any content, rightly signed, sealed or summed. It
//! is there only under `--cfg fuzzing`.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::memo::{self, PLACE_BYTES, Place};
use crate::statement::{self, Kind};
use crate::{Card, Identity, card, envelope, labels, roster, text, ticket, whereabouts};

fn signed(identity: &Identity, kind: Kind, content: &[u8]) -> Vec<u8> {
    statement::sign(identity, kind, 1, content)
}

/// A card of any content.
pub fn card(identity: &Identity, content: &[u8]) -> Vec<u8> {
    signed(identity, card::KIND, content)
}

/// Whereabouts of any content.
pub fn whereabouts(identity: &Identity, content: &[u8]) -> Vec<u8> {
    signed(identity, whereabouts::KIND, content)
}

/// A roster of any content.
pub fn roster(identity: &Identity, content: &[u8]) -> Vec<u8> {
    signed(identity, roster::KIND, content)
}

/// The text of a ticket of any content.
pub fn ticket(identity: &Identity, content: &[u8]) -> String {
    text::encode(ticket::TICKET_PREFIX, &signed(identity, ticket::KIND, content))
}

/// An envelope with any body.
pub fn envelope(identity: &Identity, receiver: &Card, body: &[u8], rng: &mut impl CryptoRng) -> Vec<u8> {
    let body = Zeroizing::new(body.to_vec());
    envelope::seal_body(receiver, body, rng, |fields| identity.sign(labels::ENVELOPE_SIGNATURE, fields))
}

/// A memo place of any bytes, with the checksum that they have.
pub fn memo_place(mut place: Place) -> Place {
    let (body, sum) = place.split_at_mut(PLACE_BYTES - memo::CHECKSUM_BYTES);
    sum.copy_from_slice(&memo::checksum(body));
    place
}
