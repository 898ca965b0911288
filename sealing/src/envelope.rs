//! An envelope: one sealed and signed blob for a node that is not there now, to be kept and carried by anybody.
//!
//! ```text
//! envelope = version (1: 1) ‖ suite (1) ‖ H(card of R) (32) ‖ enc (1,120) ‖ ciphertext
//! enc, ciphertext = HPKE.SealBase(pkR of the card, info = L envelope-seal ‖ R ‖ H(card of R),
//!                                 aad = all before enc, body ‖ signature)
//! body      = S (32) ‖ run of S (24) ‖ number (8) ‖ payload
//! signature = Sign_S(L envelope-sig ‖ all before enc ‖ R ‖ enc ‖ H(L envelope-body ‖ body))
//! ```
//!
//! HPKE is RFC 9180 in base mode with X-Wing (0x647a), HKDF-SHA256 (1), AES-256-GCM (2). The signature says who made it,
//! and for whom: it names the receiver and the encapsulation, so R cannot pass it on to another node as if S had made it
//! for that one. It is not HPKE's Auth mode, which lets whoever has R's key make envelopes in anybody's name to R.
//!
//! What it does not give: forward secrecy (whoever gets R's KEM secret opens all envelopes to that card) and protection
//! from replays. For the latter there is the number: S counts it up in a run, so a receiver that keeps the numbers it
//! took, of each sender, finds those that come again. Carriers see for which card it is and how long it is.

use std::fmt;

use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::XWing;
use hpke::{Deserializable, OpModeR, OpModeS, Serializable, setup_receiver, setup_sender_with_rng};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::aead::TAG_BYTES;
use crate::card::{Card, SUITE};
use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::kem::{CIPHERTEXT_BYTES, is_encapsulation_contributing};
use crate::labels;
use crate::run::{RUN_BYTES, Run};
use crate::schedule::{hash, transcript};

/// An envelope carries at most so many bytes: as large as the largest record.
pub const ENVELOPE_PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an envelope without its payload.
pub const ENVELOPE_OVERHEAD_BYTES: usize =
    HEAD_BYTES + CIPHERTEXT_BYTES + BODY_HEAD_BYTES + SIGNATURE_BYTES + TAG_BYTES;

/// The only version of the layout.
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 1 + 32;
const BODY_HEAD_BYTES: usize = 32 + RUN_BYTES + 8;

type PublicKey = <XWing as hpke::Kem>::PublicKey;
type SecretKey = <XWing as hpke::Kem>::PrivateKey;
type Encapsulation = <XWing as hpke::Kem>::EncappedKey;

/// Which of a sender's envelopes one is: greater in each later one, by run and then by count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvelopeNumber {
    /// The sender's run when it made it.
    pub run: Run,
    /// Its count of envelopes in that run.
    pub count: u64,
}

/// An envelope that opened and whose signature holds: proven to be made by `sender` for whoever opened it, not that it is
/// fresh. It can be had from [`open_envelope`] alone.
pub struct Envelope {
    sender: NodeId,
    number: EnvelopeNumber,
    payload: Zeroizing<Vec<u8>>,
}

/// An envelope that is refused, or cannot be made. Nothing of it may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Too short or too long to be one.
    #[error("{0} bytes are no envelope: it is cut or longer than one can be")]
    Length(usize),
    /// A layout that this version does not know.
    #[error("the envelope has version {0}, this program reads version 1; update the older of the two")]
    Version(u8),
    /// A suite that this version does not know.
    #[error("the envelope is of suite {0}, which this program does not have; update the older of the two")]
    Suite(u8),
    /// For another card than the one that it is opened with.
    #[error("the envelope is for another node, or for a card of this node that was replaced")]
    Card,
    /// Its encapsulation is of small order.
    #[error("the envelope holds an invalid key")]
    Key,
    /// Changed on its way, or not made for this node.
    #[error("the envelope does not open: it is not for this node and card, or was changed on its way")]
    Seal,
    /// Not signed by the node that it names, for this node.
    #[error("the envelope is not signed for this node by the one it names; do not use it")]
    Signature,
    /// More than one envelope carries.
    #[error("{0} bytes are more than an envelope carries, 262144; send less")]
    Payload(usize),
}

