//! `stepwell onboarding` as a stranger meets it: it is called, killed, and called again.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use rstest::rstest;
use serde_json::Value;
use stepwell::testing::TestDatabase;
use tempfile::TempDir;

/// Far more than any call needs, so that a hanging one fails the test instead of the build.
const TIMEOUT: Duration = Duration::from_mins(1);

const STEPS: [&str; 4] = ["create-record", "laptop", "access", "welcome-mail"];

/// What `--store` takes, and what must stay as long as it is used.
struct Place {
    store: String,
    _folder: Option<TempDir>,
    _database: Option<TestDatabase>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    fn place(self) -> Place {
        match self {
            Self::Sqlite => {
                let folder = TempDir::new().expect("there is room for a file");
                let path = folder.path().join("demo.db");
                let store = path.to_str().expect("a plain path").to_owned();
                Place { store, _folder: Some(folder), _database: None }
            }
            Self::Postgres => {
                let database = TestDatabase::create_blocking();
                Place { store: database.url(), _folder: None, _database: Some(database) }
            }
        }
    }
}

impl Place {
    fn call(&self, args: &[&str]) -> Assert {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
        command.env_remove("STEPWELL_STORE").args(args).args(["--db", &self.store]);
        command.timeout(TIMEOUT).assert()
    }

    /// An onboarding whose steps take no time, and what it told.
    fn onboard(&self, id: &str, args: &[&str]) -> (Assert, Vec<Value>) {
        let call = ["onboarding", id, "--pace", "0s", "--json"];
        let assert = self.call(&[&call, args].concat());
        let records = stdout(&assert).lines().map(parse).collect();
        (assert, records)
    }

    /// An onboarding whose steps do not end, killed once these have begun.
    fn kill_in(&self, id: &str, steps: &[&str]) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stepwell"));
        command.args(["onboarding", id, "--pace", "24h", "--json", "--store", &self.store]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let told = child.stdout.take().expect("it is piped");
        let mut left = steps.to_vec();
        for line in BufReader::new(told).lines() {
            let record = parse(&line.expect("it is text"));
            left.retain(|step| !(record["step"] == *step && record["state"] == "started"));
            if left.is_empty() {
                break;
            }
        }
        assert_eq!(left, [""; 0], "it has ended before these steps began");
        // On Unix this is kill -9.
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
    }
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("the output is text")
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("the errors are text")
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The steps that were told to be in a state, in the order of the function.
fn steps(records: &[Value], state: &str) -> Vec<&'static str> {
    let is = |step: &str| records.iter().any(|r| r["step"] == step && r["state"] == state);
    STEPS.into_iter().filter(|step| is(step)).collect()
}

