//! `cargo xtask ci`: all that a change must pass, in the order of `.ci/run`.
//!
//! Tests come first because a wrong program is worse news than an untidy one. The first command
//! that fails ends the round.

use std::path::Path;

use crate::{Failure, lint, test, tidy};

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    test::run_all(root)?;
    lint::run(root)?;
    tidy::run(root)
}
