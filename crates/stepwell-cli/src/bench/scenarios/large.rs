//! `large`: what a task of a very large run costs, beside the same tasks in many smaller runs.

use crate::bench::load::{self, Pace};
use crate::bench::report::Part;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// Tasks on either side.
const TASKS: usize = 100_000;
const RUNS: usize = 100;

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let n_tasks = input.n_runs(TASKS).max(RUNS * 3);
    let each = n_tasks / RUNS;
    // The first and the last step are tasks too.
    let many = load::fan("many", each - 2);
    let name = format!("100 runs of {each} tasks");
    let many = load::take_through(input, &name, RUNS, many, each, Pace::AtOnce).await?;
    let one = load::fan("large", n_tasks - 2);
    let name = format!("1 run of {n_tasks} tasks");
    let one = load::take_through(input, &name, 1, one, n_tasks, Pace::AtOnce).await?;
    Ok(vec![many, one])
}
