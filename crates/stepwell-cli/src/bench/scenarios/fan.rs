//! `fan` and `wide`: many steps side by side, and a join that is executed exactly once.

use crate::bench::load::{self, Pace};
use crate::bench::report::Part;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

const FAN_RUNS: usize = 500;
const FAN_WIDTH: usize = 100;
const WIDE_RUNS: usize = 5;
const WIDE_WIDTH: usize = 10_000;

pub(super) async fn fan(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (n_runs, n) = (input.n_runs(FAN_RUNS), FAN_WIDTH + 2);
    let fan = || load::fan("fan", FAN_WIDTH);
    let steady = Pace::steady(FAN_WIDTH);
    Ok(vec![
        load::take_through(input, "1→100→1", n_runs, fan(), n, steady).await?,
        load::take_through(input, "1→100→1, all at once", n_runs, fan(), n, Pace::AtOnce).await?,
    ])
}

pub(super) async fn wide(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (n_runs, n) = (input.n_runs(WIDE_RUNS), WIDE_WIDTH + 2);
    let flow = load::fan("wide", WIDE_WIDTH);
    Ok(vec![load::take_through(input, "1→10,000→1", n_runs, flow, n, Pace::AtOnce).await?])
}
