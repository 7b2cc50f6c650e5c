//! `stepwell events`: the log of a run, and nothing else.

use serde::Serialize;
use stepwell_core::code::Code;
use stepwell_core::run::read_log;

use super::run_name::RunArgs;
use super::words::clock_millis;
use super::{EventRecord, Failure, Output, StoreArgs, Tone, log_table};
use crate::api::RunEvent;
use crate::error::Error;

const EXAMPLES: &str = "\
Examples:
  stepwell events bakery/order-4711 --store shop.db
  stepwell events order-4711 --tenant bakery --lines 10
  stepwell events bakery/order-4711 --json | jq 'select(.event == \"FAILED\")'

Events without a number belong to tasks that are open, and may change until they have one.
Stores are only read, never made or migrated.";

/// Options of `stepwell events`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Only the newest N events, 0 for all of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    lines: usize,
}

/// An event on a line of its own.
#[derive(Serialize)]
struct LineRecord<'event> {
    record: &'static str,
    tenant: &'event str,
    id: &'event str,
    #[serde(flatten)]
    event: EventRecord<'event>,
}

pub(super) async fn run(args: &EventsArgs, output: Output) -> Result<(), Failure> {
    let store = args.store.open_to_read().await?;
    let found = args.run.find(&store).await?;
    let (tenant, id) = (found.row.tenant.as_str(), found.row.id.as_str());
    let gone = || Error::refused(Code::UnknownRun, format!("run {tenant}/{id} is gone"));
    let log = store.log(found.row.key).await?.ok_or_else(gone)?;
    let definition = &found.definition.definition;
    let event = |event: stepwell_core::run::Event| {
        RunEvent::of(event.node.map(|node| definition.name(node).to_owned()), event)
    };
    let events: Vec<RunEvent> = read_log(&log).into_iter().map(event).collect();
    let n_left_out = if args.lines == 0 { 0 } else { events.len().saturating_sub(args.lines) };
    let shown = &events[n_left_out..];
    if output.is_json() {
        let record = |event| LineRecord { record: "event", tenant, id, event };
        let records = shown.iter().map(EventRecord::new).map(record);
        return Ok(records.into_iter().try_for_each(|record| output.record(&record))?);
    }
    if n_left_out > 0 {
        let earlier = format!("{n_left_out} earlier events; --lines 0 shows all of them");
        output.line(&output.paint(Tone::Faint, &earlier))?;
    }
    Ok(log_table(output, shown, clock_millis)?)
}
