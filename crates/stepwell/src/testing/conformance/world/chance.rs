//! Chance that comes out the same on every run.

/// A small generator of random numbers from a seed (xorshift).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number of the sequence.
    pub const fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, which is at least one.
    pub fn below(&mut self, n: usize) -> usize {
        let drawn = usize::try_from(self.draw() >> 33).unwrap_or(0);
        drawn % n
    }
}
