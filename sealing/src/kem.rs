//! X-Wing (X25519 + ML-KEM-768, draft-connolly-cfrg-xwing-kem): the only module that names the KEM.
//!
//! Public keys whose X25519 part is of small order are refused, and so are encapsulations whose X25519 part contributes
//! nothing: either would leave the shared secret to ML-KEM alone.
//!
//! AWS-LC decapsulates, which needs nothing random and takes a third of the time that it takes in Rust. Fresh secrets come
//! by [`FreshKeys`]: from randomness that is handed in, so that everything can be replayed, or from AWS-LC, which draws
//! its own, in a sixth of the time. Both make the same keys and ciphertexts of the same kind.

use std::fmt;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::digest::{self, SHA3_256};
use aws_lc_rs::kem::{DecapsulationKey, EncapsulationKey, ML_KEM_768};
use ml_kem::{FromSeed, KeyExport, MlKem768};
use rand_core::CryptoRng;
use shake::{ExtendableOutput, Shake256, Update, XofReader};
use x_wing::{CIPHERTEXT_SIZE, ENCAPSULATION_KEY_SIZE, ENCAPSULATION_RANDOMNESS_SIZE};
use zeroize::{Zeroize, Zeroizing};

use crate::schedule::Secret;

/// Bytes of a public key.
pub(crate) const PUBLIC_BYTES: usize = ENCAPSULATION_KEY_SIZE;
/// Bytes of an encapsulation.
pub(crate) const CIPHERTEXT_BYTES: usize = CIPHERTEXT_SIZE;
const X25519_BYTES: usize = 32;
/// Where the X25519 part of a public key begins.
const X25519_OFFSET: usize = PUBLIC_BYTES - X25519_BYTES;
/// Where the X25519 part of an encapsulation begins.
const X25519_CIPHERTEXT_OFFSET: usize = CIPHERTEXT_BYTES - X25519_BYTES;
/// Bytes of the seed of an ML-KEM key (FIPS 203: d and z).
const ML_KEM_SEED_BYTES: usize = 64;
/// What the combiner ends with.
const LABEL: &[u8; 6] = br"\.//^\";

/// What a shared secret is of: both secrets, and the X25519 part of the ciphertext and of the public key.
struct Shared<'a> {
    ml_kem: &'a [u8],
    x25519: &'a [u8],
    ciphertext: &'a [u8],
    public: &'a [u8],
}

impl Shared<'_> {
    /// The combiner of X-Wing.
    fn combine(self) -> Secret {
        let mut context = digest::Context::new(&SHA3_256);
        for part in [self.ml_kem, self.x25519, self.ciphertext, self.public, LABEL] {
            context.update(part);
        }
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(context.finish().as_ref());
        secret
    }
}

/// The secret half, expanded. Erased when dropped (`OPENSSL_free` cleanses).
pub struct KemSecret {
    ml_kem: DecapsulationKey,
    x25519: PrivateKey,
    public: KemPublic,
}

/// The public half, valid by construction.
#[derive(Clone, PartialEq, Eq)]
pub struct KemPublic(Box<[u8; PUBLIC_BYTES]>);

/// Makes fresh secrets: whatever randomness is handed in, or [`KeySource::Library`].
pub trait FreshKeys {
    /// A fresh secret key.
    #[doc(hidden)]
    fn kem_secret(&mut self) -> KemSecret;

    /// A fresh secret for whoever has the secret half of this key.
    #[doc(hidden)]
    fn encapsulate(&mut self, to: &KemPublic) -> ([u8; CIPHERTEXT_BYTES], Secret);
}

/// From randomness that is handed in: the same of it makes the same.
impl<R: CryptoRng> FreshKeys for R {
    fn kem_secret(&mut self) -> KemSecret {
        let mut seed = Zeroizing::new([0; 32]);
        self.fill_bytes(seed.as_mut_slice());
        KemSecret::from_seed(&seed)
    }

    fn encapsulate(&mut self, to: &KemPublic) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        let mut randomness = Zeroizing::new([0; ENCAPSULATION_RANDOMNESS_SIZE]);
        self.fill_bytes(randomness.as_mut_slice());
        to.encapsulate_deterministic(&randomness)
    }
}

/// Where fresh secrets come from.
#[derive(Debug)]
pub enum KeySource<'a, R> {
    /// From randomness that is handed in, so that everything can be replayed.
    Handed(&'a mut R),
    /// From the cryptographic library, which draws its own of the system.
    Library,
}

