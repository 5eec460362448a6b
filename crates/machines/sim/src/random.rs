//! A generator of pseudorandom numbers (SplitMix64).

/// A generator of pseudorandom numbers.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A random number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// A random event: true with a probability of `parts` per million.
    pub fn happens(&mut self, parts: u32) -> bool {
        parts > 0 && self.below(1_000_000) < u64::from(parts)
    }
}
