//! A ticket: what people exchange so that their nodes can find each other.
//!
//! Layout under the text: node (32 bytes), hash of its card (32), number of addresses (1), addresses: 4 or 6 (1 byte), the
//! address (4 or 16 bytes), port (2, big-endian). It is not signed: who hands it over is whom one trusts, and the card that
//! it names is signed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::identity::NodeId;
use crate::text::{self, TextFault};

/// What a ticket's text begins with: the kind and the version of the text.
const TICKET_PREFIX: &str = "svt1";

/// A ticket names at most so many addresses: more would not fit a line that people paste.
pub const TICKET_ADDRESSES_MAX: usize = 8;

/// Where and how a node is reached first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Who it is.
    pub node: NodeId,
    /// [`crate::Card::hash`] of its card, which is fetched when it is not at hand.
    pub card_hash: [u8; 32],
    /// Where to try, in order. At most [`TICKET_ADDRESSES_MAX`]; the text leaves out what is beyond, and scopes of IPv6.
    pub addresses: Vec<SocketAddr>,
}

/// A text that is no ticket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// It does not begin as tickets do.
    #[error("a ticket begins with \"svt1\", this text does not: {0:?}")]
    Prefix(String),
    /// It has a character, a length or a field that no ticket has.
    #[error("the text is no ticket of this version; copy it again, whole: {0:?}")]
    Shape(String),
    /// Some character is another than it was.
    #[error("the ticket was changed on its way (its checksum differs); copy it again: {0:?}")]
    Checksum(String),
}

impl fmt::Display for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = &self.addresses[..self.addresses.len().min(TICKET_ADDRESSES_MAX)];
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.node.as_bytes());
        bytes.extend_from_slice(&self.card_hash);
        bytes.push(u8::try_from(addresses.len()).expect("at most TICKET_ADDRESSES_MAX"));
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        formatter.write_str(&text::encode(TICKET_PREFIX, &bytes))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let bytes = text::decode(TICKET_PREFIX, text).map_err(|fault| match fault {
            TextFault::Prefix => TicketError::Prefix(text.to_owned()),
            TextFault::Character => TicketError::Shape(text.to_owned()),
            TextFault::Checksum => TicketError::Checksum(text.to_owned()),
        })?;
        parse(&bytes).ok_or_else(|| TicketError::Shape(text.to_owned()))
    }
}

fn parse(bytes: &[u8]) -> Option<Ticket> {
    let (node, rest) = bytes.split_first_chunk::<32>()?;
    let (card_hash, rest) = rest.split_first_chunk::<32>()?;
    let (count, mut rest) = rest.split_first()?;
    if usize::from(*count) > TICKET_ADDRESSES_MAX {
        return None;
    }
    let mut addresses = Vec::new();
    for _ in 0..*count {
        let (address, after) = parse_address(rest)?;
        addresses.push(address);
        rest = after;
    }
    rest.is_empty().then_some(Ticket { node: NodeId::from_bytes(*node), card_hash: *card_hash, addresses })
}

fn parse_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = match bytes.split_first()? {
        (4, rest) => {
            let (ip, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::from(*ip), rest)
        }
        (6, rest) => {
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::from(*ip), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}
