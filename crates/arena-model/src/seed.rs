//! Verifiable randomness: a secret seed, its public commitment, and the streams derived from it.
//!
//! The stream for a purpose is ChaCha20, keyed with HMAC-SHA-256(seed, purpose), stream 0, read as little-endian
//! 64-bit words. A number below `n`: draw words until one is below the largest multiple of `n`, then take it modulo
//! `n`. A program in any language can repeat these steps from the seed.

use std::collections::BTreeSet;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::hex;

/// The 256-bit seed of one session or match. A session's seed is secret until the end.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

impl Seed {
    /// Returns the commitment, published when the session is created: SHA-256 of the seed, in hex.
    pub fn commitment(&self) -> String {
        hex::encode(&Sha256::digest(self.0))
    }

    /// Returns the seed in hex. The SHA-256 of these 32 bytes is the commitment.
    pub fn reveal(&self) -> String {
        hex::encode(&self.0)
    }

    /// Parses the output of [`Seed::reveal`].
    pub fn from_revealed(text: &str) -> Option<Seed> {
        hex::decode_canonical(text).map(Seed)
    }

    /// Returns the seed with `number` as its bytes: a 256-bit big-endian integer.
    pub fn from_number(number: u64) -> Seed {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        Seed(bytes)
    }

    /// Derives another seed for one purpose, such as one of several games that share this seed.
    pub fn derive(&self, purpose: &str) -> Seed {
        Seed(self.mac(purpose))
    }

    /// Derives a UUID for one purpose, from the first 16 bytes of [`Seed::derive`].
    pub fn derive_uuid(&self, purpose: &str) -> Uuid {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.mac(purpose)[..16]);
        Uuid::from_bytes(bytes)
    }

    /// Returns the stream of random numbers for one purpose. Equal seed and purpose give an equal stream.
    pub fn rng(&self, purpose: &str) -> SeedRng {
        SeedRng(ChaCha20Rng::from_seed(self.mac(purpose)))
    }

    fn mac(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}

/// A generator of random numbers, derived from a [`Seed`]. Its state between two draws can be stored as
/// `{key}:{number of 32-bit words drawn}`.
pub struct SeedRng(ChaCha20Rng);

impl Serialize for SeedRng {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", hex::encode(&self.0.get_seed()), self.0.get_word_pos()))
    }
}

impl<'de> Deserialize<'de> for SeedRng {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SeedRng, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = || {
            let (key, words) = text.split_once(':')?;
            let mut rng = ChaCha20Rng::from_seed(hex::decode_canonical(key)?);
            rng.set_word_pos(words.parse().ok()?);
            Some(SeedRng(rng))
        };
        read().ok_or_else(|| {
            D::Error::custom("expected a stream of random numbers: its key and the number of words drawn")
        })
    }
}

impl SeedRng {
    /// Draws a number in `0..n`, each equally likely.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a number below 0 can't be drawn");
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let word = self.0.next_u64();
            if word < limit {
                return word % n;
            }
        }
    }

    /// Draws a number in `0.0..1.0`; all multiples of 2⁻⁵³ in this range are equally likely.
    pub fn unit(&mut self) -> f64 {
        // The upper 53 bits: the precision of an f64.
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws `count` different numbers of `low..=high` that aren't in `taken`, and returns them in the order drawn.
    ///
    /// If a number is in `taken` or was drawn before, another one is drawn, as in the published definition of a deal.
    /// A range of n numbers needs at most about n ln n draws on average, for any `count`.
    ///
    /// # Panics
    /// If there are fewer than `count` such numbers. The check of a challenge's options prevents this.
    pub fn distinct(&mut self, count: usize, low: u64, high: u64, taken: &BTreeSet<u64>) -> Vec<u64> {
        let free = (high - low + 1) - taken.range(low..=high).count() as u64;
        assert!(count as u64 <= free, "{count} different numbers of {low}..={high} don't exist");
        let mut seen = Seen::of(high - low + 1, count + taken.len());
        for number in taken.range(low..=high) {
            seen.insert(number - low);
        }
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let number = self.below(high - low + 1);
            if seen.insert(number) {
                drawn.push(low + number);
            }
        }
        drawn
    }
}

/// The set of a range's numbers that are excluded or have been drawn.
enum Seen {
    /// One bit for each number, if the range is small compared to the count.
    Dense(Vec<u64>),
    Sparse(BTreeSet<u64>),
}

impl Seen {
    /// Creates an empty set for a range of `span` numbers of which about `count` will be drawn.
    fn of(span: u64, count: usize) -> Seen {
        // A number in a `BTreeSet` takes about 16 bytes.
        match usize::try_from(span.div_ceil(64)) {
            Ok(words) if words <= 16 + 2 * count => Seen::Dense(vec![0; words]),
            _ => Seen::Sparse(BTreeSet::new()),
        }
    }

