//! AES-256-GCM: the only module that names the cipher, so that another backend can take its place.
//!
//! It knows keys, nonces and bytes; which key and which nonce is the key schedule's business, as is that no pair of them
//! ever seals twice.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};

/// Bytes that sealing adds: the authentication tag.
pub const TAG_BYTES: usize = 16;

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;

/// What does not open: it was made under another key, number or header, or was changed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sealed bytes do not open under this key, number and header; drop them")]
pub struct OpenError;

/// A key that seals and opens. The expanded key is erased when dropped.
pub(crate) struct AeadKey(Box<Aes256Gcm>);

impl AeadKey {
    pub(crate) fn new(key: &[u8; 32]) -> AeadKey {
        AeadKey(Box::new(Aes256Gcm::new(key.into())))
    }

    /// `plaintext` sealed, with its tag of [`TAG_BYTES`] at the end.
    pub(crate) fn seal(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], plaintext: &[u8]) -> Vec<u8> {
        self.0
            .encrypt(
                &Nonce::from(*nonce),
                Payload {
                    msg: plaintext,
                    aad: header,
                },
            )
            .expect("nothing sealed here is near the 64 GiB that one nonce can seal")
    }

    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        ciphertext: &[u8],
    ) -> Result<Vec<u8>, OpenError> {
        self.0
            .decrypt(
                &Nonce::from(*nonce),
                Payload {
                    msg: ciphertext,
                    aad: header,
                },
            )
            .map_err(|_| OpenError)
    }
}
