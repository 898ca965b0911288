//! Chance within one event: all of it comes from the entropy that was handed in, so that an event can be repeated.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Letters of an id: 26 times 5 bits hold 128 and two more that are zero.
const ID_LETTERS: usize = 26;

#[derive(Debug)]
pub(crate) struct Chance {
    entropy: [u8; 32],
    /// Made when it is first asked: most events never do.
    random: Option<ChaCha20Rng>,
}

impl Chance {
    pub(crate) fn new(entropy: [u8; 32]) -> Chance {
        Chance { entropy, random: None }
    }

    fn random(&mut self) -> &mut ChaCha20Rng {
        let entropy = self.entropy;
        self.random.get_or_insert_with(|| ChaCha20Rng::from_seed(entropy))
    }

    /// A number from `low` to `high`, both included, each as likely. `low` is not above `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let last = high.wrapping_sub(low) as u64;
        let Some(count) = last.checked_add(1) else { return self.random().next_u64() as i64 };
        // What is above the greatest multiple of the count would make some numbers likelier: it is drawn again.
        let bound = u64::MAX - (u64::MAX % count + 1) % count;
        loop {
            let drawn = self.random().next_u64();
            if drawn <= bound {
                return low.wrapping_add((drawn % count) as i64);
            }
        }
    }

    /// A text of 128 random bits.
    pub(crate) fn id(&mut self) -> String {
        let mut bytes = [0; 16];
        self.random().fill_bytes(&mut bytes);
        let mut bits = u128::from_be_bytes(bytes);
        let mut id = String::with_capacity(ID_LETTERS);
        for _ in 0..ID_LETTERS {
            id.push(char::from(LETTERS[(bits & 31) as usize]));
            bits >>= 5;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_between_their_ends_and_reach_them() {
        let mut chance = Chance::new([3; 32]);
        for (low, high) in [(0, 0), (-1, 1), (5, 9), (i64::MIN, i64::MAX), (i64::MAX - 1, i64::MAX)] {
            let drawn: Vec<i64> = (0..200).map(|_| chance.between(low, high)).collect();
            assert!(drawn.iter().all(|number| (low..=high).contains(number)), "{low} to {high}: {drawn:?}");
            if high.checked_sub(low).is_some_and(|count| count < 10) {
                assert!(drawn.contains(&low) && drawn.contains(&high), "{low} to {high}");
            }
        }
    }

    #[test]
    fn the_same_entropy_gives_the_same_ids_and_no_id_twice() {
        let ids = |seed| {
            let mut chance = Chance::new([seed; 32]);
            [chance.id(), chance.id()]
        };
        let [first, second] = ids(1);
        assert_ne!(first, second);
        assert_eq!(first.len(), ID_LETTERS);
        assert_eq!(ids(1), [first.clone(), second]);
        assert_ne!(ids(2)[0], first);
    }
}
