//! `stepwell runs`: a listing of runs, newest first.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use stepwell_core::id::{RunKey, Tenant};
use stepwell_core::limits::PAGE_ROWS_MAX;
use stepwell_core::run::RunStatus;
use stepwell_core::time::Timestamp;

use super::run_name::parse_key;
use super::run_record::RunRecord;
use super::words::{clock, later_clock, printable, rough_span, status_tone};
use super::{Cell, Failure, Output, StoreArgs, Tone};
use crate::ports::{DynStore, RunFilter, RunPage, RunView, StoreError};
use crate::wiring::system_now;

const EXAMPLES: &str = "\
Examples:
  stepwell runs --store shop.db
  stepwell runs --store postgres://shop@db.example.com/shop --status failed
  stepwell runs --tenant bakery --workflow order --limit 10
  stepwell runs --json | jq 'select(.n_failed > 0) | .run'

A page begins below the run whose key is given by --before; with --json, the key of the
last run of a page leads to the next one. Stores are only read, never made or migrated.";

/// Options of `stepwell runs`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RunsArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Only runs of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,

    /// Only runs of this workflow, whatever their version
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,

    /// Only runs that stand like this
    #[arg(long, value_name = "STATUS", ignore_case = true, value_parser = status_parser())]
    status: Option<RunStatus>,

    /// Most runs to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit_range())]
    limit: u32,

    /// The next page: only runs that are older than the one with this key
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    before: Option<RunKey>,
}

/// A run on a line of its own.
#[derive(Serialize)]
struct LineRecord<'run> {
    record: &'static str,
    #[serde(flatten)]
    run: RunRecord<'run>,
}

pub(super) async fn run(args: &RunsArgs, output: Output) -> Result<(), Failure> {
    let store = args.store.open_to_read().await?;
    let page = list(&store, &args.filter(), args.before, args.limit as usize).await?;
    if output.is_json() {
        return Ok(page.runs.iter().try_for_each(|run| output.record(&LineRecord::new(run)))?);
    }
    args.print(&page.runs, page.next, output)
}

/// A page of this many runs, if there are as many. That of a store may be smaller, and tells only
/// how far it looked; whether another one follows is known once its first run is found.
async fn list(
    store: &DynStore,
    filter: &RunFilter,
    before: Option<RunKey>,
    rows_max: usize,
) -> Result<RunPage, StoreError> {
    let (mut runs, mut next) = (Vec::new(), before);
    loop {
        let n_left = rows_max + 1 - runs.len();
        let page = store.list(filter, next, n_left.min(PAGE_ROWS_MAX)).await?;
        next = page.next;
        runs.extend(page.runs);
        if next.is_none() || runs.len() > rows_max {
            return Ok(RunPage::cut(runs, rows_max, None));
        }
    }
}

impl RunsArgs {
    fn filter(&self) -> RunFilter {
        let Self { tenant, workflow, status, .. } = self.clone();
        RunFilter { tenant, workflow, status }
    }

    fn print(
        &self,
        listed: &[RunView],
        next: Option<RunKey>,
        output: Output,
    ) -> Result<(), Failure> {
        if listed.is_empty() {
            return Ok(output.line(self.nothing())?);
        }
        let now = system_now();
        let header =
            ["run", "workflow", "status", "open", "failed", "started (UTC)", "ended, or age"];
        let rows: Vec<_> = listed.iter().map(|run| row(run, now)).collect();
        output.table(&header, &rows)?;
        if let Some(key) = next {
            let more = format!("There are more: the next page is --before {key}");
            output.line(&output.paint(Tone::Faint, &more))?;
        }
        Ok(())
    }

    /// Why nothing is listed.
    fn nothing(&self) -> &'static str {
        let is_filtered = self.tenant.is_some() || self.workflow.is_some() || self.status.is_some();
        match (is_filtered, self.before) {
            (true, _) => "no run is like that",
            (false, Some(_)) => "no run is older",
            (false, None) => "no run was started yet",
        }
    }
}

impl<'run> LineRecord<'run> {
    fn new(run: &'run RunView) -> Self {
        Self { record: "run", run: RunRecord::new(&run.row, &run.definition) }
    }
}

fn row(RunView { row, definition }: &RunView, now: Timestamp) -> Vec<Cell> {
    let workflow = format!("{} v{}", definition.definition.workflow, definition.version);
    let ended = match row.ended_at {
        Some(at) => Cell::plain(later_clock(row.started_at, at)),
        None => Cell::new(format!("age {}", rough_span(now.since(row.started_at))), Tone::Faint),
    };
    let failed = if row.n_failed > 0 { Tone::Bad } else { Tone::Faint };
    let open = if row.n_open > 0 { Tone::Plain } else { Tone::Faint };
    vec![
        Cell::plain(printable(&format!("{}/{}", row.tenant, row.id))),
        Cell::plain(printable(&workflow)),
        Cell::new(row.status.as_str(), status_tone(row.status)),
        Cell::new(row.n_open.to_string(), open),
        Cell::new(row.n_failed.to_string(), failed),
        Cell::plain(clock(row.started_at)),
        ended,
    ]
}

fn limit_range() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// Statuses as they are written everywhere, in any case.
fn status_parser() -> impl TypedValueParser<Value = RunStatus> {
    let names = RunStatus::ALL.iter().map(|status| status.as_str());
    PossibleValuesParser::new(names).try_map(|name| {
        let is_named = |status: &&RunStatus| status.as_str().eq_ignore_ascii_case(&name);
        RunStatus::ALL.iter().find(is_named).copied().ok_or("no such status")
    })
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use std::sync::Arc;

    use stepwell_core::limits::PAGE_LOOKS_MAX;

    use super::*;
    use crate::MemoryStore;
    use crate::testing::ManualClock;
    use crate::testing::conformance::World;
    use crate::testing::conformance::world::tenant;

    #[tokio::test]
    async fn more_runs_are_promised_only_where_there_are_more() {
        let clock = Arc::new(ManualClock::new());
        let store: DynStore = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
        let world = World::new(Arc::clone(&store), clock);
        let flow = world.define_unserved("a").await;
        // More than one page of the store looks at.
        let crowd = (0..=PAGE_LOOKS_MAX).map(|_| world.request("acme", "", &flow, b"input"));
        store.start(crowd.collect()).await.expect("start a crowd");
        let rare = world.start_many_for("rare", &flow, 3).await;
        let filter = RunFilter { tenant: Some(tenant("rare")), ..RunFilter::default() };
        let all = list(&store, &filter, None, 3).await.expect("list runs");
        assert_eq!((all.runs.len(), all.next), (3, None));
        let some = list(&store, &filter, None, 2).await.expect("list runs");
        assert_eq!((some.runs.len(), some.next), (2, Some(rare[1].key)));
    }
}
