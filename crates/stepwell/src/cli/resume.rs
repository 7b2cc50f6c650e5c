//! `resume`: works until a run has ended, and says how.

use std::io::{self, Write};

use stepwell_core::code::Code;

use super::app::{App, Role};
use super::client::Client;
use super::run_end::RunEnd;
use super::run_name::RunArgs;
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::api::Engine;
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
    let client = Client::connect(&args.store).await?;
    let found = args.run.find(&client.store).await?;
    if found.row.status.is_terminal() {
        let end = RunEnd::read(&client.store, &client.run(&found).await?).await?;
        client.close().await;
        return end.print(output);
    }
    client.close().await;
    drop(client);
    work(args, &found, app, output).await
}

/// Works until the run has ended, or the process is told to stop.
async fn work(args: &ResumeArgs, found: &RunView, app: App, output: Output) -> Result<(), Failure> {
    let told_to_stop = shutdown_signal();
    let store = args.store.open_to_work().await?;
    let engine = app.engine(DynStore::clone(&store), Role::Worker).await?;
    check_code(&engine, found)?;
    let (tenant, id) = (found.row.tenant.as_str(), found.row.id.as_str());
    let run = engine.run_handle(tenant, id).await?;
    let name = printable(&format!("{tenant}/{id}"));
    if !output.is_json() {
        let says = format!("working until run {name} has ended; Ctrl-C stops");
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{says}");
    }
    tokio::select! {
        biased;
        ended = run.ended() => drop(ended?),
        () = told_to_stop => {}
    }
    let has_ended = run.status().await?.is_terminal();
    let end = if has_ended { Some(RunEnd::read(&store, &run).await?) } else { None };
    engine.stop_gracefully().await;
    match end {
        Some(end) => end.print(output),
        None => Err(Failure::Unexpected(format!("stopped before run {name} has ended"))),
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
