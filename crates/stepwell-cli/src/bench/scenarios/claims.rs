//! `depth` and `blocked`: what a claim costs, whatever else waits.

use crate::bench::bare::Bare;
use crate::bench::load::TENANT;
use crate::bench::report::{Part, count};
use crate::bench::stage::Stage;
use crate::commands::Failure;

/// Tasks that wait while claims are measured.
const DEPTHS: [usize; 3] = [1_000, 100_000, 1_000_000];

/// Ready tasks, and those that cannot be claimed, in `blocked`.
const READY: usize = 10_000;
const BLOCKED: usize = 100_000;

const CLAIMS: usize = 100;
const TASKS_PER_CLAIM: usize = 100;

/// A tenant whose limit is reached by its first task.
const LIMITED: &str = "limited";

pub(super) async fn depth(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let mut bare = Bare::new(stage.bed);
    let definition = bare.register("work", "default").await?;
    bare.serve(definition).await?;
    let depths = stage.runs.map_or(DEPTHS.to_vec(), |runs| vec![runs.max(TASKS_PER_CLAIM)]);
    let (mut parts, mut n_queued) = (Vec::new(), 0);
    for depth in depths {
        stage.progress.begin("filling the queue", depth - n_queued);
        bare.fill(definition, TENANT, depth - n_queued, stage.progress).await?;
        n_queued = depth;
        let spans = bare.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
        parts.push(Part::named(&format!("{} queued", count_of(depth))).with_latency(spans));
    }
    Ok(parts)
}

pub(super) async fn blocked(stage: &Stage<'_>) -> Result<Vec<Part>, Failure> {
    let mut bare = Bare::new(stage.bed);
    let definition = bare.register("work", "default").await?;
    bare.serve(definition).await?;
    let n_blocked = stage.n_runs(BLOCKED);
    let n_ready = stage.scaled(READY, BLOCKED).max(TASKS_PER_CLAIM);
    bare.fill(definition, TENANT, n_ready, stage.progress).await?;
    let alone = bare.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;

    let unserved = bare.register("unserved", "nobody").await?;
    stage.progress.begin("parked tasks", n_blocked);
    bare.fill(unserved, TENANT, n_blocked, stage.progress).await?;
    bare.limit(LIMITED, 1).await?;
    stage.progress.begin("throttled tasks", n_blocked);
    bare.fill(definition, LIMITED, n_blocked, stage.progress).await?;
    let among = bare.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
    let n = count_of(n_blocked);
    let among = Part::named(&format!("{n} parked, {n} throttled")).with_latency(among);
    Ok(vec![Part::named("nothing blocked").with_latency(alone), among])
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tasks are small")]
fn count_of(n: usize) -> String {
    count(n as f64)
}
