//! What signed statements have in common: a node says something of which only its newest word counts.
//!
//! Layout, numbers big-endian: version (1 byte), node (32), sequence (8), content, signature (64) over all before it under
//! the label of its kind. Each content has one encoding; another one, cut or longer, is refused, so two statements that
//! say the same are the same bytes.
//!
//! No clock decides what is valid, since clocks are wrong by years: of two statements of one node and kind the one with the
//! higher sequence counts, of two with the same sequence the one that was there first. A node that is shown a newer
//! statement of its own was set back in time, and issues the next one.

use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};

/// Bytes before the content.
pub(crate) const HEAD_BYTES: usize = 1 + 32 + 8;

/// A kind of statement: its label keeps a signature from being moved to another kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The label that its signature is made under.
    pub(crate) purpose: &'static str,
    /// The only version of its layout that is read.
    pub(crate) version: u8,
    /// No statement of the kind is longer; what is longer is not looked at.
    pub(crate) bytes_max: usize,
}

/// What every kind of statement may be refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Length,
    Version(u8),
    Signature,
}

/// A statement whose parts were found. Nothing of it counts before [`Unverified::verify`].
pub(crate) struct Unverified<'a> {
    kind: Kind,
    signed: &'a [u8],
    signature: &'a [u8; SIGNATURE_BYTES],
    pub(crate) node: NodeId,
    pub(crate) sequence: u64,
    pub(crate) content: &'a [u8],
}

/// The bytes of what `identity` states.
pub(crate) fn sign(identity: &Identity, kind: Kind, sequence: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len() + SIGNATURE_BYTES);
    bytes.push(kind.version);
    bytes.extend_from_slice(identity.id().as_bytes());
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(content);
    let signature = identity.sign(kind.purpose, &[&bytes]);
    bytes.extend_from_slice(&signature);
    bytes
}

impl<'a> Unverified<'a> {
    pub(crate) fn read(kind: Kind, bytes: &'a [u8]) -> Result<Unverified<'a>, Fault> {
        if bytes.len() > kind.bytes_max {
            return Err(Fault::Length);
        }
        let (version, _) = bytes.split_first().ok_or(Fault::Length)?;
        if *version != kind.version {
            return Err(Fault::Version(*version));
        }
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or(Fault::Length)?;
        let (_version, rest) = signed.split_first().ok_or(Fault::Length)?;
        let (node, rest) = rest.split_first_chunk::<32>().ok_or(Fault::Length)?;
        let (sequence, content) = rest.split_first_chunk::<8>().ok_or(Fault::Length)?;
        Ok(Unverified {
            kind,
            signed,
            signature,
            node: NodeId::from_bytes(*node),
            sequence: u64::from_be_bytes(*sequence),
            content,
        })
    }

    /// Whether the node that it names signed exactly this as this kind.
    pub(crate) fn verify(&self) -> Result<(), Fault> {
        if self.node.verifies(self.kind.purpose, &[self.signed], self.signature) {
            Ok(())
        } else {
            Err(Fault::Signature)
        }
    }
}
