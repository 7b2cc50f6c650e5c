//! `workers` and `result`: worker processes beside this one.

use crate::bench::bench_store::StoreKind;
use crate::bench::load::{self, Load, Pace, TENANT};
use crate::bench::measure;
use crate::bench::meter::Meter;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::bench::worker_processes::{self, WorkerProcesses};
use crate::commands::Failure;

const WORKERS: [usize; 4] = [1, 2, 4, 10];
const RUNS: usize = 50_000;
const RESULTS: usize = 300;

/// This process is a client and starts the runs; the others execute them.
pub(super) async fn workers(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (store, n_runs) = (input.store, input.n_runs(RUNS));
    let mut parts = Vec::new();
    for n_workers in WORKERS {
        let (flow, times) = (worker_processes::flow(), RunTimes::new(n_runs, 1));
        let client = Load::start(&store.open, flow, times, 0).await?;
        let workers = WorkerProcesses::start(store, n_workers).await?;
        let name = if n_workers == 1 { "1 process" } else { &format!("{n_workers} processes") };
        input.progress.begin(name, n_runs);
        let meter = Meter::begin(store).await?;
        let committed = workers.committed(n_runs, input.progress);
        let (keys, ()) = tokio::try_join!(client.start_all(Pace::AtOnce), committed)?;
        let part = meter.end(store, name, n_runs, n_runs).await?;
        // These counts are of this process alone, and it only starts. The bytes are so too on
        // SQLite, but the log of a server is that of all processes.
        let bytes = part.written_bytes_per_task.filter(|_| store.kind == StoreKind::Postgres);
        parts.push(Part {
            written_bytes_per_task: bytes,
            rss_bytes: workers.rss_bytes(),
            statements: None,
            transactions: None,
            statements_per_task: None,
            transactions_per_task: None,
            ..part
        });
        workers.stop().await?;
        load::check_completed(&store.open.ports(), &keys).await?;
        client.stop().await;
    }
    Ok(parts)
}

pub(super) async fn result(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (store, n_runs) = (input.store, input.n_runs(RESULTS));
    let (flow, times) = (worker_processes::flow(), RunTimes::new(n_runs, 1));
    let client = Load::start(&store.open, flow, times, 0).await?;
    let workers = WorkerProcesses::start(store, 1).await?;
    let ports = store.open.ports();
    input.progress.begin("results", n_runs);
    let mut spans = Vec::with_capacity(n_runs);
    for run in 0..n_runs {
        let started = client.engine.start(&client.workflow, run).tenant(TENANT).await?;
        started.result().await?;
        let told_at = measure::wall_clock();
        let view = ports.run(started.key()).await?;
        let ended_at = view.and_then(|view| view.row.ended_at);
        spans.extend(ended_at.map(|at| measure::micros(told_at.since(at))));
        input.progress.set(run + 1);
    }
    workers.stop().await?;
    client.stop().await;
    Ok(vec![Part::named("end to caller in another process").with_latency(spans)])
}