/// Whether the process was ended by a signal, as opposed to exiting.
fn has_crashed(assert: &Assert) -> bool {
    assert.get_output().status.code().is_none()
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_second_call_does_nothing_and_says_so(#[case] kind: Kind) {
    // D13
    let place = kind.place();
    let (first, records) = place.onboard("employee-1", &[]);
    first.success();
    assert_eq!(steps(&records, "done"), STEPS);
    let end = records.last().expect("it tells its end");
    assert_eq!((&end["record"], &end["status"]), (&"onboarding".into(), &"COMPLETED".into()));
    assert_eq!((&end["n_done"], &end["n_done_before"]), (&4.into(), &0.into()));

    let (second, records) = place.onboard("employee-1", &[]);
    second.success();
    assert_eq!(steps(&records, "done_before"), STEPS);
    assert_eq!(steps(&records, "started"), [""; 0], "nothing is executed again");
    let again = records.last().expect("it tells its end");
    assert_eq!((&again["n_done"], &again["n_done_before"]), (&0.into(), &4.into()));
    assert_eq!(again["welcome"], end["welcome"]);
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_call_after_a_crash_goes_on_after_the_last_recorded_step(
    #[case] kind: Kind,
    #[values("create-record", "laptop", "access", "welcome-mail")] after: &str,
) {
    // D13
    let place = kind.place();
    let (crashed, first) = place.onboard("employee-1", &["--crash-after", after]);
    assert!(has_crashed(&crashed), "{crashed}");
    let last = first.last().expect("it tells of its crash");
    assert_eq!((&last["record"], &last["after"]), (&"crash".into(), &after.into()));
    let done = steps(&first, "done");
    assert!(done.contains(&after), "{done:?}");

    let (resumed, second) = place.onboard("employee-1", &["--crash-after", after]);
    resumed.success();
    let before = steps(&second, "done_before");
    assert!(done.iter().all(|step| before.contains(step)), "{done:?} {before:?}");
    let executed = steps(&second, "started");
    assert!(executed.iter().all(|step| !before.contains(step)), "{executed:?} {before:?}");
    assert_eq!(before.len() + executed.len(), STEPS.len());
    assert_eq!(steps(&second, "done"), executed);
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_call_after_kill_9_repeats_only_the_steps_that_were_cut_off(#[case] kind: Kind) {
    // D13
    let place = kind.place();
    place.kill_in("employee-1", &["create-record"]);
    let (crashed, records) = place.onboard("employee-1", &["--crash-after", "create-record"]);
    assert!(has_crashed(&crashed), "{crashed}");
    assert_eq!(steps(&records, "done"), ["create-record"], "it was cut off, and is done now");
    place.kill_in("employee-1", &["laptop", "access"]);
    let (resumed, records) = place.onboard("employee-1", &[]);
    resumed.success();
    assert_eq!(steps(&records, "done_before"), ["create-record"]);
    assert_eq!(steps(&records, "done"), ["laptop", "access", "welcome-mail"]);
}

#[test]
fn people_are_told_in_words_what_was_done_before() {
    let place = Kind::Sqlite.place();
    let call = ["onboarding", "ada", "--pace", "0s"];
    let crashed = place.call(&[&call[..], &["--crash-after", "create-record"]].concat());
    assert!(has_crashed(&crashed), "{crashed}");
    assert!(stderr(&crashed).contains("dies now, after create-record"), "{}", stderr(&crashed));
    assert!(stdout(&crashed).contains("create-record  done "), "{}", stdout(&crashed));
    let resumed = place.call(&call).success();
    let text = stdout(&resumed);
    assert!(text.contains("create-record  done before  record of ada created"), "{text}");
    assert!(text.contains("welcome-mail   done         mail to ada sent"), "{text}");
    assert!(text.ends_with("ada is onboarded; done before: 1 of 4 steps\n"), "{text}");
    assert_eq!((stderr(&resumed).as_str(), text.contains('\x1b')), ("", false));
    let text = stdout(&place.call(&call).success());
    assert!(text.ends_with("ada was onboarded before; nothing was left to do\n"), "{text}");
}

#[test]
fn a_call_tells_of_its_own_employee_only() {
    let place = Kind::Sqlite.place();
    place.onboard("ada", &["--crash-after", "create-record"]);
    // This process carries the other run on as well.
    let (assert, records) = place.onboard("grace", &["--crash-after", "welcome-mail"]);
    assert!(has_crashed(&assert), "{assert}");
    assert!(records.iter().all(|record| record["run"] == "grace"), "{records:?}");
    assert_eq!(steps(&records, "done"), STEPS);
}

#[test]
fn what_cannot_be_onboarded_is_refused_with_a_code() {
    let place = Kind::Sqlite.place();
    let (crashed, _) = place.onboard("ada", &["--crash-after", "create-record"]);
    assert!(has_crashed(&crashed), "{crashed}");
    place.call(&["cancel", "acme/ada"]).success();
    let (cancelled, _) = place.onboard("ada", &[]);
    assert!(stderr(&cancelled.code(1)).contains("hint: stepwell explain SW"));
    let (unnamed, _) = place.onboard("", &[]);
    assert!(stderr(&unnamed.code(1)).contains("hint: stepwell explain SW"));
    place.call(&["onboarding", "ada", "--crash-after", "lunch"]).code(2);
}

#[test]
fn db_names_a_store_in_every_command() {
    let place = Kind::Sqlite.place();
    place.call(&["migrate"]).success();
    place.onboard("ada", &["--crash-after", "laptop"]);
    for args in [
        &["runs"][..],
        &["show", "acme/ada"],
        &["signal", "acme/ada", "hello"],
        &["cancel", "acme/ada"],
    ] {
        place.call(args).success();
    }
}
