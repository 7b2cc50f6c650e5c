//! `resume`: works until a run has ended, and says how.

use std::io::{self, Write};

use serde_json::Value;
use stepwell_core::code::Code;

use super::app::{App, Role};
use super::run_end::RunEnd;
use super::run_name::RunArgs;
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::api::{Engine, Run};
use crate::error::Error;
use crate::ports::{DynStore, RunView};
use crate::wiring::shutdown_signal;

const EXAMPLES: &str = "\
Examples:
  stepwell resume bakery/order-4711 --store shop.db
  stepwell resume order-4711 --tenant bakery --json | jq .output

It is a worker for as long as the run has not ended, so it may carry on other runs as well.
Of a run that has ended before it says how, and executes nothing. The exit code is 0 if the
run has completed, and 1 if it has failed or was cancelled.";

/// Options of `resume`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    store: StoreArgs,
}

pub(super) async fn run(args: &ResumeArgs, app: App, output: Output) -> Result<(), Failure> {
    let told_to_stop = shutdown_signal();
    // Looked for first, so that a store is not made for a run that is not there.
    let found = args.run.find(&args.store.open_to_read().await?).await?;
    let is_over = found.row.status.is_terminal();
    let role = if is_over { Role::Client } else { Role::Worker };
    let store = args.store.open_to_work().await?;
    let engine = app.engine(DynStore::clone(&store), role).await?;
    if !is_over {
        check_code(&engine, &found)?;
    }
    let (tenant, id) = (found.row.tenant.as_str(), found.row.id.as_str());
    let run = engine.run_handle(tenant, id).await?;
    let name = printable(&format!("{tenant}/{id}"));
    if !is_over && !output.is_json() {
        let says = format!("working until run {name} has ended; Ctrl-C stops");
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{says}");
    }
    let result = work(&engine, &run, told_to_stop).await;
    match result {
        Err(error) if error.code() == Code::Stopped => {
            Err(Failure::Unexpected(format!("stopped before run {name} has ended")))
        }
        result => RunEnd::read(&store, &run, result).await?.print(output),
    }
}

/// Works until the run has ended or the process is told to stop, and stops the engine. What ends
/// while it drains counts as well.
async fn work(
    engine: &Engine,
    run: &Run,
    told_to_stop: impl Future<Output = ()>,
) -> Result<Value, Error> {
    let result = run.result();
    tokio::pin!(result);
    let ended = tokio::select! {
        biased;
        ended = &mut result => Some(ended),
        () = told_to_stop => None,
    };
    match ended {
        Some(ended) => {
            engine.stop_gracefully().await;
            ended
        }
        None => tokio::join!(result, engine.stop_gracefully()).0,
    }
}

/// Refuses a run that this program would wait for in vain.
fn check_code(engine: &Engine, found: &RunView) -> Result<(), Error> {
    if engine.has_code_of(&found.definition) {
        return Ok(());
    }
    let (workflow, version) = (&found.definition.definition.workflow, found.definition.version);
    let message = format!(
        "this program has no code of workflow {workflow:?} in version {version}, which the run \
         began with; resume it by a program that has"
    );
    Err(Error::refused(Code::UnknownWorkflow, message))
}
