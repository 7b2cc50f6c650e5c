//! `cargo xtask test`: every test of the workspace with all features on, but for the slowest
//! interleavings, and `cargo xtask interleave`: all interleavings.
//!
//! nextest runs tests side by side in processes of their own and is used where it is installed.
//! It does not run doc tests, so these follow in a step of their own. Tests of the PostgreSQL
//! store get a private server, unless the environment names one. `.config/nextest.toml` says which
//! interleavings wait for their own command, and which tests need no server. `--postgres` runs
//! those that need one on another major version, by `server_packages`.

use std::env;
use std::path::Path;

use stepwell_cluster::PROGRAMS_VARIABLE;

use crate::Failure;
use crate::cargo::{Step, has_subcommand, run_steps, run_steps_with};
use crate::postgres::{self, NO_POOLER_VARIABLE, URL_VARIABLE};
use crate::server_packages;

pub(crate) const SUMMARY: &str =
    "run all tests; --quick: those without a server; --postgres 18: those with one, on 18";

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

/// What talks to a server, as `.config/nextest.toml` tells it from what is quick, but for slow
/// interleavings.
const ON_SERVER: Step = Step::new(
    "nextest run --workspace --all-features --no-fail-fast -E \
     binary(/postgres/)|test(/postgres/)|binary(same_answers)|test(/_of_a_schema_/)|\
     package(stepwell-faults)|\
     ((package(stepwell-fleet)&kind(test))-binary(checker)-test(/sqlite/))",
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
        [word, major] if word == "--postgres" => run_on(root, major),
        _ => Err(Failure { reason: "takes nothing but --quick or --postgres VERSION".to_owned() }),
    }
}

/// All tests.
pub(crate) fn run_all(root: &Path) -> Result<(), Failure> {
    with_server(root, &[best(root, NEXTEST, BUILT_IN), DOC_TESTS], about_pooler())
}

/// All tests that talk to a server, on one of this major version, whatever the environment names.
fn run_on(root: &Path, major: &str) -> Result<(), Failure> {
    let programs = server_packages::programs(root, major)?;
    let mut variables = about_pooler();
    let cluster = postgres::start_with(&programs)?;
    variables.push((URL_VARIABLE, cluster.url()));
    // Some tests crash the server, and start their own.
    variables.push((PROGRAMS_VARIABLE, programs.display().to_string()));
    run_steps_with(root, &[best(root, ON_SERVER, BUILT_IN)], &variables)
}

/// What tests have to know about a pooler, which is installed if there is none.
fn about_pooler() -> Vec<(&'static str, String)> {
    if postgres::ensure_pooler() {
        return Vec::new();
    }
    vec![(NO_POOLER_VARIABLE, "1".to_owned())]
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
    fn other_words_are_refused_with_those_that_are_understood() {
        let typed = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for words in [typed(&["--slow"]), typed(&["--quick", "--quick"]), typed(&["--postgres"])] {
            let failure = run(Path::new("."), &words).expect_err("it is refused");
            assert!(failure.reason.contains("--quick or --postgres"), "{}", failure.reason);
        }
    }
}
