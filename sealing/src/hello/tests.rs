//! The hello against everything that may be changed, moved or swapped in it.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;

const ANN_RUN: Run = Run { counter: 3, random: [0xa; 16] };
const BEN_RUN: Run = Run { counter: 8, random: [0xb; 16] };
const FRAMES: &[u8] = b"the first frames";

struct World {
    ann: Identity,
    ben: Identity,
    card: Card,
    rng: ChaCha20Rng,
}

fn world() -> World {
    let ben = identity(2);
    World { ann: identity(1), card: ben.card(5), ben, rng: ChaCha20Rng::seed_from_u64(7) }
}

fn identity(number: u8) -> Identity {
    Identity::from_seed(&[number; 64])
}

impl World {
    fn hello(&mut self) -> (Vec<u8>, HelloPending) {
        seal_hello(&self.ann, &ANN_RUN, 1, &self.card, FRAMES, &mut self.rng)
    }

    fn open(&self, bytes: &[u8]) -> Result<OpenedHello, HelloError> {
        open_hello(&self.ben, &self.card, bytes)
    }

    /// Seals to ben what a body and a signature say, as anybody can who has ben's card.
    fn forge(
        &mut self,
        change: impl FnOnce(&mut Vec<u8>),
        sign: impl FnOnce(&Session) -> [u8; 64],
    ) -> Vec<u8> {
        let (encapsulation, secret) = self.card.kem().encapsulate(&mut self.rng);
        let mut body = body_of(&identity(1), &self.rng_key());
        change(&mut body);
        let opening = Opening::new(&self.card, &encapsulation, &secret);
        let key = opening.hello_key();
        let session = opening.session(&body);
        body.extend_from_slice(&sign(&session));
        let mut bytes = vec![SUITE];
        bytes.extend_from_slice(&encapsulation);
        bytes.extend_from_slice(&key.seal(&NONCE, &[], &body));
        bytes
    }

    fn rng_key(&mut self) -> KemPublic {
        KemSecret::generate(&mut self.rng).public().clone()
    }
}

fn body_of(identity: &Identity, ephemeral: &KemPublic) -> Vec<u8> {
    let mut body = identity.id().as_bytes().to_vec();
    body.extend_from_slice(&ANN_RUN.to_bytes());
    body.extend_from_slice(&1u64.to_be_bytes());
    body.extend_from_slice(&ephemeral.to_bytes());
    body.extend_from_slice(FRAMES);
    body
}

fn signed_by(number: u8) -> impl Fn(&Session) -> [u8; 64] {
    move |session| identity(number).sign(labels::HELLO_SIGNATURE, &[&session.th0, &session.body_hash])
}

#[test]
fn both_ends_come_to_the_same_root() {
    let mut world = world();
    let (bytes, pending) = world.hello();
    assert_eq!(bytes.len(), HELLO_OVERHEAD_BYTES + FRAMES.len());
    let opened = world.open(&bytes).unwrap();
    assert_eq!((opened.node, opened.run, opened.hello_sequence), (world.ann.id(), ANN_RUN, 1));
    assert_eq!(opened.first_frames, FRAMES);
    let (accept, root) = opened.accept(&BEN_RUN, &mut world.rng);
    assert_eq!(accept.len(), ACCEPT_BYTES);
    let Answer::Accepted { root: other, responder_run } = pending.open_answer(&accept).unwrap() else {
        panic!("an accept must open as one");
    };
    assert_eq!(responder_run, BEN_RUN);
    assert_eq!(root, other);
}

#[test]
fn a_decline_opens_with_its_reason() {
    let mut world = world();
    let (bytes, pending) = world.hello();
    let opened = world.open(&bytes).unwrap();
    for reason in [0, 1, 255] {
        let known = u64::from(reason) << 40;
        let decline = opened.decline(reason, known);
        assert_eq!(decline.len(), DECLINE_BYTES);
        assert!(
            matches!(pending.open_answer(&decline), Ok(Answer::Declined { reason: found, known_run }) if (found, known_run) == (reason, known))
        );
    }
    // Two reasons are never under one key.
    let salts = [(0, 0), (1, 0), (0, 1)]
        .map(|(reason, known)| opened.decline(reason, known)[1..=SALT_BYTES].to_vec());
    assert!(salts[0] != salts[1] && salts[0] != salts[2]);
}

#[test]
fn any_changed_byte_of_a_hello_is_refused() {
    let mut world = world();
    let (bytes, _) = world.hello();
    for position in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[position] ^= 1 << (position % 8);
        assert!(world.open(&changed).is_err(), "byte {position}");
    }
    for length in [0, 1, CIPHERTEXT_BYTES, HELLO_OVERHEAD_BYTES - 1, bytes.len() - 1] {
        assert!(world.open(&bytes[..length]).is_err(), "cut to {length}");
    }
    assert_eq!(world.open(&[bytes.as_slice(), &[0]].concat()).unwrap_err(), HelloError::Seal);
}

