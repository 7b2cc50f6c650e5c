//! `timers`: how late sleeps end, many at one instant and single ones.

use std::time::Duration;

use stepwell::core::id::RunKey;
use stepwell::ports::DynStore;

use crate::bench::load::{self, Load, TENANT, default_slots};
use crate::bench::measure::{self, micros};
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::bench::store_driver::StoreDriver;
use crate::commands::Failure;

/// As many as a store takes in one transaction, so that all are due at one instant.
const CROWD: usize = 10_000;
/// Long enough to be stored before it is over.
const CROWD_SLEEP: Duration = Duration::from_secs(10);

const SINGLES: usize = 50;
const SINGLE_SLEEP: Duration = Duration::from_millis(100);

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    Ok(vec![crowd(input).await?, singles(input).await?])
}

async fn crowd(input: &ScenarioInput<'_>) -> Result<Part, Failure> {
    let (ports, n_runs) = (input.store.open.ports(), input.n_runs(CROWD).min(CROWD));
    let flow = load::sleep("crowd", CROWD_SLEEP);
    let load =
        Load::start(&input.store.open, flow, RunTimes::new(n_runs, 1), default_slots()).await?;
    let Some(definition) = ports.latest("crowd").await? else {
        return Err(Failure::Unexpected("the workflow was not stored".to_owned()));
    };
    input.progress.begin("sleeps due at one instant", n_runs);
    let keys = StoreDriver::new(input.store).start(definition.marked(), TENANT, n_runs).await?;
    load.times.ended(n_runs, input.progress).await?;
    load.settle().await;
    let mut spans = Vec::with_capacity(n_runs);
    // One transaction started all of them, so they have one time.
    let due_at = started_at(&ports, keys[0]).await? + CROWD_SLEEP.as_micros();
    for run in 0..n_runs {
        spans.extend(late(&load.times, run, due_at));
    }
    load::check_completed(&ports, &keys).await?;
    load.stop().await;
    Ok(Part::named("late, due at one instant").with_latency(spans))
}

async fn singles(input: &ScenarioInput<'_>) -> Result<Part, Failure> {
    let ports = input.store.open.ports();
    let flow = load::sleep("single", SINGLE_SLEEP);
    let load =
        Load::start(&input.store.open, flow, RunTimes::new(SINGLES, 1), default_slots()).await?;
    input.progress.begin("single sleeps", SINGLES);
    let mut spans = Vec::with_capacity(SINGLES);
    for run in 0..SINGLES {
        let keys = load.start_batch(run..run + 1, TENANT).await?;
        load.times.ended(run + 1, input.progress).await?;
        let due_at = started_at(&ports, keys[0]).await? + SINGLE_SLEEP.as_micros();
        spans.extend(late(&load.times, run, due_at));
    }
    load.stop().await;
    Ok(Part::named("late, one at a time").with_latency(spans))
}

async fn started_at(store: &DynStore, run: RunKey) -> Result<u128, Failure> {
    let view = store.run(run).await?;
    let view = view.ok_or_else(|| Failure::Unexpected(format!("run {run} is gone")))?;
    Ok(u128::from(view.row.started_at.as_micros().unsigned_abs()))
}

/// How late the run's step was executed, by the machine's wall clock: the store's own time, as
/// long as the store is on this machine.
fn late(times: &RunTimes, run: usize, due_at: u128) -> Option<u64> {
    let ago = times.now().saturating_sub(times.marked_at(run, 0)?);
    let now = u128::from(measure::wall_clock().as_micros().unsigned_abs());
    let executed_at = now.saturating_sub(u128::from(ago));
    let late = Duration::from_micros(u64::try_from(executed_at.saturating_sub(due_at)).ok()?);
    Some(micros(late))
}
