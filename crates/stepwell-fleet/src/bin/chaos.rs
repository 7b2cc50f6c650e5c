//! A fleet under all faults at random for some minutes, and one line of JSON about it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use stepwell::core::id::WorkerId;
use stepwell::ports::{Lead, Store};
use stepwell_fleet::address::Address;
use stepwell_fleet::checker::{Evidence, Faults, FunctionCounts};
use stepwell_fleet::cluster::Cluster;
use stepwell_fleet::fault_injector::{FaultCounts, FaultInjector};
use stepwell_fleet::fleet::Fleet;
use stepwell_fleet::load::Load;
use stepwell_fleet::process::Setup;
use stepwell_fleet::real_time::{Deadline, now_micros, pause};
use stepwell_fleet::{Failure, Result};

/// Workers at any time.
const N_WORKERS: usize = 4;

/// Runs that are open at any time.
const N_RUNS: usize = 30;

/// How long everything may take to end once there are no more faults.
const RECOVERY_MAX: Duration = Duration::from_mins(2);

/// Runs a fleet with faults at random and checks what became of everything.
#[derive(Parser)]
struct Arguments {
    /// How long faults go on.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The seed of all choices; without it another one each time.
    #[arg(long)]
    seed: Option<u64>,
    /// The store.
    #[arg(long, default_value = "postgres")]
    store: Kind,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Postgres,
    Sqlite,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    store: Kind,
    seed: u64,
    minutes: f64,
    runs: usize,
    tasks: usize,
    executions: usize,
    /// Tasks that another worker took over from one that was dead.
    take_overs: usize,
    /// Those among them whose worker was neither killed nor asked to stop, nor stood still.
    taken_from_unharmed: usize,
    handed_back: usize,
    /// Executions that went waiting, signals that tasks got, and waits that timed out.
    suspended: usize,
    received: usize,
    timed_out: usize,
    /// Runs that were cancelled, and runs that missed their deadline.
    cancelled: usize,
    late: usize,
    #[serde(flatten)]
    functions: FunctionCounts,
    #[serde(flatten)]
    faults: FaultCounts,
    /// The term of leadership that comes next. Terms only grow, and a crash may leave some out.
    leader_epoch: u64,
    violations: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(report) => {
            print(&report);
            if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is the output of this program")]
fn print(report: &Report) {
    println!("{}", serde_json::to_string(report).expect("it is plain data"));
}

async fn run(arguments: &Arguments) -> Result<Report> {
    let seed = arguments.seed.unwrap_or_else(|| now_micros().unsigned_abs());
    eprintln!("chaos: seed {seed}");
    let folder = tempfile::Builder::new().prefix("stepwell-chaos-").tempdir()?;
    let (mut cluster, address) = match arguments.store {
        Kind::Postgres => {
            let cluster = Cluster::start().await?;
            let (url, schema) = (cluster.url(), "stepwell".to_owned());
            (Some(cluster), Address::Postgres { url, schema })
        }
        Kind::Sqlite => (None, Address::Sqlite(folder.path().join("stepwell.db"))),
    };
    let setup = Setup::new(worker_program()?, address.clone(), folder.path());
    let setup = Setup { waits_for_store: true, has_jumping_clock: true, ..setup };
    let mut fleet = Fleet::start(setup, N_WORKERS).await?;
    let mut load = Load::connect(&address, "chaos", seed).await?;
    load.end_some_early();
    let span = Duration::from_secs_f64(arguments.minutes * 60.0);
    let mut injector = FaultInjector::new(&mut fleet, cluster.as_mut(), seed);
    let (injected, loaded) =
        tokio::join!(injector.inject(span, show), load.keep_going(N_RUNS, span));
    let (faults, harmed) = (injector.counts, injector.harmed);
    let mut violations: Vec<String> =
        [injected, loaded].into_iter().filter_map(|done| Some(done.err()?.to_string())).collect();
    eprintln!("chaos: no more faults, waiting for all ends");
    violations.extend(load.all_ended(RECOVERY_MAX).await.err().map(|error| error.to_string()));
    violations.extend(fleet.stop_all().await.err().map(|error| error.to_string()));
    let store = address.open().await?;
    let mut evidence = gather(store.as_ref(), folder.path(), &load).await?;
    evidence.has_own_time = matches!(arguments.store, Kind::Sqlite);
    violations.extend(evidence.violations(Faults::Crashes));
    let counts = evidence.counts();
    let leader_epoch = leader_epoch(store.as_ref()).await.unwrap_or_else(|error| {
        violations.push(error.to_string());
        0
    });
    Ok(Report {
        store: arguments.store,
        seed,
        minutes: arguments.minutes,
        runs: counts.runs,
        tasks: counts.tasks,
        executions: counts.executions,
        take_overs: counts.lost,
        taken_from_unharmed: evidence.lost_by(|worker| !harmed.contains(worker)),
        handed_back: counts.released,
        suspended: counts.suspended,
        received: counts.received,
        timed_out: counts.timed_out,
        cancelled: counts.cancelled,
        late: counts.late,
        functions: evidence.function_counts(),
        faults,
        leader_epoch,
        violations,
    })
}

async fn gather(store: &dyn Store, folder: &Path, load: &Load) -> Result<Evidence> {
    eprintln!("chaos: checking");
    Evidence::gather(store, folder, load.asked().clone()).await
}

fn show(counts: FaultCounts) {
    let FaultCounts { kills, freezes, stops, clock_jumps, server_restarts } = counts;
    eprintln!(
        "chaos: {kills} killed, {freezes} frozen, {stops} stopped, {clock_jumps} jumps of clocks, \
         {server_restarts} crashes of the server"
    );
}

/// The worker's program lies beside this one.
fn worker_program() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("fleet-worker");
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::of(&program.display().to_string(), "not there: build the whole package"))
}

/// The next epoch; the last leader has resigned, or has been silent for long enough.
async fn leader_epoch(store: &dyn Store) -> Result<u64> {
    let candidate = WorkerId::new("chaos").map_err(|_| Failure("a bad name".to_owned()))?;
    let deadline = Deadline::after(RECOVERY_MAX);
    loop {
        match store.lead(&candidate, Duration::from_secs(1)).await? {
            Lead::Leading(epoch) => return Ok(epoch.0),
            Lead::Following if deadline.has_passed() => {
                return Err(Failure("a worker that is gone still leads".to_owned()));
            }
            Lead::Following => pause(Duration::from_millis(100)).await,
        }
    }
}
