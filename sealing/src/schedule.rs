//! Hash, extract and expand: the only place that calls SHA-256 and HKDF, so that every input has a label and lengths.
//!
//! Inputs are joined as `length (4 bytes, big-endian) ‖ bytes` for the label first and then each field; so no two
//! different lists of inputs are ever the same bytes.

use hkdf::Hkdf;
use sha2::{Digest, Sha256, Sha512};
use zeroize::Zeroizing;

use crate::labels::{self, label};

/// A secret of 32 bytes that is erased when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// `label ‖ fields`, each behind its length: what is signed and what goes into `info` of an expand.
pub(crate) fn transcript(purpose: &str, fields: &[&[u8]]) -> Vec<u8> {
    let label = label(purpose);
    let mut bytes =
        Vec::with_capacity(fields.iter().fold(4 + label.len(), |sum, field| sum + 4 + field.len()));
    for field in std::iter::once(&label.as_slice()).chain(fields) {
        let length = u32::try_from(field.len()).expect("no input of the key schedule is 4 GiB long");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// `H(L purpose ‖ fields)`.
pub(crate) fn hash(purpose: &str, fields: &[&[u8]]) -> [u8; 32] {
    Sha256::digest(transcript(purpose, fields)).into()
}

/// Rounds of a safety number's hash, as many as Signal's: dear to whoever searches, milliseconds to whoever looks once.
const SAFETY_ROUNDS: usize = 5_200;

/// What the digits of a node's part of a safety number are made of.
pub(crate) fn safety_digest(node: &[u8; 32]) -> [u8; 64] {
    let first = Sha512::digest(transcript(labels::SAFETY_NUMBER, &[node]));
    let again = |digest, _| Sha512::new().chain_update(digest).chain_update(node).finalize();
    (1..SAFETY_ROUNDS).fold(first, again).into()
}

/// HKDF-Extract (RFC 5869, 2.2).
pub(crate) fn extract(salt: &[u8], input: &[u8]) -> Secret {
    let (mut output, _) = Hkdf::<Sha256>::extract(Some(salt), input);
    let secret = Zeroizing::new(output.into());
    zeroize::Zeroize::zeroize(output.as_mut_slice());
    secret
}

/// HKDF-Expand (RFC 5869, 2.3) to `N` bytes with `L purpose ‖ fields` as info.
pub(crate) fn expand<const N: usize>(
    secret: &[u8; 32],
    purpose: &str,
    fields: &[&[u8]],
) -> Zeroizing<[u8; N]> {
    let mut output = Zeroizing::new([0; N]);
    Hkdf::<Sha256>::from_prk(secret)
        .expect("32 bytes are as long as the hash, so they are a pseudorandom key")
        .expand(&transcript(purpose, fields), output.as_mut_slice())
        .expect("every output here is far below 255 hashes");
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hex;

    /// RFC 5869, A.1: the extract through this module, the expand through the crate that it calls (here every info has a
    /// label).
    #[test]
    fn hkdf_as_in_rfc_5869() {
        let secret = extract(&hex("000102030405060708090a0b0c"), &[0x0b; 22]);
        assert_eq!(
            secret.as_slice(),
            hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")
        );
        let mut output = [0; 42];
        Hkdf::<Sha256>::from_prk(secret.as_slice())
            .unwrap()
            .expand(&hex("f0f1f2f3f4f5f6f7f8f9"), &mut output)
            .unwrap();
        assert_eq!(
            output.as_slice(),
            hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
        );
    }

    #[test]
    fn every_input_stands_behind_its_length() {
        let expected = [
            &[0, 0, 0, 15][..],
            b"selvedge/1 pair",
            &[0, 0, 0, 2],
            b"ab",
            &[0, 0, 0, 0],
            &[0, 0, 0, 1],
            b"c",
        ];
        assert_eq!(transcript("pair", &[b"ab", b"", b"c"]), expected.concat());
        let [left, right] = [[&b"ab"[..], b"c"], [&b"a"[..], b"bc"]].map(|fields| hash("pair", &fields));
        assert_ne!(left, right);
    }

    #[test]
    fn a_label_makes_another_key() {
        let secret = [7; 32];
        let keys: std::collections::BTreeSet<[u8; 32]> =
            labels::ALL.iter().map(|purpose| *expand::<32>(&secret, purpose, &[])).collect();
        assert_eq!(keys.len(), labels::ALL.len());
    }
}
