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
            .encrypt(&Nonce::from(*nonce), Payload { msg: plaintext, aad: header })
            .expect("nothing sealed here is near the 64 GiB that one nonce can seal")
    }

    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        ciphertext: &[u8],
    ) -> Result<Vec<u8>, OpenError> {
        self.0.decrypt(&Nonce::from(*nonce), Payload { msg: ciphertext, aad: header }).map_err(|_| OpenError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hex;

    /// Test case 16 of the GCM specification (McGrew and Viega, "The Galois/Counter Mode of Operation", B).
    #[test]
    fn aes_256_gcm_as_specified() {
        let key: [u8; 32] =
            hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308").try_into().unwrap();
        let nonce: [u8; 12] = hex("cafebabefacedbaddecaf888").try_into().unwrap();
        let header = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let plaintext = hex(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        ));
        let ciphertext = hex(concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ));
        let key = AeadKey::new(&key);
        assert_eq!(key.seal(&nonce, &header, &plaintext), ciphertext);
        assert_eq!(key.open(&nonce, &header, &ciphertext), Ok(plaintext));
    }
}
