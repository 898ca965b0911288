//! The primitives against known answers that are not ours: Wycheproof's cases of what is used, as kept in
//! `tests/vectors/wycheproof`, most of them made to be refused.

use hkdf::Hkdf;
use ml_kem::{Decapsulate, FromSeed, MlKem768, ml_kem_768};
use sha2::Sha256;

use crate::aead::{AeadKey, OpenError};
use crate::identity::{NodeId, SIGNATURE_BYTES};
use crate::schedule::extract;

/// The cases of a file: their numbers and fields, bytes as bytes.
fn cases<const FIELDS: usize>(file: &str) -> Vec<(&str, [Vec<u8>; FIELDS], &str)> {
    let case = |line| {
        let mut fields = str::split(line, ' ');
        let number = fields.next().unwrap();
        let bytes = std::array::from_fn(|_| match fields.next().unwrap() {
            "-" => Vec::new(),
            hex => crate::text::hex(hex),
        });
        (number, bytes, fields.next().unwrap_or_default())
    };
    file.lines().filter(|line| !line.starts_with('#')).map(case).collect()
}

#[test]
fn ed25519_verifies_what_is_valid_and_nothing_else() {
    let cases = cases(include_str!("../tests/vectors/wycheproof/ed25519.txt"));
    assert_eq!(cases.len(), 151);
    for (number, [key, message, signature], result) in cases {
        let key = NodeId::from_bytes(key.try_into().unwrap());
        let verifies = <[u8; SIGNATURE_BYTES]>::try_from(signature)
            .is_ok_and(|signature| key.verifies_message(&message, &signature));
        assert_eq!(verifies, result == "valid", "case {number}");
    }
}

#[test]
fn x25519_gives_the_shared_secrets_and_tells_those_that_are_zero() {
    use x25519_dalek::{PublicKey, StaticSecret};

    for (number, [public, private, shared], kind) in
        cases(include_str!("../tests/vectors/wycheproof/x25519.txt"))
    {
        let [public, private, shared] =
            [public, private, shared].map(|bytes| <[u8; 32]>::try_from(bytes).unwrap());
        let found = StaticSecret::from(private).diffie_hellman(&PublicKey::from(public));
        assert_eq!(found.as_bytes(), &shared, "case {number}");
        assert_eq!(found.was_contributory(), kind != "zero", "case {number}");
        assert_eq!(crate::kem::is_small_order(&public), kind == "zero", "case {number}");
    }
}

#[test]
fn aes_256_gcm_opens_what_is_valid_and_nothing_else() {
    let cases = cases(include_str!("../tests/vectors/wycheproof/aes_gcm.txt"));
    for (number, [key, nonce, header, plaintext, ciphertext, tag], result) in cases {
        let key = AeadKey::new(&key.try_into().unwrap());
        let nonce = nonce.try_into().unwrap();
        let sealed = [ciphertext, tag].concat();
        let opened = key.open(&nonce, &header, &sealed);
        if result == "valid" {
            assert_eq!(key.seal(&nonce, &header, &plaintext), sealed, "case {number}");
            assert_eq!(opened, Ok(plaintext), "case {number}");
        } else {
            assert_eq!(opened, Err(OpenError), "case {number}");
        }
    }
}

#[test]
fn ml_kem_768_decapsulates_as_known_and_implicitly_rejects() {
    for (number, [seed, ciphertext, secret], _) in
        cases(include_str!("../tests/vectors/wycheproof/mlkem_768.txt"))
    {
        let (key, _) = MlKem768::from_seed(&seed.as_slice().try_into().unwrap());
        let found = key.decapsulate(&ciphertext.as_slice().try_into().unwrap());
        assert_eq!(found.as_slice(), secret, "case {number}");
    }
}

#[test]
fn ml_kem_768_encapsulates_as_known_and_refuses_keys_beyond_the_modulus() {
    let cases = cases(include_str!("../tests/vectors/wycheproof/mlkem_768_encaps.txt"));
    for (number, [randomness, key, ciphertext, secret], result) in cases {
        let key = ml_kem_768::EncapsulationKey::new(&key.as_slice().try_into().unwrap());
        assert_eq!(key.is_ok(), result == "valid", "case {number}");
        if let Ok(key) = key {
            let found = key.encapsulate_deterministic(&randomness.as_slice().try_into().unwrap());
            assert_eq!(
                (found.0.as_slice(), found.1.as_slice()),
                (&ciphertext[..], &secret[..]),
                "case {number}"
            );
        }
    }
}

#[test]
fn hkdf_sha256_gives_the_outputs() {
    for (number, [input, salt, info, expected], _) in
        cases(include_str!("../tests/vectors/wycheproof/hkdf_sha256.txt"))
    {
        let mut output = vec![0; expected.len()];
        let secret = extract(&salt, &input);
        Hkdf::<Sha256>::from_prk(secret.as_slice()).unwrap().expand(&info, &mut output).unwrap();
        assert_eq!(output, expected, "case {number}");
    }
}
