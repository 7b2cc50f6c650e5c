//! The tables of the store, version by version.

pub(crate) mod migrate;
