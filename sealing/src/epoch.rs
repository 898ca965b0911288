//! The change to the next root of a link: a fresh KEM secret is mixed into the root before, so that whoever gets the next
//! one cannot go back, and whoever had the one before cannot go on without having been there.
//!
//! ```text
//! root' = Expand(Extract(root, secret), L root ‖ H(L epoch ‖ n+1 ‖ offered key ‖ ciphertext))
//! ```
//!
//! The initiator of the link offers a fresh KEM key, the responder answers with an encapsulation to it. Both travel in
//! packets under the root before, which proves who they are of; so neither is signed. What it leaves to the link: when,
//! and that the root before is kept until the other side spoke under the next one.

use std::fmt;

use crate::kem::{CIPHERTEXT_BYTES, FreshKeys, KemPublic, KemSecret, PUBLIC_BYTES};
use crate::labels;
use crate::root::Root;
use crate::schedule::{Secret, expand, extract, hash};

/// Bytes of an offered key.
pub const OFFER_BYTES: usize = PUBLIC_BYTES;
/// Bytes of the ciphertext that accepts an offer.
pub const OFFER_ACCEPT_BYTES: usize = CIPHERTEXT_BYTES;

/// What the initiator keeps of its offer until it is accepted: the secret of one epoch change.
pub struct EpochOffer {
    secret: KemSecret,
    offered: [u8; OFFER_BYTES],
}

impl EpochOffer {
    /// An offer with a fresh key.
    pub fn new(keys: &mut impl FreshKeys) -> EpochOffer {
        let secret = KemSecret::generate(keys);
        let offered = secret.public().to_bytes();
        EpochOffer { secret, offered }
    }

    /// The key that is offered.
    pub fn offered(&self) -> &[u8; OFFER_BYTES] {
        &self.offered
    }

    /// The root of `epoch`, which comes after `root`, once the responder accepted with this ciphertext. None if the
    /// ciphertext is of small order.
    pub fn accepted(&self, root: &Root, epoch: u64, ciphertext: &[u8; OFFER_ACCEPT_BYTES]) -> Option<Root> {
        let secret = self.secret.decapsulate(ciphertext)?;
        Some(next(root, epoch, &self.offered, ciphertext, &secret))
    }
}

/// Accepts an offered key: the ciphertext to answer with, and the root of `epoch`, which comes after `root`. It must be
/// kept (synced) before the answer is sent. None if the key is invalid or of small order.
pub fn accept_offer(
    root: &Root,
    epoch: u64,
    offered: &[u8; OFFER_BYTES],
    keys: &mut impl FreshKeys,
) -> Option<([u8; OFFER_ACCEPT_BYTES], Root)> {
    let (ciphertext, secret) = KemPublic::from_bytes(offered)?.encapsulate(keys);
    let root = next(root, epoch, offered, &ciphertext, &secret);
    Some((ciphertext, root))
}

fn next(
    root: &Root,
    epoch: u64,
    offered: &[u8; OFFER_BYTES],
    ciphertext: &[u8; OFFER_ACCEPT_BYTES],
    secret: &Secret,
) -> Root {
    let agreed = hash(labels::EPOCH, &[&epoch.to_be_bytes(), offered, ciphertext]);
    Root(*expand(&extract(&root.0, secret.as_slice()), labels::ROOT, &[&agreed]))
}

impl fmt::Debug for EpochOffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EpochOffer(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn both_ends_have_the_next_root_and_everything_in_it_counts() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let root = Root([7; 32]);
        let offer = EpochOffer::new(&mut rng);
        let (ciphertext, next) = accept_offer(&root, 2, offer.offered(), &mut rng).unwrap();
        assert_eq!(offer.accepted(&root, 2, &ciphertext), Some(next.clone()));
        assert!(next != root);
        let (other, _) = accept_offer(&root, 2, offer.offered(), &mut rng).unwrap();
        let differing = [
            offer.accepted(&Root([8; 32]), 2, &ciphertext),
            offer.accepted(&root, 3, &ciphertext),
            offer.accepted(&root, 2, &other),
            EpochOffer::new(&mut rng).accepted(&root, 2, &ciphertext),
        ];
        for (at, differing) in differing.into_iter().enumerate() {
            assert!(differing.is_some_and(|root| root != next), "{at}");
        }
    }

    #[test]
    fn what_contributes_nothing_is_refused() {
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        let root = Root([7; 32]);
        let offer = EpochOffer::new(&mut rng);
        let mut offered = *offer.offered();
        offered[OFFER_BYTES - 32..].fill(0);
        assert!(accept_offer(&root, 2, &offered, &mut rng).is_none());
        let (mut ciphertext, _) = accept_offer(&root, 2, offer.offered(), &mut rng).unwrap();
        ciphertext[OFFER_ACCEPT_BYTES - 32..].fill(0);
        assert_eq!(offer.accepted(&root, 2, &ciphertext), None);
    }
}
