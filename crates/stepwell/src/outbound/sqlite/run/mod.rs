//! Runs: what happens to them is loaded, decided by the core and written.

pub(crate) mod happen;
pub(crate) mod inputs;
mod load;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod write;
