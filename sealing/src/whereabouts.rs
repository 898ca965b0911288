//! Whereabouts: where a node says it can be reached, signed by itself.
//!
//! A signed statement (version 1, label `whereabouts-sig`) whose content is a list of addresses. They are hints: an
//! address is proven by what comes from it, never by a signature.

use std::fmt;
use std::net::SocketAddr;

use crate::addresses::{self, ADDRESSES_BYTES_MAX};
use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::labels;
use crate::statement::{self, Fault, HEAD_BYTES, Kind, Unverified};

pub(crate) const KIND: Kind = Kind {
    purpose: labels::WHEREABOUTS_SIGNATURE,
    version: 1,
    bytes_max: HEAD_BYTES + ADDRESSES_BYTES_MAX + SIGNATURE_BYTES,
};

/// A node's signed statement of its addresses. There is none that was not signed here or verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Whereabouts {
    bytes: Vec<u8>,
    node: NodeId,
    sequence: u64,
    addresses: Vec<SocketAddr>,
}

/// Bytes that are no whereabouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WhereaboutsError {
    /// Too short or too long to be any.
    #[error("whereabouts of {0} bytes are cut or have something after their end; ask for them again")]
    Length(usize),
    /// A layout that this version does not know.
    #[error("the whereabouts have version {0}, this program reads version 1; update the older of the two")]
    Version(u8),
    /// More than eight addresses, or one that is written in a form that this program does not write.
    #[error("the addresses of the whereabouts are not written as they must be; do not use them")]
    Addresses,
    /// Not signed by the node that they name.
    #[error("the whereabouts are not signed by the node they name; do not use them")]
    Signature,
}

impl Whereabouts {
    pub(crate) fn sign(identity: &Identity, sequence: u64, addresses: &[SocketAddr]) -> Whereabouts {
        let addresses = addresses::canonical(addresses);
        let mut content = Vec::with_capacity(ADDRESSES_BYTES_MAX);
        addresses::encode(&mut content, &addresses);
        let bytes = statement::sign(identity, KIND, sequence, &content);
        Whereabouts { bytes, node: identity.id(), sequence, addresses }
    }

    /// The whereabouts in these bytes, if the node they name signed them.
    ///
    /// # Errors
    /// [`WhereaboutsError`] says what is wrong; nothing of the bytes may be used then.
    pub fn verify(bytes: &[u8]) -> Result<Whereabouts, WhereaboutsError> {
        let fault = |fault| match fault {
            Fault::Length => WhereaboutsError::Length(bytes.len()),
            Fault::Version(version) => WhereaboutsError::Version(version),
            Fault::Signature => WhereaboutsError::Signature,
        };
        let statement = Unverified::read(KIND, bytes).map_err(fault)?;
        let addresses = addresses::decode(statement.content).ok_or(WhereaboutsError::Addresses)?;
        statement.verify().map_err(fault)?;
        Ok(Whereabouts {
            bytes: bytes.to_vec(),
            node: statement.node,
            sequence: statement.sequence,
            addresses,
        })
    }

    /// As they are sent and kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whose they are.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Of two whereabouts of a node those with the higher sequence count.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where to try, in order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether these are of the same node and say something later.
    pub fn supersede(&self, older: &Whereabouts) -> bool {
        self.node == older.node && self.sequence > older.sequence
    }
}

impl fmt::Debug for Whereabouts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Whereabouts({}, sequence {}, {:?})", self.node, self.sequence, self.addresses)
    }
}
