//! `signals`: runs that wait are signalled as fast as they are taken, and one at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use stepwell::core::id::RunKey;
use stepwell::{Engine, Sent, TaskState, Workflow};

use crate::bench::bench_store::OpenStore;
use crate::bench::load::{self, Flow, Load, Pace, SLOTS, Shared, TENANT};
use crate::bench::measure;
use crate::bench::meter::Meter;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

const RUNS: usize = 10_000;
const SINGLE_RUNS: usize = 300;

/// Signals that are on their way at a time: as many as tasks in `chain`.
const UNDER_WAY: usize = SLOTS;

/// How often to look whether a run has come to its wait.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// What starting the crowd costs is over by then.
const SETTLE: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(5);

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut parts = many(input).await?;
    parts.extend(single(input).await?);
    Ok(parts)
}

/// A wait, then a step.
fn wait(name: &str) -> Flow {
    let mut w = Workflow::define::<usize, Shared>(name);
    let wait = w.wait::<usize>("wait", "go").from_start();
    w.step("resumed").after(wait).run(async |ctx, _| {
        ctx.state().end(*ctx.input());
        Ok(())
    });
    w.no_output()
}

/// Lets a crowd wait for a while, then signals all of it. The start of the runs is not counted.
async fn many(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (store, n_runs) = (input.store, input.n_runs(RUNS));
    let flow = wait("signals");
    let load = Load::start(&store.open, flow, RunTimes::new(n_runs, 1), SLOTS).await?;
    let keys = load.start_all(Pace::AtOnce).await?;
    input.progress.begin("signals to runs that wait", n_runs);
    measure::pause(SETTLE).await;
    let meter = Meter::begin(store).await?;
    measure::pause(SPAN).await;
    let waited = meter.end(store, "5 s of waiting", 0, 0).await?;
    let meter = Meter::begin(store).await?;
    let next = AtomicUsize::new(0);
    let senders = (0..UNDER_WAY.min(n_runs)).map(|_| send_some(&load, &keys, &next));
    let ended = load.times.ended(n_runs, input.progress);
    tokio::try_join!(try_join_all(senders), ended)?;
    load.settle().await;
    let part = meter.end(store, "signalled as fast as taken", n_runs, n_runs * 2).await?;
    let part = part.with_latency(load.times.since_start(0));
    load::check_completed(&store.open.ports(), &keys).await?;
    load.stop().await;
    let per_second = waited.statements.map(|n| measure::rate(n, SPAN));
    let note = per_second.map(|n| format!("{n:.1} statements a second"));
    let (seconds, statements) = (waited.seconds, waited.statements);
    let waited = Part { seconds, statements, note, ..Part::named(&waited.name) };
    Ok(vec![waited, part])
}

/// Sends signals one after the other, as one of many callers.
async fn send_some(load: &Load, keys: &[RunKey], next: &AtomicUsize) -> Result<(), Failure> {
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        let Some(key) = keys.get(run) else { return Ok(()) };
        load.times.start(run);
        send(&load.engine, *key, run).await?;
    }
}

/// Sends a signal to the run that has this key, which is its id as well.
async fn send(engine: &Engine, key: RunKey, payload: usize) -> Result<(), Failure> {
    match engine.signal("go", &payload).to(TENANT, &key.to_string()).await? {
        Sent::Accepted { .. } => Ok(()),
        answer => Err(Failure::Unexpected(format!("a signal was answered by {answer:?}"))),
    }
}

/// Signals one run at a time on an idle worker, from the call to the resumed step: from the
/// process of the worker, and through an engine without slots on connections of its own.
async fn single(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for (part, name, is_apart) in [
        ("signal to step", "same process", false),
        ("signal to step, other connections", "other connections", true),
    ] {
        let n_runs = input.n_runs(SINGLE_RUNS).min(SINGLE_RUNS);
        let flow = wait(name);
        let store = input.store;
        let load = Load::start(&store.open, flow, RunTimes::new(n_runs, 1), SLOTS).await?;
        let client = client(input, is_apart).await?;
        let sender = client.as_ref().unwrap_or(&load.engine);
        input.progress.begin(part, n_runs);
        let mut keys = Vec::with_capacity(n_runs);
        for run in 0..n_runs {
            let started = load.engine.start(&load.workflow, run).tenant(TENANT).await?;
            while started.tasks().await?[0].state != TaskState::Waiting {
                measure::pause(LOOK_INTERVAL).await;
            }
            load.times.start(run);
            send(sender, started.key(), run).await?;
            load.times.ended(run + 1, input.progress).await?;
            load.settle().await;
            keys.push(started.key());
        }
        parts.push(Part::named(part).with_latency(load.times.since_start(0)));
        load::check_completed(&store.open.ports(), &keys).await?;
        load.stop().await;
        if let Some(client) = client {
            client.stop_gracefully().await;
        }
    }
    Ok(parts)
}

/// An engine that only sends, with connections of its own.
async fn client(input: &ScenarioInput<'_>, is_apart: bool) -> Result<Option<Engine>, Failure> {
    if !is_apart {
        return Ok(None);
    }
    let open = match input.store.address() {
        Some(address) => OpenStore::open(&address).await?,
        None => input.store.open.clone(),
    };
    let config = stepwell::Config { slots: 0, ..stepwell::Config::default() };
    Ok(Some(open.builder().config(config).default_tenant(TENANT).start().await?))
}
