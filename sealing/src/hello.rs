//! The hello: how two nodes that hold each other's ids come to share a [`Root`].
//!
//! ```text
//! th0   = H(L hello ‖ suite ‖ R ‖ H(card of R) ‖ encapsulation)         k0 = Extract(th0, static secret)
//! body  = S ‖ run of S ‖ hello sequence ‖ ephemeral KEM key ‖ first frames
//! hello = suite ‖ encapsulation ‖ AEAD(Expand(k0, L hello-seal), nonce 0, body ‖ Sign_S(L hello-sig ‖ th0 ‖ H(body)))
//! th1   = H(L accept ‖ th0 ‖ H(body) ‖ run of R ‖ ciphertext)
//! root1 = Expand(Extract(k0, ephemeral secret), L root ‖ th1)
//! accept  = 1 ‖ ciphertext ‖ AEAD(Expand(k0, L accept-seal ‖ th0 ‖ H(body) ‖ ciphertext), nonce 0, run of R)
//! decline = 2 ‖ salt ‖ AEAD(Expand(k0, L decline-seal ‖ th0 ‖ H(body) ‖ salt), nonce 0, reason ‖ known run)
//! ```
//!
//! S is the initiator, R the responder. Each sealing key seals one message: `k0` is fresh in each hello, an accept's key
//! depends on its fresh ciphertext, a decline's on its content (salt = Expand(k0, L decline-salt ‖ …), so that two
//! declines of one hello are under one key only if they are the same bytes).
//!
//! What it leaves to the link: which (run counter, hello sequence) of a peer are above its highest, pieces and resending,
//! and that an accepted hello is confirmed only by a packet under the pair.

use std::fmt;

use crate::aead::{AeadKey, NONCE_BYTES, TAG_BYTES};
use crate::card::{Card, SUITE};
use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::kem::{CIPHERTEXT_BYTES, FreshKeys, KemPublic, KemSecret, PUBLIC_BYTES};
use crate::labels;
use crate::root::Root;
use crate::run::{RUN_BYTES, Run};
use crate::schedule::{Secret, expand, extract, hash};

/// Bytes of a hello without its first frames.
pub const HELLO_OVERHEAD_BYTES: usize = 1 + CIPHERTEXT_BYTES + BODY_HEAD_BYTES + SIGNATURE_BYTES + TAG_BYTES;
/// Bytes of an accept.
pub const ACCEPT_BYTES: usize = 1 + CIPHERTEXT_BYTES + RUN_BYTES + TAG_BYTES;
/// Bytes of a decline.
pub const DECLINE_BYTES: usize = 1 + SALT_BYTES + DECLINE_CONTENT_BYTES + TAG_BYTES;

const BODY_HEAD_BYTES: usize = 32 + RUN_BYTES + 8 + PUBLIC_BYTES;
const SALT_BYTES: usize = 16;
/// A reason and the counter of a run.
const DECLINE_CONTENT_BYTES: usize = 1 + 8;
const ACCEPTED: u8 = 1;
const DECLINED: u8 = 2;
/// Each key here seals one message.
const NONCE: [u8; NONCE_BYTES] = [0; NONCE_BYTES];

/// A hello or an answer that is refused. Nothing of it may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Too short, or an answer of another length than its kind has.
    #[error("{0} bytes are no hello and no answer to one; drop them")]
    Length(usize),
    /// A suite that this version does not know.
    #[error("the hello is of suite {0}, which this program does not have")]
    Suite(u8),
    /// Neither accept nor decline.
    #[error("{0} is no kind of answer to a hello")]
    Kind(u8),
    /// Not made for this identity and card, or changed on its way.
    #[error("it does not open: it is not for this node and card, or was changed on its way")]
    Seal,
    /// A key inside is invalid or of small order.
    #[error("it holds an invalid key")]
    Key,
    /// Not signed by the node it names.
    #[error("the hello is not signed by the node it names")]
    Signature,
}

