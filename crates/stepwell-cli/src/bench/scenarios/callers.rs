//! `callers` and `single`: what a program gets that calls `engine.run(..)` with default settings
//! and waits for each result, as a handler of web requests does.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use stepwell::{Engine, StepRef, Workflow, WorkflowRef};

use crate::bench::load::{self, GRACE, Load, TENANT, default_slots};
use crate::bench::measure;
use crate::bench::meter::Meter;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// How many callers there are at a time, and how many runs they start in all.
const CALLERS: [(usize, usize); 4] = [(1, 500), (8, 4_000), (64, 20_000), (512, 40_000)];

const CHAIN_LENGTH: usize = 5;
const DRAIN_RUNS: usize = 50_000;
const SINGLE_RUNS: usize = 50;
const SINGLE_WIDTH: usize = 100;

/// Takes a number and gives it back.
type Echo = Workflow<usize, usize>;

/// 1, 8, 64 and 512 callers of runs of one step, and of five; and one who starts many at once.
pub(super) async fn callers(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for n_steps in [1, CHAIN_LENGTH] {
        for (n_callers, n_runs) in CALLERS {
            let callers = if n_callers == 1 { "caller" } else { "callers" };
            let steps = if n_steps == 1 { "step" } else { "steps" };
            let name = format!("{n_callers} {callers}, {n_steps} {steps}");
            let n_runs = input.n_runs(n_runs / n_steps);
            parts.push(call(input, &name, chain(n_steps), n_steps, n_callers, n_runs).await?);
        }
    }
    parts.push(drain(input).await?);
    Ok(parts)
}

/// Runs that are started together and then carried through, with default settings.
async fn drain(input: &ScenarioInput<'_>) -> Result<Part, Failure> {
    let (store, n_runs) = (input.store, input.n_runs(DRAIN_RUNS));
    let (flow, slots) = (load::chain("drain", 1, false), default_slots());
    let load = Load::start(&store.open, flow, RunTimes::new(n_runs, 1), slots).await?;
    let part = "start_many, drained";
    input.progress.begin(&format!("{}: {part}", store.kind.name()), n_runs);
    let meter = Meter::begin(store).await?;
    let keys = load.start_batch(0..n_runs, TENANT).await?;
    load.times.ended(n_runs, input.progress).await?;
    load.settle().await;
    let part = meter.end(store, part, n_runs, n_runs).await?;
    load::check_completed(&store.open.ports(), &keys).await?;
    let part = part.with_latency(load.times.since_start(0));
    load.stop().await;
    Ok(part)
}

/// One caller of runs that fan out and in.
pub(super) async fn single(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let (n_runs, n_tasks) = (input.n_runs(SINGLE_RUNS), SINGLE_WIDTH + 2);
    Ok(vec![call(input, "1 caller, 1→100→1", fan(), n_tasks, 1, n_runs).await?])
}

/// Lets so many callers start runs and wait for each of them; what is measured per run is the
/// whole call.
async fn call(
    input: &ScenarioInput<'_>,
    part: &str,
    flow: Echo,
    n_tasks: usize,
    n_callers: usize,
    n_runs: usize,
) -> Result<Part, Failure> {
    let store = input.store;
    let mut builder = store.open.builder().default_tenant(TENANT);
    let workflow = builder.workflow(flow);
    let engine = builder.start().await?;
    input.progress.begin(&format!("{}: {part}", store.kind.name()), n_runs);
    let (next, spans) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(n_runs)));
    let meter = Meter::begin(store).await?;
    let caller = |_| caller(&engine, &workflow, n_runs, &next, &spans);
    try_join_all((0..n_callers).map(caller)).await?;
    let part = meter.end(store, part, n_runs, n_runs * n_tasks).await?;
    engine.stop(GRACE).await;
    Ok(part.with_latency(spans.into_inner().unwrap_or_default()))
}

async fn caller(
    engine: &Engine,
    workflow: &WorkflowRef<usize, usize>,
    n_runs: usize,
    next: &AtomicUsize,
    spans: &Mutex<Vec<u64>>,
) -> Result<(), Failure> {
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        if run >= n_runs {
            return Ok(());
        }
        let began_at = measure::now();
        let given = engine.run(workflow, run).await?;
        if given != run {
            return Err(Failure::Unexpected(format!("run {run} gave {given}")));
        }
        let span = measure::micros(began_at.elapsed());
        spans.lock().expect("no holder of the lock panics").push(span);
    }
}

fn chain(n_steps: usize) -> Echo {
    let mut w = Workflow::define::<usize, ()>("chain");
    let mut last: StepRef<usize> = w.step("step 0").run(async |ctx| Ok(*ctx.input()));
    for step in 1..n_steps {
        last = w.step(&format!("step {step}")).after(last).run(async |_ctx, number| Ok(number));
    }
    w.output(last)
}

fn fan() -> Echo {
    let mut w = Workflow::define::<usize, ()>("fan");
    let open = w.step("open").run(async |ctx| Ok(*ctx.input()));
    let side =
        |ix: usize| w.step(&format!("side {ix}")).after(open).run(async |_ctx, number| Ok(number));
    let sides: Vec<StepRef<usize>> = (0..SINGLE_WIDTH).map(side).collect();
    let join = w.step("join").after(sides).run(async |_ctx, numbers: Vec<usize>| Ok(numbers[0]));
    w.output(join)
}
