//! A cheap hash for keys that differ enough by themselves.

use std::hash::Hasher;

/// Keys of runs are random in their lower half, and few addresses and numbers are alike, so little
/// is left to do for a hash.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u128(u128::from(number));
    }

    fn write_usize(&mut self, address: usize) {
        self.write_u128(address as u128);
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn write_u128(&mut self, key: u128) {
        let mixed = (self.0.rotate_left(5) ^ (key >> 64) as u64).rotate_left(32) ^ key as u64;
        self.0 = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
