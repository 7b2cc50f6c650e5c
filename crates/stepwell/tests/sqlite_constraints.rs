//! The file itself refuses rows that make no sense, whoever writes them.
#![cfg(feature = "sqlite")]

mod support_schema;

use rusqlite::{Connection, ErrorCode};
use stepwell::SqliteStore;
use support_schema::{Columns, Dialect, Table, tables};
use tempfile::TempDir;

const DIALECT: Dialect = &[
    ("{digest}", "zeroblob(32)"),
    ("{other digest}", "cast(zeroblob(31) || x'01' as blob)"),
    ("{short}", "x'01'"),
    ("{key}", "x'00000000000000000000000000000001'"),
    ("{other key}", "x'00000000000000000000000000000002'"),
    ("{run}", "1"),
    ("{no run}", "99"),
    ("{yes}", "1"),
    ("{no}", "0"),
    (", {queues}", ""),
    (", {no queues}", ""),
    (", {frontier worker}", ""),
    (", {its number}", ""),
];

/// A task that can be claimed: here its place in the queue is part of its row.
const READY: Table = Table {
    name: "task",
    only: Some("sqlite"),
    good: &[
        ("run", "{run}"),
        ("node", "0"),
        ("state", "1"),
        ("n_unmet", "0"),
        ("n_skipped", "0"),
        ("attempt", "0"),
        ("failures", "0"),
        ("losses", "0"),
        ("queued_logged", "{no}"),
        ("queued_at", "0"),
        ("queue", "'q'"),
        ("order_key", "0"),
        ("number", "1"),
        ("position", "0"),
        ("service", "0"),
    ],
    other: &[("number", "2"), ("node", "1")],
    bad: &[
        ("a place twice", &[("number", "1")]),
        ("a task twice", &[("node", "0")]),
        ("a key below zero", &[("order_key", "-1")]),
        ("a position below zero", &[("position", "-1")]),
        ("losses below zero", &[("losses", "-1")]),
        ("no service", &[("service", "null")]),
        ("no key", &[("order_key", "null")]),
        ("no number", &[("number", "null")]),
        ("no position", &[("position", "null")]),
        ("no queue", &[("queue", "null")]),
        ("a place before it is due", &[("due_at", "0")]),
        ("a place of a pending task", &[("state", "0"), ("queued_at", "null")]),
        ("a place of a completed task", &[("state", "5"), ("queued_at", "null")]),
        (
            "a place of a running task",
            &[("state", "2"), ("token", "{key}"), ("worker", "1"), ("started_at", "0")],
        ),
    ],
};

/// A completed task: here its last attempt and a small output are part of its row.
const DONE: Table = Table {
    name: "task",
    only: Some("sqlite"),
    good: &[
        ("run", "{run}"),
        ("node", "0"),
        ("state", "5"),
        ("n_unmet", "0"),
        ("n_skipped", "0"),
        ("attempt", "1"),
        ("failures", "0"),
        ("losses", "0"),
        ("queued_logged", "{yes}"),
        ("queued_at", "0"),
        ("started_at", "0"),
        ("worker", "1"),
        ("token", "{key}"),
        ("ended_at", "0"),
        ("first_event", "2"),
        ("with_queued", "{yes}"),
        ("output_codec", "'json'"),
        ("output", "{short}"),
    ],
    other: &[("node", "1")],
    bad: &[
        ("no token", &[("token", "null")]),
        ("a token that is too short", &[("token", "{short}")]),
        ("no worker", &[("worker", "null")]),
        ("a worker that is not there", &[("worker", "99")]),
        ("never queued", &[("queued_at", "null")]),
        ("never started", &[("started_at", "null")]),
        ("never ended", &[("ended_at", "null")]),
        ("without an event", &[("first_event", "null")]),
        ("the number of another event", &[("first_event", "1")]),
        ("queued perhaps", &[("with_queued", "null")]),
        ("queued twice", &[("with_queued", "2")]),
        ("bytes of no codec", &[("output_codec", "null")]),
        ("a codec of no bytes", &[("output", "null")]),
        ("an end of a failed task", &[("state", "6")]),
        ("an end of a running task", &[("state", "2")]),
        (
            "an output of a running task",
            &[
                ("state", "2"),
                ("ended_at", "null"),
                ("first_event", "null"),
                ("with_queued", "null"),
            ],
        ),
    ],
};

/// A run with a small input in its row.
const GIVEN: Columns =
    &[("key", "{other key}"), ("id", "'s'"), ("input_codec", "'json'"), ("input", "{short}")];

