//! `depth` and `blocked`: what a claim costs, whatever else waits.

use crate::bench::load::TENANT;
use crate::bench::report::{Part, count};
use crate::bench::scenario_input::ScenarioInput;
use crate::bench::store_driver::StoreDriver;
use crate::commands::Failure;

/// Tasks that wait while claims are measured.
const DEPTHS: [usize; 3] = [1_000, 100_000, 1_000_000];

/// Ready tasks, and those that cannot be claimed, in `blocked`.
const READY: usize = 10_000;
const BLOCKED: usize = 100_000;

/// How many services the worker has at the end of `blocked`.
const SERVICES: usize = 100;

const CLAIMS: usize = 100;
const TASKS_PER_CLAIM: usize = 100;

/// A tenant whose limit is reached by its first task.
const LIMITED: &str = "limited";

pub(super) async fn depth(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut driver = StoreDriver::new(input.store);
    let definition = driver.register("work", "default").await?;
    driver.serve(&[definition]).await?;
    let depths = input.runs.map_or(DEPTHS.to_vec(), |runs| vec![runs.max(TASKS_PER_CLAIM)]);
    let (mut parts, mut n_queued) = (Vec::new(), 0);
    for depth in depths {
        input.progress.begin("filling the queue", depth - n_queued);
        driver.fill(definition, TENANT, depth - n_queued, input.progress).await?;
        n_queued = depth;
        let spans = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
        parts.push(Part::named(&format!("{} queued", count_of(depth))).with_latency(spans));
    }
    Ok(parts)
}

pub(super) async fn blocked(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut driver = StoreDriver::new(input.store);
    let definition = driver.register("work", "default").await?;
    driver.serve(&[definition]).await?;
    let n_blocked = input.n_runs(BLOCKED);
    let n_ready = input.scaled(READY, BLOCKED).max(TASKS_PER_CLAIM);
    driver.fill(definition, TENANT, n_ready, input.progress).await?;
    let alone = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;

    let unserved = driver.register("unserved", "nobody").await?;
    input.progress.begin("parked tasks", n_blocked);
    driver.fill(unserved, TENANT, n_blocked, input.progress).await?;
    driver.limit(LIMITED, 1).await?;
    input.progress.begin("throttled tasks", n_blocked);
    driver.fill(definition, LIMITED, n_blocked, input.progress).await?;
    let among = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
    let n = count_of(n_blocked);
    let among = Part::named(&format!("{n} parked, {n} throttled")).with_latency(among);

    let waits = driver.register_wait("waits").await?;
    input.progress.begin("runs that wait for a signal", n_blocked);
    driver.fill(waits, TENANT, n_blocked, input.progress).await?;
    let waiting = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
    let waiting = Part::named(&format!("and {n} waiting")).with_latency(waiting);

    let other = driver.register("other", "default").await?;
    driver.serve_elsewhere(&[other]).await?;
    input.progress.begin("ready tasks of another service", n_blocked);
    driver.fill(other, TENANT, n_blocked, input.progress).await?;
    let behind = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
    let behind = Part::named(&format!("and {n} ready for others")).with_latency(behind);

    let mut served = vec![definition];
    for service in 1..SERVICES {
        served.push(driver.register(&format!("work-{service}"), "default").await?);
    }
    driver.serve(&served).await?;
    let wide = driver.claim(definition, TENANT, CLAIMS, TASKS_PER_CLAIM).await?;
    let wide = Part::named(&format!("{SERVICES} services served")).with_latency(wide);
    Ok(vec![Part::named("nothing blocked").with_latency(alone), among, waiting, behind, wide])
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tasks are small")]
fn count_of(n: usize) -> String {
    count(n as f64)
}
