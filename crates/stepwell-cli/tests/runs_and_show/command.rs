//! Running the binary, and reading what it printed.

use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

/// Far more than any command needs, so that a hanging one fails the test instead of the build.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The binary with these arguments, whatever store the environment of the tests names.
pub(crate) fn stepwell(args: &[&str]) -> Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.env_remove("STEPWELL_STORE").args(args).timeout(TIMEOUT).assert()
}

/// As [`stepwell`], with the store named by the environment.
pub(crate) fn stepwell_on(store: &str, args: &[&str]) -> Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.env("STEPWELL_STORE", store).args(args).timeout(TIMEOUT).assert()
}

/// As [`stepwell`], as a user of this name.
pub(crate) fn stepwell_as(user: &str, args: &[&str]) -> Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.env_remove("STEPWELL_STORE").env("USER", user).args(args).timeout(TIMEOUT).assert()
}

pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("the output is text")
}

pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("the errors are text")
}

/// The objects it printed, one on each line.
pub(crate) fn records(assert: &Assert) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    stdout(assert).lines().map(parse).collect()
}
