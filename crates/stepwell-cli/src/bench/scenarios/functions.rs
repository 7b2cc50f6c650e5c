//! `function` and `function-latency`: durable functions of five steps, beside a program that writes
//! each step by an insert of its own, with a connection per function.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use rusqlite::Connection;
use stepwell::{Config, Ctx, Engine, Result as StepResult, WorkflowRef};
use tokio_postgres::NoTls;

use crate::bench::bench_store::{Address, StoreKind};
use crate::bench::cluster::failure;
use crate::bench::load::TENANT;
use crate::bench::measure;
use crate::bench::meter::Meter;
use crate::bench::progress::Progress;
use crate::bench::report::Part;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// Functions under way at once, and slots of the worker.
const LANES: usize = 64;
const RUNS: usize = 4_000;
const RUNS_ALONE: usize = 300;
const STEPS: usize = 5;

/// How long steps took, in microseconds.
type Spans = Arc<Mutex<Vec<u64>>>;

/// 64 functions at a time.
pub(super) async fn function(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    both(input, input.n_runs(RUNS), LANES).await
}

/// One function at a time.
pub(super) async fn latency(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    both(input, input.n_runs(RUNS_ALONE), 1).await
}

async fn both(
    input: &ScenarioInput<'_>,
    n_runs: usize,
    n_lanes: usize,
) -> Result<Vec<Part>, Failure> {
    let by_hand = match input.store.address() {
        Some(address) => Some(by_hand(input, &address, n_runs, n_lanes).await?),
        None => None,
    };
    let mut part = by_functions(input, n_runs, n_lanes).await?;
    if let (Some(by_hand), Some(own)) = (&by_hand, &part.latency) {
        let rates = part.tasks_per_second.zip(by_hand.tasks_per_second);
        let rate = rates.map_or(0.0, |(own, by_hand)| own / by_hand);
        let p50 = by_hand
            .latency
            .map_or(0.0, |by_hand| measure::per_count(own.p50_micros, by_hand.p50_micros));
        part.note = Some(format!("{rate:.2} × the steps/s and {p50:.2} × the p50 of inserts"));
    }
    Ok(std::iter::once(part).chain(by_hand).collect())
}

/// Five steps, one after the other; how long each took is noted.
async fn five(ctx: Ctx<usize, Spans>) -> StepResult<()> {
    let mut spans = [0; STEPS];
    for span in &mut spans {
        let began_at = measure::now();
        ctx.step("step", async || Ok(*ctx.input())).await?;
        *span = measure::micros(began_at.elapsed());
    }
    ctx.state().lock().expect("no holder of the lock panics").extend(spans);
    Ok(())
}

async fn by_functions(
    input: &ScenarioInput<'_>,
    n_runs: usize,
    n_lanes: usize,
) -> Result<Part, Failure> {
    let store = input.store;
    let spans = Spans::default();
    let config = Config { slots: LANES, ..Config::default() };
    let builder = store.open.builder().config(config).default_tenant(TENANT);
    let mut builder = builder.state(Arc::clone(&spans));
    let function = builder.function("five", five);
    let engine = builder.start().await?;
    input.progress.begin("functions", n_runs);
    let next = AtomicUsize::new(0);
    let meter = Meter::begin(store).await?;
    try_join_all((0..n_lanes).map(|_| lane(&engine, &function, &next, n_runs, input.progress)))
        .await?;
    let part = meter.end(store, "steps of functions", n_runs, n_runs * STEPS).await?;
    engine.stop(std::time::Duration::from_secs(5)).await;
    let spans = std::mem::take(&mut *spans.lock().expect("no holder of the lock panics"));
    Ok(part.with_latency(spans))
}

/// Starts runs one after the other, and waits for each.
async fn lane(
    engine: &Engine,
    function: &WorkflowRef<usize, ()>,
    next: &AtomicUsize,
    n_runs: usize,
    progress: &Progress,
) -> Result<(), Failure> {
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        if run >= n_runs {
            return Ok(());
        }
        engine.run(function, run).await?;
        progress.set(run + 1);
    }
}

