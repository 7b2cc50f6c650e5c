//! `stepwell show`.

use rstest::rstest;
use serde_json::Value;

use crate::command::{records, stderr, stdout, stepwell, stepwell_on};
use crate::story::{Kind, RUNS, Story};

fn shown(story: &Story, args: &[&str]) -> Value {
    let args = [&["show", "--json"], args].concat();
    let mut records = records(&stepwell_on(&story.store, &args).success());
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_of_every_status_is_shown_with_its_tasks_and_log(#[case] kind: Kind) {
    let story = Story::tell(kind);
    for (name, _) in RUNS {
        let assert = stepwell(&["show", name, "--store", &story.store]).success();
        let snapshot = format!("show_{}", name.replace(['/', '-'], "_"));
        insta::assert_snapshot!(snapshot, story.masked_tables(&stdout(&assert)));
        assert_eq!(stderr(&assert), "");
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_is_one_object_for_programs(#[case] kind: Kind) {
    let story = Story::tell(kind);
    for name in ["bakery/declined", "florist/open"] {
        let text = format!("{:#}", shown(&story, &[name]));
        let snapshot = format!("show_{}_as_json", name.replace('/', "_"));
        insta::assert_snapshot!(snapshot, story.masked(&text));
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn the_log_for_programs_is_complete_and_in_order(#[case] kind: Kind) {
    let story = Story::tell(kind);
    for (name, status) in RUNS {
        let run = shown(&story, &[name]);
        let log = run["log"].as_array().expect("it is a list");
        let numbers: Vec<u64> = log.iter().filter_map(|event| event["number"].as_u64()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{name}");
        assert_eq!(log[0]["event"], "RUN_STARTED");
        let last = log.last().expect("it is not empty");
        assert_eq!(last["event"] == "RUN_ENDED", status.is_terminal(), "{name}");
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_is_found_by_each_of_its_names(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let run = shown(&story, &["bakery/well"]);
    let key = run["run"]["key"].as_str().expect("it has a key");
    let parts = [&key[..8], &key[8..12], &key[12..16], &key[16..20], &key[20..]];
    for args in [
        &["well", "--tenant", "bakery"][..],
        &["--tenant=bakery", "well"],
        &[key],
        &[&key.to_uppercase()],
        &[&parts.join("-")],
    ] {
        assert_eq!(shown(&story, args), run, "{args:?}");
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_that_is_not_there_is_refused_with_the_way_to_find_it(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let key = "0".repeat(32);
    for (args, remedy) in [
        (&["bakery/none"][..], "`stepwell runs --tenant bakery`"),
        // A run of another tenant.
        (&["florist/well"], "`stepwell runs --tenant florist`"),
        (&["well", "--tenant", "florist"], "`stepwell runs --tenant florist`"),
        (&[&key], "`stepwell runs`"),
    ] {
        let assert = stepwell_on(&story.store, &[&["show"], args].concat()).code(1);
        let text = stderr(&assert);
        assert!(text.starts_with("error: SW0013: ") && text.contains(remedy), "{text}");
        assert!(text.contains("stepwell explain SW0013"), "{text}");
        assert_eq!(stdout(&assert), "");
    }
}

#[test]
fn a_name_that_could_be_anybodys_is_refused() {
    for name in ["well", "bakery/", "/well", "0192f0c1"] {
        let assert = stepwell_on("shop.db", &["show", name]).failure();
        assert!(!stderr(&assert).contains("SW0013"), "{}", stderr(&assert));
        assert_eq!(stdout(&assert), "");
    }
}

#[test]
fn long_tables_are_cut_with_a_word_on_how_to_see_all() {
    let story = Story::tell(Kind::Sqlite);
    let show = |lines: &str| {
        let args = ["show", "florist/open", "--lines", lines];
        stdout(&stepwell_on(&story.store, &args).success())
    };
    let all = show("0");
    assert!(!all.contains("--lines"), "{all}");
    assert_eq!(all, show("100"));
    let few = show("3");
    assert!(few.contains("4 more tasks; --lines 0 shows all of them"), "{few}");
    assert!(few.contains("earlier events; --lines 0 shows all of them"), "{few}");
    // What went well is left out first, then what has not begun.
    for (step, is_shown) in [("held", true), ("done", false), ("left-out", false), ("last", false)]
    {
        let (_, tasks) = few.split_once("Tasks").expect("there are tasks");
        let (tasks, _) = tasks.split_once("Log").expect("there is a log");
        assert_eq!(tasks.contains(step), is_shown, "{step} in {tasks}");
    }
}

#[test]
fn nothing_in_a_pipe_moves_a_terminal() {
    let story = Story::tell(Kind::Sqlite);
    for args in [&["show", "bakery/declined"][..], &["show", "bakery/declined", "--json"]] {
        let text = stdout(&stepwell_on(&story.store, args).success());
        assert!(text.contains("the bank said"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }
    let args = ["show", "bakery/declined", "--color", "always"];
    let text = stdout(&stepwell_on(&story.store, &args).success());
    assert!(text.contains("\x1b[") && !text.contains("\x1b[31mno"), "{text}");
}