#[test]
fn any_changed_byte_of_an_answer_is_refused() {
    let mut world = world();
    let (bytes, pending) = world.hello();
    let opened = world.open(&bytes).unwrap();
    for answer in [opened.accept(&BEN_RUN, &mut world.rng).0, opened.decline(1, 0)] {
        for position in 0..answer.len() {
            let mut changed = answer.clone();
            changed[position] ^= 1 << (position % 8);
            assert!(pending.open_answer(&changed).is_err(), "byte {position}");
        }
        assert!(pending.open_answer(&answer[..answer.len() - 1]).is_err());
        assert!(pending.open_answer(&answer).is_ok());
    }
    assert_eq!(pending.open_answer(&[]).unwrap_err(), HelloError::Length(0));
    assert_eq!(pending.open_answer(&[9; ACCEPT_BYTES]).unwrap_err(), HelloError::Kind(9));
}

/// What a hello or an answer is moved to, and how that ends.
#[test]
fn a_hello_for_another_node_card_or_question_is_refused() {
    let mut world = world();
    let (bytes, pending) = world.hello();
    let (other_bytes, other_pending) = world.hello();
    let eve = identity(3);
    let check = |name: &str, result: Result<OpenedHello, HelloError>, expected: HelloError| {
        assert_eq!(result.unwrap_err(), expected, "{name}");
    };
    check("at another node", open_hello(&eve, &eve.card(5), &bytes), HelloError::Seal);
    check("under another card", open_hello(&world.ben, &world.ben.card(6), &bytes), HelloError::Seal);
    check("echoed to who said it", open_hello(&world.ann, &world.ann.card(5), &bytes), HelloError::Seal);
    let mut suite = bytes.clone();
    suite[0] = 2;
    check("of another suite", world.open(&suite), HelloError::Suite(2));

    let (accept, root) = world.open(&bytes).unwrap().accept(&BEN_RUN, &mut world.rng);
    let (other_accept, other_root) = world.open(&other_bytes).unwrap().accept(&BEN_RUN, &mut world.rng);
    assert_ne!(root, other_root);
    assert_eq!(pending.open_answer(&other_accept).unwrap_err(), HelloError::Seal);
    assert_eq!(other_pending.open_answer(&accept).unwrap_err(), HelloError::Seal);
}

/// ben's KEM key in the hands of another: a node that shows ben's key as its own does not become ben, nor ben it.
#[test]
fn a_shared_kem_key_does_not_confuse_two_responders() {
    let mut world = world();
    let mut seed = [2; 64];
    seed[..32].fill(9);
    let mallory = Identity::from_seed(&seed);
    let card = mallory.card(5);
    assert_eq!(card.kem_public_key(), world.card.kem_public_key());
    let (bytes, _) = seal_hello(&world.ann, &ANN_RUN, 1, &card, FRAMES, &mut world.rng);
    assert_eq!(world.open(&bytes).unwrap_err(), HelloError::Seal);
    assert!(open_hello(&mallory, &card, &bytes).is_ok());
}

/// Everything an attacker with ben's card can seal: without ann's signature over exactly this, it is refused.
#[test]
fn what_the_named_node_did_not_sign_is_refused() {
    type Sign = Box<dyn Fn(&Session) -> [u8; 64]>;
    let signed_elsewhere = |purpose: &'static str| -> Sign {
        Box::new(move |session| identity(1).sign(purpose, &[&session.th0, &session.body_hash]))
    };
    let table: Vec<(&str, Sign)> = vec![
        ("by eve in ann's name", Box::new(signed_by(3))),
        ("a signature of a card", signed_elsewhere(labels::CARD_SIGNATURE)),
        ("a signature of an accept", signed_elsewhere(labels::ACCEPT)),
        (
            "over another body",
            Box::new(|session| identity(1).sign(labels::HELLO_SIGNATURE, &[&session.th0, &[0; 32]])),
        ),
        (
            "over another receiver",
            Box::new(|session| identity(1).sign(labels::HELLO_SIGNATURE, &[&[0; 32], &session.body_hash])),
        ),
        ("zeros", Box::new(|_| [0; 64])),
    ];
    let mut world = world();
    for (name, sign) in table {
        let bytes = world.forge(|_| (), sign);
        assert_eq!(world.open(&bytes).unwrap_err(), HelloError::Signature, "{name}");
    }
    let honest = world.forge(|_| (), signed_by(1));
    assert!(world.open(&honest).is_ok());
}

