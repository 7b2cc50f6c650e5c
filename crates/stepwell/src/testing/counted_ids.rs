//! Ids and chance that are the same on every run.

use std::sync::Mutex;

use stepwell_core::id::RunKey;

use crate::ports::Ids;

/// Run keys count up, and random numbers follow from a seed.
#[derive(Debug)]
pub struct CountedIds(Mutex<State>);

#[derive(Debug)]
struct State {
    next_key: u128,
    random: u64,
}

impl CountedIds {
    /// Ids that follow from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(State { next_key: 1, random: seed }))
    }

    /// Begins anew with another seed, and with keys that no other seed leads to.
    pub(super) fn reseed(&self, seed: u64) {
        let state = State { next_key: (u128::from(seed) << 64) + 1, random: seed };
        *self.0.lock().expect("no holder of the lock panics") = state;
    }
}

impl Ids for CountedIds {
    fn run_key(&self) -> RunKey {
        let mut state = self.0.lock().expect("no holder of the lock panics");
        let key = state.next_key;
        state.next_key += 1;
        RunKey(key)
    }

    fn random(&self) -> u64 {
        // SplitMix64: small, and good enough for jitter and salts in tests.
        let mut state = self.0.lock().expect("no holder of the lock panics");
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
