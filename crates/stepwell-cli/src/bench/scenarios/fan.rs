//! `fan` and `wide`: many steps side by side, and a join that is executed exactly once.

use crate::bench::load;
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const FAN_RUNS: usize = 500;
const FAN_WIDTH: usize = 100;
const WIDE_RUNS: usize = 5;
const WIDE_WIDTH: usize = 10_000;

pub(super) async fn fan(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (flow, n_runs) = (load::fan("fan", FAN_WIDTH), stage.n_runs(FAN_RUNS));
    Ok(vec![load::take_through(stage, "1→100→1", n_runs, flow, FAN_WIDTH + 2).await?])
}

pub(super) async fn wide(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let (flow, n_runs) = (load::fan("wide", WIDE_WIDTH), stage.n_runs(WIDE_RUNS));
    Ok(vec![load::take_through(stage, "1→10,000→1", n_runs, flow, WIDE_WIDTH + 2).await?])
}
