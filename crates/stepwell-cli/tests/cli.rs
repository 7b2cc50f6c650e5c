//! The binary as its users meet it: what it prints where, and how it exits.

use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

/// Far more than any command needs, so that a hanging one fails the test instead of the build.
const TIMEOUT: Duration = Duration::from_mins(1);

fn stepwell(args: &[&str]) -> Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.args(args).timeout(TIMEOUT).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("the output is text")
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("the errors are text")
}

fn records(assert: &Assert) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    stdout(assert).lines().map(parse).collect()
}

#[test]
fn demo_shows_every_outcome_and_exits_well() {
    let text = stdout(&stepwell(&["demo", "--fraud-window", "50ms"]).success());
    for outcome in [
        "shipped as parcel-1001",
        "rejected: it has no items",
        "rejected: 608.08 EUR is over the limit",
        "shipped as parcel-1003, charged at attempt 3",
        "charge failed: the bank declined the card, support was told",
    ] {
        assert!(text.contains(outcome), "{outcome} is missing in\n{text}");
    }
    for event in ["RETRYING", "SLEEPING", "WOKEN", "SKIPPED", "RUN_ENDED"] {
        assert!(text.contains(event), "{event} is missing in\n{text}");
    }
    assert!(text.contains("What you saw:") && text.contains("Try next:"), "{text}");
}

#[test]
fn demo_through_a_pipe_has_neither_colours_nor_a_progress_bar() {
    let assert = stepwell(&["demo", "--fraud-window", "0s"]).success();
    assert!(!stdout(&assert).contains('\x1b'), "{}", stdout(&assert));
    assert_eq!(stderr(&assert), "");
}

#[test]
fn demo_with_json_prints_nothing_but_objects() {
    let assert = stepwell(&["demo", "--json", "--fraud-window", "50ms", "--orders", "9"]);
    let records = records(&assert.success());
    let of = |kind: &str| records.iter().filter(|r| r["record"] == kind).collect::<Vec<_>>();
    assert_eq!(of("run").len(), 9);
    assert!(of("run").iter().all(|run| run["as_expected"] == true));
    assert_eq!(of("summary").len(), 1);
    assert_eq!(records.last().expect("there are records")["n_runs"], 9);
    assert_eq!(of("event").len() + 9 + 1, records.len());
}

#[test]
fn events_of_a_run_are_numbered_without_gaps() {
    let assert = stepwell(&["demo", "--json", "--fraud-window", "50ms"]).success();
    let mut numbers: Vec<u64> = records(&assert)
        .iter()
        .filter(|record| record["record"] == "event" && record["run"] == "order-1003")
        .map(|event| event["number"].as_u64().expect("told events are numbered"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=25).collect::<Vec<u64>>());
}

#[test]
fn one_order_is_enough_for_a_demo() {
    let text = stdout(&stepwell(&["demo", "--orders", "1", "--fraud-window", "0s"]).success());
    assert!(text.contains("1 order went through"), "{text}");
}

#[test]
fn a_span_that_is_not_understood_is_refused() {
    for span in ["2", "2x", "soon", "", "2s3"] {
        let assert = stepwell(&["demo", "--fraud-window", span]).code(2);
        assert!(stderr(&assert).contains("--fraud-window"), "{}", stderr(&assert));
        assert_eq!(stdout(&assert), "");
    }
    stepwell(&["demo", "--fraud-window=-2s"]).code(2);
    stepwell(&["demo", "--orders", "0"]).code(2);
}

#[test]
fn an_error_of_the_engine_shows_its_code_and_where_to_read_more() {
    let assert = stepwell(&["demo", "--fraud-window", "2000000h"]).code(1);
    let text = stderr(&assert);
    assert!(text.starts_with("error: SW0006: "), "{text}");
    assert!(text.contains("stepwell explain SW0006"), "{text}");
    assert_eq!(stdout(&assert), "");
}

#[test]
fn explain_prints_the_page_however_the_code_is_written() {
    for code in ["SW0007", "sw0007", "7"] {
        let text = stdout(&stepwell(&["explain", code]).success());
        assert!(text.starts_with("# SW0007: a setting makes no sense\n"), "{text}");
        assert!(text.contains("## Remedy"), "{text}");
    }
}

#[test]
fn explain_without_a_code_lists_them_all() {
    let text = stdout(&stepwell(&["explain"]).success());
    assert!(text.contains("SW0001") && text.contains("SW0034"), "{text}");
    let records = records(&stepwell(&["explain", "--json"]).success());
    assert_eq!(records.len(), text.lines().count());
    assert!(records.iter().all(|record| record["title"].as_str().is_some_and(|t| !t.is_empty())));
}

#[test]
fn an_unknown_code_is_refused() {
    for code in ["SW9999", "0", "banana"] {
        let assert = stepwell(&["explain", code]).code(2);
        assert!(stderr(&assert).contains("there is no error code"), "{}", stderr(&assert));
        assert_eq!(stdout(&assert), "");
    }
}

#[test]
fn help_shows_examples() {
    for args in [&["--help"][..], &["demo", "--help"], &["explain", "--help"]] {
        let text = stdout(&stepwell(args).success());
        assert!(text.contains("Examples:\n  stepwell "), "{text}");
    }
}

#[test]
fn colours_can_be_forced_and_forbidden() {
    let text = stdout(&stepwell(&["explain", "7", "--color", "always"]).success());
    assert!(text.contains("\x1b[1m"), "{text}");
    let text = stdout(&stepwell(&["explain", "7", "--color", "never"]).success());
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn migrate_makes_a_file_and_says_its_version() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    let path = path.to_str().expect("a plain path");
    let text = stdout(&stepwell(&["migrate", "--store", path]).success());
    assert!(text.contains("up to date at version"), "{text}");
    let records = records(&stepwell(&["migrate", "--store", path, "--json"]).success());
    assert_eq!(records[0]["store"], "sqlite");
    assert!(records[0]["version"].as_u64() >= Some(1));
}

#[test]
fn migrate_prints_the_sql_for_a_schema_without_a_store() {
    let text = stdout(&stepwell(&["migrate", "--print", "--schema", "shop"]).success());
    assert!(text.starts_with("begin;") && text.trim_end().ends_with("commit;"), "{text}");
    assert!(text.contains("create table \"shop\".run"), "{text}");
    assert!(!text.contains("stepwell."), "{text}");
    let last = ["migrate", "--print", "--from-version", "1"];
    assert!(!stdout(&stepwell(&last).success()).contains("create table stepwell.run "));
}

#[test]
fn migrate_refuses_what_it_cannot_do() {
    let nowhere = stepwell(&["migrate", "--store", "/nowhere/at/all/shop.db"]).failure();
    assert!(stderr(&nowhere).contains("stepwell explain SW0033"), "{}", stderr(&nowhere));
    let none = stepwell(&["migrate"]).failure().code(2);
    assert!(stderr(&none).contains("--store"), "{}", stderr(&none));
    let ahead = stepwell(&["migrate", "--print", "--from-version", "999"]).failure().code(2);
    assert!(stderr(&ahead).contains("--from-version"), "{}", stderr(&ahead));
    let schema = stepwell(&["migrate", "--print", "--schema", "A B"]).failure();
    assert!(stderr(&schema).contains("lower-case"), "{}", stderr(&schema));
}