impl<R: CryptoRng> FreshKeys for KeySource<'_, R> {
    fn kem_secret(&mut self) -> KemSecret {
        match self {
            KeySource::Handed(rng) => rng.kem_secret(),
            KeySource::Library => KemSecret::drawn_by_library(),
        }
    }

    fn encapsulate(&mut self, to: &KemPublic) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        match self {
            KeySource::Handed(rng) => FreshKeys::encapsulate(*rng, to),
            KeySource::Library => to.encapsulate_by_library(),
        }
    }
}

/// What fails only for want of randomness or memory, for which AWS-LC ends the process itself.
const DRAWN: &str = "AWS-LC gives randomness and memory or ends the process";

impl KemSecret {
    /// As the draft expands a seed of 32 bytes.
    pub(crate) fn from_seed(seed: &[u8; 32]) -> KemSecret {
        let mut expanded = Zeroizing::new([0; ML_KEM_SEED_BYTES + X25519_BYTES]);
        let mut shake = Shake256::default();
        shake.update(seed);
        shake.finalize_xof().read(expanded.as_mut_slice());
        let (of_ml_kem, of_x25519) = expanded.split_at(ML_KEM_SEED_BYTES);

        let mut ml_kem_seed = of_ml_kem.try_into().expect("the seed of an ML-KEM key has 64 bytes");
        let (secret, public) = MlKem768::from_seed(&ml_kem_seed);
        ml_kem_seed.zeroize();
        // AWS-LC takes no seed through its Rust interface.
        #[expect(deprecated, reason = "the seed is what is kept; this form is only handed on")]
        let bytes = Zeroizing::new(ml_kem::ExpandedKeyEncoding::to_expanded_bytes(&secret).0);
        let ml_kem = DecapsulationKey::new(&ML_KEM_768, bytes.as_slice())
            .expect("an expanded key of ML-KEM-768 has 2,400 bytes");
        let x25519 = PrivateKey::from_private_key(&X25519, of_x25519)
            .expect("any 32 bytes are a secret key of X25519");
        KemSecret::new(ml_kem, &public.to_bytes(), x25519)
    }

    fn drawn_by_library() -> KemSecret {
        let ml_kem = DecapsulationKey::generate(&ML_KEM_768).expect(DRAWN);
        let public = ml_kem.encapsulation_key().and_then(|key| key.key_bytes());
        let public = public.expect("a key that was generated holds its public half");
        KemSecret::new(ml_kem, public.as_ref(), PrivateKey::generate(&X25519).expect(DRAWN))
    }

    fn new(ml_kem: DecapsulationKey, ml_kem_public: &[u8], x25519: PrivateKey) -> KemSecret {
        let mut public = Box::new([0; PUBLIC_BYTES]);
        let (of_ml_kem, of_x25519) = public.split_at_mut(X25519_OFFSET);
        of_ml_kem.copy_from_slice(ml_kem_public);
        of_x25519.copy_from_slice(&public_of(&x25519));
        KemSecret { ml_kem, x25519, public: KemPublic(public) }
    }

    pub(crate) fn generate(keys: &mut impl FreshKeys) -> KemSecret {
        keys.kem_secret()
    }

    pub(crate) fn public(&self) -> &KemPublic {
        &self.public
    }

    /// The shared secret of an encapsulation; none if its X25519 part contributes nothing. An encapsulation for another
    /// key or a changed one gives another secret, not an error.
    pub(crate) fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT_BYTES]) -> Option<Secret> {
        let (of_ml_kem, of_x25519) = ciphertext.split_at(X25519_CIPHERTEXT_OFFSET);
        if is_small_order(of_x25519) {
            return None;
        }
        let ml_kem = self.ml_kem.decapsulate(of_ml_kem.into()).ok()?;
        let public = self.public.x25519();
        agree(&self.x25519, of_x25519, |x25519| {
            Shared { ml_kem: ml_kem.as_ref(), x25519, ciphertext: of_x25519, public }.combine()
        })
    }
}

/// The public half of a key of X25519.
fn public_of(secret: &PrivateKey) -> [u8; X25519_BYTES] {
    let public = secret.compute_public_key().expect("a secret key of X25519 has a public half");
    public.as_ref().try_into().expect("a public key of X25519 has 32 bytes")
}

/// What both keys of X25519 share, handed to `combine`; none if that is zero.
fn agree(secret: &PrivateKey, public: &[u8], combine: impl FnOnce(&[u8]) -> Secret) -> Option<Secret> {
    agreement::agree(secret, UnparsedPublicKey::new(&X25519, public), (), |shared| Ok(combine(shared))).ok()
}

