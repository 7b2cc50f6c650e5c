//! `snapshot`: throughput while somebody holds a snapshot open, as a backup or a long report
//! does. The server must keep every dead row for it.

use crate::bench::cluster::failure;
use crate::bench::load;
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const RUNS: usize = 20_000;
const STEPS: usize = 5;

/// A snapshot is taken by the first statement that reads.
const HOLD: &str = "begin isolation level repeatable read; select count(*) from pg_class";

pub(super) async fn measure(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let Some(control) = stage.bed.control() else { return Ok(Vec::new()) };
    let before = chain(stage, "before").await?;
    control.batch_execute(HOLD).await.map_err(|error| failure(&error))?;
    let held = chain(stage, "while a snapshot is held").await?;
    control.batch_execute("commit").await.map_err(|error| failure(&error))?;
    let after = chain(stage, "after it was released").await?;
    Ok(vec![before, held, after])
}

async fn chain(stage: &Stage<'_>, name: &str) -> Result<Part, Failure> {
    let n_runs = stage.n_runs(RUNS);
    load::take_through(stage, name, n_runs, load::chain(name, STEPS, false), STEPS).await
}
