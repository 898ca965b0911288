//! A ticket: what people exchange so that their nodes can find each other.
//!
//! A signed statement (version 2, label `ticket-sig`) whose sequence is that of the node's card and whose content is the
//! hash of that card (32 bytes) and addresses. The signature keeps whoever passes a ticket on from sending nodes to other
//! addresses or back to an older card in its node's name. That the node is the one that was meant, only who handed the
//! ticket over can say, or the [safety number](crate::SafetyNumber).
//!
//! As text: `svt2` and the checked base32 of the bytes. Version 1, `svt1`, was not signed and is refused.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::addresses::{self, ADDRESSES_BYTES_MAX};
use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::labels;
use crate::statement::{self, Fault, HEAD_BYTES, Kind, Unverified};
use crate::text::{self, TextFault};

/// What a ticket's text begins with: the kind and the version of the text.
pub(crate) const TICKET_PREFIX: &str = "svt2";
/// What the text of a ticket of any version begins with, before the digit of the version.
const ANY_TICKET_PREFIX: &str = "svt";

const HASH_BYTES: usize = 32;

pub(crate) const KIND: Kind = Kind {
    purpose: labels::TICKET_SIGNATURE,
    version: 2,
    bytes_max: HEAD_BYTES + HASH_BYTES + ADDRESSES_BYTES_MAX + SIGNATURE_BYTES,
};

/// Where and how a node is reached first, signed by it. There is none that was not signed here or verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    bytes: Vec<u8>,
    node: NodeId,
    card_sequence: u64,
    card_hash: [u8; HASH_BYTES],
    addresses: Vec<SocketAddr>,
}

/// A text that is no ticket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// It does not begin as tickets do.
    #[error("a ticket begins with \"svt2\", this text does not: {0:?}")]
    Prefix(String),
    /// A ticket of another version.
    #[error(
        "the ticket is of version {0}, this program reads version 2, \"svt2…\"; update the older of the two nodes and \
         take the ticket that `selvedge id` says there then"
    )]
    Version(char),
    /// It has a character, a length or a field that no ticket has.
    #[error("the text is no ticket of this version; copy it again, whole: {0:?}")]
    Shape(String),
    /// Some character is another than it was.
    #[error("the ticket was changed on its way (its checksum differs); copy it again: {0:?}")]
    Checksum(String),
    /// Not signed by the node that it names.
    #[error(
        "the ticket is not signed by the node it names: somebody made or changed it; do not use it: {0:?}"
    )]
    Signature(String),
}

impl Ticket {
    pub(crate) fn sign(identity: &Identity, card_sequence: u64, addresses: &[SocketAddr]) -> Ticket {
        let addresses = addresses::canonical(addresses);
        let card_hash = identity.card(card_sequence).hash();
        let mut content = Vec::with_capacity(HASH_BYTES + ADDRESSES_BYTES_MAX);
        content.extend_from_slice(&card_hash);
        addresses::encode(&mut content, &addresses);
        let bytes = statement::sign(identity, KIND, card_sequence, &content);
        Ticket { bytes, node: identity.id(), card_sequence, card_hash, addresses }
    }

    /// Who it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The sequence of its card: a ticket to an older card than one that is known tells nothing of cards.
    pub fn card_sequence(&self) -> u64 {
        self.card_sequence
    }

    /// [`crate::Card::hash`] of its card, which is fetched when it is not at hand.
    pub fn card_hash(&self) -> [u8; HASH_BYTES] {
        self.card_hash
    }

    /// Where to try, in order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text::encode(TICKET_PREFIX, &self.bytes))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Ticket({}, card {}, {:?})", self.node, self.card_sequence, self.addresses)
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let bytes = text::decode(TICKET_PREFIX, text).map_err(|fault| match fault {
            TextFault::Prefix => {
                let version = text.strip_prefix(ANY_TICKET_PREFIX).and_then(|rest| rest.chars().next());
                match version.filter(char::is_ascii_digit) {
                    Some(version) => TicketError::Version(version),
                    None => TicketError::Prefix(text.to_owned()),
                }
            }
            TextFault::Character => TicketError::Shape(text.to_owned()),
            TextFault::Checksum => TicketError::Checksum(text.to_owned()),
        })?;
        verify(&bytes).map_err(|fault| match fault {
            Fault::Signature => TicketError::Signature(text.to_owned()),
            Fault::Length | Fault::Version(_) => TicketError::Shape(text.to_owned()),
        })
    }
}

fn verify(bytes: &[u8]) -> Result<Ticket, Fault> {
    let statement = Unverified::read(KIND, bytes)?;
    let (card_hash, addresses) = statement.content.split_first_chunk::<HASH_BYTES>().ok_or(Fault::Length)?;
    let addresses = addresses::decode(addresses).ok_or(Fault::Length)?;
    statement.verify()?;
    Ok(Ticket {
        bytes: bytes.to_vec(),
        node: statement.node,
        card_sequence: statement.sequence,
        card_hash: *card_hash,
        addresses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with a right checksum that no node wrote.
    #[test]
    fn a_ticket_that_its_node_did_not_sign_is_refused() {
        let ann = Identity::from_seed(&[1; 64]);
        let ticket = Ticket::sign(&ann, 1, &["192.0.2.1:7".parse().unwrap()]);
        let changed = |position: usize| {
            let mut bytes = ticket.bytes.clone();
            bytes[position] ^= 1;
            text::encode(TICKET_PREFIX, &bytes)
        };
        let moved = {
            let signed = &ticket.bytes[..ticket.bytes.len() - SIGNATURE_BYTES];
            let signature = ann.sign(labels::WHEREABOUTS_SIGNATURE, &[signed]);
            text::encode(TICKET_PREFIX, &[signed, &signature].concat())
        };
        let address_port = HEAD_BYTES + HASH_BYTES + 1 + 1 + 4 + 1;
        for (name, text) in [
            ("another node", changed(1)),
            ("another card sequence", changed(HEAD_BYTES - 1)),
            ("another card", changed(HEAD_BYTES)),
            ("another address", changed(address_port)),
            ("another signature", changed(ticket.bytes.len() - 64)),
            ("signed as something else", moved),
        ] {
            assert!(matches!(text.parse::<Ticket>(), Err(TicketError::Signature(_))), "{name}");
        }
        let cut = text::encode(TICKET_PREFIX, &ticket.bytes[..ticket.bytes.len() - 1]);
        assert!(matches!(cut.parse::<Ticket>(), Err(TicketError::Shape(_))));
        assert!(matches!(changed(0).parse::<Ticket>(), Err(TicketError::Shape(_))));
    }
}
