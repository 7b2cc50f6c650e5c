//! The views show people what the tables hold: names instead of numbers, times instead of
//! microseconds, and what a task waits for. The same story is told to both stores, and the
//! examples in `docs/schema.md` are what the views show of it.
#![cfg(all(feature = "testing", feature = "sqlite", feature = "postgres"))]

mod reader;
mod story;
#[path = "../support_postgres/mod.rs"]
mod support_postgres;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use reader::{Reader, postgres, sqlite};
use stepwell::core::run::{Attributes, Event, RunRow, WaitFor, read_log};
use stepwell::ports::{Outcome, RunFilter};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Sketch, failed_for_good, payload, worker};
use story::{send, tell};

/// The examples of the page: a query, and the rows it gives.
fn examples() -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (_, views) = page.split_once("\n## Views\n").expect("the page shows the views");
    let (views, _) = views.split_once("\n## ").expect("another part follows");
    let example = |text: &str| {
        let (query, rest) = text.split_once("```").expect("the query ends");
        let (_, rest) = rest.split_once("```text\n").expect("what it gives follows");
        let (rows, _) = rest.split_once("```").expect("the rows end");
        (query.to_owned(), rows.lines().map(plain).collect())
    };
    views.split("```sql\n").skip(1).map(example).collect()
}

/// One dialect writes JSON with spaces, the other without.
fn plain(row: &str) -> String {
    row.replace("\": \"", "\":\"")
}

async fn check(world: &World, reader: &Reader) {
    tell(world).await;
    let examples = examples();
    assert!(examples.len() >= 13, "every view has an example");
    for (query, expected) in examples {
        let shown: Vec<String> = reader.rows(&query).await.iter().map(|row| plain(row)).collect();
        assert_eq!(shown, expected, "{query}");
    }
    let log = "select number, step, attempt, event from events \
        where tenant = 'acme' and run = 'run-1' order by number";
    let trail = [
        "1 | - | - | RUN_STARTED",
        "2 | a | 1 | QUEUED",
        "3 | a | 1 | STARTED",
        "4 | a | 1 | COMPLETED",
        "5 | n | - | SLEEPING",
        "6 | b | 1 | QUEUED",
        "7 | b | 1 | STARTED",
        "8 | b | 1 | RETRYING",
    ];
    assert_eq!(reader.rows(log).await, trail);
}

#[tokio::test]
async fn the_views_of_a_file_show_what_goes_on() {
    let (world, reader) = sqlite();
    check(&world, &reader).await;
    let times = "select started_at, ended_at, took_secs from runs where run = 'run-3'";
    let moment = "2026-01-01T00:00:01.000Z";
    assert_eq!(reader.rows(times).await, [format!("{moment} | {moment} | 0")]);
    let deadlines = "select run, deadline from runs where deadline is not null";
    assert_eq!(reader.rows(deadlines).await, ["run-6 | 2026-01-05T00:00:01.000Z"]);
    let attempt = "select queued_at, ended_at, took_secs, retry_due_at from attempts \
        where run = 'run-1' and step = 'b'";
    let due = "2026-01-01T00:00:11.000Z";
    assert_eq!(reader.rows(attempt).await, [format!("{moment} | {moment} | 0 | {due}")]);
    let workers = "select queues, workflows, lease_secs, leads from workers where state = 'ALIVE'";
    let served = "[\"broken 1\",\"order 1\",\"pair 1\",\"solo 1\"]";
    assert_eq!(reader.rows(workers).await, [format!("[\"default\"] | {served} | 30 | 0")]);
    let steps = "select steps, on_failure, fail_fast from workflows where workflow = 'broken'";
    assert_eq!(reader.rows(steps).await, ["[\"f\",\"g\"] | 1 | 0"]);
}