/// A migrated file, with foreign keys in force.
async fn migrated() -> (TempDir, Connection) {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let path = folder.path().join("stepwell.db");
    drop(SqliteStore::open(path.clone()).await.expect("a fresh file opens"));
    let file = Connection::open(path).expect("it opens again");
    file.pragma_update(None, "foreign_keys", true).expect("a setting is taken");
    (folder, file)
}

/// What the file says of a row: nothing, or why it is refused.
fn refusal(file: &Connection, sql: &str) -> Option<ErrorCode> {
    file.execute_batch("begin").expect("a transaction begins");
    let answer = file.execute_batch(sql);
    file.execute_batch("rollback").expect("a transaction ends");
    Some(answer.err()?.sqlite_error_code().expect("SQLite says why"))
}

#[tokio::test]
async fn bad_rows_are_refused() {
    let (_folder, file) = migrated().await;
    let tables = tables("sqlite");
    let found: Vec<String> = tables.flat_map(|table| check(&file, table)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn check(file: &Connection, table: &Table) -> Vec<String> {
    let name = table.name;
    if !table.good.is_empty() {
        let stored = file.execute_batch(&table.insert(&[], DIALECT));
        stored.unwrap_or_else(|error| panic!("{name} takes a good row: {error:?}"));
    }
    if !table.other.is_empty() {
        let refused = refusal(file, &table.insert(&[table.other], DIALECT));
        assert_eq!(refused, None, "{name} takes another good row");
    }
    let mut found = Vec::new();
    for (what, changes) in table.bad {
        match refusal(file, &table.insert(&[table.other, changes], DIALECT)) {
            Some(ErrorCode::ConstraintViolation) => {}
            answer => found.push(format!("{name}, {what}: {answer:?}")),
        }
    }
    if !table.other.is_empty() {
        let other = table.insert(&[table.other], DIALECT);
        file.execute_batch(&other).expect("it was taken before");
    }
    found
}

/// A migrated file with the good rows that a task needs.
async fn with_run() -> (TempDir, Connection) {
    let (folder, file) = migrated().await;
    let before = tables("sqlite").take_while(|table| table.name != "task");
    for table in before.filter(|table| table.is_in("sqlite") && !table.good.is_empty()) {
        file.execute_batch(&table.insert(&[], DIALECT)).expect("a good row is taken");
    }
    (folder, file)
}

#[tokio::test]
async fn bad_places_and_ends_of_tasks_are_refused() {
    for table in [READY, DONE] {
        let (_folder, file) = with_run().await;
        let found = check(&file, &table);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[tokio::test]
async fn a_small_input_is_there_with_its_codec_or_not_at_all() {
    let (_folder, file) = with_run().await;
    let run = tables("sqlite").find(|table| table.name == "run").expect("there is one");
    let refused = |columns| refusal(&file, &run.insert(&[GIVEN, columns], DIALECT));
    assert_eq!(refused(&[]), None);
    assert_eq!(refused(&[("input", "null")]), Some(ErrorCode::ConstraintViolation));
    assert_eq!(refused(&[("input_codec", "null")]), Some(ErrorCode::ConstraintViolation));
}

#[tokio::test]
async fn bad_counters_and_defaults_are_refused() {
    let (_folder, file) = migrated().await;
    let updates = [
        "update counter set default_weight = 0",
        "update counter set default_weight = 1001",
        "update counter set default_tasks_max = 0",
        "update counter set last_number = -1",
        "update counter set n_claims = -1",
        "update counter set last_epoch = -1",
        "update counter set n_wakes = -1",
        "update counter set one = 2",
        // A table without loose types refuses words where a number belongs.
        "update counter set now = 'noon'",
    ];
    for sql in updates {
        assert_eq!(refusal(&file, sql), Some(ErrorCode::ConstraintViolation), "{sql}");
    }
}

#[tokio::test]
async fn every_table_has_rows_that_it_refuses() {
    let (_folder, file) = migrated().await;
    let names = "select name from sqlite_master where type = 'table' \
        and name <> 'stepwell_migration' and name not like 'sqlite_%' order by 1";
    let mut statement = file.prepare(names).expect("the catalogue is there");
    let there = statement.query_map([], |row| row.get(0)).expect("it is read");
    let there: Vec<String> = there.map(|name| name.expect("a name")).collect();
    let mut tested: Vec<&str> = tables("sqlite").map(|table| table.name).collect();
    tested.sort_unstable();
    assert_eq!(there, tested);
}
