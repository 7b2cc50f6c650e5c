//! `one` and `chain`: how many short runs a worker takes through.

use crate::bench::load;
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const ONE_RUNS: usize = 100_000;
const CHAIN_RUNS: usize = 20_000;
const CHAIN_STEPS: usize = 5;

pub(super) async fn one(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (flow, n_runs) = (load::chain("one", 1, false), stage.n_runs(ONE_RUNS));
    Ok(vec![load::take_through(stage, "1 step", n_runs, flow, 1).await?])
}

pub(super) async fn chain(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let flow = load::chain("chain", CHAIN_STEPS, false);
    let n_runs = stage.n_runs(CHAIN_RUNS);
    Ok(vec![load::take_through(stage, "5 steps", n_runs, flow, CHAIN_STEPS).await?])
}
