//! Hash, extract and expand: the only place that calls SHA-256 and HKDF, so that every input has a label and lengths.
//!
//! Inputs are joined as `length (4 bytes, big-endian) ‖ bytes` for the label first and then each field; so no two
//! different lists of inputs are ever the same bytes.

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::labels::label;

/// A secret of 32 bytes that is erased when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// `label ‖ fields`, each behind its length: what is signed and what goes into `info` of an expand.
pub(crate) fn transcript(purpose: &str, fields: &[&[u8]]) -> Vec<u8> {
    let label = label(purpose);
    let mut bytes = Vec::with_capacity(
        fields
            .iter()
            .fold(4 + label.len(), |sum, field| sum + 4 + field.len()),
    );
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

/// HKDF-Extract (RFC 5869, 2.2).
pub(crate) fn extract(salt: &[u8; 32], input: &[u8; 32]) -> Secret {
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
