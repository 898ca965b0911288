//! The envelope against everything that may be changed, moved or swapped in it.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;
use crate::text::hex;

const NUMBER: EnvelopeNumber = EnvelopeNumber { run: Run { counter: 3, random: [0xa; 16] }, count: 9 };

fn identity(number: u8) -> Identity {
    Identity::from_seed(&[number; 64])
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// From ann to ben.
fn envelope(payload: &[u8]) -> Vec<u8> {
    seal_envelope(&identity(1), NUMBER, &identity(2).card(5), payload, &mut rng(1)).unwrap()
}

fn open(bytes: &[u8]) -> Result<Envelope, EnvelopeError> {
    let ben = identity(2);
    open_envelope(&ben, &ben.card(5), bytes)
}

/// An envelope as anybody can seal it who has ben's card: the body of ann's, changed, with any signature.
fn forged(change: impl FnOnce(&mut Vec<u8>), sign: impl FnOnce(&[&[u8]]) -> [u8; 64]) -> Vec<u8> {
    let mut body = Zeroizing::new(identity(1).id().as_bytes().to_vec());
    body.extend_from_slice(&NUMBER.run.to_bytes());
    body.extend_from_slice(&NUMBER.count.to_be_bytes());
    body.extend_from_slice(b"payload");
    change(&mut body);
    seal_body(&identity(2).card(5), body, &mut rng(2), sign)
}

fn by(number: u8, purpose: &'static str) -> impl Fn(&[&[u8]]) -> [u8; 64] {
    move |fields| identity(number).sign(purpose, fields)
}

#[test]
fn an_envelope_opens_as_it_was_sealed_up_to_its_largest() {
    for payload in [&b""[..], b"payload", &vec![7; ENVELOPE_PAYLOAD_BYTES_MAX]] {
        let bytes = envelope(payload);
        assert_eq!(bytes.len(), ENVELOPE_OVERHEAD_BYTES + payload.len());
        let opened = open(&bytes).unwrap();
        assert_eq!((opened.sender(), opened.number(), opened.payload()), (identity(1).id(), NUMBER, payload));
        assert!(!format!("{opened:?}").contains("payload"));
    }
    let large = vec![7; ENVELOPE_PAYLOAD_BYTES_MAX + 1];
    let sealed = seal_envelope(&identity(1), NUMBER, &identity(2).card(5), &large, &mut rng(1));
    assert_eq!(sealed, Err(EnvelopeError::Payload(large.len())));
    assert_eq!(envelope(b"payload"), envelope(b"payload"), "all chance is handed in");
}

#[test]
fn any_changed_byte_and_any_cut_of_an_envelope_is_refused() {
    let bytes = envelope(b"payload");
    // Of the encapsulation every seventh: each costs a decapsulation.
    let is_tried = |position: &usize| {
        !(HEAD_BYTES..HEAD_BYTES + CIPHERTEXT_BYTES).contains(position) || position.is_multiple_of(7)
    };
    for position in (0..bytes.len()).filter(is_tried) {
        let mut changed = bytes.clone();
        changed[position] ^= 1 << (position % 8);
        assert!(open(&changed).is_err(), "byte {position}");
    }
    for length in (0..bytes.len()).step_by(13).chain([ENVELOPE_OVERHEAD_BYTES - 1, bytes.len() - 1]) {
        assert!(open(&bytes[..length]).is_err(), "cut to {length}");
    }
    let table = [
        ("nothing", vec![], EnvelopeError::Length(0)),
        ("version 2", [&[2], &bytes[1..]].concat(), EnvelopeError::Version(2)),
        ("suite 9", [&bytes[..1], &[9], &bytes[2..]].concat(), EnvelopeError::Suite(9)),
        ("longer", [bytes.as_slice(), &[0]].concat(), EnvelopeError::Seal),
        ("far too long", vec![1; 400_000], EnvelopeError::Length(400_000)),
    ];
    for (name, changed, expected) in table {
        assert_eq!(open(&changed).unwrap_err(), expected, "{name}");
    }
}

#[test]
fn an_envelope_is_for_one_node_and_one_card() {
    let bytes = envelope(b"payload");
    let (ben, eve) = (identity(2), identity(3));
    let error = |identity: &Identity, card: &Card, bytes: &[u8]| {
        open_envelope(identity, card, bytes).map(|_| ()).unwrap_err()
    };
    assert_eq!(error(&eve, &eve.card(5), &bytes), EnvelopeError::Card);
    assert_eq!(error(&ben, &ben.card(6), &bytes), EnvelopeError::Card);
    // Readdressed on the outside.
    let readdressed = [&bytes[..2], &eve.card(5).hash(), &bytes[HEAD_BYTES..]].concat();
    assert_eq!(error(&eve, &eve.card(5), &readdressed), EnvelopeError::Seal);
    let newer = [&bytes[..2], &ben.card(6).hash(), &bytes[HEAD_BYTES..]].concat();
    assert_eq!(error(&ben, &ben.card(6), &newer), EnvelopeError::Seal);
}

#[test]
fn what_the_named_node_did_not_sign_for_this_one_is_refused() {
    let honest = forged(|_| (), by(1, labels::ENVELOPE_SIGNATURE));
    assert_eq!(open(&honest).unwrap().payload(), b"payload");
    let eve = identity(3).id();
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("signed by another", forged(|_| (), by(3, labels::ENVELOPE_SIGNATURE))),
        (
            "naming another",
            forged(|body| body[..32].copy_from_slice(eve.as_bytes()), by(1, labels::ENVELOPE_SIGNATURE)),
        ),
        ("signed as a hello", forged(|_| (), by(1, labels::HELLO_SIGNATURE))),
        ("signed as a card", forged(|_| (), by(1, labels::CARD_SIGNATURE))),
        ("a body of small order", forged(|body| body[..32].fill(0), |_| [0; 64])),
    ];
    for (name, bytes) in table {
        assert_eq!(open(&bytes).unwrap_err(), EnvelopeError::Signature, "{name}");
    }
    // Each signed field as it would be in another envelope: that of ann to eve, passed on to ben by eve.
    for field in 0..4 {
        let moved = forged(
            |_| (),
            |fields| {
                let other = [9; 64];
                let mut fields = fields.to_vec();
                fields[field] = &other[..fields[field].len().min(32)];
                identity(1).sign(labels::ENVELOPE_SIGNATURE, &fields)
            },
        );
        assert_eq!(open(&moved).unwrap_err(), EnvelopeError::Signature, "field {field}");
    }
    let short = forged(|body| body.truncate(40), by(1, labels::ENVELOPE_SIGNATURE));
    assert_eq!(open(&short).unwrap_err(), EnvelopeError::Length(short.len()));
}

