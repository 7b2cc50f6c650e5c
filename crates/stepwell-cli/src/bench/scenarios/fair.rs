//! `fair`: how long a tenant waits behind the crowd of another, and how a hundred tenants fare
//! that come at once.

use std::ops::Range;
use std::time::Duration;

use crate::bench::load::{self, Load};
use crate::bench::measure;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// Tasks of the other tenant that wait at least while the lone one comes.
const BACKLOG: usize = 10_000;
const PROBES: usize = 200;
const FEED_BATCH: usize = 1_000;

/// A hundred tenants with as many runs each.
const TENANTS: usize = 100;
const RUNS_PER_TENANT: usize = 100;

/// A worker that is always full: so many slots, and so long steps.
const SLOTS: usize = 100;
const STEP: Duration = Duration::from_millis(100);

/// The crowd must be there before the lone tenant comes, and may take this long.
const FEED_MAX: Duration = Duration::from_mins(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let lone = lone(input).await?;
    let mut parts = vec![lone];
    parts.extend(hundred(input).await?);
    Ok(parts)
}

async fn lone(input: &ScenarioInput<'_>) -> Result<Part, Failure> {
    let backlog = input.n_runs(BACKLOG);
    let flow = load::slow("crowd", STEP);
    let load = Load::start(&input.store.open, flow, RunTimes::new(PROBES, 1), SLOTS).await?;
    tokio::select! {
        fed = feed(&load, backlog) => fed?,
        probed = probe(&load, input, backlog) => probed?,
    }
    let part = Part::named("lone tenant behind a crowd").with_latency(load.times.since_start(0));
    // The crowd is of no more interest: it is dropped with the store.
    load.abandon().await;
    Ok(part)
}

/// Keeps the crowd at its size, until the caller drops this.
async fn feed(load: &Load, backlog: usize) -> Result<(), Failure> {
    let mut n_fed = 0;
    loop {
        if n_fed - load.times.n_others() < backlog + FEED_BATCH {
            let first = PROBES + n_fed;
            load.start_batch(first..first + FEED_BATCH, "crowd").await?;
            n_fed += FEED_BATCH;
        } else {
            measure::pause(LOOK_INTERVAL).await;
        }
    }
}

async fn probe(load: &Load, input: &ScenarioInput<'_>, backlog: usize) -> Result<(), Failure> {
    let began_at = measure::now();
    input.progress.begin("the crowd comes in", backlog);
    while waiting(load, "crowd").await? < backlog {
        if began_at.elapsed() > FEED_MAX {
            let message = format!("no crowd of {backlog} came about in {FEED_MAX:?}");
            return Err(Failure::Unexpected(message));
        }
        measure::pause(LOOK_INTERVAL * 10).await;
    }
    input.progress.begin("the lone tenant comes", PROBES);
    for run in 0..PROBES {
        load.start_batch(run..run + 1, "lone").await?;
        load.times.ended(run + 1, input.progress).await?;
    }
    Ok(())
}

async fn waiting(load: &Load, tenant: &str) -> Result<usize, Failure> {
    Ok(load.engine.tenant(tenant).await?.map_or(0, |view| view.n_ready))
}

async fn hundred(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let n_runs = TENANTS * RUNS_PER_TENANT;
    let flow = load::slow("hundred", STEP);
    let load = Load::start(&input.store.open, flow, RunTimes::new(n_runs, 1), SLOTS).await?;
    input.progress.begin("a hundred tenants", n_runs);
    let began_at = load.times.now();
    // One tenant after the other: without fairness the last would wait for all the others.
    let start = async {
        for tenant in 0..TENANTS {
            load.start_batch(runs_of(tenant), &format!("tenant {tenant}")).await?;
        }
        Ok(())
    };
    tokio::try_join!(start, load.times.ended(n_runs, input.progress))?;
    load.settle().await;
    let first = (0..TENANTS).filter_map(|tenant| {
        let waits = runs_of(tenant).filter_map(|run| load.times.waited(run));
        waits.min()
    });
    let last = (0..TENANTS).filter_map(|tenant| {
        let ends = runs_of(tenant).filter_map(|run| load.times.marked_at(run, 0));
        ends.max().map(|at| at.saturating_sub(began_at))
    });
    let first = Part::named("100 tenants: wait for the first task").with_latency(first.collect());
    let last = Part::named("100 tenants: last task executed at").with_latency(last.collect());
    load.stop().await;
    Ok(vec![first, last])
}

fn runs_of(tenant: usize) -> Range<usize> {
    tenant * RUNS_PER_TENANT..(tenant + 1) * RUNS_PER_TENANT
}
