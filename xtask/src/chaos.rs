//! `cargo xtask chaos`: a fleet of real processes under random faults for some minutes.
//!
//! All of it is in the package `stepwell-fleet`, which has dependencies; this builds its programs
//! and hands the arguments on. The program makes its own PostgreSQL cluster, because it crashes
//! it. Its one line of JSON is all that comes out on standard output.

use std::path::Path;

use crate::Failure;
use crate::cargo::{Step, cargo, run_steps};
use crate::postgres;

pub(crate) const SUMMARY: &str =
    "run a fleet under faults: --minutes N [--seed S] [--store postgres|sqlite]";

const BUILD: Step = Step::new("build --package stepwell-fleet --bins");

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if needs_server(arguments) {
        postgres::programs()?;
    }
    run_steps(root, &[BUILD])?;
    let status = cargo(root)
        .args(["run", "--quiet", "--package", "stepwell-fleet", "--bin", "chaos", "--"])
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure { reason: format!("ended with {status}") }),
        Err(error) => Err(Failure { reason: format!("start cargo: {error}") }),
    }
}

/// Whether the run is on PostgreSQL, which it is unless another store is named.
fn needs_server(arguments: &[String]) -> bool {
    !arguments.iter().any(|word| word == "sqlite" || word == "--store=sqlite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_on_sqlite_needs_no_server() {
        let needs = |words: &[&str]| {
            needs_server(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert!(needs(&["--minutes", "1"]));
        assert!(needs(&["--store", "postgres"]));
        assert!(!needs(&["--store", "sqlite"]));
        assert!(!needs(&["--store=sqlite"]));
    }
}
