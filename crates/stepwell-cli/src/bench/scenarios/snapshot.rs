//! `snapshot`: throughput while somebody holds a snapshot open, as a backup or a long report
//! does. The server must keep every dead row for it. A database that grows for two minutes gets
//! slower by itself, so the same is done without a snapshot before.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::bench::cluster::failure;
use crate::bench::load::{self, Pace};
use crate::bench::report::Part;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

const RUNS: usize = 20_000;
const STEPS: usize = 5;

/// A snapshot is taken by the first statement that reads.
const HOLD: &str = "begin isolation level repeatable read; select count(*) from pg_class";

/// Tables that grow with every run.
const GROWING: [&str; 8] = ["run", "input", "task", "claim", "output", "attempt", "event", "ready"];

/// How long it is held, unless the number of runs is given.
const HELD: Duration = Duration::from_mins(2);

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let Some(control) = input.store.control() else { return Ok(Vec::new()) };
    let mut parts = vec![chain(input, "before").await?];
    parts.extend(go_on(input, "after two minutes without one").await?);
    execute(control, &forget(input)).await?;
    execute(control, HOLD).await?;
    parts.push(chain(input, "while a snapshot is held").await?);
    parts.extend(go_on(input, "after two minutes with it").await?);
    execute(control, "commit").await?;
    parts.push(chain(input, "after it was released").await?);
    Ok(parts)
}

async fn execute(control: &Client, sql: &str) -> Result<(), Failure> {
    control.batch_execute(sql).await.map_err(|error| failure(&error))
}

/// Empties the tables that grow; no engine is there meanwhile.
fn forget(input: &ScenarioInput<'_>) -> String {
    let schema = input.store.address().map(|address| address.schema).unwrap_or_default();
    let tables = GROWING.map(|table| format!("\"{schema}\".{table}"));
    format!("truncate {}", tables.join(", "))
}

/// Goes on for two minutes; tells how the last ones went.
#[expect(clippy::disallowed_methods, reason = "a benchmark takes real time")]
async fn go_on(input: &ScenarioInput<'_>, name: &str) -> Result<Option<Part>, Failure> {
    let begun_at = Instant::now();
    let mut last = None;
    while input.n_runs(0) == 0 && begun_at.elapsed() < HELD {
        last = Some(chain(input, name).await?);
    }
    Ok(last)
}

async fn chain(input: &ScenarioInput<'_>, name: &str) -> Result<Part, Failure> {
    let n_runs = input.n_runs(RUNS);
    let flow = load::chain(name, STEPS, false);
    load::take_through(input, name, n_runs, flow, STEPS, Pace::steady(1)).await
}
