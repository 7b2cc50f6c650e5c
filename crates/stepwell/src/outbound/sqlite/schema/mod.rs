//! The tables of the file and how they come to be.

mod migrate;

pub(crate) use migrate::{check, migrate, version_known};
