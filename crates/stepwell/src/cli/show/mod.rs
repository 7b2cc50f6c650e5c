//! `stepwell show`: one run with its tasks, its log and, if asked for, its payloads.
//!
//! A section of what is shown is a file: it gives rows for people and a record for programs. Open
//! waits and signals that nobody got have their place between tasks and log.

mod inbox;
mod log;
mod memos;
mod payload;
mod picture;
mod summary;
mod tasks;

use serde::Serialize;

use super::run_name::RunArgs;
use super::run_record::RunRecord;
use super::{EventRecord, Failure, Output, StoreArgs};
use inbox::{SignalRecord, WaitRecord};
use memos::MemoRecord;
use payload::PayloadRecord;
use picture::RunPicture;
use tasks::TaskRecord;

const EXAMPLES: &str = "\
Examples:
  stepwell show bakery/order-4711 --store shop.db
  stepwell show order-4711 --tenant bakery --payloads
  stepwell show 0192f0c1d2e3f4a5b6c7d8e9fa0b1c2d --lines 0
  stepwell show bakery/order-4711 --json | jq '.tasks[] | select(.state == \"FAILED\")'

Stores are only read, never made or migrated.";

/// Options of `stepwell show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Show input and outputs as well; they may hold what not everybody should see
    #[arg(long)]
    payloads: bool,

    /// Most lines of each table, 0 for all of them; JSON has them all
    #[arg(long, value_name = "N", default_value_t = 50)]
    lines: usize,
}

/// A run as JSON, with all there is to it.
#[derive(Serialize)]
struct ShowRecord<'picture> {
    record: &'static str,
    run: RunRecord<'picture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<PayloadRecord<'picture>>,
    tasks: Vec<TaskRecord<'picture>>,
    memos: Vec<MemoRecord<'picture>>,
    waits: Vec<WaitRecord<'picture>>,
    unconsumed_signals: Vec<SignalRecord<'picture>>,
    log: Vec<EventRecord<'picture>>,
}

pub(super) async fn run(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let store = args.store.open_to_read().await?;
    let found = args.run.find(&store).await?;
    let mut picture = RunPicture::read(&store, found.row.key).await?;
    if args.payloads {
        picture.read_payloads(&store).await?;
    }
    if output.is_json() {
        return Ok(output.record(&ShowRecord::new(&picture))?);
    }
    summary::print(&picture, output)?;
    tasks::print(&picture, args.lines, output)?;
    memos::print(&picture, args.lines, output)?;
    inbox::print(&picture, args.lines, output)?;
    if args.payloads {
        payload::print(&picture, output)?;
    }
    log::print(&picture, args.lines, output)
}

impl<'picture> ShowRecord<'picture> {
    fn new(picture: &'picture RunPicture) -> Self {
        Self {
            record: "show",
            run: RunRecord::new(&picture.row, &picture.definition),
            input: picture.input.as_ref().map(PayloadRecord::new),
            tasks: picture.tasks.iter().map(TaskRecord::new).collect(),
            memos: MemoRecord::all(picture),
            waits: WaitRecord::all(picture),
            unconsumed_signals: SignalRecord::all(picture),
            log: picture.log.iter().map(EventRecord::new).collect(),
        }
    }
}