#[tokio::test]
async fn the_views_of_a_schema_show_what_goes_on() {
    let (world, reader) = postgres().await;
    check(&world, &reader).await;
    let times = "select started_at, ended_at, took from runs where run = 'run-3'";
    let moment = "2026-01-01 00:00:01+00";
    assert_eq!(reader.rows(times).await, [format!("{moment} | {moment} | 00:00:00")]);
    let deadlines = "select run, deadline from runs where deadline is not null";
    assert_eq!(reader.rows(deadlines).await, ["run-6 | 2026-01-05 00:00:01+00"]);
    let attempt = "select queued_at, ended_at, took, retry_due_at from attempts \
        where run = 'run-1' and step = 'b'";
    let due = "2026-01-01 00:00:11+00";
    assert_eq!(reader.rows(attempt).await, [format!("{moment} | {moment} | 00:00:00 | {due}")]);
    let workers = "select queues, workflows, lease, leads from workers where state = 'ALIVE'";
    let served = "{\"broken 1\",\"order 1\",\"pair 1\",\"solo 1\"}";
    assert_eq!(reader.rows(workers).await, [format!("{{default}} | {served} | 00:00:30 | f")]);
    let steps = "select steps, on_failure, fail_fast from workflows where workflow = 'broken'";
    assert_eq!(reader.rows(steps).await, ["{f,g} | t | f"]);
    if let Reader::Postgres(schema) = reader {
        drop(world);
        schema.remove().await;
    }
}

/// Everything that can stand in a log.
async fn tell_all_events(world: &World) {
    let flow = Sketch::from("a; b * 1/1s < a; c < b; s ~ 1s; t ~? 1s < s; x; y < x!");
    let flow = world.define(flow.on_failure()).await;
    world.start_for("acme", &flow).await;
    let roots = world.claim_all().await;
    world.skip(roots.of("x")).await;
    world.release(roots.of("a")).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    world.complete(&world.claim_one().await).await;
    world.fail(&world.claim_one().await).await;
    world.pass(Duration::from_secs(1));
    world.fire().await;
    let batch = world.claim_all().await;
    world.settle(batch.of("t"), Outcome::Slept).await;
    world.settle(batch.of("b"), failed_for_good("out of stock")).await;
    world.pass(Duration::from_secs(1));
    world.fire().await;
    world.complete(&world.claim_one().await).await;
    let gone = world.start_for("acme", &flow).await;
    world.claim_one().await;
    world.cancel(&gone).await;

    let outside = Sketch::from("a; v ? never/1s; w ? paid").deadline(Duration::from_hours(1));
    let outside = world.start_for("acme", &world.define(outside).await).await;
    let (signals, matching) = (vec!["approved".to_owned()], Attributes::new());
    let (wait_for, notes) = (WaitFor { signals, matching, timeout: None }, BTreeMap::new());
    world.settle(&world.claim_one().await, Outcome::Waits { wait_for, notes }).await;
    send(world, &outside, ("paid", "evt-1"), Attributes::new(), payload(b"now")).await;
    for span in [Duration::from_secs(1), Duration::from_hours(1)] {
        world.pass(span);
        world.fire().await;
    }
}

/// The numbered part of a run's log, as the rules assemble it from rows.
async fn logged(world: &World, run: &RunRow) -> Vec<String> {
    let log = world.store().log(run.key).await.expect("read a log").expect("the run is there");
    let or_none = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
    let line = |event: Event| {
        let (node, attempt) = (event.node.map(|node| node.0.into()), u64::from(event.attempt));
        let attempt = or_none(Some(attempt).filter(|attempt| *attempt > 0));
        let (number, node, name) = (event.number?, or_none(node), event.kind.name());
        Some(format!("{number} | {node} | {attempt} | {name}"))
    };
    read_log(&log).into_iter().filter_map(line).collect()
}

/// The log has one source, the rules; the view of people who read by SQL is held against it.
async fn check_events(world: &World, reader: &Reader) {
    tell_all_events(world).await;
    let page = world.store().list(&RunFilter::default(), None, 100).await.expect("list runs");
    let mut seen = BTreeSet::new();
    for view in page.runs {
        let (tenant, id) = (&view.row.tenant, &view.row.id);
        let query = format!(
            "select number, node, attempt, event from events \
             where tenant = '{tenant}' and run = '{id}' order by number"
        );
        let expected = logged(world, &view.row).await;
        assert_eq!(reader.rows(&query).await, expected, "{tenant} {id}");
        seen.extend(expected.iter().filter_map(|line| Some(line.rsplit(' ').next()?.to_owned())));
    }
    let all = [
        "CANCELLED",
        "COMPLETED",
        "DEADLINE_PASSED",
        "FAILED",
        "LEASE_LOST",
        "QUEUED",
        "RELEASED",
        "RETRYING",
        "RUN_CANCELLED",
        "RUN_ENDED",
        "RUN_ENDING",
        "RUN_STARTED",
        "SIGNALLED",
        "SKIPPED",
        "SLEEPING",
        "STARTED",
        "SUSPENDED",
        "TIMED_OUT",
        "WAITING",
        "WOKEN",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all, "the story tells of every event");
}

