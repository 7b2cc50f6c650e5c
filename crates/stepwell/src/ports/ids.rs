//! Ids and chance as a port.

use stepwell_core::id::RunKey;

/// Makes ids and random numbers. Nothing else in the engine may.
pub trait Ids: Send + Sync + 'static {
    /// A fresh key of a run, growing with time so that indexes stay compact.
    fn run_key(&self) -> RunKey;

    /// A uniformly random number.
    fn random(&self) -> u64;
}
