//! `latency`: one run at a time on an idle worker, from the call of start to the first step and
//! from step to step.

use crate::bench::load::{self, Load, SLOTS, TENANT};
use crate::bench::meter::Meter;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

const RUNS: usize = 300;
const STEPS: usize = 10;

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (store, n_runs) = (input.store, input.n_runs(RUNS));
    let flow = load::chain("latency", STEPS, true);
    let load = Load::start(&store.open, flow, RunTimes::new(n_runs, STEPS), SLOTS).await?;
    input.progress.begin("one run at a time", n_runs);
    let meter = Meter::begin(store).await?;
    let mut keys = Vec::with_capacity(n_runs);
    for run in 0..n_runs {
        load.times.start(run);
        let started = load.engine.start(&load.workflow, run).tenant(TENANT).await?;
        load.times.ended(run + 1, input.progress).await?;
        load.settle().await;
        keys.push(started.key());
    }
    let part = meter.end(store, "start to first step", n_runs, n_runs * STEPS).await?;
    let part = part.without_rate().with_latency(load.times.since_start(0));
    let steps = Part::named("step to step").with_latency(load.times.between_marks());
    load::check_completed(&store.open.ports(), &keys).await?;
    load.stop().await;
    Ok(vec![part, steps])
}
