//! No statement of the PostgreSQL store reads a whole hot table: not with plans that were made
//! while the tables were empty, and not with a hundred thousand rows in each, whether they were
//! analysed or not.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::collections::BTreeMap;

use serde_json::Value;
use support_postgres::{Schema, rows};
use tokio_postgres::Client;

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
    "ready",
    "admitted",
    "throttled",
    "parked",
    "timer",
    "tenant",
    "tenant_position",
];

/// Those of them whose rows come and go, so that they may be analysed while there are none.
const DRAINED: &[&str] = &["ready", "admitted", "throttled", "parked", "timer", "wait"];

/// Statements that are meant to read a whole hot table.
const READ_EVERYTHING: &[(&str, &str)] = &[
    ("dump_attempts", "a dump is for checks"),
    ("dump_events", "a dump is for checks"),
    ("dump_memos", "a dump is for checks"),
    ("dump_runs", "a dump is for checks"),
    ("dump_signals", "a dump is for checks"),
    ("dump_tasks", "a dump is for checks"),
    ("dump_waits", "a dump is for checks"),
    ("miscounted_claims", "a dump is for checks"),
    ("ready_before_watermark", "a dump is for checks"),
    ("read_admitted", "a dump is for checks"),
    ("read_places", "a dump is for checks"),
    ("read_timers", "a dump is for checks"),
];

/// Statements that cannot be explained.
const UNEXPLAINED: &[&str] = &["lock_definitions", "lock_tenant_table"];

/// A hundred thousand rows in each hot table. Constraints hold, foreign keys included.
const FILL: &str = include_str!("postgres_plans/fill.sql");

