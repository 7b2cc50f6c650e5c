//! The views show people what the tables hold: names instead of numbers, times instead of
//! microseconds, and what a task waits for. The same story is told to both stores, and the
//! examples in `docs/schema.md` are what the views show of it.
#![cfg(all(feature = "testing", feature = "sqlite", feature = "postgres"))]

mod support_postgres;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::ValueRef;
use stepwell::core::decide::NewSignal;
use stepwell::core::failure::{Failure, FailureKind};
use stepwell::core::run::{Attributes, Event, MemoOutcome, MemoRow, RunRow, WaitFor, read_log};
use stepwell::ports::{
    ClaimRef, Clock, DynStore, MemoAnswer, MemoRequest, Outcome, Payload, RunFilter, SignalRequest,
    SignalTarget, StoredMemo,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{
    Run, Sketch, failed, failed_for_good, payload, worker,
};
use stepwell::{SqliteOptions, SqliteStore};
use support_postgres::Schema;
use tempfile::TempDir;

/// Reads views of either store.
enum Reader {
    Postgres(Schema),
    Sqlite(rusqlite::Connection, #[expect(dead_code, reason = "the file goes with it")] TempDir),
}

impl Reader {
    /// Rows as text, columns separated by ` | `, with `-` for null.
    async fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Postgres(schema) => support_postgres::rows(&schema.client, sql).await,
            Self::Sqlite(file, _) => sqlite_rows(file, sql),
        }
    }
}

fn sqlite_rows(file: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = file.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let n_columns = statement.column_count();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Null => "-".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(_) => "a blob".to_owned(),
    };
    let row = |row: &rusqlite::Row<'_>| {
        let columns: Vec<String> =
            (0..n_columns).map(|ix| row.get_ref(ix).map(text)).collect::<Result<_, _>>()?;
        Ok(columns.join(" | "))
    };
    let rows = statement.query_map([], row).expect("the view is read");
    rows.map(|row| row.expect("a row is read")).collect()
}

async fn postgres() -> (World, Reader) {
    let schema = Schema::make("views").await;
    let store: DynStore = Arc::new(schema.store.clone());
    (World::new(store, Arc::clone(&schema.clock)), Reader::Postgres(schema))
}

fn sqlite() -> (World, Reader) {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let path = folder.path().join("stepwell.db");
    let clock = Arc::new(ManualClock::new());
    let store = SqliteStore::with_clock(SqliteOptions::new(path.clone()), Arc::clone(&clock) as _);
    let store: DynStore = Arc::new(store.expect("a fresh file opens"));
    let file = rusqlite::Connection::open(path).expect("it opens again");
    (World::new(store, clock), Reader::Sqlite(file, folder))
}

/// Something of every kind: a retry, a sleep, a claim, a limit, nobody's work, a failure, a wait.
async fn tell(world: &World) {
    let order = Sketch::from("a; b * 1/10s < a; n ~ 24h < a; c < b, n").named("order");
    let order = world.define(order).await;
    world.start_for("acme", &order).await;
    let (codec, bytes) = (Cow::Borrowed("json"), br#"{"ok":true}"#.as_slice());
    let notes = BTreeMap::from([("seen".to_owned(), "7".to_owned())]);
    let output = Payload::new(codec, bytes);
    let a = world.claim_one().await;
    world.pass(Duration::from_secs(1));
    world.settle(&a, Outcome::Completed { output, notes }).await;
    let b = world.claim_one().await;
    world.settle(&b, failed("card declined")).await;

    let solo = world.define(Sketch::from("s").named("solo")).await;
    world.start_for("mole", &solo).await;
    let s = world.claim_one().await;
    remember(world, s.claim).await;

    let broken = world.define(Sketch::from("f; g < f").named("broken").on_failure()).await;
    world.start_for("mole", &broken).await;
    let f = world.claim_one().await;
    world.settle(&f, failed_for_good("no such file")).await;
    let handler = world.claim_one().await;
    world.complete(&handler).await;

    world.limit("zeta", 1).await;
    let pair = world.define(Sketch::from("x; y").named("pair")).await;
    world.start_for("zeta", &pair).await;
    let lonely = world.define_unserved(Sketch::from("p").named("lonely")).await;
    world.start_for("zeta", &lonely).await;
    let idle = world.hire_for("idle", &["slow"], &[&solo]).await;
    world.dismiss(&idle).await;
    world.lead().await;
    world.beat(&worker("worker"), &[]).await;

    let parcel = "approval ? approved|refused/72h; payment ? paid; ship < approval, payment";
    let parcel = Sketch::from(parcel).named("parcel").deadline(Duration::from_hours(96));
    let parcel = world.define_unserved(parcel).await;
    let parcel = world.start_for("acme", &parcel).await;
    let order = Attributes::from([("order".to_owned(), "4711".to_owned())]);
    let amount = Payload::new(Cow::Borrowed("json"), br#"{"amount":12}"#.as_slice());
    send(world, &parcel, ("paid", "evt-1"), order, amount).await;
    send(world, &parcel, ("reminded", "evt-2"), Attributes::new(), payload(b"now")).await;
}

/// Sends a signal under a key.
/// A function has done one thing, and will try another again.
async fn remember(world: &World, claim: ClaimRef) {
    let now = world.clock().now();
    let memo = |key: &str, number, outcome, tries| MemoRow {
        node: claim.node,
        key: key.to_owned(),
        number,
        outcome,
        tries,
        began_at: now,
        at: now,
    };
    let seat = Payload::new(Cow::Borrowed("json"), br#"{"seat":7}"#.as_slice());
    let given = StoredMemo { row: memo("reserve", 1, MemoOutcome::Given, 1), payload: Some(seat) };
    let failure = Some(Failure::new(FailureKind::Error, "", "card declined"));
    let due = Some(now.after(Duration::from_mins(1)));
    let begun = memo("pay", 0, MemoOutcome::Begun { due, failure }, 2);
    let memos = vec![given, StoredMemo { row: begun, payload: None }];
    let request = MemoRequest { claim, memos, forgives: false };
    let answers = world.store().store_memos(vec![request]).await.expect("store memos");
    assert!(matches!(answers[..], [MemoAnswer::Stored(_)]));
}

async fn send(
    world: &World,
    run: &Run,
    (name, key): (&str, &str),
    attributes: Attributes,
    payload: Payload,
) {
    let (name, key) = (name.to_owned(), key.to_owned());
    let signal = NewSignal { name, key, attributes, digest: [0; 32], only_if_awaited: false };
    let request = SignalRequest { to: SignalTarget::Key(run.key), signal, payload };
    world.store().signal(vec![request]).await.expect("send a signal");
}

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
