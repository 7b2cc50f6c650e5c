//! `stepwell bench` as its users meet it, and the counts it reports. Never times: those depend on
//! the machine, counts do not.

use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// Far more than a small benchmark needs, so that a hanging one fails the test, not the build.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Enough that batches are large, few enough for a debug build; and six times as many.
const RUNS_FEW: &str = "500";
const RUNS_MORE: &str = "3000";

/// How far a cost per task may move from few runs to six times as many. How tasks fall into
/// batches depends on the machine's mood; a cost that grows with the number of runs would come
/// out about six times as high.
const GROWTH_MAX: f64 = 2.5;

fn bench(args: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    let assert = command.args(["bench", "--json"]).args(args).timeout(TIMEOUT).assert().success();
    let text = String::from_utf8(assert.get_output().stdout.clone()).expect("the output is text");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(parse).collect()
}

/// One and chain with so many runs.
fn counts(store: &[&str], runs: &str) -> Vec<Value> {
    let scenarios = ["--scenario", "one", "--scenario", "chain", "--runs", runs];
    let records = bench(&[store, &scenarios].concat());
    let names: Vec<&str> = records.iter().filter_map(|r| r["scenario"].as_str()).collect();
    assert_eq!(names, ["one", "chain"]);
    let n_runs: u64 = runs.parse().expect("a number");
    assert_eq!(records[0]["parts"][0]["n_tasks"], n_runs);
    assert_eq!(records[1]["parts"][0]["n_tasks"], 5 * n_runs);
    records
}

fn number(record: &Value, field: &str) -> f64 {
    let found = record["parts"][0][field].as_f64();
    found.unwrap_or_else(|| panic!("{field} is missing in {record}"))
}

/// Below the bound, whatever the number of runs, and no more of it with more of them.
fn assert_bounded(few: &[Value], more: &[Value], field: &str, bound: f64) {
    for (few, more) in few.iter().zip(more) {
        let (n_few, n_more) = (number(few, field), number(more, field));
        let scenario = &few["scenario"];
        assert!(n_few < bound && n_more < bound, "{scenario}: {field} is {n_few}, then {n_more}");
        let growth = n_more / n_few;
        assert!(growth < GROWTH_MAX, "{scenario}: {field} grew from {n_few} to {n_more}");
    }
}

#[test]
fn memory_runs_every_task_once_and_reports_no_traffic() {
    let records = counts(&["--store", "memory"], RUNS_FEW);
    for record in &records {
        assert_eq!(record["store"], "memory");
        assert!(record["parts"][0].get("statements").is_none(), "{record}");
        assert!(record.get("limit").is_none(), "{record}");
    }
}

#[test]
fn sqlite_commits_many_tasks_in_one_transaction() {
    let few = counts(&["--store", "sqlite"], RUNS_FEW);
    let more = counts(&["--store", "sqlite"], RUNS_MORE);
    assert_bounded(&few, &more, "transactions_per_task", 0.2);
    // Statements are cheap calls here, about one per row; they must not grow with the runs.
    assert_bounded(&few, &more, "statements_per_task", 15.0);
    assert!(few[0]["limit"]["tasks_per_second"].as_f64() > Some(0.0));
}

#[test]
fn postgres_sends_few_statements_for_many_tasks() {
    let url = std::env::var("STEPWELL_TEST_DATABASE_URL")
        .expect("STEPWELL_TEST_DATABASE_URL names a server; `cargo xtask test` starts one");
    let schema = format!("bench_{}", std::process::id());
    let store = ["--store", "postgres", "--url", &url, "--schema", &schema];
    let few = counts(&store, RUNS_FEW);
    // The schema of the first benchmark is gone, or the second would be refused.
    let more = counts(&store, RUNS_MORE);
    assert_bounded(&few, &more, "transactions_per_task", 0.1);
    assert_bounded(&few, &more, "statements_per_task", 0.4);
    assert!(few[0]["limit"]["tasks_per_second"].as_f64() > Some(0.0));
}

/// A caller that waits costs the start and the commit, whose answer is the result; many callers
/// share both.
fn assert_callers_read_nothing(store: &[&str], together_max: f64) {
    let args = [store, &["--scenario", "callers", "--runs", "1000"]].concat();
    let record = &bench(&args)[0];
    let transactions = |name: &str| {
        let parts = record["parts"].as_array().expect("there are parts");
        let part = parts.iter().find(|part| part["part"] == name);
        let found = part.and_then(|part| part["transactions_per_task"].as_f64());
        found.unwrap_or_else(|| panic!("{name} is missing in {record}"))
    };
    let alone = transactions("1 caller, 1 step");
    assert!((2.0..2.5).contains(&alone), "{alone} transactions of one caller's run");
    let together = transactions("64 callers, 1 step");
    assert!(together < together_max, "{together} transactions of a run among 64 callers");
}

#[test]
fn callers_that_wait_on_sqlite_read_nothing_for_their_results() {
    assert_callers_read_nothing(&["--store", "sqlite"], 0.11);
}

#[test]
fn callers_that_wait_on_postgres_read_nothing_for_their_results() {
    let url = std::env::var("STEPWELL_TEST_DATABASE_URL")
        .expect("STEPWELL_TEST_DATABASE_URL names a server; `cargo xtask test` starts one");
    let schema = format!("bench_callers_{}", std::process::id());
    assert_callers_read_nothing(&["--store", "postgres", "--url", &url, "--schema", &schema], 0.28);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refuse = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
        let assert = command.arg("bench").args(args).timeout(TIMEOUT).assert().code(2);
        String::from_utf8(assert.get_output().stderr.clone()).expect("the errors are text")
    };
    assert!(refuse(&["--scenario", "teleport"]).contains("--scenario"));
    assert!(refuse(&["--store", "stone"]).contains("--store"));
    assert!(refuse(&["--runs", "0"]).contains("--runs"));
}

#[test]
fn help_shows_examples_and_scenarios() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    let assert = command.args(["bench", "--help"]).timeout(TIMEOUT).assert().success();
    let text = String::from_utf8(assert.get_output().stdout.clone()).expect("the help is text");
    assert!(text.contains("Examples:\n  stepwell bench"), "{text}");
    assert!(text.contains("snapshot") && text.contains("latency"), "{text}");
}
