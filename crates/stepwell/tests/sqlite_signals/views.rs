//! What people see of waits and signals.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use stepwell::core::run::{WaitFor, read_log};
use stepwell::ports::{Outcome, Payload, SignalRequest};
use stepwell::testing::conformance::world::{Run, Sketch};

use crate::desk::{Desk, HOUR, signal};

/// Rows of a view as text, columns separated by ` | `, with `-` for null.
fn rows(desk: &Desk, sql: &str) -> Vec<String> {
    let file = rusqlite::Connection::open(desk.folder.path().join("stepwell.db"));
    let file = file.expect("the file opens");
    let mut statement = file.prepare(sql).expect("the view is there");
    let n_columns = statement.column_count();
    let text = |value: Value| match value {
        Value::Null => "-".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(_) => "a blob".to_owned(),
    };
    let row = |row: &rusqlite::Row<'_>| {
        let columns: Result<Vec<String>, _> =
            (0..n_columns).map(|ix| row.get(ix).map(text)).collect();
        columns.map(|columns| columns.join(" | "))
    };
    let rows = statement.query_map([], row).expect("the view is read");
    rows.map(|row| row.expect("a row is read")).collect()
}

#[tokio::test]
async fn views_show_waits_signals_and_what_waits_got() {
    let desk = Desk::new();
    let sketch = Sketch::from("a; v ? paid|refunded/1h; w ? shipped; x ? never/0s; b < v");
    let flow = desk.world.define(sketch.named("order").deadline(2 * HOUR)).await;
    let run = desk.start(&flow).await;
    let (signals, matching) = (vec!["ok".to_owned()], [("by".into(), "eve".into())].into());
    let wait_for = WaitFor { signals, matching, timeout: None };
    let a = desk.claim_one().await;
    desk.settle(&a, Outcome::Waits { wait_for, notes: BTreeMap::new() }).await;
    let waits = "select step, signals, matching, opened_at, deadline from waits order by node";
    let at = "2026-01-01T00:00:00.000Z";
    let until = "2026-01-01T01:00:00.000Z";
    let shown = [
        format!("a | [\"ok\"] | {{\"by\":\"eve\"}} | {at} | -"),
        format!("v | [\"paid\",\"refunded\"] | {{}} | {at} | {until}"),
        format!("w | [\"shipped\"] | {{}} | {at} | -"),
        format!("x | [\"never\"] | {{}} | {at} | {at}"),
    ];
    assert_eq!(rows(&desk, waits), shown);
    let waits_for = "select step, waits_for from tasks where state = 'WAITING' order by node";
    let shown = [
        "a | signal: ok",
        "v | signal: paid or refunded, until 2026-01-01T01:00:00Z",
        "w | signal: shipped",
        "x | signal: never, until 2026-01-01T00:00:00Z",
    ];
    assert_eq!(rows(&desk, waits_for), shown);
    let timers = "select step, timer from timers order by due_at";
    assert_eq!(rows(&desk, timers), ["x | wait", "v | wait", "- | deadline"]);

    let json = Payload::new("json".into(), *br#"{"n":1}"#);
    let paid = SignalRequest { payload: json, ..signal(&run, "paid", "k", b"1") };
    desk.world.store().signal(vec![paid]).await.expect("send a signal");
    desk.send(&run, "lost", "l", b"23").await;
    desk.fire().await;
    let signals = "select number, signal, signal_key, attributes, sent_at, consumed_by, codec, \
        n_bytes, payload from signals order by number";
    let shown = [
        format!("1 | paid | k | {{}} | {at} | v | json | 7 | {{\"n\":1}}"),
        format!("2 | lost | l | {{}} | {at} | - | test | 2 | -"),
    ];
    assert_eq!(rows(&desk, signals), shown);
    let outputs = "select step, codec, n_bytes, output from outputs order by node";
    assert_eq!(rows(&desk, outputs), ["v | json | 7 | {\"n\":1}", "x | timed-out | 0 | -"]);
    desk.world.pass(2 * HOUR);
    desk.fire().await;
    check_events(&desk, &run).await;
    let details = "select event, detail from events where event in \
        ('SIGNALLED', 'TIMED_OUT', 'SUSPENDED', 'DEADLINE_PASSED') or number = 4 order by number";
    let shown = [
        "WAITING | {\"signals\":[\"never\"],\"matching\":{},\"until\":1767225600000000}",
        "SUSPENDED | -",
        "SIGNALLED | {\"signal\":\"paid\",\"number\":1,\"into\":\"COMPLETED\"}",
        "TIMED_OUT | {\"into\":\"COMPLETED\"}",
        "DEADLINE_PASSED | -",
    ];
    assert_eq!(rows(&desk, details), shown);
}

/// The view has the numbered events of the log, and no others.
async fn check_events(desk: &Desk, run: &Run) {
    let log = desk.world.store().log(run.key).await.expect("read a log").expect("it is there");
    let logged = read_log(&log).into_iter().filter_map(|event| {
        Some(format!("{} | {} | {}", event.number?, event.attempt, event.kind.name()))
    });
    let shown = "select number, coalesce(attempt, 0), event from events order by number";
    assert_eq!(rows(desk, shown), logged.collect::<Vec<_>>());
}
