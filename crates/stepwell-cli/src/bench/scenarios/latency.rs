//! `latency`: one run at a time on an idle worker, from the call of start to the first step and
//! from step to step.

use crate::bench::bed::Meter;
use crate::bench::ledger::Ledger;
use crate::bench::load::{self, Load, SLOTS, TENANT};
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const RUNS: usize = 300;
const STEPS: usize = 10;

pub(super) async fn measure(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (bed, n_runs) = (stage.bed, stage.n_runs(RUNS));
    let flow = load::chain("latency", STEPS, true);
    let load = Load::start(&bed.store, flow, Ledger::new(n_runs, STEPS), SLOTS).await?;
    stage.progress.begin("one run at a time", n_runs);
    let meter = Meter::begin(bed).await?;
    let mut keys = Vec::with_capacity(n_runs);
    for run in 0..n_runs {
        load.ledger.start(run);
        let started = load.engine.start(&load.workflow, run).tenant(TENANT).await?;
        load.ledger.ended(run + 1, stage.progress).await?;
        load.settle().await;
        keys.push(started.key());
    }
    let part = meter.end(bed, "start to first step", n_runs, n_runs * STEPS).await?;
    let part = part.without_rate().with_latency(load.ledger.since_start(0));
    let steps = Part::named("step to step").with_latency(load.ledger.between_marks());
    load::check_completed(&bed.store.ports(), &keys).await?;
    load.stop().await;
    Ok(vec![part, steps])
}