impl KemPublic {
    /// None if the bytes are no valid ML-KEM key or the X25519 part is of small order.
    pub(crate) fn from_bytes(bytes: &[u8; PUBLIC_BYTES]) -> Option<KemPublic> {
        let (of_ml_kem, of_x25519) = bytes.split_at(X25519_OFFSET);
        let is_valid = is_below_modulus(of_ml_kem) && !is_small_order(of_x25519);
        is_valid.then(|| KemPublic(Box::new(*bytes)))
    }

    pub(crate) fn to_bytes(&self) -> [u8; PUBLIC_BYTES] {
        *self.0
    }

    fn x25519(&self) -> &[u8] {
        &self.0[X25519_OFFSET..]
    }

    pub(crate) fn encapsulate(&self, keys: &mut impl FreshKeys) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        keys.encapsulate(self)
    }

    pub(crate) fn encapsulate_deterministic(
        &self,
        randomness: &[u8; ENCAPSULATION_RANDOMNESS_SIZE],
    ) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        let key = x_wing::EncapsulationKey::try_from(self.0.as_slice())
            .expect("a public key is made of what was checked");
        let (ciphertext, mut shared) = key.encapsulate_deterministic(randomness.into());
        let secret = Zeroizing::new(shared.0);
        shared.0.zeroize();
        (ciphertext.0, secret)
    }

    fn encapsulate_by_library(&self) -> ([u8; CIPHERTEXT_BYTES], Secret) {
        let ml_kem = EncapsulationKey::new(&ML_KEM_768, &self.0[..X25519_OFFSET])
            .expect("a public key of ML-KEM-768 has 1,184 bytes");
        let (of_ml_kem, ml_kem) = ml_kem.encapsulate().expect("a key below the modulus is valid");
        let x25519 = PrivateKey::generate(&X25519).expect(DRAWN);
        let mut ciphertext = [0; CIPHERTEXT_BYTES];
        ciphertext[..X25519_CIPHERTEXT_OFFSET].copy_from_slice(of_ml_kem.as_ref());
        ciphertext[X25519_CIPHERTEXT_OFFSET..].copy_from_slice(&public_of(&x25519));
        let of_x25519 = &ciphertext[X25519_CIPHERTEXT_OFFSET..];
        let secret = agree(&x25519, self.x25519(), |x25519| {
            Shared { ml_kem: ml_kem.as_ref(), x25519, ciphertext: of_x25519, public: self.x25519() }.combine()
        });
        (ciphertext, secret.expect("a key that is not of small order shares more than zero"))
    }
}

/// Whether the 768 numbers of 12 bits that a public key of ML-KEM begins with are below its modulus (FIPS 203, 7.2).
fn is_below_modulus(public: &[u8]) -> bool {
    const MODULUS: u16 = 3_329;
    const NUMBERS_BYTES: usize = 768 * 12 / 8;
    public[..NUMBERS_BYTES].chunks_exact(3).all(|bytes| {
        let [low, middle, high] = [bytes[0], bytes[1], bytes[2]].map(u16::from);
        (low | (middle & 0xf) << 8) < MODULUS && (middle >> 4 | high << 4) < MODULUS
    })
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
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

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

    /// What either source makes opens as X-Wing does by another implementation, and the other way round.
    #[test]
    fn both_sources_and_another_implementation_agree() {
        use x_wing::{Decapsulator, TryDecapsulate};

        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let theirs = x_wing::DecapsulationKeyRejectNonContrib::from([4; 32]);
        let bytes = theirs.encapsulation_key().to_bytes().0;
        let public = KemPublic::from_bytes(&bytes).unwrap();
        assert!(KemSecret::from_seed(&[4; 32]).public() == &public);
        for is_handed in [true, false] {
            let mut source = match is_handed {
                true => KeySource::Handed(&mut rng),
                false => KeySource::Library,
            };
            let (ciphertext, shared) = public.encapsulate(&mut source);
            assert_eq!(theirs.try_decapsulate(&ciphertext.into()).unwrap().0, *shared, "{is_handed}");
            let secret = KemSecret::generate(&mut source);
            let copy = KemPublic::from_bytes(&secret.public().to_bytes()).unwrap();
            let (ciphertext, shared) = copy.encapsulate_deterministic(&[5; 64]);
            assert_eq!(secret.decapsulate(&ciphertext).unwrap(), shared, "{is_handed}");
            let (ciphertext, shared) = copy.encapsulate(&mut source);
            assert_eq!(secret.decapsulate(&ciphertext).unwrap(), shared, "{is_handed}");
            // One for another key or a changed one is another secret.
            let mut changed = ciphertext;
            changed[0] ^= 1;
            assert!(secret.decapsulate(&changed).unwrap() != shared);
            assert!(KemSecret::from_seed(&[6; 32]).decapsulate(&ciphertext).unwrap() != shared);
        }
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