#[test]
fn an_encapsulation_of_small_order_is_refused() {
    let mut bytes = envelope(b"payload");
    bytes[HEAD_BYTES + CIPHERTEXT_BYTES - 32..HEAD_BYTES + CIPHERTEXT_BYTES].fill(0);
    assert_eq!(open(&bytes).unwrap_err(), EnvelopeError::Key);
}

#[test]
fn later_envelopes_have_greater_numbers() {
    let next = EnvelopeNumber { count: 10, ..NUMBER };
    let next_run = EnvelopeNumber { run: Run { counter: 4, random: [0; 16] }, count: 0 };
    assert!(NUMBER < next && next < next_run);
}

/// RFC 9180, A.1.1 (X25519, HKDF-SHA256, AES-128-GCM), and the vectors of draft-ietf-hpke-pq for X-Wing, HKDF-SHA256,
/// ChaCha20-Poly1305 (ikmE is the encapsulation's randomness): the ones there are for the parts of this suite.
#[test]
fn hpke_as_in_rfc_9180_and_with_x_wing_as_in_its_draft() {
    use hpke::aead::{AesGcm128, ChaCha20Poly1305};
    use hpke::kem::X25519HkdfSha256;

    let secret = hex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8");
    let enc = hex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
    let mut context = setup_receiver::<AesGcm128, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &<X25519HkdfSha256 as hpke::Kem>::PrivateKey::from_bytes(&secret).unwrap(),
        &<X25519HkdfSha256 as hpke::Kem>::EncappedKey::from_bytes(&enc).unwrap(),
        &hex("4f6465206f6e2061204772656369616e2055726e"),
    )
    .unwrap();
    let ciphertext = concat!(
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a9",
        "6d8770ac83d07bea87e13c512a",
    );
    assert_eq!(context.open(&hex(ciphertext), b"Count-0").unwrap(), b"Beauty is truth, truth beauty");

    let secret = hex("3ec47fa82dd5689d27c6190e724c74ec8f608df3331ce331929e37b829676630");
    let secret = SecretKey::from_bytes(&secret).unwrap();
    let randomness = concat!(
        "2a1c0a3745fe8a48fb62034d300f54dfe1974a5b2e169e580a8789cb1cf5fd19",
        "0fc00f3fd899594e01a8b15334b9f3fa03d8de44da86e19f5776850fb689e6c8",
    );
    let (enc, mut context) = setup_sender_with_rng::<ChaCha20Poly1305, HkdfSha256, XWing>(
        &OpModeS::Base,
        &<XWing as hpke::Kem>::sk_to_pk(&secret),
        b"4f6465206f6e2061204772656369616e2055726e",
        &mut Replayed(hex(randomness)),
    )
    .unwrap();
    let plaintext = b"4265617574792069732074727574682c20747275746820626561757479";
    let ciphertext = context.seal(plaintext, b"Count-0").unwrap();
    let expected = concat!(
        "c5c591f99092d5e38df0a52699af249c66f8275a863423c076de8147a53e65cc",
        "584041c963b77a7e59ea93841b1339b5efda8909b71f74bb0073ad62e899de31",
        "0c1566dea2fd29eba377",
    );
    assert_eq!(ciphertext, hex(expected));
    let mut context = setup_receiver::<ChaCha20Poly1305, HkdfSha256, XWing>(
        &OpModeR::Base,
        &secret,
        &enc,
        b"4f6465206f6e2061204772656369616e2055726e",
    )
    .unwrap();
    assert_eq!(context.open(&ciphertext, b"Count-0").unwrap(), plaintext);
}

/// Hands out what a vector says was drawn.
struct Replayed(Vec<u8>);

impl rand_core::TryRng for Replayed {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.copy_from_slice(&self.0.drain(..bytes.len()).collect::<Vec<_>>());
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Replayed {}
