//! X-Wing (X25519 + ML-KEM-768, draft-connolly-cfrg-xwing-kem): the only module that names the KEM.
//!
//! Public keys whose X25519 part is of small order are refused, and so are encapsulations whose X25519 part contributes
//! nothing: either would leave the shared secret to ML-KEM alone.

use std::fmt;

use rand_core::CryptoRng;
use x_wing::{
    CIPHERTEXT_SIZE, Ciphertext, DecapsulationKeyRejectNonContrib, Decapsulator, ENCAPSULATION_KEY_SIZE,
    ENCAPSULATION_RANDOMNESS_SIZE, EncapsulationKey, KeyExport, TryDecapsulate,
};
use zeroize::{Zeroize, Zeroizing};

use crate::schedule::Secret;

/// Bytes of a public key.
pub(crate) const PUBLIC_BYTES: usize = ENCAPSULATION_KEY_SIZE;
/// Bytes of an encapsulation.
pub(crate) const CIPHERTEXT_BYTES: usize = CIPHERTEXT_SIZE;
/// Where the X25519 part of a public key begins.
const X25519_OFFSET: usize = PUBLIC_BYTES - 32;

/// The secret half, grown from a seed of 32 bytes. Erased when dropped.
pub(crate) struct KemSecret(Box<DecapsulationKeyRejectNonContrib>);

/// The public half, valid by construction.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KemPublic(Box<EncapsulationKey>);

impl KemSecret {
    pub(crate) fn from_seed(seed: &[u8; 32]) -> KemSecret {
        KemSecret(Box::new(DecapsulationKeyRejectNonContrib::from(*seed)))
    }

    pub(crate) fn generate(rng: &mut impl CryptoRng) -> KemSecret {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut_slice());
        KemSecret::from_seed(&seed)
    }

    /// What it was grown from, for those that grow it themselves.
    pub(crate) fn seed(&self) -> Secret {
        let mut seed = self.0.to_bytes().0;
        let secret = Zeroizing::new(seed);
        seed.zeroize();
        secret
    }

    pub(crate) fn public(&self) -> KemPublic {
        KemPublic(Box::new(self.0.encapsulation_key().clone()))
    }

    /// The shared secret of an encapsulation; none if its X25519 part contributes nothing. An encapsulation for another
    /// key or a changed one gives another secret, not an error.
    pub(crate) fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT_BYTES]) -> Option<Secret> {
        let mut shared = self.0.try_decapsulate(&Ciphertext::from(*ciphertext)).ok()?;
        let secret = Zeroizing::new(shared.0);
        shared.0.zeroize();
        Some(secret)
    }
}

impl KemPublic {
    /// None if the bytes are no valid ML-KEM key or the X25519 part is of small order.
    pub(crate) fn from_bytes(bytes: &[u8; PUBLIC_BYTES]) -> Option<KemPublic> {
        if is_small_order(&bytes[X25519_OFFSET..]) {
            return None;
        }
        EncapsulationKey::try_from(bytes.as_slice()).ok().map(|key| KemPublic(Box::new(key)))
    }

    pub(crate) fn to_bytes(&self) -> [u8; PUBLIC_BYTES] {
        self.0.to_bytes().0
    }

    pub(crate) fn encapsulate(&self, rng: &mut impl CryptoRng) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        let mut randomness = Zeroizing::new([0; ENCAPSULATION_RANDOMNESS_SIZE]);
        rng.fill_bytes(randomness.as_mut_slice());
        self.encapsulate_deterministic(&randomness)
    }

    pub(crate) fn encapsulate_deterministic(
        &self,
        randomness: &[u8; ENCAPSULATION_RANDOMNESS_SIZE],
    ) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        let (ciphertext, mut shared) = self.0.encapsulate_deterministic(randomness.into());
        let secret = Zeroizing::new(shared.0);
        shared.0.zeroize();
        (ciphertext.0, secret)
    }
}

impl fmt::Debug for KemPublic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KemPublic")
    }
}

/// Whether the X25519 part of an encapsulation contributes to the secret, for decapsulation by others than [`KemSecret`].
pub(crate) fn is_encapsulation_contributing(ciphertext: &[u8; CIPHERTEXT_BYTES]) -> bool {
    !is_small_order(&ciphertext[CIPHERTEXT_BYTES - 32..])
}

/// The u-coordinates of small order on Curve25519 and its twist, and their forms not reduced modulo 2^255 - 19
/// (<https://cr.yp.to/ecdh.html>, "Validate"), little-endian and without the ignored top bit.
pub(crate) fn is_small_order(u: &[u8]) -> bool {
    const ORDER_8: [[u8; 32]; 2] = [
        [
            0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
            0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
        ],
        [
            0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
            0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
        ],
    ];
    let mut masked = [0; 32];
    masked.copy_from_slice(u);
    masked[31] &= 0x7f;
    let low = masked[1..].iter().all(|byte| *byte == 0) && masked[0] <= 1;
    // p - 1, p and p + 1 end in ec, ed, ee with every other byte of 2^255 - 1.
    let around_p = masked[31] == 0x7f
        && masked[1..31].iter().all(|byte| *byte == 0xff)
        && (0xec..=0xee).contains(&masked[0]);
    low || around_p || ORDER_8.contains(&masked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hex;

    #[test]
    fn x_wing_as_in_its_draft() {
        (1..=3).for_each(x_wing_as_in_vector);
    }

    fn x_wing_as_in_vector(number: u8) {
        let vector = |name: &str| {
            let start = format!("{number}.{name} = ");
            let mut lines = include_str!("../tests/vectors/xwing.txt").lines();
            hex(lines.find_map(|line| line.strip_prefix(&start)).unwrap())
        };
        let secret = KemSecret::from_seed(&vector("seed").try_into().unwrap());
        assert_eq!(secret.public().to_bytes().as_slice(), vector("pk"));
        let public = KemPublic::from_bytes(&vector("pk").try_into().unwrap()).unwrap();
        let (ciphertext, shared) = public.encapsulate_deterministic(&vector("eseed").try_into().unwrap());
        assert_eq!(ciphertext.as_slice(), vector("ct"));
        assert_eq!(shared.as_slice(), vector("ss"));
        assert_eq!(secret.decapsulate(&ciphertext).unwrap(), shared);
    }

    /// All points of small order, found by what makes them so: they add nothing to a shared secret, whatever the secret.
    #[test]
    fn public_keys_and_encapsulations_of_small_order_are_refused() {
        let mut small = vec![[0; 32], [0xff; 32], [0xff; 32], [0xff; 32]];
        small[1][0] = 0xec;
        small[2][0] = 0xed;
        small[3][0] = 0xee;
        let mut one = [0; 32];
        one[0] = 1;
        small.push(one);
        let order_8 = [
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        ];
        small.extend(order_8.map(|text| <[u8; 32]>::try_from(hex(text)).unwrap()));

        let secret = KemSecret::from_seed(&[1; 32]);
        let valid = secret.public().to_bytes();
        let (ciphertext, _) = secret.public().encapsulate_deterministic(&[2; 64]);
        for point in small {
            for top_bit in [0, 0x80] {
                let mut point = point;
                point[31] = point[31] & 0x7f | top_bit;
                let mut public = valid;
                public[X25519_OFFSET..].copy_from_slice(&point);
                assert!(KemPublic::from_bytes(&public).is_none(), "{point:02x?}");
                let mut encapsulation = ciphertext;
                encapsulation[CIPHERTEXT_BYTES - 32..].copy_from_slice(&point);
                assert!(secret.decapsulate(&encapsulation).is_none(), "{point:02x?}");
            }
        }
    }
}