/// What an initiator keeps of its hello until the answer comes.
pub struct HelloPending {
    ephemeral: KemSecret,
    session: Session,
}

/// What both ends know of one hello: `k0`, `th0` and `H(body)`.
struct Session {
    k0: Secret,
    th0: [u8; 32],
    body_hash: [u8; 32],
}

/// A hello that opened and whose signature holds: proven to be said by `node`, but not that it is fresh.
pub struct OpenedHello {
    /// Who said it.
    pub node: NodeId,
    /// Its run.
    pub run: Run,
    /// Its count of hellos in that run.
    pub hello_sequence: u64,
    /// The first frames, signed with the rest.
    pub first_frames: Vec<u8>,
    ephemeral: KemPublic,
    session: Session,
}

/// What the responder said.
#[derive(Debug)]
pub enum Answer {
    /// The link has a root.
    Accepted {
        /// The new root.
        root: Root,
        /// The responder's run.
        responder_run: Run,
    },
    /// It will not.
    Declined {
        /// Why, as the link numbers reasons.
        reason: u8,
        /// The counter of the initiator's latest run that the responder knows; 0 if it tells none.
        known_run: u64,
    },
}

/// A hello of `identity` in `my_run` to the node of `peer_card`, and what to keep until its answer. The same bytes may be
/// sent again; another hello is sealed anew with a higher `hello_sequence`.
pub fn seal_hello(
    identity: &Identity,
    my_run: &Run,
    hello_sequence: u64,
    peer_card: &Card,
    first_frames: &[u8],
    keys: &mut impl FreshKeys,
) -> (Vec<u8>, HelloPending) {
    let (encapsulation, static_secret) = peer_card.kem().encapsulate(keys);
    let ephemeral = KemSecret::generate(keys);

    let mut body = Vec::with_capacity(BODY_HEAD_BYTES + first_frames.len() + SIGNATURE_BYTES);
    body.extend_from_slice(identity.id().as_bytes());
    body.extend_from_slice(&my_run.to_bytes());
    body.extend_from_slice(&hello_sequence.to_be_bytes());
    body.extend_from_slice(&ephemeral.public().to_bytes());
    body.extend_from_slice(first_frames);

    let opening = Opening::new(peer_card, &encapsulation, &static_secret);
    let hello_key = opening.hello_key();
    let session = opening.session(&body);
    let signature = identity.sign(labels::HELLO_SIGNATURE, &[&session.th0, &session.body_hash]);
    body.extend_from_slice(&signature);

    let mut bytes = Vec::with_capacity(HELLO_OVERHEAD_BYTES + first_frames.len());
    bytes.push(SUITE);
    bytes.extend_from_slice(&encapsulation);
    bytes.extend_from_slice(&hello_key.seal(&NONCE, &[], &body));
    (bytes, HelloPending { ephemeral, session })
}

