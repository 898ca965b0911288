//! AES-256-GCM: the only module that names the cipher, so that another backend can take its place.
//!
//! It knows keys, nonces and bytes; which key and which nonce is the key schedule's business, as is that no pair of them
//! ever seals twice. The cipher is that of AWS-LC: it draws nothing random here, so that the same key, nonce and bytes give
//! the same seal everywhere, and its expanded keys are erased when freed (`OPENSSL_free` cleanses).

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Bytes that sealing adds: the authentication tag.
pub const TAG_BYTES: usize = 16;

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;

/// What does not open: it was made under another key, number or header, or was changed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sealed bytes do not open under this key, number and header; drop them")]
pub struct OpenError;

/// A key that seals and opens. The expanded key is erased when dropped.
pub(crate) struct AeadKey(LessSafeKey);

impl AeadKey {
    pub(crate) fn new(key: &[u8; 32]) -> AeadKey {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("a key of AES-256 has 32 bytes");
        AeadKey(LessSafeKey::new(key))
    }

    /// `plaintext` sealed, with its tag of [`TAG_BYTES`] at the end.
    pub(crate) fn seal(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(plaintext.len() + TAG_BYTES);
        sealed.extend_from_slice(plaintext);
        let tag = self.seal_bytes(nonce, header, &mut sealed);
        sealed.extend_from_slice(&tag);
        sealed
    }

    /// Seals what stands in `message` behind its header, and appends the tag.
    pub(crate) fn seal_behind(&self, nonce: &[u8; NONCE_BYTES], header_bytes: usize, message: &mut Vec<u8>) {
        let (header, plaintext) = message.split_at_mut(header_bytes);
        let tag = self.seal_bytes(nonce, header, plaintext);
        message.extend_from_slice(&tag);
    }

    fn seal_bytes(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(header), bytes);
        let tag = sealed.expect("nothing sealed here is near the 64 GiB that one nonce can seal");
        tag.as_ref().try_into().expect("a tag of AES-256-GCM has 16 bytes")
    }

    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        ciphertext: &[u8],
    ) -> Result<Vec<u8>, OpenError> {
        let mut plaintext = Vec::new();
        self.open_into(nonce, header, ciphertext, &mut plaintext)?;
        Ok(plaintext)
    }

    /// Replaces what is in `plaintext`. It is empty if the ciphertext does not open.
    pub(crate) fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        ciphertext: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), OpenError> {
        plaintext.clear();
        let (ciphertext, tag) = ciphertext.split_last_chunk::<TAG_BYTES>().ok_or(OpenError)?;
        plaintext.resize(ciphertext.len(), 0);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_separate_gather(nonce, Aad::from(header), ciphertext, tag, plaintext);
        opened.map_err(|_| {
            plaintext.clear();
            OpenError
        })
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
        let mut message = [&header[..], &plaintext].concat();
        key.seal_behind(&nonce, header.len(), &mut message);
        assert_eq!(message, [&header[..], &ciphertext].concat());
        let mut opened = vec![1];
        assert_eq!(key.open_into(&nonce, &header, &ciphertext, &mut opened), Ok(()));
        assert_eq!(opened, plaintext);
        assert_eq!(key.open_into(&nonce, &header, &ciphertext[1..], &mut opened), Err(OpenError));
        assert_eq!(key.open_into(&nonce, &header, &[], &mut opened), Err(OpenError));
        assert_eq!(key.open(&nonce, &header, &ciphertext), Ok(plaintext));
    }
}
