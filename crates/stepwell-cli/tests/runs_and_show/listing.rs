//! `stepwell runs`.

use std::time::Duration;

use rstest::rstest;
use serde_json::Value;
use stepwell::Workflow;
use stepwell::testing::TestEngine;

use crate::command::{records, stderr, stdout, stepwell, stepwell_on};
use crate::story::{Kind, RUNS, SECRET, Story};

fn names(records: &[Value]) -> Vec<String> {
    let name = |run: &Value| {
        let text = |field: &str| run[field].as_str().expect("it is text").to_owned();
        format!("{}/{}", text("tenant"), text("run"))
    };
    records.iter().map(name).collect()
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn runs_are_listed_newest_first_whatever_their_status(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let records = records(&stepwell(&["runs", "--json", "--store", &story.store]).success());
    assert_eq!(names(&records), RUNS.map(|(name, _)| name));
    let statuses: Vec<_> = records.iter().map(|run| run["status"].as_str()).collect();
    assert_eq!(statuses, RUNS.map(|(_, status)| Some(status.as_str())));
    let pretty: Vec<String> = records.iter().map(|run| format!("{run:#}")).collect();
    insta::assert_snapshot!("runs_as_json", pretty.join("\n"));

    let assert = stepwell(&["runs", "--store", &story.store]).success();
    insta::assert_snapshot!("runs_as_a_table", story.masked_tables(&stdout(&assert)));
    assert_eq!(stderr(&assert), "");
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn runs_can_be_filtered_by_tenant_workflow_and_status(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let listed = |filter: &[&str]| {
        let args = [&["runs", "--json"], filter].concat();
        names(&records(&stepwell_on(&story.store, &args).success()))
    };
    assert_eq!(listed(&["--tenant", "florist"]), ["florist/open"]);
    assert_eq!(listed(&["--workflow", "parts"]), ["florist/open", "bakery/called-off"]);
    for (name, status) in RUNS {
        assert_eq!(listed(&["--status", status.as_str()]), [name]);
        assert_eq!(listed(&["--status", &status.as_str().to_lowercase()]), [name]);
    }
    let both = ["--tenant", "bakery", "--workflow", "order", "--status", "failed"];
    assert_eq!(listed(&both), ["bakery/declined"]);
    assert_eq!(listed(&["--tenant", "nobody"]), [] as [&str; 0]);
    let text = stdout(&stepwell_on(&story.store, &["runs", "--tenant", "nobody"]).success());
    assert_eq!(text, "no run is like that\n");
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn pages_follow_each_other_without_a_gap(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let mut listed = Vec::new();
    let mut page = vec!["runs".to_owned(), "--limit".to_owned(), "2".to_owned()];
    loop {
        let args: Vec<&str> = page.iter().map(String::as_str).collect();
        let runs =
            records(&stepwell_on(&story.store, &[&args, &["--json"][..]].concat()).success());
        listed.extend(names(&runs));
        // The table says how to go on, exactly if there is more.
        let table = stdout(&stepwell_on(&story.store, &args).success());
        let Some((_, next)) = table.split_once("the next page is --before ") else { break };
        let last = runs.last().expect("there is more");
        assert_eq!(last["key"], next.trim());
        page.truncate(3);
        page.extend(["--before".to_owned(), next.trim().to_owned()]);
    }
    assert_eq!(listed, RUNS.map(|(name, _)| name));
}

#[test]
fn a_listing_may_be_longer_than_a_page_of_the_store() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    let mut w = Workflow::define::<u32, ()>("nap");
    w.sleep("nap", Duration::from_hours(1)).from_start();
    let mut builder = TestEngine::on_sqlite(&path);
    let nap = builder.workflow(w.no_output());
    let engine = builder.start().expect("it starts");
    let runs = (0..1_100).map(|n| stepwell::NewRun::new(n).tenant("bakery"));
    engine.start_many(&nap, runs).expect("they start");
    let store = path.to_str().expect("a plain path");
    for (limit, n_listed) in [("1050", 1_050), ("5000", 1_100)] {
        let assert = stepwell_on(store, &["runs", "--limit", limit, "--json"]).success();
        let keys: std::collections::BTreeSet<String> =
            records(&assert).iter().map(|run| run["key"].to_string()).collect();
        assert_eq!(keys.len(), n_listed);
    }
}

#[test]
fn a_store_without_runs_says_so() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    let store = path.to_str().expect("a plain path");
    stepwell(&["migrate", "--store", store]).success();
    let text = stdout(&stepwell(&["runs", "--store", store]).success());
    assert_eq!(text, "no run was started yet\n");
    assert_eq!(stdout(&stepwell(&["runs", "--store", store, "--json"]).success()), "");
}

#[test]
fn a_listing_shows_no_payloads_and_no_colours_in_a_pipe() {
    let story = Story::tell(Kind::Sqlite);
    for args in [&["runs"][..], &["runs", "--json"]] {
        let text = stdout(&stepwell_on(&story.store, args).success());
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }
    let args = ["runs", "--color", "always"];
    assert!(stdout(&stepwell_on(&story.store, &args).success()).contains("\x1b["));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (option, value) in [
        ("--limit", "0"),
        ("--limit", "many"),
        ("--status", "DONE"),
        ("--tenant", ""),
        ("--before", "12"),
        ("--before", "last"),
    ] {
        let assert = stepwell_on("shop.db", &["runs", option, value]).code(2);
        assert!(stderr(&assert).contains(option), "{}", stderr(&assert));
        assert_eq!(stdout(&assert), "");
    }
}

#[test]
fn help_shows_examples() {
    for command in ["runs", "show"] {
        let text = stdout(&stepwell(&[command, "--help"]).success());
        assert!(text.contains(&format!("Examples:\n  stepwell {command} ")), "{text}");
        assert!(text.contains("STEPWELL_STORE") && text.contains("--json"), "{text}");
    }
    assert!(stdout(&stepwell(&["--help"]).success()).contains("  stepwell runs "));
}