#[tokio::test]
async fn the_events_of_a_file_are_those_of_the_log() {
    let (world, reader) = sqlite();
    check_events(&world, &reader).await;
}

#[tokio::test]
async fn the_events_of_a_schema_are_those_of_the_log() {
    let (world, reader) = postgres().await;
    check_events(&world, &reader).await;
    if let Reader::Postgres(schema) = reader {
        drop(world);
        schema.remove().await;
    }
}

/// Workers that leave, with tasks and without, and one that falls silent.
async fn check_workers(world: &World, reader: &Reader) {
    let flow = world.define("a; b").await;
    world.start_for("acme", &flow).await;
    let [idle, busy, silent] = ["idle", "busy", "silent"];
    for name in [idle, busy, silent] {
        world.hire(name).await;
    }
    world.claim(&worker(busy), 1).await;
    world.claim(&worker(silent), 1).await;
    let leave = [idle, busy].map(worker);
    for left in &leave {
        world.dismiss(left).await;
    }
    let states = "select worker, state from workers where worker <> 'worker' order by worker";
    let before = ["busy | LEAVING", "idle | GONE", "silent | ALIVE"];
    assert_eq!(reader.rows(states).await, before);
    assert_eq!(world.reap().await.n_tasks, 1, "what busy held");
    world.lose(&worker(silent)).await;
    let after = ["busy | GONE", "idle | GONE", "silent | DEAD"];
    assert_eq!(reader.rows(states).await, after);
}

#[tokio::test]
async fn workers_that_left_show_as_gone_and_those_found_dead_as_dead() {
    let (world, reader) = sqlite();
    check_workers(&world, &reader).await;
    let (world, reader) = postgres().await;
    check_workers(&world, &reader).await;
    if let Reader::Postgres(schema) = reader {
        drop(world);
        schema.remove().await;
    }
}

/// State names stand in tables for the views; the code's own list must agree with them.
#[tokio::test]
async fn the_views_know_every_state_of_the_code() {
    use stepwell::core::run::{AttemptState, MemoState, RunStatus, RunTimer, TaskState, WaitKind};
    let (_world, file) = sqlite();
    let (world, schema) = postgres().await;
    let tasks = TaskState::ALL.iter().map(|s| ("task_state", *s as u32, s.as_str()));
    let runs = RunStatus::ALL.iter().map(|s| ("run_status", *s as u32, s.as_str()));
    let attempts = AttemptState::ALL.iter().map(|s| ("attempt_state", *s as u32, s.as_str()));
    let memos = MemoState::ALL.iter().map(|s| ("memo_state", *s as u32, s.as_str()));
    for (table, number, name) in tasks.chain(runs).chain(attempts).chain(memos) {
        let named = format!("select name from {table} where number = {number}");
        assert_eq!(file.rows(&named).await, [name], "{table} in SQLite");
        assert_eq!(schema.rows(&named).await, [name], "{table} in PostgreSQL");
    }
    for kind in WaitKind::ALL {
        let named = format!("select name from wait_kind where number = {}", *kind as u32);
        assert_eq!(file.rows(&named).await.len(), 1, "{kind:?} in SQLite");
        assert_eq!(schema.rows(&named).await.len(), 1, "{kind:?} in PostgreSQL");
    }
    for timer in RunTimer::ALL {
        let named = format!("select name from run_timer where node = {}", timer.node().0);
        assert_eq!(file.rows(&named).await.len(), 1, "{timer:?} in SQLite");
        assert_eq!(schema.rows(&named).await.len(), 1, "{timer:?} in PostgreSQL");
    }
    if let Reader::Postgres(schema) = schema {
        drop(world);
        schema.remove().await;
    }
}
