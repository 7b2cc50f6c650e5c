//! `one` and `chain`: how many short runs a worker takes through.

use crate::bench::load::{self, Pace};
use crate::bench::report::Part;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

const ONE_RUNS: usize = 100_000;
const CHAIN_RUNS: usize = 20_000;
const CHAIN_STEPS: usize = 5;

pub(super) async fn one(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let n_runs = input.n_runs(ONE_RUNS);
    let one = || load::chain("one", 1, false);
    Ok(vec![
        load::take_through(input, "1 step", n_runs, one(), 1, Pace::steady(1)).await?,
        load::take_through(input, "1 step, all at once", n_runs, one(), 1, Pace::AtOnce).await?,
    ])
}

pub(super) async fn chain(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (n_runs, n) = (input.n_runs(CHAIN_RUNS), CHAIN_STEPS);
    let chain = || load::chain("chain", n, false);
    Ok(vec![
        load::take_through(input, "5 steps", n_runs, chain(), n, Pace::steady(1)).await?,
        load::take_through(input, "5 steps, all at once", n_runs, chain(), n, Pace::AtOnce).await?,
    ])
}