/// ben, or who has ben's key, seals a hello of ann's anew with one field changed and the old signature.
#[test]
fn a_signature_over_any_other_field_is_refused() {
    let fields = [
        ("node", 0..32),
        ("run counter", 32..40),
        ("run random", 40..56),
        ("hello sequence", 56..64),
        ("ephemeral key", 64..64 + PUBLIC_BYTES),
        ("first frames", 64 + PUBLIC_BYTES..64 + PUBLIC_BYTES + FRAMES.len()),
    ];
    let mut world = world();
    for (name, range) in fields {
        for position in [range.start, range.end - 1] {
            let original = std::cell::RefCell::new(Vec::new());
            let bytes = world.forge(
                |body| {
                    original.replace(body.clone());
                    body[position] ^= 1;
                },
                |session| {
                    // As ann hashed it: whatever her hash leaves out, her signature leaves out.
                    let opening = Opening { k0: Secret::new([0; 32]), th0: session.th0 };
                    let body_hash = opening.session(&original.borrow()).body_hash;
                    identity(1).sign(labels::HELLO_SIGNATURE, &[&session.th0, &body_hash])
                },
            );
            assert_eq!(world.open(&bytes).unwrap_err(), HelloError::Signature, "{name}");
        }
    }
    // Another node's name on it, with that node's true signature, is that node's hello and nobody else's.
    let bytes = world.forge(|body| body[..32].copy_from_slice(identity(3).id().as_bytes()), signed_by(3));
    assert_eq!(world.open(&bytes).unwrap().node, identity(3).id());
}

#[test]
fn keys_of_small_order_are_refused() {
    let mut world = world();
    // As node: the neutral element, under which a signature of zeros with R = neutral would verify if not strict.
    let bytes = world.forge(
        |body| {
            body[..32].fill(0);
            body[0] = 1;
        },
        |_| {
            let mut signature = [0; 64];
            signature[0] = 1;
            signature
        },
    );
    assert_eq!(world.open(&bytes).unwrap_err(), HelloError::Signature);
    // As ephemeral key.
    let x25519 = 64 + PUBLIC_BYTES - 32..64 + PUBLIC_BYTES;
    let bytes = world.forge(|body| body[x25519].fill(0), signed_by(1));
    assert_eq!(world.open(&bytes).unwrap_err(), HelloError::Key);
}

/// The root depends on everything that the two agreed on.
#[test]
fn a_root_is_bound_to_both_runs_and_all_that_was_said() {
    let base = || Session { k0: Secret::new([1; 32]), th0: [2; 32], body_hash: [3; 32] };
    let root = |session: Session, run: &Run, ciphertext: u8, secret: u8| {
        session.root(run, &[ciphertext; CIPHERTEXT_BYTES], &Secret::new([secret; 32]))
    };
    let roots = [
        root(base(), &BEN_RUN, 4, 5),
        root(Session { k0: Secret::new([0; 32]), ..base() }, &BEN_RUN, 4, 5),
        root(Session { th0: [0; 32], ..base() }, &BEN_RUN, 4, 5),
        root(Session { body_hash: [0; 32], ..base() }, &BEN_RUN, 4, 5),
        root(base(), &Run { counter: 9, ..BEN_RUN }, 4, 5),
        root(base(), &Run { random: [0; 16], ..BEN_RUN }, 4, 5),
        root(base(), &BEN_RUN, 0, 5),
        root(base(), &BEN_RUN, 4, 0),
    ];
    for (index, left) in roots.iter().enumerate() {
        for right in &roots[index + 1..] {
            assert_ne!(left.0, right.0);
        }
    }
}

#[test]
fn an_accept_of_one_hello_is_never_twice_under_one_key() {
    let mut world = world();
    let (bytes, _) = world.hello();
    let opened = world.open(&bytes).unwrap();
    let [first, second] = [0; 2].map(|_| {
        let (accept, _) = opened.accept(&BEN_RUN, &mut world.rng);
        accept[1 + CIPHERTEXT_BYTES..].to_vec()
    });
    // The same run sealed under the same key and nonce would be the same bytes.
    assert_ne!(first[..RUN_BYTES], second[..RUN_BYTES]);
}

#[test]
fn nothing_secret_is_shown() {
    let mut world = world();
    let (bytes, pending) = world.hello();
    let opened = world.open(&bytes).unwrap();
    let (_, root) = opened.accept(&BEN_RUN, &mut world.rng);
    let shown =
        format!("{:?} {pending:?} {root:?} {:?} {opened:?}", world.ann, root.pair(&ANN_RUN, &BEN_RUN));
    assert!(shown.contains("HelloPending(secret) Root(secret)"));
    let secret = format!("{:?}", root.0);
    assert!(!shown.contains(secret.trim_matches(['[', ']'])));
    assert!(!shown.contains("first frames") && !shown.contains(&format!("{FRAMES:?}")));
}