/// The hello in these bytes, if it was made for `identity` and its `card` and signed by the node that it names.
///
/// # Errors
/// [`HelloError`]; nothing was proven then and no state may change.
pub fn open_hello(identity: &Identity, card: &Card, bytes: &[u8]) -> Result<OpenedHello, HelloError> {
    let length = || HelloError::Length(bytes.len());
    if bytes.len() < HELLO_OVERHEAD_BYTES {
        return Err(length());
    }
    let (suite, rest) = bytes.split_first().ok_or_else(length)?;
    if *suite != SUITE {
        return Err(HelloError::Suite(*suite));
    }
    let (encapsulation, sealed) = rest.split_first_chunk::<CIPHERTEXT_BYTES>().ok_or_else(length)?;
    let static_secret = identity.kem.decapsulate(encapsulation).ok_or(HelloError::Key)?;
    let opening = Opening::new(card, encapsulation, &static_secret);
    let opened = opening.hello_key().open(&NONCE, &[], sealed).map_err(|_| HelloError::Seal)?;

    let (body, signature) = opened.split_last_chunk::<SIGNATURE_BYTES>().ok_or_else(length)?;
    let (node, rest) = body.split_first_chunk::<32>().ok_or_else(length)?;
    let (run, rest) = rest.split_first_chunk::<RUN_BYTES>().ok_or_else(length)?;
    let (hello_sequence, rest) = rest.split_first_chunk::<8>().ok_or_else(length)?;
    let (ephemeral, first_frames) = rest.split_first_chunk::<PUBLIC_BYTES>().ok_or_else(length)?;

    let node = NodeId::from_bytes(*node);
    let session = opening.session(body);
    if !node.verifies(labels::HELLO_SIGNATURE, &[&session.th0, &session.body_hash], signature) {
        return Err(HelloError::Signature);
    }
    let ephemeral = KemPublic::from_bytes(ephemeral).ok_or(HelloError::Key)?;
    Ok(OpenedHello {
        node,
        run: Run::from_bytes(run),
        hello_sequence: u64::from_be_bytes(*hello_sequence),
        first_frames: first_frames.to_vec(),
        ephemeral,
        session,
    })
}

/// What is known of a hello before its body: `th0` and `k0`.
struct Opening {
    k0: Secret,
    th0: [u8; 32],
}

impl Opening {
    fn new(responder: &Card, encapsulation: &[u8; CIPHERTEXT_BYTES], static_secret: &Secret) -> Opening {
        let (node, card_hash) = (responder.node(), responder.hash());
        let th0 = hash(labels::HELLO, &[&[SUITE], node.as_bytes(), &card_hash, encapsulation]);
        Opening { k0: extract(&th0, static_secret.as_slice()), th0 }
    }

    fn hello_key(&self) -> AeadKey {
        AeadKey::new(&expand(&self.k0, labels::HELLO_SEAL, &[]))
    }

    fn session(self, body: &[u8]) -> Session {
        Session { k0: self.k0, th0: self.th0, body_hash: hash(labels::HELLO_BODY, &[body]) }
    }
}

impl Session {
    fn accept_key(&self, ciphertext: &[u8; CIPHERTEXT_BYTES]) -> AeadKey {
        AeadKey::new(&expand(&self.k0, labels::ACCEPT_SEAL, &[&self.th0, &self.body_hash, ciphertext]))
    }

    fn decline_salt(&self, content: &[u8; DECLINE_CONTENT_BYTES]) -> [u8; SALT_BYTES] {
        *expand::<SALT_BYTES>(&self.k0, labels::DECLINE_SALT, &[&self.th0, &self.body_hash, content])
    }

    fn decline_key(&self, salt: &[u8; SALT_BYTES]) -> AeadKey {
        AeadKey::new(&expand(&self.k0, labels::DECLINE_SEAL, &[&self.th0, &self.body_hash, salt]))
    }

    fn root(
        &self,
        responder_run: &Run,
        ciphertext: &[u8; CIPHERTEXT_BYTES],
        ephemeral_secret: &Secret,
    ) -> Root {
        let run = responder_run.to_bytes();
        let th1 = hash(labels::ACCEPT, &[&self.th0, &self.body_hash, &run, ciphertext]);
        Root(*expand(&extract(self.k0.as_slice(), ephemeral_secret.as_slice()), labels::ROOT, &[&th1]))
    }
}

impl OpenedHello {
    /// `th0`, `H(body)` and `k0`, for the file of test vectors.
    #[cfg(test)]
    pub(crate) fn transcript(&self) -> ([u8; 32], [u8; 32], [u8; 32]) {
        (self.session.th0, self.session.body_hash, *self.session.k0)
    }

