//! Every statement fits the schema, and none reads a whole hot table. Nobody analyses the file, so
//! its plans depend on the schema alone and an empty file shows them.

use rusqlite::Connection;
use stepwell_core::time::Timestamp;

use super::{FILES, TABLES};
use crate::outbound::sql::{blocks, fill_in};
use crate::outbound::sqlite::schema::migrate;

/// Tables that grow with runs, tasks or tenants.
const HOT: &[&str] = &[
    "run",
    "input",
    "task",
    "output",
    "attempt",
    "event",
    "wait",
    "signal",
    "memo",
    "throttled",
    "parked",
    "timer",
    "tenant",
    "tenant_position",
];

/// Statements that are meant to read a whole hot table.
const READ_EVERYTHING: &[(&str, &str)] = &[
    ("dump_attempts", "a dump is for checks"),
    ("dump_events", "a dump is for checks"),
    ("dump_memos", "a dump is for checks"),
    ("dump_runs", "a dump is for checks"),
    ("dump_signals", "a dump is for checks"),
    ("dump_tasks", "a dump is for checks"),
    ("dump_places", "a dump is for checks"),
    ("read_tenants", "the default settings concern every tenant"),
    ("dump_timers", "a dump is for checks"),
    ("dump_waits", "a dump is for checks"),
    ("youngest_ready", "only when a limit is lowered; an index would cost every ready task"),
    ("insert_definition", "foreign keys are looked up only while one is known to be broken"),
    ("upsert_worker", "foreign keys are looked up only while one is known to be broken"),
];

/// Every statement of the store as it is prepared, with its name.
fn statements() -> impl Iterator<Item = (&'static str, String)> {
    let statements = FILES.iter().flat_map(|(file, _)| blocks(file));
    statements.map(|(name, sql)| (name, fill_in(sql, TABLES)))
}

fn migrated() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, Timestamp::EPOCH).unwrap();
    connection
}

/// The steps of a statement's plan that read a whole hot table, be it by an index.
fn scans(connection: &Connection, sql: &str) -> Vec<String> {
    let explain = format!("explain query plan {sql}");
    let mut statement = connection.prepare(&explain).expect("the statement fits the schema");
    for ix in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(ix, rusqlite::types::Null).expect("the parameter is there");
    }
    let mut rows = statement.raw_query();
    let (mut found, mut sorts) = (Vec::new(), false);
    while let Some(row) = rows.next().expect("a plan is read") {
        let step: String = row.get("detail").expect("a step has words");
        let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
        found.extend(scanned.filter(|table| HOT.contains(table)).map(|_| step.clone()));
        sorts |= step.contains("TEMP B-TREE");
    }
    // Up to a limit in the order of an index, no more is read than is given.
    if sql.contains("limit") && !sorts { Vec::new() } else { found }
}

#[test]
fn every_statement_fits_the_migrated_schema() {
    let connection = migrated();
    for (name, sql) in statements() {
        let prepared = connection.prepare(&sql);
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

#[test]
fn every_statement_is_used_by_the_file_of_its_table() {
    for (file, code) in FILES {
        for (name, _) in blocks(file) {
            assert!(code.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

#[test]
fn no_statement_reads_a_whole_hot_table() {
    let connection = migrated();
    let is_meant = |name: &str| READ_EVERYTHING.iter().any(|(meant, _)| *meant == name);
    let mut found = Vec::new();
    for (name, sql) in statements() {
        if !is_meant(name) {
            let scans = scans(&connection, &sql);
            found.extend(scans.into_iter().map(|step| format!("{name}: {step}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_view_of_one_run_reads_that_run_only() {
    let connection = migrated();
    let views = ["runs", "tasks", "attempts", "events", "timers", "waits", "signals"];
    for view in views.into_iter().chain(["inputs", "memos", "outputs"]) {
        let found =
            scans(&connection, &format!("select * from {view} where tenant = ? and run = ?"));
        assert!(found.is_empty(), "{view}: {found:?}");
    }
}

#[test]
fn tables_are_called_by_their_names() {
    // Otherwise the check above could not tell what is scanned.
    for (name, sql) in statements() {
        let words: Vec<&str> = sql.split_whitespace().collect();
        for pair in words.windows(3).filter(|pair| ["from", "join"].contains(&pair[0])) {
            let follows = [
                "where", "join", "left", "cross", "order", "union", "on", "using", "limit",
                "indexed", ")",
            ];
            let is_table = HOT.contains(&pair[1]);
            assert!(!is_table || follows.contains(&pair[2]), "{name}: {pair:?}");
        }
    }
}

#[test]
fn the_exceptions_are_statements_of_the_store() {
    for (meant, _) in READ_EVERYTHING {
        assert!(statements().any(|(name, _)| name == *meant), "{meant}");
    }
}