    /// Returns true if the number is new.
    fn insert(&mut self, number: u64) -> bool {
        match self {
            Seen::Dense(words) => {
                // `Seen::of` has checked that the number of words fits into a usize.
                let (word, bit) = (&mut words[(number / 64) as usize], 1 << (number % 64));
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            Seen::Sparse(numbers) => numbers.insert(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Frozen values, computed by another implementation (docs/verify-deal.py). A change would make all recorded
    // sessions unverifiable.
    #[test]
    fn streams_and_commitments_are_the_published_ones() {
        let seed = Seed([7; 32]);
        let mut rng = seed.rng("psi/common");
        let drawn: Vec<u64> = (0..8).map(|_| rng.below(1000)).collect();
        assert_eq!(drawn, [326, 359, 920, 712, 602, 983, 286, 995]);
        assert_eq!(seed.commitment(), "4bb06f8e4e3a7715d201d573d0aa423762e55dabd61a2c02278fa56cc6d294e0");
    }

    #[test]
    fn a_number_is_a_seed_and_units_are_below_one() {
        let seed = Seed::from_number(258);
        assert!(seed.reveal().starts_with("000000") && seed.reveal().ends_with("0102"));
        assert_ne!(seed.derive("game/0"), seed.derive("game/1"));
        let mut rng = seed.rng("units");
        let units: Vec<f64> = (0..1000).map(|_| rng.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 1000.0;
        assert!((0.47..0.53).contains(&mean), "{mean}");
    }

    #[test]
    fn a_restored_stream_continues_at_the_same_position() {
        let mut rng = Seed([3; 32]).rng("food");
        for drawn in 0..40 {
            let text = serde_json::to_string(&rng).unwrap();
            let mut other: SeedRng = serde_json::from_str(&text).unwrap();
            assert_eq!(rng.below(1000), other.below(1000), "after {drawn}");
        }
        for text in ["\"\"", "\"00:1\"", "\"x:y\"", "7"] {
            assert!(serde_json::from_str::<SeedRng>(text).is_err(), "{text}");
        }
    }

    /// Draws numbers as `docs/verify-deal.py` defines it.
    fn drawn_as_published(rng: &mut SeedRng, count: usize, low: u64, high: u64, taken: &BTreeSet<u64>) -> Vec<u64> {
        let mut drawn = Vec::new();
        while drawn.len() < count {
            let number = low + rng.below(high - low + 1);
            if !taken.contains(&number) && !drawn.contains(&number) {
                drawn.push(number);
            }
        }
        drawn
    }

    #[test]
    fn distinct_numbers_follow_the_published_definition() {
        for (nth, (count, low, high, taken)) in [
            (10, 100, 900, 0..0),
            (801, 100, 900, 0..0),
            (300, 100, 900, 50..400),
            (500, 1, 900, 401..801),
            (200, 0, u64::from(u32::MAX), 0..3),
            (1, 7, 7, 8..9),
            (0, 1, 2, 0..0),
            (40, 1 << 40, (1 << 40) + 63, 0..0),
        ]
        .into_iter()
        .enumerate()
        {
            let (seed, taken) = (Seed::from_number(nth as u64), taken.collect::<BTreeSet<u64>>());
            let [mut one, mut other] = [seed.rng("numbers"), seed.rng("numbers")];
            let drawn = one.distinct(count, low, high, &taken);
            assert_eq!(drawn, drawn_as_published(&mut other, count, low, high, &taken), "{count} of {low}..={high}");
            // Both streams are at the same position.
            assert_eq!(one.below(u64::MAX), other.below(u64::MAX));
        }
    }

    #[test]
    fn all_numbers_of_a_range_take_n_log_n_draws() {
        let count = 30_000;
        let mut rng = Seed([5; 32]).rng("numbers");
        let drawn = rng.distinct(count, 1, count as u64, &BTreeSet::new());
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), count);
        // Each draw takes two 32-bit words. The expected number of draws is n ln n + 0.58 n = 327,000.
        let draws = rng.0.get_word_pos() / 2;
        assert!((200_000..600_000).contains(&draws), "{draws}");
    }

    #[test]
    fn purposes_are_independent_and_draws_stay_in_range() {
        let seed = Seed([1; 32]);
        assert_ne!(seed.rng("a").below(u64::MAX), seed.rng("b").below(u64::MAX));
        assert_eq!(seed.rng("a").below(u64::MAX), seed.rng("a").below(u64::MAX));
        let taken = BTreeSet::from([3, 4]);
        let mut drawn = seed.rng("c").distinct(3, 1, 5, &taken);
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 2, 5]);
    }
}
