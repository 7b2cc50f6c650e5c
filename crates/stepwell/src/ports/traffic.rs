//! Counting what a store sends to its database.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::sync::atomic::{AtomicU64, Ordering};

/// What one handle of a store, with its clones, has sent to its database so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Statements within transactions; beginning and ending one is not counted.
    pub statements: u64,
    /// Transactions, those that only read included.
    pub transactions: u64,
}

impl Traffic {
    /// What came after an earlier count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            statements: self.statements.saturating_sub(earlier.statements),
            transactions: self.transactions.saturating_sub(earlier.transactions),
        }
    }
}

/// Counts traffic. It orders nothing, so the cheapest kind of counting does.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Debug, Default)]
pub(crate) struct TrafficCounter {
    statements: AtomicU64,
    transactions: AtomicU64,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl TrafficCounter {
    pub(crate) fn statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn transaction(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Traffic {
        Traffic {
            statements: self.statements.load(Ordering::Relaxed),
            transactions: self.transactions.load(Ordering::Relaxed),
        }
    }
}
