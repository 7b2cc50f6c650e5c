//! Worker processes: this binary starts itself. A worker says when it is ready, then how many
//! tasks it has committed and how much memory it had, and ends when its input is closed.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::bench_store::{Address, BenchStore, OpenStore};
use super::load::{self, Flow, Load, SLOTS};
use super::measure;
use super::progress::Progress;
use super::run_times::RunTimes;
use crate::commands::Failure;

/// How often a worker tells how far it is.
const TELL_INTERVAL: Duration = Duration::from_millis(5);

/// Without any progress for this long, something is broken.
const STILL_MAX: Duration = Duration::from_mins(2);

const READY: &str = "ready";

/// The workflow that both sides have.
pub(super) fn flow() -> Flow {
    load::chain("one", 1, false)
}

/// The worker's side.
pub(super) async fn work(address: &Address) -> Result<(), Failure> {
    let store = OpenStore::open(address).await?;
    let load = Load::start(&store, flow(), RunTimes::new(0, 1), SLOTS).await?;
    say(READY)?;
    let told = async {
        let mut n_told = 0;
        loop {
            // What was executed and is no longer held was committed. Read in this order, nothing
            // is told too early.
            let n_executed = load.times.n_others();
            let n_committed = n_executed.saturating_sub(load.engine.n_running());
            if n_committed > n_told {
                n_told = n_committed;
                let rss = measure::memory_peak().unwrap_or_default();
                say(&format!("{n_committed} {rss}"))?;
            }
            measure::pause(TELL_INTERVAL).await;
        }
    };
    let closed = measure::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let ended = tokio::select! {
        told = told => told,
        _ = closed => Ok(()),
    };
    load.stop().await;
    ended
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Worker processes on one store. They end when this is dropped.
pub(super) struct WorkerProcesses {
    processes: Vec<Child>,
    counts: Arc<[AtomicUsize]>,
    rss_bytes: Arc<AtomicU64>,
}

impl WorkerProcesses {
    /// Starts so many workers and waits until all are ready.
    pub(super) async fn start(store: &BenchStore, n_workers: usize) -> Result<Self, Failure> {
        let Some(address) = store.address() else {
            let message = "only this process has this store".to_owned();
            return Err(Failure::Unexpected(message));
        };
        let counts: Arc<[AtomicUsize]> = (0..n_workers).map(|_| AtomicUsize::new(0)).collect();
        let rss_bytes = Arc::new(AtomicU64::new(0));
        let mut workers = Self { processes: Vec::new(), counts, rss_bytes };
        let mut outputs = Vec::new();
        for _ in 0..n_workers {
            let mut process = spawn(&address)?;
            let output = process.stdout.take().expect("it was asked for");
            outputs.push(BufReader::new(output).lines());
            workers.processes.push(process);
        }
        for (ix, mut output) in outputs.into_iter().enumerate() {
            if output.next_line().await?.as_deref() != Some(READY) {
                return Err(Failure::Unexpected("a worker process did not start".to_owned()));
            }
            let (counts, rss) = (Arc::clone(&workers.counts), Arc::clone(&workers.rss_bytes));
            measure::spawn(async move { listen(output, &counts[ix], &rss).await });
        }
        Ok(workers)
    }

    /// Waits until they have committed so many tasks together.
    pub(super) async fn committed(
        &self,
        n_tasks: usize,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let (mut n_seen, mut seen_at) = (0, measure::now());
        loop {
            let n: usize = self.counts.iter().map(|count| count.load(Ordering::Acquire)).sum();
            progress.set(n);
            if n >= n_tasks {
                return Ok(());
            }
            if n > n_seen {
                (n_seen, seen_at) = (n, measure::now());
            } else if seen_at.elapsed() > STILL_MAX {
                let message = format!("the workers committed {n} of {n_tasks} tasks");
                return Err(Failure::Unexpected(message));
            }
            measure::pause(TELL_INTERVAL).await;
        }
    }

    /// The most memory one of them had, in bytes.
    pub(super) fn rss_bytes(&self) -> Option<u64> {
        Some(self.rss_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Has them stop in order.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        for process in &mut self.processes {
            drop(process.stdin.take());
        }
        for process in &mut self.processes {
            process.wait().await?;
        }
        Ok(())
    }
}

fn spawn(address: &Address) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-worker", "--store", &address.store, "--schema", &address.schema]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Keeps what a worker tells, until it ends.
async fn listen(mut output: Lines<BufReader<ChildStdout>>, count: &AtomicUsize, rss: &AtomicU64) {
    while let Ok(Some(line)) = output.next_line().await {
        let Some((n_committed, bytes)) = line.split_once(' ') else { continue };
        if let (Ok(n_committed), Ok(bytes)) = (n_committed.parse(), bytes.parse()) {
            rss.fetch_max(bytes, Ordering::Relaxed);
            count.store(n_committed, Ordering::Release);
        }
    }
}
