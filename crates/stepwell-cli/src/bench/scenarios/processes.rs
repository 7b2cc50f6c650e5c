//! `workers` and `result`: worker processes beside this one.

use crate::bench::bed::{Meter, StoreKind};
use crate::bench::crew::{self, Crew};
use crate::bench::ledger::Ledger;
use crate::bench::load::{self, Load, Pace, TENANT};
use crate::bench::measure;
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const CREWS: [usize; 4] = [1, 2, 4, 10];
const RUNS: usize = 50_000;
const RESULTS: usize = 300;

/// This process is a client and starts the runs; the others execute them.
pub(super) async fn workers(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (bed, n_runs) = (stage.bed, stage.n_runs(RUNS));
    let mut parts = Vec::new();
    for n_workers in CREWS {
        let ledger = Ledger::new(n_runs, 1);
        let client = Load::start(&bed.store, crew::flow(), ledger, 0).await?;
        let crew = Crew::start(bed, n_workers).await?;
        let name = if n_workers == 1 { "1 process" } else { &format!("{n_workers} processes") };
        stage.progress.begin(name, n_runs);
        let meter = Meter::begin(bed).await?;
        let committed = crew.committed(n_runs, stage.progress);
        let (keys, ()) = tokio::try_join!(client.start_all(Pace::AtOnce), committed)?;
        let part = meter.end(bed, name, n_runs, n_runs).await?;
        // These counts are of this process alone, and it only starts. The bytes are so too on
        // SQLite, but a server's log is everybody's.
        let bytes = part.written_bytes_per_task.filter(|_| bed.kind == StoreKind::Postgres);
        parts.push(Part {
            written_bytes_per_task: bytes,
            rss_bytes: crew.rss_bytes(),
            statements: None,
            transactions: None,
            statements_per_task: None,
            transactions_per_task: None,
            ..part
        });
        crew.stop().await?;
        load::check_completed(&bed.store.ports(), &keys).await?;
        client.stop().await;
    }
    Ok(parts)
}

pub(super) async fn result(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (bed, n_runs) = (stage.bed, stage.n_runs(RESULTS));
    let client = Load::start(&bed.store, crew::flow(), Ledger::new(n_runs, 1), 0).await?;
    let crew = Crew::start(bed, 1).await?;
    let store = bed.store.ports();
    stage.progress.begin("results", n_runs);
    let mut spans = Vec::with_capacity(n_runs);
    for run in 0..n_runs {
        let started = client.engine.start(&client.workflow, run).tenant(TENANT).await?;
        started.result().await?;
        let told_at = measure::wall_clock();
        let view = store.run(started.key()).await?;
        let ended_at = view.and_then(|view| view.row.ended_at);
        spans.extend(ended_at.map(|at| measure::micros(told_at.since(at))));
        stage.progress.set(run + 1);
    }
    crew.stop().await?;
    client.stop().await;
    Ok(vec![Part::named("end to caller in another process").with_latency(spans)])
}
