//! The file itself refuses rows that make no sense, whoever writes them.
#![cfg(feature = "sqlite")]

mod support_schema;

use rusqlite::{Connection, ErrorCode};
use stepwell::SqliteStore;
use support_schema::{Dialect, TABLES, Table};
use tempfile::TempDir;

const DIALECT: Dialect = &[
    ("{digest}", "zeroblob(32)"),
    ("{other digest}", "cast(zeroblob(31) || x'01' as blob)"),
    ("{short}", "x'01'"),
    ("{key}", "x'00000000000000000000000000000001'"),
    ("{other key}", "x'00000000000000000000000000000002'"),
    ("{no key}", "x'00000000000000000000000000000009'"),
    ("{yes}", "1"),
    ("{no}", "0"),
    (", {queues}", ""),
    (", {no queues}", ""),
    (", {frontier worker}", ""),
    (", {its number}", ""),
];

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
    let tables = TABLES.iter().filter(|table| table.is_in("sqlite"));
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
        "update counter set n_told = -1",
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
    let tables = "select name from sqlite_master where type = 'table' \
        and name <> 'stepwell_migration' and name not like 'sqlite_%' order by 1";
    let mut statement = file.prepare(tables).expect("the catalogue is there");
    let there = statement.query_map([], |row| row.get(0)).expect("it is read");
    let there: Vec<String> = there.map(|name| name.expect("a name")).collect();
    let is_here = |table: &&Table| table.is_in("sqlite");
    let mut tested: Vec<&str> = TABLES.iter().filter(is_here).map(|table| table.name).collect();
    tested.sort_unstable();
    assert_eq!(there, tested);
}