/// An envelope of `identity` for the node of `receiver`. Each one of a sender needs a greater number.
///
/// # Errors
/// [`EnvelopeError::Payload`] when it is too large.
pub fn seal_envelope(
    identity: &Identity,
    number: EnvelopeNumber,
    receiver: &Card,
    payload: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<Vec<u8>, EnvelopeError> {
    if payload.len() > ENVELOPE_PAYLOAD_BYTES_MAX {
        return Err(EnvelopeError::Payload(payload.len()));
    }
    let mut body = Zeroizing::new(Vec::with_capacity(BODY_HEAD_BYTES + payload.len() + SIGNATURE_BYTES));
    body.extend_from_slice(identity.id().as_bytes());
    body.extend_from_slice(&number.run.to_bytes());
    body.extend_from_slice(&number.count.to_be_bytes());
    body.extend_from_slice(payload);
    Ok(seal_body(receiver, body, rng, |fields| identity.sign(labels::ENVELOPE_SIGNATURE, fields)))
}

/// Seals a body with the signature that `sign` makes of what has to be signed.
pub(crate) fn seal_body(
    receiver: &Card,
    mut body: Zeroizing<Vec<u8>>,
    rng: &mut impl CryptoRng,
    sign: impl FnOnce(&[&[u8]]) -> [u8; SIGNATURE_BYTES],
) -> Vec<u8> {
    let (node, card_hash) = (receiver.node(), receiver.hash());
    let public = PublicKey::from_bytes(&receiver.kem().to_bytes()).expect("a card holds a valid KEM key");
    let (enc, mut context) = setup_sender_with_rng::<AesGcm256, HkdfSha256, XWing>(
        &OpModeS::Base,
        &public,
        &info(&node, &card_hash),
        rng,
    )
    .expect("encapsulation to a valid X-Wing key cannot fail");
    let enc = enc.to_bytes();
    let mut bytes = vec![VERSION, SUITE];
    bytes.extend_from_slice(&card_hash);
    let body_hash = hash(labels::ENVELOPE_BODY, &[&body]);
    body.extend_from_slice(&sign(&[&bytes, node.as_bytes(), &enc, &body_hash]));
    let ciphertext = context
        .seal(&body, &bytes)
        .expect("the first message of a context that is far below the limit of GCM");
    bytes.extend_from_slice(&enc);
    bytes.extend_from_slice(&ciphertext);
    bytes
}

/// The envelope in these bytes, if it was made for `identity` and its `card` and signed for it by the node that it names.
///
/// # Errors
/// [`EnvelopeError`] says what is wrong; nothing of the bytes may be used then.
pub fn open_envelope(identity: &Identity, card: &Card, bytes: &[u8]) -> Result<Envelope, EnvelopeError> {
    let length = || EnvelopeError::Length(bytes.len());
    let (version, _) = bytes.split_first().ok_or_else(length)?;
    if *version != VERSION {
        return Err(EnvelopeError::Version(*version));
    }
    if !(ENVELOPE_OVERHEAD_BYTES..=ENVELOPE_OVERHEAD_BYTES + ENVELOPE_PAYLOAD_BYTES_MAX)
        .contains(&bytes.len())
    {
        return Err(length());
    }
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(length)?;
    if head[1] != SUITE {
        return Err(EnvelopeError::Suite(head[1]));
    }
    let card_hash = card.hash();
    if head[2..] != card_hash {
        return Err(EnvelopeError::Card);
    }
    let (enc, ciphertext) = rest.split_first_chunk::<CIPHERTEXT_BYTES>().ok_or_else(length)?;
    let node = identity.id();
    let opened = open_ciphertext(identity, &info(&node, &card_hash), head, enc, ciphertext)?;

    let (body, signature) = opened.split_last_chunk::<SIGNATURE_BYTES>().ok_or_else(length)?;
    let (sender, rest) = body.split_first_chunk::<32>().ok_or_else(length)?;
    let (run, rest) = rest.split_first_chunk::<RUN_BYTES>().ok_or_else(length)?;
    let (count, payload) = rest.split_first_chunk::<8>().ok_or_else(length)?;
    let sender = NodeId::from_bytes(*sender);
    let body_hash = hash(labels::ENVELOPE_BODY, &[body]);
    let signed: [&[u8]; 4] = [head, node.as_bytes(), enc, &body_hash];
    if !sender.verifies(labels::ENVELOPE_SIGNATURE, &signed, signature) {
        return Err(EnvelopeError::Signature);
    }
    Ok(Envelope {
        sender,
        number: EnvelopeNumber { run: Run::from_bytes(run), count: u64::from_be_bytes(*count) },
        payload: Zeroizing::new(payload.to_vec()),
    })
}

fn open_ciphertext(
    identity: &Identity,
    info: &[u8],
    head: &[u8],
    enc: &[u8; CIPHERTEXT_BYTES],
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
    if !is_encapsulation_contributing(enc) {
        return Err(EnvelopeError::Key);
    }
    let enc = Encapsulation::from_bytes(enc).map_err(|_| EnvelopeError::Key)?;
    let secret = SecretKey::from_bytes(identity.kem_seed.as_slice()).map_err(|_| EnvelopeError::Key)?;
    setup_receiver::<AesGcm256, HkdfSha256, XWing>(&OpModeR::Base, &secret, &enc, info)
        .and_then(|mut context| context.open(ciphertext, head))
        .map(Zeroizing::new)
        .map_err(|_| EnvelopeError::Seal)
}

fn info(node: &NodeId, card_hash: &[u8; 32]) -> Vec<u8> {
    transcript(labels::ENVELOPE_SEAL, &[node.as_bytes(), card_hash])
}

impl Envelope {
    /// Who made it.
    pub fn sender(&self) -> NodeId {
        self.sender
    }

    /// Which of the sender's it is: one that was taken before comes again under the same number.
    pub fn number(&self) -> EnvelopeNumber {
        self.number
    }

    /// What it carries.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Envelope")
            .field("sender", &self.sender)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
