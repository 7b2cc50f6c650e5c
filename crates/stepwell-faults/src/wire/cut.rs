//! When a connection is cut, and what is lost with it.

use super::Statement;

/// Loses the replies to some statements: the server executes one, and the connection is closed
/// before its answer passes.
pub struct LostReplies {
    matches: Box<dyn Fn(&Statement) -> bool + Send>,
    when: When,
    n_met: u64,
}

enum When {
    Nth(u64),
    Chance { percent: u64, state: u64 },
}

impl LostReplies {
    /// Of the statements that match, the reply to the n-th one from now on, counted from 1.
    pub fn nth(n: u64, matches: impl Fn(&Statement) -> bool + Send + 'static) -> Self {
        Self { matches: Box::new(matches), when: When::Nth(n), n_met: 0 }
    }

    /// Of the statements that match, so many in a hundred, by chance from a seed.
    pub fn by_chance(
        percent: u64,
        seed: u64,
        matches: impl Fn(&Statement) -> bool + Send + 'static,
    ) -> Self {
        let when = When::Chance { percent, state: seed | 1 };
        Self { matches: Box::new(matches), when, n_met: 0 }
    }

    /// Whether the reply to this statement is to be lost.
    pub(super) fn strikes(&mut self, statement: &Statement) -> bool {
        if !(self.matches)(statement) {
            return false;
        }
        self.n_met += 1;
        match &mut self.when {
            When::Nth(n) => self.n_met == *n,
            When::Chance { percent, state } => draw(state) % 100 < *percent,
        }
    }
}

impl std::fmt::Debug for LostReplies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LostReplies").field("n_met", &self.n_met).finish_non_exhaustive()
    }
}

/// A number that comes out the same for every seed (xorshift).
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
}
