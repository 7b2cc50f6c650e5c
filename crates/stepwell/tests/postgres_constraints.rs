//! The database itself refuses rows that make no sense, whoever writes them.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;
mod support_schema;

use support_postgres::{Schema, rows};
use support_schema::{Dialect, Table, tables};

const DIALECT: Dialect = &[
    ("{digest}", "decode(repeat('01', 32), 'hex')"),
    ("{other digest}", "decode(repeat('02', 32), 'hex')"),
    ("{short}", "decode('01', 'hex')"),
    ("{key}", "'00000000-0000-0000-0000-000000000001'"),
    ("{other key}", "'00000000-0000-0000-0000-000000000002'"),
    ("{run}", "'00000000-0000-0000-0000-000000000001'"),
    ("{no run}", "'00000000-0000-0000-0000-000000000009'"),
    ("{yes}", "true"),
    ("{no}", "false"),
    ("{queues}", "queues"),
    ("{no queues}", "'{}'"),
    ("{frontier worker}", "worker"),
    ("{its number}", "1"),
];

/// What the database takes on trust: hot tables have no foreign keys; docs/schema.md says why.
const TAKEN_ON_TRUST: &[(&str, &str)] = &[
    ("run", "a tenant that is not there"),
    ("run", "a definition that is not there"),
    ("input", "a run that is not there"),
    ("task", "a run that is not there"),
    ("task", "running on a worker that is not there"),
    ("output", "a task that is not there"),
    ("attempt", "a task that is not there"),
    ("attempt", "a worker that is not there"),
    ("event", "a run that is not there"),
    ("wait", "a task that is not there"),
    ("wait", "a tenant that is not there"),
    ("wait", "a definition that is not there"),
    ("signal", "a run that is not there"),
    ("memo", "a task that is not there"),
    ("progress", "a task that is not there"),
    ("progress", "a worker that is not there"),
];

/// What the server says of a row: nothing, or why it is refused.
async fn refusal(schema: &Schema, sql: &str) -> Option<String> {
    schema.client.batch_execute("begin").await.expect("a transaction begins");
    let answer = schema.client.batch_execute(sql).await;
    schema.client.batch_execute("rollback").await.expect("a transaction ends");
    let error = answer.err()?;
    Some(error.code().expect("the server says why").code().to_owned())
}

#[tokio::test]
async fn bad_rows_are_refused() {
    let schema = Schema::make("constraints").await;
    let mut found = Vec::new();
    for table in tables("postgres") {
        found.extend(check(&schema, table).await);
    }
    schema.remove().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

async fn check(schema: &Schema, table: &Table) -> Vec<String> {
    let name = table.name;
    if !table.good.is_empty() {
        let good = table.insert(&[], DIALECT);
        let stored = schema.client.batch_execute(&good).await;
        stored.unwrap_or_else(|error| panic!("{name} takes a good row: {error:?}"));
    }
    if !table.other.is_empty() {
        let refused = refusal(schema, &table.insert(&[table.other], DIALECT)).await;
        assert_eq!(refused, None, "{name} takes another good row");
    }
    let mut found = Vec::new();
    for (what, changes) in table.bad {
        let is_trusted = TAKEN_ON_TRUST.contains(&(name, *what));
        match refusal(schema, &table.insert(&[table.other, changes], DIALECT)).await {
            None if is_trusted => {}
            // Class 23 is a constraint that does not hold; anything else is the test's mistake.
            Some(code) if code.starts_with("23") && !is_trusted => {}
            answer => found.push(format!("{name}, {what}: {answer:?}")),
        }
    }
    if !table.other.is_empty() {
        let other = table.insert(&[table.other], DIALECT);
        schema.client.batch_execute(&other).await.expect("it was taken before");
    }
    found
}

#[tokio::test]
async fn bad_settings_and_leaders_are_refused() {
    let schema = Schema::make("constraints").await;
    let updates = [
        "update tenant_default set weight = 0",
        "update tenant_default set weight = 1001",
        "update tenant_default set tasks_max = 0",
        "update tenant_default set one = false",
        "update leader set one = false",
        "update leader set worker = null",
        "update leader set ttl_micros = 0",
    ];
    let mut found = Vec::new();
    for sql in updates {
        let refused = refusal(&schema, sql).await;
        if !refused.as_ref().is_some_and(|code| code.starts_with("23")) {
            found.push(format!("{sql}: {refused:?}"));
        }
    }
    schema.remove().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn every_table_has_rows_that_it_refuses() {
    let schema = Schema::make("constraints").await;
    let names = "select table_name from information_schema.tables \
        where table_schema = current_schema() and table_type = 'BASE TABLE' \
        and table_name <> 'migration' order by 1";
    let there = rows(&schema.client, names).await;
    schema.remove().await;
    let mut tested: Vec<&str> = tables("postgres").map(|table| table.name).collect();
    tested.sort_unstable();
    assert_eq!(there, tested);
}
