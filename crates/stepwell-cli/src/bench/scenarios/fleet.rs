//! `beats` and `comings`: what a heartbeat costs that names many claims, and how long others wait
//! while workers come, go and die.

use std::future::Future;
use std::time::Duration;

use stepwell::ports::{ClaimRef, MarkedDefinition};

use crate::bench::load::TENANT;
use crate::bench::measure::{self, micros};
use crate::bench::report::{Part, count};
use crate::bench::scenario_input::ScenarioInput;
use crate::bench::store_driver::{StoreDriver, other_worker, third_worker, worker};
use crate::commands::Failure;

/// Claims that a worker holds in `beats`, and how many of them one call claims.
const HELD: usize = 100_000;
const BATCH: usize = 1_000;

/// How many heartbeats are measured.
const BEATS: usize = 20;

/// Tasks that are parked, and as many that are ready, in `comings`.
const WAITING: usize = 1_000_000;

/// What the worker held that dies in `comings`.
const LOST: usize = 10_000;

/// How many rounds of moving tasks are measured.
const ROUNDS: usize = 20;

/// How long nothing happens beside the first probe of `comings`.
const QUIET: Duration = Duration::from_secs(2);

pub(super) async fn beats(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut driver = StoreDriver::new(input.store);
    let definition = driver.register("work", "default").await?;
    driver.serve(&[definition]).await?;
    let n_batches = input.n_runs(HELD).div_ceil(BATCH);
    let n_held = n_batches * BATCH;
    input.progress.begin("filling the queue", n_held);
    driver.fill(definition, TENANT, n_held, input.progress).await?;
    input.progress.begin("claiming", n_held);
    let mut batches = Vec::with_capacity(n_batches);
    for n in 1..=n_batches {
        batches.push(driver.hold(worker(), BATCH).await?);
        input.progress.set(n * BATCH);
    }
    let all = beat(&driver, &batches.concat()).await?;
    let all = Part::named(&format!("{} claims", count_of(n_held))).with_latency(all);
    let mut stragglers = Vec::with_capacity(n_batches);
    for mut batch in batches {
        stragglers.extend(batch.pop());
        for ended in batch.chunks(BATCH / 10) {
            driver.complete(ended).await?;
        }
    }
    let few = beat(&driver, &stragglers).await?;
    let name = format!("the last of each {}", count_of(BATCH));
    Ok(vec![all, Part::named(&name).with_latency(few)])
}

async fn beat(driver: &StoreDriver, held: &[ClaimRef]) -> Result<Vec<u64>, Failure> {
    let mut spans = Vec::with_capacity(BEATS);
    for _ in 0..BEATS {
        let began_at = measure::now();
        driver.beat(&worker(), held).await?;
        spans.push(micros(began_at.elapsed()));
    }
    Ok(spans)
}

pub(super) async fn comings(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut driver = StoreDriver::new(input.store);
    let n = input.n_runs(WAITING);
    let probed = driver.register("probed", "default").await?;
    let [ready, parked] =
        [driver.register("ready", "other").await?, driver.register("parked", "third").await?];
    driver.serve(&[probed]).await?;
    driver.serve_in("other", other_worker(), ready).await?;
    input.progress.begin("ready tasks", n);
    driver.fill(ready, TENANT, n, input.progress).await?;
    input.progress.begin("parked tasks", n);
    driver.fill(parked, TENANT, n, input.progress).await?;

    let mut probe = Probe { driver: StoreDriver::new(input.store), definition: probed };
    let nobody = async {
        measure::pause(QUIET).await;
        Ok(())
    };
    let mut parts = probe.beside("nobody comes", nobody).await?;
    let comes = async {
        driver.serve_in("third", third_worker(), parked).await?;
        driver.settle(ROUNDS).await
    };
    parts.extend(probe.beside("a worker comes", comes).await?);
    let goes = async {
        driver.leave(&other_worker()).await?;
        driver.settle(ROUNDS).await
    };
    parts.extend(probe.beside("a worker goes", goes).await?);
    let n_lost = input.scaled(LOST, WAITING);
    let held = driver.hold(third_worker(), n_lost).await?;
    let dies = driver.bury(third_worker());
    let name = format!("one dies with {}", count_of(held.len()));
    parts.extend(probe.beside(&name, dies).await?);
    Ok(parts)
}

/// Starts runs one after the other and completes their tasks, while something else happens.
struct Probe {
    driver: StoreDriver,
    definition: MarkedDefinition,
}

impl Probe {
    /// How long starts and commits took beside this.
    async fn beside(
        &mut self,
        name: &str,
        other: impl Future<Output = Result<(), Failure>>,
    ) -> Result<Vec<Part>, Failure> {
        let (mut starts, mut commits) = (Vec::new(), Vec::new());
        tokio::select! {
            done = other => done?,
            failed = self.until_failed(&mut starts, &mut commits) => return Err(failed),
        }
        let part = |what: &str, spans| Part::named(&format!("{name}: {what}")).with_latency(spans);
        Ok(vec![part("starts", starts), part("commits", commits)])
    }

    async fn until_failed(&mut self, starts: &mut Vec<u64>, commits: &mut Vec<u64>) -> Failure {
        loop {
            match self.once().await {
                Ok((start, commit)) => {
                    starts.push(start);
                    commits.push(commit);
                }
                Err(failed) => return failed,
            }
        }
    }

    async fn once(&mut self) -> Result<(u64, u64), Failure> {
        let began_at = measure::now();
        self.driver.start(self.definition, TENANT, 1).await?;
        let start = micros(began_at.elapsed());
        let claims = self.driver.hold(worker(), 1).await?;
        let began_at = measure::now();
        self.driver.complete(&claims).await?;
        Ok((start, micros(began_at.elapsed())))
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tasks are small")]
fn count_of(n: usize) -> String {
    count(n as f64)
}