#[tokio::test]
async fn no_statement_reads_a_whole_hot_table() {
    let schema = Schema::make("plans").await;
    let client = &schema.client;
    // Nobody else may analyse the tables in between.
    for table in HOT {
        let alone = format!("alter table {table} set (autovacuum_enabled = off)");
        client.batch_execute(&alone).await.expect("the table is there");
    }
    client.batch_execute(FILL).await.unwrap_or_else(|error| panic!("{error:?}"));
    for table in HOT {
        let n_rows = rows(client, &format!("select count(*) from {table}")).await;
        assert_eq!(n_rows, ["100000"], "{table}");
    }
    let mut found = bad_plans(&schema, "never analysed").await;
    found.extend(deep_claims(&schema).await);
    client.batch_execute(&format!("analyze {}", HOT.join(", "))).await.expect("it is analysed");
    found.extend(bad_plans(&schema, "analysed").await);
    found.extend(bad_views(&schema).await);
    schema.remove().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Claims that read far more of a long queue than they take, whatever else waits in it, also when
/// they look for a suspect and there is none.
async fn deep_claims(schema: &Schema) -> Vec<String> {
    // One queued task in five of the service stands in the line, so ten are found among fifty.
    let of_one = ("first_ready", "'default', 0, 2, 10, null");
    let of_many = "'default', '{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}', 2, 10, null, 17, 94";
    let suspect = ("first_suspect", "'default', '{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}', 2, null");
    let mut found = Vec::new();
    for (name, arguments) in [of_one, ("first_ready_of_many", of_many), suspect] {
        let all = schema.store.every_statement();
        let (_, sql) = all.iter().find(|(known, _)| *known == name).expect("claims have it");
        let prepare = format!("deallocate all; prepare looked_at as {sql}");
        schema.client.batch_execute(&prepare).await.expect("the statement fits the schema");
        let explain = format!("explain (analyze, format json) execute looked_at({arguments})");
        let plan: Value = serde_json::from_str(&rows(&schema.client, &explain).await.join("\n"))
            .expect("the server writes JSON");
        let mut n_read = 0.0;
        count_read(&plan, &mut n_read);
        found.extend((n_read > 500.0).then(|| format!("{name} of 10 tasks read {n_read} rows")));
    }
    found
}

/// Rows that scans of the queue gave or passed over.
fn count_read(plan: &Value, n_read: &mut f64) {
    match plan {
        Value::Array(parts) => parts.iter().for_each(|part| count_read(part, n_read)),
        Value::Object(node) => {
            if node.get("Relation Name").is_some_and(|name| name == "ready") {
                let number = |field: &str| node.get(field).and_then(Value::as_f64).unwrap_or(0.0);
                let passed_over = number("Rows Removed by Filter");
                *n_read += (number("Actual Rows") + passed_over) * number("Actual Loops");
            }
            node.values().for_each(|part| count_read(part, n_read));
        }
        _ => {}
    }
}

/// Views that read more than the run they are asked for, in a session as people have it.
async fn bad_views(schema: &Schema) -> Vec<String> {
    let reset = "reset enable_seqscan; reset enable_hashjoin; reset enable_mergejoin";
    schema.client.batch_execute(reset).await.expect("settings are taken back");
    let leaders = leaders(schema).await;
    let mut found = Vec::new();
    let views =
        ["runs", "tasks", "attempts", "events", "timers", "waits", "inputs", "signals", "memos"];
    for view in views.into_iter().chain(["outputs"]) {
        let sql = format!("select * from {view} where tenant = $1 and run = $2");
        let mut scanned = Vec::new();
        let plan = explain(&schema.client, view, &sql).await;
        collect_scans(&plan, &leaders, false, &mut scanned);
        found.extend(scanned.iter().map(|table| format!("view {view} scans {table}")));
    }
    found
}

/// A session keeps the plans it made while the tables were empty until somebody analyses them, and
/// whoever does may find queues empty again.
#[tokio::test]
async fn plans_made_on_empty_tables_do_not_read_whole_tables_later() {
    let schema = Schema::make("plans").await;
    let mut found = bad_plans(&schema, "empty").await;
    schema.client.batch_execute(FILL).await.unwrap_or_else(|error| panic!("{error:?}"));
    for table in DRAINED {
        let drain = format!("delete from {table}; analyze {table}");
        schema.client.batch_execute(&drain).await.expect("the table is there");
    }
    found.extend(bad_plans(&schema, "drained").await);
    for table in DRAINED {
        let vacuum = format!("vacuum analyze {table}");
        schema.client.batch_execute(&vacuum).await.expect("the table is there");
    }
    found.extend(bad_plans(&schema, "drained and vacuumed").await);
    schema.remove().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn the_exceptions_are_statements_of_the_store() {
    let schema = Schema::make("plans").await;
    let names: Vec<&str> = schema.store.every_statement().iter().map(|(name, _)| *name).collect();
    let excepted = READ_EVERYTHING.iter().map(|(name, _)| name).chain(UNEXPLAINED);
    let gone: Vec<_> = excepted.filter(|name| !names.contains(name)).collect();
    schema.remove().await;
    assert!(gone.is_empty(), "{gone:?}");
}

/// Statements that read a whole hot table, with the table.
async fn bad_plans(schema: &Schema, when: &str) -> Vec<String> {
    let settings = &schema.store.planner_settings();
    schema.client.batch_execute(settings).await.expect("the server knows the settings");
    let leaders = leaders(schema).await;
    let mut found = Vec::new();
    for (name, sql) in schema.store.every_statement() {
        let is_excepted = READ_EVERYTHING.iter().any(|(excepted, _)| *excepted == name);
        if is_excepted || UNEXPLAINED.contains(&name) {
            continue;
        }
        let plan = explain(&schema.client, name, &sql).await;
        let mut scanned = Vec::new();
        collect_scans(&plan, &leaders, false, &mut scanned);
        found.extend(scanned.iter().map(|table| format!("{when}: {name} scans {table}")));
    }
    found
}

/// The plan that serves every parameter, as JSON.
async fn explain(client: &Client, name: &str, sql: &str) -> Value {
    let prepare = format!(
        "set plan_cache_mode = force_generic_plan; deallocate all; prepare looked_at as {sql}"
    );
    client.batch_execute(&prepare).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let count = "select coalesce(cardinality(parameter_types), 0) from pg_prepared_statements \
        where name = 'looked_at'";
    let n_parameters: usize = rows(client, count).await[0].parse().expect("a number");
    let nulls = vec!["null"; n_parameters].join(", ");
    let list = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let plan = rows(client, &format!("explain (format json) execute looked_at{list}")).await;
    serde_json::from_str(&plan.join("\n")).expect("the server writes JSON")
}

/// The first column of each index. A condition on others only makes the server read all of it.
type Leaders = BTreeMap<String, String>;

async fn leaders(schema: &Schema) -> Leaders {
    let read = format!(
        "select c.relname, a.attname from pg_index i join pg_class c on c.oid = i.indexrelid \
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0] \
         where c.relnamespace = '{}'::regnamespace",
        schema.name
    );
    let pair = |line: &String| {
        line.split_once(" | ").map(|(index, column)| (index.to_owned(), column.to_owned()))
    };
    rows(&schema.client, &read).await.iter().filter_map(pair).collect()
}

/// Reads of a whole hot table, be it by an index, unless they stop at a limit.
fn collect_scans(plan: &Value, leaders: &Leaders, is_bounded: bool, found: &mut Vec<String>) {
    match plan {
        Value::Array(parts) => {
            for part in parts {
                collect_scans(part, leaders, is_bounded, found);
            }
        }
        Value::Object(node) => {
            let field = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
            let (kind, table) = (field("Node Type"), field("Relation Name"));
            let by_index = ["Index Scan", "Index Only Scan"].contains(&kind);
            let leader = leaders.get(field("Index Name"));
            let is_narrow = leader.is_some_and(|column| field("Index Cond").contains(column));
            let is_unasked = field("Index Cond").is_empty();
            // A tenant may have all runs there are.
            let is_of_tenant = table == "run"
                && leader.is_some_and(|column| column == "tenant_no")
                && !field("Index Cond").contains("(id = ");
            let is_part = is_narrow || is_unasked && is_bounded;
            let is_whole = by_index && (is_of_tenant || !is_part);
            if (kind == "Seq Scan" || is_whole) && HOT.contains(&table) {
                found.push(format!("{table} ({kind})"));
            }
            // Locking rows keeps their order; a sort has to see them all.
            let passes_on = ["Limit", "LockRows", "Nested Loop", "Subquery Scan"].contains(&kind);
            let is_bounded = kind == "Limit" || is_bounded && passes_on;
            node.values().for_each(|part| collect_scans(part, leaders, is_bounded, found));
        }
        _ => {}
    }
}
