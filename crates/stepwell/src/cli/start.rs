//! `start`: a run of one of the program's own workflows.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stepwell_core::code::Code;
use stepwell_core::id::Tenant;
use stepwell_core::run::RunStatus;

use super::app::{App, Role};
use super::run_end::RunEnd;
use super::signal::parse_json;
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::api::{Engine, Run};
use crate::error::Error;
use crate::ports::DynStore;

const EXAMPLES: &str = "\
Examples:
  stepwell start order --id order-4711 --tenant bakery --input '{\"cents\": 42}' --store shop.db
  stepwell start order --tenant bakery --input 42 --wait
  stepwell start order --id order-4711 --tenant bakery --input 42 --json | jq .key

Starting again with the same id and input finds the run that is there. The store is made if
it is not there. Runs are executed by `worker`, or one of them by `resume`.";

/// Options of `start`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StartArgs {
    /// The name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    #[command(flatten)]
    store: StoreArgs,

    /// The run's id, unique per tenant; without it, one is made
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Whose run it is; needed unless the program has a default tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,

    /// The input, as JSON
    #[arg(
        long,
        value_name = "JSON",
        default_value = "null",
        allow_negative_numbers = true,
        value_parser = parse_json
    )]
    input: Box<RawValue>,

    /// Wait until the run has ended, and say how; a worker has to be there
    #[arg(long)]
    wait: bool,
}

/// A run that was started, as JSON.
#[derive(Serialize)]
struct StartRecord<'run> {
    record: &'static str,
    tenant: &'run str,
    id: &'run str,
    key: String,
    workflow: &'run str,
    status: RunStatus,
}

pub(super) async fn run(args: &StartArgs, app: App, output: Output) -> Result<(), Failure> {
    let program = app.program();
    let store = args.store.open_to_work().await?;
    let engine = app.engine(DynStore::clone(&store), Role::Client).await?;
    check_workflow(&engine, &args.workflow)?;
    let run = start(args, &engine).await?;
    let status = run.status().await?;
    let (tenant, id, workflow) = (run.tenant(), run.id(), run.workflow());
    if output.is_json() {
        let key = run.key().to_string();
        output.record(&StartRecord { record: "start", tenant, id, key, workflow, status })?;
    } else {
        let name = printable(&format!("{tenant}/{id}"));
        let says = if status.is_terminal() {
            format!("Run {name} had already ended as {status}")
        } else {
            format!("Run {name} is started")
        };
        output.line(&says)?;
    }
    if args.wait {
        if !output.is_json() && !status.is_terminal() {
            let says = format!("waiting for its end; `{program} worker` would execute it");
            // There is nobody left to tell when standard error is closed.
            let _ = writeln!(io::stderr().lock(), "{says}");
        }
        let result = run.result().await;
        RunEnd::read(&store, &run, result).await?.print(output)?;
    }
    engine.stop_gracefully().await;
    Ok(())
}

async fn start(args: &StartArgs, engine: &Engine) -> Result<Run, Failure> {
    // Digits stay as they were typed where JSON is written; other codecs get the value.
    let mut start = if engine.writes_json() {
        engine.start_by_name(&args.workflow, &args.input)
    } else {
        let value: Value = serde_json::from_str(args.input.get()).unwrap_or_default();
        engine.start_by_name(&args.workflow, &value)
    };
    if let Some(tenant) = &args.tenant {
        start = start.tenant(tenant.as_str());
    }
    if let Some(id) = &args.id {
        start = start.id(id);
    }
    start.await.map_err(|error| match error.code() {
        Code::NoTenant => Failure::Usage {
            message: "no tenant is named".to_owned(),
            hint: "give --tenant, or give the builder of the program's engine a `default_tenant`",
        },
        _ => error.into(),
    })
}

/// Refuses a workflow that the program has no code for.
fn check_workflow(engine: &Engine, workflow: &str) -> Result<(), Error> {
    let known = engine.workflows();
    if known.iter().any(|name| name == workflow) {
        return Ok(());
    }
    let has = if known.is_empty() { "none at all".to_owned() } else { known.join(", ") };
    let message = format!("this program has no workflow {workflow:?}; it has {has}");
    Err(Error::refused(Code::UnknownWorkflow, message))
}
