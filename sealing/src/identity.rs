//! A node and its secrets: an ed25519 key, which is who it is, and an X-Wing key, to which others encapsulate.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::card::Card;
use crate::kem::KemSecret;
use crate::schedule::{Secret, transcript};
use crate::text::{self, TextFault};
use crate::ticket::Ticket;
use crate::whereabouts::Whereabouts;

/// What a node id's text begins with: the kind and the version of the text.
const NODE_PREFIX: &str = "sv1";

/// Length of a node id as text: the prefix, and 36 bytes in base32.
const NODE_TEXT_BYTES: usize = 61;

/// Bytes of a signature.
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// Who a node is: its ed25519 public key. As text 61 characters that begin with `sv1`; any one changed character is
/// found. That the bytes are a key at all is found by the first signature that has to verify under them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 32]);

/// A text that is no node id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeIdError {
    /// It does not begin as node ids do.
    #[error("a node id begins with \"sv1\", this text does not: {0:?}")]
    Prefix(String),
    /// It has a character or a length that no node id has.
    #[error("a node id is \"sv1\" and 58 of the characters a-z and 2-7, in lower case; copy it again: {0:?}")]
    Shape(String),
    /// Some character is another than it was.
    #[error("the node id was changed on its way (its checksum differs); copy it again: {0:?}")]
    Checksum(String),
}

/// The secrets of a node. Erased when dropped, never shown.
pub struct Identity {
    signing: SigningKey,
    pub(crate) kem: KemSecret,
    /// What it was grown from, for those that grow it themselves.
    pub(crate) kem_seed: Secret,
}

impl NodeId {
    /// The node id with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> NodeId {
        NodeId(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether this node signed exactly this for exactly this purpose.
    pub(crate) fn verifies(
        &self,
        purpose: &str,
        fields: &[&[u8]],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        self.verifies_message(&transcript(purpose, fields), signature)
    }

    /// Whether the signature is one of these bytes. Strict: keys and nonces of small order and encodings that are not
    /// canonical are refused (`verify_strict`).
    pub(crate) fn verifies_message(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else {
            return false;
        };
        is_canonical(&self.0) && key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// Whether the y-coordinate of a key is below 2^255 - 19. That an x-coordinate of zero has no sign needs no check: such
/// points are of small order.
fn is_canonical(key: &[u8; 32]) -> bool {
    let is_at_least_p =
        key[31] & 0x7f == 0x7f && key[1..31].iter().all(|byte| *byte == 0xff) && key[0] >= 0xed;
    !is_at_least_p
}

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text::encode(NODE_PREFIX, &self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for NodeId {
    type Err = NodeIdError;

    fn from_str(text: &str) -> Result<NodeId, NodeIdError> {
        // What is too short or too long would have another checksum, too, and that would say less.
        if text.starts_with(NODE_PREFIX) && text.len() != NODE_TEXT_BYTES {
            return Err(NodeIdError::Shape(text.to_owned()));
        }
        let bytes = text::decode(NODE_PREFIX, text).map_err(|fault| match fault {
            TextFault::Prefix => NodeIdError::Prefix(text.to_owned()),
            TextFault::Character => NodeIdError::Shape(text.to_owned()),
            TextFault::Checksum => NodeIdError::Checksum(text.to_owned()),
        })?;
        let bytes = bytes.try_into().map_err(|_| NodeIdError::Shape(text.to_owned()))?;
        Ok(NodeId(bytes))
    }
}

impl Identity {
    /// The identity grown from 64 bytes of entropy: 32 for the signing key, 32 for the KEM key.
    pub fn from_seed(seed: &[u8; 64]) -> Identity {
        let (mut signing, mut kem) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
        signing.copy_from_slice(&seed[..32]);
        kem.copy_from_slice(&seed[32..]);
        Identity { signing: SigningKey::from_bytes(&signing), kem: KemSecret::from_seed(&kem), kem_seed: kem }
    }

    /// Who this is.
    pub fn id(&self) -> NodeId {
        NodeId(self.signing.verifying_key().to_bytes())
    }

    /// This node's card with this sequence number; the higher one of two cards is valid.
    pub fn card(&self, sequence: u64) -> Card {
        Card::sign(self, sequence)
    }

    /// Where this node says it can be reached; the higher sequence number counts. Addresses that statements do not carry
    /// (the unspecified one, port 0, repeats, those beyond [`crate::ADDRESSES_MAX`]) are left out.
    pub fn whereabouts(&self, sequence: u64, addresses: &[SocketAddr]) -> Whereabouts {
        Whereabouts::sign(self, sequence, addresses)
    }

    /// The ticket to this node with its card of this sequence number; of the addresses as in [`Identity::whereabouts`].
    pub fn ticket(&self, card_sequence: u64, addresses: &[SocketAddr]) -> Ticket {
        Ticket::sign(self, card_sequence, addresses)
    }

    pub(crate) fn sign(&self, purpose: &str, fields: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        self.signing.sign(&transcript(purpose, fields)).to_bytes()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity({})", self.id())
    }
}
