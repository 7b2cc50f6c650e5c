//! Many runs of a workflow of no-op steps: started in batches, executed by one worker, counted
//! by their last steps, and checked in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use stepwell::core::id::RunKey;
use stepwell::ports::{AwaitedRun, DynStore, RunEnd};
use stepwell::{Config, Engine, NewRun, RunStatus, StepRef, Workflow, WorkflowRef};

use super::bench_store::OpenStore;
use super::measure;
use super::meter::Meter;
use super::report::Part;
use super::run_times::RunTimes;
use super::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// Tasks a worker executes at once.
pub(super) const SLOTS: usize = 2_000;

/// As many as a worker has by default.
pub(super) fn default_slots() -> usize {
    Config::default().slots
}

/// Runs started together, and how many such batches are on their way.
const START_BATCH: usize = 1_000;
const STARTS_IN_FLIGHT: usize = 4;

/// How runs come in.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// As fast as they can be started, so that most of them wait in queues.
    AtOnce,
    /// So many under way at a time, as many as there are slots for.
    UnderWay(usize),
}

impl Pace {
    /// A steady load of runs that keep so many slots busy each.
    pub(super) const fn steady(n_slots_per_run: usize) -> Self {
        Self::UnderWay(SLOTS / n_slots_per_run)
    }

    /// Runs that are started together.
    fn batch(self) -> usize {
        match self {
            Self::AtOnce => START_BATCH,
            Self::UnderWay(n_runs) => (n_runs / 2).clamp(1, START_BATCH),
        }
    }
}

/// Whose runs these are, where it does not matter.
pub(super) const TENANT: &str = "bench";

/// All runs have ended when an engine is stopped.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How often to look whether there is room for more runs.
const PACE_INTERVAL: Duration = Duration::from_micros(200);

/// How often to look whether the last outcome was committed.
const SETTLE_INTERVAL: Duration = Duration::from_micros(500);

/// What steps share.
pub(super) type Shared = Arc<RunTimes>;

/// A workflow whose input is the number of the run among the times.
pub(super) type Flow = Workflow<usize, (), Shared>;

/// An engine with one workflow.
pub(super) struct Load {
    pub(super) engine: Engine,
    pub(super) workflow: WorkflowRef<usize, ()>,
    pub(super) times: Shared,
}

impl Load {
    /// Starts an engine with this many slots; none makes a client.
    pub(super) async fn start(
        store: &OpenStore,
        flow: Flow,
        times: RunTimes,
        slots: usize,
    ) -> Result<Self, Failure> {
        let times = Arc::new(times);
        let config = Config { slots, ..Config::default() };
        let builder = store.builder().config(config).default_tenant(TENANT);
        let mut builder = builder.state(Arc::clone(&times));
        let workflow = builder.workflow(flow);
        Ok(Self { engine: builder.start().await?, workflow, times })
    }

    /// Starts all runs whose times are taken, several batches at a time, and gives their keys.
    pub(super) async fn start_all(&self, pace: Pace) -> Result<Vec<RunKey>, Failure> {
        let next = AtomicUsize::new(0);
        let some = (0..STARTS_IN_FLIGHT).map(|_| self.start_some(pace, &next));
        Ok(try_join_all(some).await?.concat())
    }

    async fn start_some(&self, pace: Pace, next: &AtomicUsize) -> Result<Vec<RunKey>, Failure> {
        let (mut keys, n_runs) = (Vec::new(), self.times.n_runs());
        loop {
            let first = next.fetch_add(pace.batch(), Ordering::Relaxed);
            if first >= n_runs {
                return Ok(keys);
            }
            let runs = first..(first + pace.batch()).min(n_runs);
            if let Pace::UnderWay(n_max) = pace {
                while self.times.n_ended() + n_max < runs.end {
                    measure::pause(PACE_INTERVAL).await;
                }
            }
            keys.extend(self.start_batch(runs, TENANT).await?);
        }
    }

    /// Starts these runs of a tenant together.
    pub(super) async fn start_batch(
        &self,
        runs: std::ops::Range<usize>,
        tenant: &str,
    ) -> Result<Vec<RunKey>, Failure> {
        let new_run = |run: usize| {
            self.times.start(run);
            NewRun::new(run).tenant(tenant)
        };
        let started = self.engine.start_many(&self.workflow, runs.map(new_run)).await?;
        started.into_iter().map(|run| Ok(run?.key())).collect()
    }

    /// Waits until everything that was claimed is committed.
    pub(super) async fn settle(&self) {
        while self.engine.n_running() > 0 {
            measure::pause(SETTLE_INTERVAL).await;
        }
    }

    pub(super) async fn stop(self) {
        self.engine.stop(GRACE).await;
    }