    /// The answer that accepts, and the root that both then share. The root must be kept (synced) before the answer is
    /// sent. Accepting again makes another root; the same hello again is answered with the same bytes.
    pub fn accept(&self, my_run: &Run, keys: &mut impl FreshKeys) -> (Vec<u8>, Root) {
        let (ciphertext, ephemeral_secret) = self.ephemeral.encapsulate(keys);
        let root = self.session.root(my_run, &ciphertext, &ephemeral_secret);
        let mut bytes = Vec::with_capacity(ACCEPT_BYTES);
        bytes.push(ACCEPTED);
        bytes.extend_from_slice(&ciphertext);
        bytes.extend_from_slice(&self.session.accept_key(&ciphertext).seal(
            &NONCE,
            &[ACCEPTED],
            &my_run.to_bytes(),
        ));
        (bytes, root)
    }

    /// The answer that declines, for a reason that the link numbers, with the counter of the initiator's latest run that
    /// is known here, or 0. Only the initiator can read it, and it is proven to
    /// come from the node to which the hello was made.
    pub fn decline(&self, reason: u8, known_run: u64) -> Vec<u8> {
        let mut content = [reason; DECLINE_CONTENT_BYTES];
        content[1..].copy_from_slice(&known_run.to_be_bytes());
        let salt = self.session.decline_salt(&content);
        let mut bytes = Vec::with_capacity(DECLINE_BYTES);
        bytes.push(DECLINED);
        bytes.extend_from_slice(&salt);
        bytes.extend_from_slice(&self.session.decline_key(&salt).seal(&NONCE, &[DECLINED], &content));
        bytes
    }
}

impl HelloPending {
    /// The responder's answer to this hello. A refused one changes nothing: wait on for the true one.
    ///
    /// # Errors
    /// [`HelloError`] when it is no answer to this hello by the node to which it was made.
    pub fn open_answer(&self, bytes: &[u8]) -> Result<Answer, HelloError> {
        let (kind, rest) = bytes.split_first().ok_or(HelloError::Length(0))?;
        match (*kind, bytes.len()) {
            (ACCEPTED, ACCEPT_BYTES) => self.open_accept(rest),
            (DECLINED, DECLINE_BYTES) => self.open_decline(rest),
            (ACCEPTED | DECLINED, length) => Err(HelloError::Length(length)),
            (kind, _) => Err(HelloError::Kind(kind)),
        }
    }

    fn open_accept(&self, rest: &[u8]) -> Result<Answer, HelloError> {
        let length = HelloError::Length(rest.len());
        let (ciphertext, sealed) = rest.split_first_chunk::<CIPHERTEXT_BYTES>().ok_or(length)?;
        let key = self.session.accept_key(ciphertext);
        let run = key.open(&NONCE, &[ACCEPTED], sealed).map_err(|_| HelloError::Seal)?;
        let run: [u8; RUN_BYTES] = run.try_into().map_err(|_| length)?;
        let responder_run = Run::from_bytes(&run);
        // Only now: what does not open costs no public-key operation.
        let ephemeral_secret = self.ephemeral.decapsulate(ciphertext).ok_or(HelloError::Key)?;
        let root = self.session.root(&responder_run, ciphertext, &ephemeral_secret);
        Ok(Answer::Accepted { root, responder_run })
    }

    fn open_decline(&self, rest: &[u8]) -> Result<Answer, HelloError> {
        let length = HelloError::Length(rest.len());
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>().ok_or(length)?;
        let content =
            self.session.decline_key(salt).open(&NONCE, &[DECLINED], sealed).map_err(|_| HelloError::Seal)?;
        let (reason, known_run) = content.split_first().ok_or(length)?;
        let known_run = u64::from_be_bytes(known_run.try_into().map_err(|_| length)?);
        Ok(Answer::Declined { reason: *reason, known_run })
    }
}

impl fmt::Debug for HelloPending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HelloPending(secret)")
    }
}

impl fmt::Debug for OpenedHello {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenedHello")
            .field("node", &self.node)
            .field("run", &self.run)
            .field("hello_sequence", &self.hello_sequence)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