/// The same steps, each an insert of its own, with a connection per function.
async fn by_hand(
    input: &ScenarioInput<'_>,
    address: &Address,
    n_runs: usize,
    n_lanes: usize,
) -> Result<Part, Failure> {
    input.progress.begin("inserts", n_runs);
    let next = Arc::new(AtomicUsize::new(0));
    let lanes = if input.store.kind == StoreKind::Postgres {
        postgres_lanes(address, n_lanes).await?
    } else {
        sqlite_lanes(address, n_lanes)?
    };
    let began_at = measure::now();
    let working = lanes.into_iter().map(|lane| {
        let next = Arc::clone(&next);
        measure::spawn(async move { lane.work(next, n_runs).await })
    });
    let mut spans = Vec::with_capacity(n_runs * STEPS);
    for worked in working.collect::<Vec<_>>() {
        spans.extend(worked.await.map_err(std::io::Error::from)??);
    }
    let span = began_at.elapsed();
    let n_tasks = (n_runs * STEPS) as u64;
    let part = Part {
        n_runs: Some(n_runs as u64),
        n_tasks: Some(n_tasks),
        seconds: Some(span.as_secs_f64()),
        tasks_per_second: Some(measure::rate(n_tasks, span)),
        ..Part::named("inserts by hand")
    };
    Ok(part.with_latency(spans))
}

/// A function written by hand, with its connection.
enum Lane {
    Sqlite(Connection),
    Postgres(tokio_postgres::Client, tokio_postgres::Statement),
}

impl Lane {
    async fn work(self, next: Arc<AtomicUsize>, n_runs: usize) -> Result<Vec<u64>, Failure> {
        match self {
            Self::Sqlite(connection) => {
                let work = move || sqlite_work(&connection, &next, n_runs);
                let worked = measure::spawn_blocking(work).await.map_err(std::io::Error::from)?;
                worked.map_err(|error| Failure::Unexpected(format!("sqlite: {error}")))
            }
            Self::Postgres(client, insert) => {
                let mut spans = Vec::new();
                while let Some(run) = take(&next, n_runs) {
                    for step in 0..STEPS {
                        let began_at = measure::now();
                        let (run, step) = (number(run), number(step));
                        let inserted = client.execute(&insert, &[&run, &step, &VALUE]).await;
                        inserted.map_err(|error| failure(&error))?;
                        spans.push(measure::micros(began_at.elapsed()));
                    }
                }
                Ok(spans)
            }
        }
    }
}

/// What a step gives.
const VALUE: &[u8] = b"12345";

fn take(next: &AtomicUsize, n_runs: usize) -> Option<usize> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|run| *run < n_runs)
}

fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn sqlite_work(
    connection: &Connection,
    next: &AtomicUsize,
    n_runs: usize,
) -> rusqlite::Result<Vec<u64>> {
    let mut spans = Vec::new();
    let mut insert = connection.prepare("insert into by_hand values (?1, ?2, ?3)")?;
    while let Some(run) = take(next, n_runs) {
        for step in 0..STEPS {
            let began_at = measure::now();
            insert.execute((number(run), number(step), VALUE))?;
            spans.push(measure::micros(began_at.elapsed()));
        }
    }
    Ok(spans)
}

const TABLE: &str = "run bigint not null, step bigint not null, value VALUES not null, \
                     primary key (run, step)";

fn sqlite_lanes(address: &Address, n_lanes: usize) -> Result<Vec<Lane>, Failure> {
    let path = Path::new(&address.store).with_file_name("by_hand.db");
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(&path)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.busy_timeout(std::time::Duration::from_mins(1))?;
        let table = TABLE.replace("VALUES", "blob");
        connection.execute_batch(&format!("create table if not exists by_hand ({table})"))?;
        Ok(connection)
    };
    let lanes: rusqlite::Result<Vec<Lane>> =
        (0..n_lanes).map(|_| open().map(Lane::Sqlite)).collect();
    lanes.map_err(|error| Failure::Unexpected(format!("sqlite: {error}")))
}

async fn postgres_lanes(address: &Address, n_lanes: usize) -> Result<Vec<Lane>, Failure> {
    let mut lanes = Vec::with_capacity(n_lanes);
    // In the store's schema, so that it goes with that.
    let schema = &address.schema;
    for _ in 0..n_lanes {
        let connected = tokio_postgres::connect(&address.store, NoTls).await;
        let (client, connection) = connected.map_err(|error| failure(&error))?;
        measure::spawn(async move {
            // An error shows in the calls of the client.
            let _ = connection.await;
        });
        let table = TABLE.replace("VALUES", "bytea");
        let make = format!("create table if not exists \"{schema}\".by_hand ({table})");
        client.batch_execute(&make).await.map_err(|error| failure(&error))?;
        let insert = format!("insert into \"{schema}\".by_hand values ($1, $2, $3)");
        let insert = client.prepare(&insert).await.map_err(|error| failure(&error))?;
        lanes.push(Lane::Postgres(client, insert));
    }
    Ok(lanes)
}
