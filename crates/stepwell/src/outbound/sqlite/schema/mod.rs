//! The tables of the file and how they come to be.

mod migrate;

pub(crate) use migrate::{migrate, version_known};
