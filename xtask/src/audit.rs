//! `cargo xtask audit`: what others know about our dependencies.
//!
//! cargo-deny judges licences, sources, bans and advisories by `deny.toml`. It stands apart from
//! `ci`: installing it takes minutes, and advisories change without any change of ours. It is
//! installed beside the build output if the user has none, so that nothing else of theirs changes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::cargo::{cargo, has_subcommand};

pub(crate) const SUMMARY: &str = "check advisories, licences, bans and sources of dependencies";

/// What needs no network.
const RULES: &[&str] = &["check", "bans", "licenses", "sources"];
const FETCH: &[&str] = &["fetch", "db"];
const ADVISORIES: &[&str] = &["check", "advisories"];

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let deny = Deny::find_or_install(root)?;
    judge(|arguments| deny.run(root, arguments))
}

/// Asks everything of cargo-deny, which says whether it is content.
fn judge(mut is_content: impl FnMut(&[&str]) -> bool) -> Result<(), Failure> {
    let mut failed = Vec::new();
    if !is_content(RULES) {
        failed.push("bans, licences or sources");
    }
    if !is_content(FETCH) {
        eprintln!(
            "==> SKIPPED: the advisory database cannot be reached, advisories were not checked"
        );
    } else if !is_content(ADVISORIES) {
        failed.push("advisories");
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure { reason: format!("failed: {}", failed.join("; ")) })
}

/// cargo-deny, wherever it is.
enum Deny {
    /// A subcommand of the user's cargo.
    Installed,
    /// A program of its own.
    Program(PathBuf),
}

impl Deny {
    fn find_or_install(root: &Path) -> Result<Self, Failure> {
        if has_subcommand(root, "deny") {
            return Ok(Self::Installed);
        }
        let folder = root.join("target/tools");
        let program =
            folder.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
        if answers(&program) {
            return Ok(Self::Program(program));
        }
        eprintln!("==> cargo-deny is not installed: installing it into {}", folder.display());
        let mut install = cargo(root);
        install.args(["install", "--locked", "cargo-deny", "--root"]).arg(&folder);
        match install.status() {
            Ok(status) if status.success() => Ok(Self::Program(program)),
            _ => Err(Failure {
                reason: "cargo-deny cannot be installed; `cargo install cargo-deny` says why"
                    .to_owned(),
            }),
        }
    }

    /// Runs it, and says whether it was content.
    fn run(&self, root: &Path, arguments: &[&str]) -> bool {
        eprintln!("==> cargo deny {}", arguments.join(" "));
        let mut command = match self {
            Self::Installed => {
                let mut command = cargo(root);
                command.arg("deny");
                command
            }
            Self::Program(program) => {
                let mut command = Command::new(program);
                command.current_dir(root);
                command
            }
        };
        command.args(arguments).status().is_ok_and(|status| status.success())
    }
}

fn answers(program: &Path) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked of a cargo-deny that fails at these words, and how the audit ends.
    fn audit(fails_at: &[&str]) -> (Vec<String>, Option<String>) {
        let mut asked = Vec::new();
        let verdict = judge(|arguments| {
            asked.push(arguments.join(" "));
            !arguments.iter().any(|word| fails_at.contains(word))
        });
        (asked, verdict.err().map(|failure| failure.reason))
    }

    #[test]
    fn everything_is_checked() {
        let all = ["check bans licenses sources", "fetch db", "check advisories"];
        assert_eq!(audit(&[]), (all.map(str::to_owned).to_vec(), None));
    }

    #[test]
    fn without_the_advisory_database_the_rest_is_checked() {
        let (asked, reason) = audit(&["fetch"]);
        assert_eq!((asked.len(), reason), (2, None));
        let (_, reason) = audit(&["fetch", "bans"]);
        assert_eq!(reason.as_deref(), Some("failed: bans, licences or sources"));
    }

    #[test]
    fn all_that_failed_is_named() {
        let (asked, reason) = audit(&["bans", "advisories"]);
        assert_eq!(asked.len(), 3);
        assert_eq!(reason.as_deref(), Some("failed: bans, licences or sources; advisories"));
    }
}
