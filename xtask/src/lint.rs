//! `cargo xtask lint`: what the compiler and its companions can judge.
//!
//! Format, lints, documentation and, where cargo-deny is installed, the dependency tree. Rules of
//! our own that no compiler knows are in `tidy`.

use std::path::Path;

use crate::Failure;
use crate::cargo::{Step, has_subcommand, run_steps};

const FORMAT: Step = Step::new("fmt --all --check");
const CLIPPY: Step =
    Step::new("clippy --workspace --all-targets --all-features -- --deny warnings");
const DOCS: Step = Step::new("doc --workspace --all-features --no-deps")
    .with_environment(&[("RUSTDOCFLAGS", "--deny warnings")]);
// Advisories are left out: they need the network, and they change without any change of ours.
const DEPENDENCIES: Step = Step::new("deny check bans licenses sources");

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    if has_subcommand(root, "deny") {
        return run_steps(root, &[FORMAT, CLIPPY, DOCS, DEPENDENCIES]);
    }
    let verdict = run_steps(root, &[FORMAT, CLIPPY, DOCS]);
    eprintln!("==> SKIPPED: cargo-deny is not installed, licences and sources were not checked");
    verdict
}
