//! `snapshot`: throughput while somebody holds a snapshot open, as a backup or a long report
//! does. The server must keep every dead row for it.

use std::time::{Duration, Instant};

use crate::bench::cluster::failure;
use crate::bench::load::{self, Pace};
use crate::bench::report::Part;
use crate::bench::stage::Stage;
use crate::commands::Failure;

const RUNS: usize = 20_000;
const STEPS: usize = 5;

/// A snapshot is taken by the first statement that reads.
const HOLD: &str = "begin isolation level repeatable read; select count(*) from pg_class";

/// How long it is held, unless the number of runs is given.
const HELD: Duration = Duration::from_mins(2);

pub(super) async fn measure(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let Some(control) = stage.bed.control() else { return Ok(Vec::new()) };
    let before = chain(stage, "before").await?;
    control.batch_execute(HOLD).await.map_err(|error| failure(&error))?;
    let first = chain(stage, "while a snapshot is held").await?;
    let mut parts = vec![before, first];
    parts.extend(go_on(stage).await?);
    control.batch_execute("commit").await.map_err(|error| failure(&error))?;
    parts.push(chain(stage, "after it was released").await?);
    Ok(parts)
}

/// Goes on while the snapshot is held; tells how the last ones went, which had the most dead rows
/// in their way.
#[expect(clippy::disallowed_methods, reason = "a benchmark takes real time")]
async fn go_on(stage: &Stage<'_>) -> Result<Option<Part>, Failure> {
    let begun_at = Instant::now();
    let mut last = None;
    while stage.n_runs(0) == 0 && begun_at.elapsed() < HELD {
        last = Some(chain(stage, "at the end of two minutes").await?);
    }
    Ok(last)
}

async fn chain(stage: &Stage<'_>, name: &str) -> Result<Part, Failure> {
    let n_runs = stage.n_runs(RUNS);
    let flow = load::chain(name, STEPS, false);
    load::take_through(stage, name, n_runs, flow, STEPS, Pace::steady(1)).await
}
