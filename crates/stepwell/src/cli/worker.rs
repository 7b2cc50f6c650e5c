//! `worker`: executes runs until it is told to stop.

use serde::Serialize;

use super::app::{App, Role};
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::wiring::shutdown_signal;

const EXAMPLES: &str = "\
Examples:
  stepwell worker --store shop.db
  stepwell worker --store postgres://shop@db.example.com/shop --json

It works until Ctrl-C or SIGTERM, then stops gracefully; a second Ctrl-C ends it at once. The
store is made if it is not there. Any number of workers may share one.";

/// Options of `worker`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WorkerArgs {
    #[command(flatten)]
    store: StoreArgs,
}

/// A worker that is ready, as JSON.
#[derive(Serialize)]
struct WorkerRecord<'worker> {
    record: &'static str,
    worker: &'worker str,
    workflows: &'worker [String],
}

/// How a worker has stopped, as JSON.
#[derive(Serialize)]
struct StoppedRecord<'worker> {
    record: &'static str,
    worker: &'worker str,
    n_drained: usize,
    n_handed_back: usize,
    n_still_running: usize,
    n_uncommitted: usize,
}

pub(super) async fn run(args: &WorkerArgs, app: App, output: Output) -> Result<(), Failure> {
    let told_to_stop = shutdown_signal();
    let engine = app.engine(args.store.open_to_work().await?, Role::Worker).await?;
    let (worker, workflows) = (engine.worker_id().to_owned(), engine.workflows());
    if workflows.is_empty() {
        return Err(Failure::Usage {
            message: "this program has no workflows to execute".to_owned(),
            hint: "register them on the builder that `stepwell::cli` gives the program",
        });
    }
    if output.is_json() {
        let (worker, workflows) = (worker.as_str(), workflows.as_slice());
        output.record(&WorkerRecord { record: "worker", worker, workflows })?;
    } else {
        let (name, has) = (printable(&worker), printable(&workflows.join(", ")));
        output.line(&format!("Worker {name} executes {has}; Ctrl-C stops"))?;
    }
    let report = engine.stop_when(told_to_stop).await;
    if output.is_json() {
        return Ok(output.record(&StoppedRecord {
            record: "stopped",
            worker: &worker,
            n_drained: report.n_drained,
            n_handed_back: report.n_handed_back,
            n_still_running: report.n_still_running,
            n_uncommitted: report.n_uncommitted,
        })?);
    }
    let (n_drained, n_handed_back) = (report.n_drained, report.n_handed_back);
    Ok(output.line(&format!("Stopped: {n_drained} tasks drained, {n_handed_back} handed back"))?)
}
