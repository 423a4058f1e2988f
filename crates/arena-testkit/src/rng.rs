//! Seeded randomness for test plans.

/// A random generator (SplitMix64): the same seed gives the same plans.
#[derive(Debug)]
pub struct TestRng(pub u64);

impl TestRng {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a new generator, seeded with the next number of this one.
    pub fn fork(&mut self) -> TestRng {
        TestRng(self.roll())
    }
}
