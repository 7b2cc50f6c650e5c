//! Tests do not sleep.
//!
//! A sleep makes a test slow when it is long enough and unreliable when it is not. Tests move a
//! manual clock or wait for something to happen; the suite that stores ship with is a test too.

use super::Finding;
use super::paths::{UsedPath, paths};
use super::tree::Tree;

/// Test code that is compiled as a feature, for users to test with.
pub(super) const TESTING_FOLDER: &str = "crates/stepwell/src/testing/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_files() {
        for used in paths(&source.code).iter().filter(|used| is_sleep(used)) {
            if source.is_test(used.offset) || file.path.starts_with(TESTING_FOLDER) {
                let message = "a test sleeps: move a manual clock, or wait for what should happen";
                findings.push(file.finding_at(used.offset, message));
            }
        }
    }
    findings
}

fn is_sleep(used: &UsedPath<'_>) -> bool {
    matches!(used.segments.as_slice(), [.., "thread" | "time", "sleep" | "sleep_until"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    #[test]
    fn sleeps_in_tests_are_found_in_every_spelling() {
        for text in [
            "fn t() { std::thread::sleep(a) }",
            "fn t() { thread::sleep(a) }",
            "use tokio::time::{Duration, sleep};",
            "async fn t() { tokio::time::sleep(a).await }",
        ] {
            for path in ["crates/a/tests/b.rs", "crates/stepwell/src/testing/claim.rs"] {
                assert_eq!(messages(check, &[(path, text)]).len(), 1, "{text}");
            }
            let unit_test = format!("#[cfg(test)]\nmod tests {{ {text} }}");
            assert_eq!(messages(check, &[("crates/a/src/b.rs", &unit_test)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn the_clock_of_production_code_may_sleep() {
        let text = "async fn wait() { tokio::time::sleep(a).await }";
        assert!(messages(check, &[("crates/a/src/clock.rs", text)]).is_empty());
    }

    #[test]
    fn durable_sleep_is_not_a_sleep() {
        let text = "async fn t(ctx: Ctx) { ctx.sleep(a).await }";
        assert!(messages(check, &[("crates/a/tests/b.rs", text)]).is_empty());
    }
}