    /// Stops without waiting for what is left to do.
    pub(super) async fn abandon(self) {
        self.engine.stop(Duration::ZERO).await;
    }
}

/// Takes so many runs through, start included, and reports cost and the time from start to the
/// last step.
pub(super) async fn take_through(
    input: &ScenarioInput<'_>,
    part: &str,
    n_runs: usize,
    flow: Flow,
    n_tasks_per_run: usize,
    pace: Pace,
) -> Result<Part, Failure> {
    let store = input.store;
    let load = Load::start(&store.open, flow, RunTimes::new(n_runs, 1), SLOTS).await?;
    input.progress.begin(&format!("{}: {part}", store.kind.name()), n_runs);
    let meter = Meter::begin(store).await?;
    let ended = load.times.ended(n_runs, input.progress);
    let (keys, ()) = tokio::try_join!(load.start_all(pace), ended)?;
    load.settle().await;
    let part = meter.end(store, part, n_runs, n_runs * n_tasks_per_run).await?;
    let part = part.with_latency(load.times.since_start(0));
    check_completed(&store.open.ports(), &keys).await?;
    load.stop().await;
    Ok(part)
}

/// Asks the store whether all these runs have completed.
pub(super) async fn check_completed(store: &DynStore, keys: &[RunKey]) -> Result<(), Failure> {
    let mut n_completed = 0;
    for some in keys.chunks(START_BATCH) {
        let some: Vec<AwaitedRun> = some.iter().copied().map(AwaitedRun::from).collect();
        let ended = store.ended(&some).await?;
        let is_completed = |end: &RunEnd| end.status == RunStatus::Completed;
        n_completed += ended.iter().filter(|(_, end)| is_completed(end)).count();
    }
    if n_completed != keys.len() {
        let n_runs = keys.len();
        let message = format!("the store has {n_completed} completed runs of {n_runs}");
        return Err(Failure::Unexpected(message));
    }
    Ok(())
}

/// A chain of steps that each mark their place; one step makes the shortest.
pub(super) fn chain(name: &str, n_steps: usize, marks_all: bool) -> Flow {
    let mut w = Workflow::define::<usize, Shared>(name);
    let mut last: Option<StepRef<()>> = None;
    for step in 0..n_steps {
        let (name, is_last) = (format!("step {step}"), step + 1 == n_steps);
        let mark = move |times: &RunTimes, run: usize| match (marks_all, is_last) {
            (true, _) => times.mark(run, step),
            (false, true) => times.end(run),
            (false, false) => {}
        };
        let step = w.step(&name);
        last = Some(match last {
            None => step.run(async move |ctx| {
                mark(ctx.state(), *ctx.input());
                Ok(())
            }),
            Some(before) => step.after(before).run(async move |ctx, ()| {
                mark(ctx.state(), *ctx.input());
                Ok(())
            }),
        });
    }
    w.no_output()
}

/// One step that takes a while, without holding a thread: from half to one and a half of the span,
/// as the run's number has it. If all took equally long, a full worker's slots would come free all
/// at once, and a task that comes in between would wait for nothing but that.
pub(super) fn slow(name: &str, span: Duration) -> Flow {
    let mut w = Workflow::define::<usize, Shared>(name);
    w.step("wait").run(async move |ctx| {
        let run = *ctx.input();
        ctx.state().end(run);
        measure::pause(span / 2 + span * scatter(run) / 1_000).await;
        Ok(())
    });
    w.no_output()
}

/// A number below 1,000; those of neighbours lie far apart.
fn scatter(number: usize) -> u32 {
    u32::try_from(number % 1_000 * 618 % 1_000).unwrap_or_default()
}

/// A sleep, then a step.
pub(super) fn sleep(name: &str, span: Duration) -> Flow {
    let mut w = Workflow::define::<usize, Shared>(name);
    let sleep = w.sleep("sleep", span).from_start();
    w.step("wake").after(sleep).run(async |ctx, ()| {
        ctx.state().end(*ctx.input());
        Ok(())
    });
    w.no_output()
}

/// One step, then this many side by side, then one that joins them all.
pub(super) fn fan(name: &str, width: usize) -> Flow {
    let mut w = Workflow::define::<usize, Shared>(name);
    let open = w.step("open").run(async |_ctx| Ok(()));
    let side = |ix: usize| w.step(&format!("side {ix}")).after(open).run(async |_ctx, ()| Ok(()));
    let sides: Vec<StepRef<()>> = (0..width).map(side).collect();
    w.step("join").after(sides).run(async |ctx, _sides: Vec<()>| {
        ctx.state().end(*ctx.input());
        Ok(())
    });
    w.no_output()
}
