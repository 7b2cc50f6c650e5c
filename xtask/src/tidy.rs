//! `cargo xtask tidy`: the house rules that no compiler knows.
//!
//! The tree is read once; each check is a function from that tree to findings and lives in its
//! own file with tests that show it can fail. A finding prints as `file:line: message`, so that
//! editors can jump to it.

mod layers;
mod links;
mod mask;
mod paths;
mod requirements;
mod rust_source;
mod sizes;
mod sleeps;
mod statements;
mod tree;
mod words;

use std::fmt;
use std::path::Path;

use crate::Failure;
use tree::Tree;

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    layers::check,
    sizes::check,
    words::check,
    sleeps::check,
    statements::check,
    requirements::check,
    links::check,
];

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

#[expect(clippy::print_stdout, reason = "findings are the output of this command")]
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let tree = Tree::load(root)
        .map_err(|error| Failure { reason: format!("read the source tree: {error}") })?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("==> tidy: {} checks, {} findings", CHECKS.len(), findings.len());
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure { reason: format!("{} findings", findings.len()) })
}

/// The messages of a check over files given as text, for the checks' own tests.
#[cfg(test)]
fn messages(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::from_texts(files)).iter().map(Finding::to_string).collect()
}
