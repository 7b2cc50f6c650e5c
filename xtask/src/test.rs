//! `cargo xtask test`: every test of the workspace with all features on.
//!
//! nextest runs tests side by side in processes of their own and is used where it is installed.
//! It does not run doc tests, so these follow in a step of their own.

use std::path::Path;

use crate::Failure;
use crate::cargo::{Step, has_subcommand, run_steps};

const NEXTEST: Step = Step::new("nextest run --workspace --all-features");
const BUILT_IN: Step = Step::new("test --workspace --all-features --lib --bins --tests --examples");
const DOC_TESTS: Step = Step::new("test --doc --workspace --all-features");

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    if has_subcommand(root, "nextest") {
        return run_steps(root, &[NEXTEST, DOC_TESTS]);
    }
    eprintln!("==> cargo-nextest is not installed: using cargo test, which is slower");
    run_steps(root, &[BUILT_IN, DOC_TESTS])
}
