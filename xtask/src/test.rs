//! `cargo xtask test`: every test of the workspace with all features on.
//!
//! nextest runs tests side by side in processes of their own and is used where it is installed.
//! It does not run doc tests, so these follow in a step of their own. Tests of the PostgreSQL
//! store get a private server, unless the environment names one.

use std::env;
use std::path::Path;

use crate::Failure;
use crate::cargo::{Step, has_subcommand, run_steps_with};
use crate::postgres::{self, URL_VARIABLE};

const NEXTEST: Step = Step::new("nextest run --workspace --all-features --no-fail-fast");
const BUILT_IN: Step = Step::new("test --workspace --all-features --lib --bins --tests --examples");
const DOC_TESTS: Step = Step::new("test --doc --workspace --all-features");

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    if env::var_os(URL_VARIABLE).is_some() {
        return run_tests(root, &[]);
    }
    let cluster = postgres::start()?;
    run_tests(root, &[(URL_VARIABLE, cluster.url())])
}

fn run_tests(root: &Path, environment: &[(&str, String)]) -> Result<(), Failure> {
    if has_subcommand(root, "nextest") {
        return run_steps_with(root, &[NEXTEST, DOC_TESTS], environment);
    }
    eprintln!("==> cargo-nextest is not installed: using cargo test, which is slower");
    run_steps_with(root, &[BUILT_IN, DOC_TESTS], environment)
}
