//! What a program of a user gets by one call: commands for workflows of its own.
//!
//! The program is the test [`program`], which the other tests run in a process of its own.

mod commands;
mod stopping;
mod workflows;

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use assert_cmd::assert::Assert;
use serde_json::Value;
use stepwell::cli::{self, App};
use tempfile::TempDir;

use workflows::app;

/// What the program is called with, as JSON.
const ARGS: &str = "OWN_PROGRAM_ARGS";

/// What the harness prints stands before this line.
const BEGIN: &str = "-- the program begins --";

/// Far more than any command needs, so that a hanging one fails the test instead of the build.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The program of a user, if one of the tests below has started this process.
#[test]
fn program() {
    let Ok(args) = std::env::var(ARGS) else { return };
    let args: Vec<String> = serde_json::from_str(&args).expect("they are texts");
    println!("\n{BEGIN}");
    let code = app().args(args).run_blocking();
    let number = (0..=2).find(|number| code == ExitCode::from(*number)).expect("it is one of ours");
    std::process::exit(number.into());
}

/// A process of the program, with the store that the tests of a folder share.
struct Place {
    store: String,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a file");
        let store = folder.path().join("shop.db").to_str().expect("a plain path").to_owned();
        Self { store, _folder: folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("it is known"));
        command.args(["--exact", "program", "--nocapture", "--test-threads=1"]);
        let args = [&["/opt/bin/shop"], args].concat();
        command.env(ARGS, serde_json::to_string(&args).expect("texts are JSON"));
        command.env("STEPWELL_STORE", &self.store).stdout(Stdio::piped());
        command
    }

    fn call(&self, args: &[&str]) -> Assert {
        assert_cmd::Command::from_std(self.command(args)).timeout(TIMEOUT).assert()
    }

    /// The objects it printed, one on each line.
    fn records(&self, args: &[&str]) -> (Assert, Vec<Value>) {
        let assert = self.call(&[args, &["--json"]].concat());
        let records = stdout(&assert).lines().map(parse).collect();
        (assert, records)
    }

    /// The one object that it printed when all went well.
    fn record(&self, args: &[&str]) -> Value {
        let (assert, mut records) = self.records(args);
        assert.success();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// What the program itself printed.
fn stdout(assert: &Assert) -> String {
    let text = String::from_utf8(assert.get_output().stdout.clone()).expect("the output is text");
    let (_, own) = text.split_once(&format!("{BEGIN}\n")).expect("the program has begun");
    own.to_owned()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("the errors are text")
}

/// What the user typed, after the name of their program.
fn typed(words: &[&str]) -> Vec<OsString> {
    std::iter::once(&"shop").chain(words).map(OsString::from).collect()
}

fn is(code: u8, exit_code: ExitCode) -> bool {
    exit_code == ExitCode::from(code)
}

#[tokio::test]
async fn the_call_is_there_for_async_programs_and_does_not_hold_up_a_runtime() {
    let place = Place::new();
    let start = ["start", "double", "--input", "4", "--store", &place.store];
    assert!(is(0, app().args(typed(&start)).run().await));
    // The blocking one is refused, and does not panic.
    assert!(is(1, app().args(typed(&["runs", "--store", &place.store])).run_blocking()));
    assert!(is(2, app().args(typed(&["runs", "--limit", "none"])).run().await));
    assert!(is(0, app().args(typed(&["--help"])).run().await));
    // What belongs to the binary `stepwell` alone is not there.
    assert!(is(2, app().args(typed(&["demo"])).run().await));
}

#[test]
fn a_start_needs_a_tenant_and_a_worker_needs_workflows() {
    let place = Place::new();
    let with_one = || {
        App::new(|mut builder| {
            builder.function("double", async |ctx: stepwell::Ctx<u64>| Ok(2 * ctx.input()));
            builder
        })
    };
    let start = ["start", "double", "--input", "4", "--store", &place.store];
    assert!(is(2, with_one().args(typed(&start)).run_blocking()));
    let start = [&start[..], &["--tenant", "bakery"]].concat();
    assert!(is(0, with_one().args(typed(&start)).run_blocking()));
    let worker = ["worker", "--store", &place.store];
    assert!(is(2, App::new(|builder| builder).args(typed(&worker)).run_blocking()));
    assert!(is(1, App::new(|builder| builder).args(typed(&start)).run_blocking()));
}

#[test]
fn one_line_is_a_program_without_state_as_well() {
    // Its arguments are those of the test, which are no command.
    let code = cli::run_blocking(|builder| {
        builder.function("double", async |ctx: stepwell::Ctx<u64>| Ok(2 * ctx.input()));
    });
    assert!(is(2, code));
}
