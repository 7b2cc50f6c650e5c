//! `stepwell cancel`: nothing of a run starts any more.

use serde::Serialize;
use stepwell_core::decide::CancelAnswer;
use stepwell_core::run::RunStatus;

use super::client::Client;
use super::run_name::RunArgs;
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::wiring::host_name;

const EXAMPLES: &str = "\
Examples:
  stepwell cancel bakery/order-4711 --reason \"the customer called\" --store shop.db
  stepwell cancel order-4711 --tenant bakery --json
  stepwell cancel bakery/order-4711 --force     also if its failure handler hangs

What runs is told to stop: at once in its own process, with the next heartbeat in others.";

/// Options of `stepwell cancel`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CancelArgs {
    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Why; it stands in the log of the run
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Who asks; it stands in the log of the run. Default: user@host
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// End the run at once, without its failure handler
    #[arg(long)]
    force: bool,
}

/// What became of the request, as JSON.
#[derive(Serialize)]
struct CancelRecord<'run> {
    record: &'static str,
    tenant: &'run str,
    id: &'run str,
    answer: &'static str,
    /// How the run ends or ended, where that is known.
    status: Option<RunStatus>,
}

pub(super) async fn run(args: &CancelArgs, output: Output) -> Result<(), Failure> {
    let client = Client::connect(&args.store).await?;
    let found = args.run.find(&client.store).await?;
    let run = client.run(&found).await?;
    let mut cancel = run.cancel().by(args.by.clone().unwrap_or_else(asker));
    if let Some(reason) = &args.reason {
        cancel = cancel.reason(reason);
    }
    if args.force {
        cancel = cancel.force();
    }
    let answer = cancel.await?;
    client.close().await;
    let (word, status) = match answer {
        CancelAnswer::Cancelled => ("cancelled", None),
        CancelAnswer::AlreadyEnding(status) => ("already_ending", Some(status)),
        CancelAnswer::AlreadyEnded(status) => ("already_ended", Some(status)),
        CancelAnswer::ForcedToEnd(status) => ("forced_to_end", Some(status)),
    };
    let (tenant, id) = (run.tenant(), run.id());
    if output.is_json() {
        let record = CancelRecord { record: "cancel", tenant, id, answer: word, status };
        return Ok(output.record(&record)?);
    }
    let name = printable(&format!("{tenant}/{id}"));
    let says = match (answer, status) {
        (CancelAnswer::AlreadyEnding(_), Some(status)) => {
            format!("is already ending as {status}; --force ends it without its failure handler")
        }
        (CancelAnswer::AlreadyEnded(_), Some(status)) => format!("had already ended as {status}"),
        (_, Some(status)) => format!("was ending, and has ended as {status}"),
        (_, None) => "is cancelled".to_owned(),
    };
    Ok(output.line(&format!("Run {name} {says}"))?)
}

/// Who sits at this terminal.
fn asker() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let user = user.filter(|user| !user.is_empty()).unwrap_or_else(|| "somebody".to_owned());
    format!("{user}@{}", host_name())
}
