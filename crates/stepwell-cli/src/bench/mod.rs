//! `stepwell bench`: what the stores achieve here, beside what hand-written statements achieve.
//!
//! Every scenario gets a fresh store and a process of its own. The limit of a store is measured
//! right before it, on the same server or disk.

mod bench_store;
mod cluster;
mod isolated;
mod limit;
mod load;
mod measure;
mod meter;
mod progress;
mod report;
mod run_times;
mod scenario_input;
mod scenarios;
mod store_driver;
mod worker_processes;

use bench_store::{Address, StoreKind};
use cluster::Server;
use isolated::ScenarioRequest;
use limit::Limit;
use progress::Progress;
use report::{Part, ScenarioRecord};
pub(crate) use scenarios::Scenario;
use stepwell::cli::{Output, Tone};

use crate::args::{BenchArgs, BenchScenarioArgs, BenchWorkerArgs, StoreChoice};
use crate::commands::Failure;

/// Tasks that the limit is measured with, unless the user wants fewer.
const LIMIT_TASKS: usize = 100_000;
/// With fewer than this, a rate says nothing.
const LIMIT_TASKS_MIN: usize = 20_000;

pub(crate) fn run(args: &BenchArgs, output: Output) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            done = bench(args, output) => done,
            // The private cluster is removed on the way out.
            () = stepwell::shutdown_signal() => {
                Err(Failure::Unexpected("interrupted before the end".to_owned()))
            }
        }
    })
}

/// One scenario, in a process of its own.
pub(crate) fn run_isolated(args: &BenchScenarioArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(isolated::run(args))
}

/// A worker process: it works until its standard input is closed.
pub(crate) fn work(args: &BenchWorkerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (store, schema) = (args.store.clone(), args.schema.clone());
    runtime.block_on(worker_processes::work(&Address { store, schema }))
}

async fn bench(args: &BenchArgs, output: Output) -> Result<(), Failure> {
    let (kinds, runs) = (kinds(&args.store), args.runs.map(|runs| runs as usize));
    let progress = Progress::new(output.is_watched());
    warn_of_debug_build(output)?;
    let server = if kinds.contains(&StoreKind::Postgres) {
        progress.begin("starting PostgreSQL", 1);
        Some(Server::prepare(args.url.as_deref(), &args.schema)?)
    } else {
        None
    };
    let chosen = if args.scenario.is_empty() { Scenario::QUICK } else { &args.scenario };
    for kind in kinds {
        let scenarios: Vec<Scenario> =
            chosen.iter().copied().filter(|scenario| scenario.fits(kind)).collect();
        let (server, progress, is_watched) = (server.as_ref(), &progress, output.is_watched());
        let bench = StoreBench { kind, server, progress, runs, is_watched };
        let records = bench.measure(&scenarios, output).await?;
        if !output.is_json() {
            progress.suspend(|| report::print(&records, output))?;
        }
    }
    progress.finish();
    Ok(())
}

/// The measurements of one store.
struct StoreBench<'a> {
    kind: StoreKind,
    server: Option<&'a Server>,
    progress: &'a Progress,
    runs: Option<usize>,
    is_watched: bool,
}

impl StoreBench<'_> {
    async fn measure(
        &self,
        scenarios: &[Scenario],
        output: Output,
    ) -> Result<Vec<ScenarioRecord>, Failure> {
        let mut records = Vec::with_capacity(scenarios.len());
        for scenario in scenarios {
            let limit = if scenario.has_rate() { self.limit().await? } else { None };
            let record = record(*scenario, self.kind, limit, self.isolated(*scenario).await?);
            if output.is_json() {
                output.record(&record)?;
            }
            records.push(record);
        }
        Ok(records)
    }

    /// Right before a scenario: machines are not as fast at all times.
    async fn limit(&self) -> Result<Option<Limit>, Failure> {
        self.progress.begin(&format!("{}: limit", self.kind.name()), 1);
        let n_tasks = self.runs.unwrap_or(LIMIT_TASKS).clamp(LIMIT_TASKS_MIN, LIMIT_TASKS);
        limit::measure(self.kind, self.server, n_tasks).await
    }

    /// In a process of its own, so that its memory is its own.
    async fn isolated(&self, scenario: Scenario) -> Result<Vec<Part>, Failure> {
        self.progress.finish();
        isolated::measure(&ScenarioRequest {
            kind: self.kind,
            scenario,
            server: self.server,
            runs: self.runs,
            is_watched: self.is_watched,
        })
        .await
    }
}

/// The stores to measure, in a fixed order and each once.
fn kinds(choices: &[StoreChoice]) -> Vec<StoreKind> {
    let all = [
        (StoreChoice::Memory, StoreKind::Memory),
        (StoreChoice::Sqlite, StoreKind::Sqlite),
        (StoreChoice::Postgres, StoreKind::Postgres),
    ];
    let is_chosen = |choice| choices.contains(&choice) || choices.contains(&StoreChoice::All);
    all.into_iter().filter(|(choice, _)| is_chosen(*choice)).map(|(_, kind)| kind).collect()
}

fn record(
    scenario: Scenario,
    store: StoreKind,
    limit: Option<Limit>,
    mut parts: Vec<Part>,
) -> ScenarioRecord {
    if let Some(limit) = limit {
        for part in &mut parts {
            part.share_of_limit = part.tasks_per_second.map(|rate| rate / limit.tasks_per_second);
        }
    }
    ScenarioRecord { record: "bench", scenario: scenario.name(), store, limit, parts }
}

fn warn_of_debug_build(output: Output) -> Result<(), Failure> {
    if cfg!(debug_assertions) && !output.is_json() {
        let text = "this is a debug build: its figures say nothing, build with --release";
        output.line(&output.paint(Tone::Warning, text))?;
    }
    Ok(())
}
