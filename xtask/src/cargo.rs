//! Runs cargo as a list of steps and shows where it is.
//!
//! All steps run even when one fails, so that one round shows everything there is to repair. The
//! failure names the steps to look at, because their output may have scrolled away.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// One call of cargo.
pub(crate) struct Step {
    /// What follows `cargo` on the command line; words are separated by single spaces.
    arguments: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

impl Step {
    pub(crate) const fn new(arguments: &'static str) -> Self {
        Self { arguments, environment: &[] }
    }

    pub(crate) const fn with_environment(
        self,
        environment: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { environment, ..self }
    }
}

/// Runs the steps in order and fails if any of them did.
pub(crate) fn run_steps(root: &Path, steps: &[Step]) -> Result<(), Failure> {
    run_steps_with(root, steps, &[])
}

/// As [`run_steps`], with more in the environment of each.
pub(crate) fn run_steps_with(
    root: &Path,
    steps: &[Step],
    environment: &[(&str, String)],
) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (position, step) in steps.iter().enumerate() {
        eprintln!("==> [{}/{}] cargo {}", position + 1, steps.len(), step.arguments);
        let (succeeded, elapsed) = run_step(root, step, environment);
        let verdict = if succeeded { "ok" } else { "FAILED" };
        eprintln!("==> {verdict} after {:.1} s", elapsed.as_secs_f64());
        if !succeeded {
            failed.push(format!("cargo {}", step.arguments));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure { reason: format!("failed: {}", failed.join("; ")) })
}

/// Whether cargo knows this subcommand, built in or installed by the user.
pub(crate) fn has_subcommand(root: &Path, name: &str) -> bool {
    cargo(root)
        .args([name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "a developer wants to see real elapsed time")]
fn run_step(root: &Path, step: &Step, environment: &[(&str, String)]) -> (bool, Duration) {
    let started = Instant::now();
    let status = cargo(root)
        .args(step.arguments.split(' '))
        .envs(step.environment.iter().copied())
        .envs(environment.iter().map(|(name, value)| (*name, value)))
        .status();
    let succeeded = match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("start cargo: {error}");
            false
        }
    };
    (succeeded, started.elapsed())
}

/// A cargo that sees the environment the user's shell gave us.
///
/// `cargo run` describes xtask to us in variables. Build scripts that watch those variables would
/// run again each time a user changes between `cargo build` and `cargo xtask`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_xtask) {
            command.env_remove(&name);
        }
    }
    command
}

fn describes_xtask(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_")
        || matches!(variable, "CARGO" | "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_about_xtask_are_removed() {
        assert!(describes_xtask("CARGO_PKG_NAME"));
        assert!(describes_xtask("CARGO_MANIFEST_DIR"));
        assert!(!describes_xtask("CARGO_TARGET_DIR"));
        assert!(!describes_xtask("CARGO_HOME"));
    }

    #[test]
    fn unknown_subcommand_is_not_there() {
        assert!(!has_subcommand(crate::workspace_root(), "no-such-subcommand"));
    }

    #[test]
    fn failing_step_is_named_and_later_steps_still_run() {
        let steps = [Step::new("no-such-subcommand"), Step::new("--version")];
        let failure = run_steps(crate::workspace_root(), &steps).expect_err("first step fails");
        assert_eq!(failure.reason, "failed: cargo no-such-subcommand");
    }
}
