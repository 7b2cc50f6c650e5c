//! `cargo xtask test`: every test of the workspace with all features on, but for the slowest
//! interleavings, and `cargo xtask interleave`: all interleavings.
//!
//! nextest runs tests side by side in processes of their own and is used where it is installed.
//! It does not run doc tests, so these follow in a step of their own. Tests of the PostgreSQL
//! store get a private server, unless the environment names one. `.config/nextest.toml` says which
//! interleavings wait for their own command, and which tests need no server.

use std::env;
use std::path::Path;

use crate::Failure;
use crate::cargo::{Step, has_subcommand, run_steps, run_steps_with};
use crate::postgres::{self, NO_POOLER_VARIABLE, URL_VARIABLE};

pub(crate) const SUMMARY: &str =
    "run all tests and doc tests; --quick leaves out what needs a server or minutes";

const NEXTEST: Step = Step::new("nextest run --workspace --all-features --no-fail-fast");
const BUILT_IN: Step = Step::new("test --workspace --all-features --lib --bins --tests --examples");
const DOC_TESTS: Step = Step::new("test --doc --workspace --all-features");

/// The same features as everywhere, so that nothing is compiled twice.
const QUICK: Step =
    Step::new("nextest run --workspace --all-features --no-fail-fast --profile quick");
/// Cargo's own runner knows no filters, so what it is given needs no server as a whole.
const QUICK_BUILT_IN: Step = Step::new(
    "test --package stepwell-core --package stepwell --package stepwell-cli --all-features --lib \
     --bins --test acceptance --test conformance_memory --test conformance_sqlite \
     -- --skip postgres",
);

const INTERLEAVE: Step = Step::new(
    "nextest run --package stepwell-faults --all-features --no-fail-fast --profile interleave",
);
const INTERLEAVE_BUILT_IN: Step =
    Step::new("test --package stepwell-faults --all-features --test interleavings");

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => run_all(root),
        [word] if word == "--quick" => run_steps(root, &[best(root, QUICK, QUICK_BUILT_IN)]),
        _ => Err(Failure { reason: "takes nothing but --quick".to_owned() }),
    }
}

/// All tests.
pub(crate) fn run_all(root: &Path) -> Result<(), Failure> {
    let mut variables = Vec::new();
    if !postgres::ensure_pooler() {
        variables.push((NO_POOLER_VARIABLE, "1".to_owned()));
    }
    with_server(root, &[best(root, NEXTEST, BUILT_IN), DOC_TESTS], variables)
}

/// All interleavings.
pub(crate) fn interleave(root: &Path) -> Result<(), Failure> {
    with_server(root, &[best(root, INTERLEAVE, INTERLEAVE_BUILT_IN)], Vec::new())
}

fn with_server(
    root: &Path,
    steps: &[Step],
    mut variables: Vec<(&'static str, String)>,
) -> Result<(), Failure> {
    if env::var_os(URL_VARIABLE).is_some() {
        return run_steps_with(root, steps, &variables);
    }
    let cluster = postgres::start()?;
    variables.push((URL_VARIABLE, cluster.url()));
    run_steps_with(root, steps, &variables)
}

/// The step for nextest where it is installed, else the one for cargo's own runner.
fn best(root: &Path, nextest: Step, built_in: Step) -> Step {
    if has_subcommand(root, "nextest") {
        return nextest;
    }
    eprintln!("==> cargo-nextest is not installed: using cargo test, which is slower");
    built_in
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quick_is_understood() {
        let typed = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for words in [typed(&["--slow"]), typed(&["--quick", "--quick"])] {
            let failure = run(Path::new("."), &words).expect_err("it is refused");
            assert!(failure.reason.contains("--quick"), "{}", failure.reason);
        }
    }
}
