//! The code of a plan: its steps do what was planned, and write down what they were given.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::core::id::Node;
use stepwell::core::workflow::{NodeKind, ParentRef};
use stepwell::ports::{Clock, Codec, Payload};
use stepwell::testing::{ManualClock, ManualScheduler};
use stepwell::{
    Ctx, Definer, EngineBuilder, Error, Maybe, Needed, Parent, Parents, Result, StepError, StepRef,
    Workflow,
};

use super::marks::Mark;
use super::plan::{Fate, NodePlan, Plan, TIMEOUT, node, output_of, step_name};

/// What the steps of one engine share.
pub(crate) struct Seat {
    pub(crate) clock: ManualClock,
    pub(crate) ledger: Ledger,
    /// Everything the engine runs.
    pub(crate) process: ManualScheduler,
    pub(crate) is_dead: Arc<AtomicBool>,
}

impl Seat {
    /// Takes the engine's process down, as an abort in a step does.
    pub(crate) fn die(&self) {
        self.is_dead.store(true, Ordering::Release);
        self.process.kill();
    }
}

/// What a step was given for a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was skipped.
    Nothing,
    /// It completed without an output of its own.
    Slept,
    /// Its wait timed out.
    TimedOut,
    /// What it gave, or what a signal brought.
    Output(u64),
}

/// One execution of a step.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) run: u64,
    pub(crate) node: Node,
    pub(crate) attempt: u32,
    pub(crate) seen: Vec<Seen>,
    /// What ended its last wait.
    pub(crate) heard: Option<Seen>,
}

/// All executions and all marks, in order. Clones share one ledger.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<Execution>>>, Arc<Mutex<Vec<Mark>>>);

/// Longer than what is waited for in place.
const NAP: Duration = Duration::from_secs(5);

impl Ledger {
    pub(crate) fn note(&self, execution: Execution) {
        self.0.lock().expect("no holder of the lock panics").push(execution);
    }

    /// Notes a mark. One that is given now is told from all others.
    fn mark(&self, (run, node, attempt): (u64, Node, u32), heard: Option<u64>) -> u64 {
        let mut marks = self.1.lock().expect("no holder of the lock panics");
        let value = heard.unwrap_or(marks.len() as u64);
        marks.push(Mark { run, node, attempt, value, is_given: heard.is_none() });
        value
    }

    pub(crate) fn marks_of_run(&self, run: u64) -> Vec<Mark> {
        let all = self.1.lock().expect("no holder of the lock panics");
        all.iter().filter(|mark| mark.run == run).cloned().collect()
    }

    pub(crate) fn of_run(&self, run: u64) -> Vec<Execution> {
        let all = self.0.lock().expect("no holder of the lock panics");
        all.iter().filter(|execution| execution.run == run).cloned().collect()
    }
}

/// Registers the workflow of a plan. The input of its runs is their number.
pub(crate) fn register(builder: &mut EngineBuilder<Seat>, name: &str, plan: &Plan) {
    let mut w = Workflow::define::<u64, Seat>(name);
    if plan.fail_fast {
        w.fail_fast();
    }
    if plan.on_failure {
        w.on_failure(async |ctx, _failure| {
            note(&ctx, Node::ON_FAILURE, Vec::new());
            Ok(())
        });
    }
    let mut handles = Vec::new();
    for (ix, node) in plan.nodes.iter().enumerate() {
        let handle = add(&mut w, ix, node, &handles);
        handles.push(handle);
    }
    match plan.output.map(|(ix, required)| (handles[ix], required)) {
        Some((Handle::Step(step), true)) => drop(builder.workflow(w.output_required(step))),
        Some((Handle::Step(step), false)) => drop(builder.workflow(w.output(step))),
        _ => drop(builder.workflow(w.no_output())),
    }
}

fn note(ctx: &Ctx<u64, Seat>, node: Node, seen: Vec<Seen>) {
    let (run, attempt) = (*ctx.input(), ctx.attempt());
    ctx.state().ledger.note(Execution { run, node, attempt, seen, heard: None });
}

#[derive(Clone, Copy)]
enum Handle {
    Step(StepRef<u64, Maybe>),
    Sleep(StepRef<(), Maybe>),
}

fn add(w: &mut Definer<u64, Seat>, ix: usize, node: &NodePlan, handles: &[Handle]) -> Handle {
    let (name, is_skipped) = (step_name(ix), node.is_skipped);
    let any: Vec<AnyParent> = node
        .parents
        .iter()
        .map(|(parent, needed)| AnyParent { handle: handles[*parent], needed: *needed })
        .collect();
    match node.kind {
        NodeKind::Gone => unreachable!("a program declares what it has"),
        NodeKind::Wait => unreachable!("plans for engines have no waits"),
        NodeKind::Step => Handle::Step(add_step(w, ix, node, any)),
        NodeKind::Sleep => Handle::Sleep(w.sleep(&name, node.span).after(any)),
        NodeKind::ConditionalSleep => {
            let sleep = w.sleep(&name, node.span).after_if(any);
            Handle::Sleep(sleep.skip_if(move |_| is_skipped))
        }
    }
}

/// Declares a step by the parents an author would write, where there are such.
fn add_step(
    w: &mut Definer<u64, Seat>,
    ix: usize,
    node: &NodePlan,
    any: Vec<AnyParent>,
) -> StepRef<u64, Maybe> {
    let steps: Vec<(StepRef<u64, Maybe>, bool)> = any
        .iter()
        .filter_map(|parent| match parent.handle {
            Handle::Step(step) => Some((step, parent.needed)),
            Handle::Sleep(_) => None,
        })
        .collect();
    let n_needed = steps.iter().filter(|(_, needed)| *needed).count();
    let output = |value: u64| Seen::Output(value);
    match *steps {
        _ if steps.len() < any.len() => step(w, ix, node, any, |seen| seen),
        [(only, true)] => step(w, ix, node, only, |value| vec![Seen::Output(value)]),
        [(one, false), (other, true)] => {
            step(w, ix, node, (one, other.needed()), |(one, other)| {
                vec![one.map_or(Seen::Nothing, Seen::Output), Seen::Output(other)]
            })
        }
        _ if n_needed == 0 => {
            let plain: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
            step(w, ix, node, plain, |values: Vec<Option<u64>>| {
                values.into_iter().map(|value| value.map_or(Seen::Nothing, Seen::Output)).collect()
            })
        }
        _ if n_needed == steps.len() => {
            let needed: Vec<Needed<u64>> = steps.iter().map(|(step, _)| step.needed()).collect();
            step(w, ix, node, needed, move |values| values.into_iter().map(output).collect())
        }
        _ => step(w, ix, node, any, |seen| seen),
    }
}

fn step<P: Parents>(
    w: &mut Definer<u64, Seat>,
    ix: usize,
    node: &NodePlan,
    parents: P,
    read: impl Fn(P::Args) -> Vec<Seen> + Clone + Send + Sync + 'static,
) -> StepRef<u64, Maybe> {
    let (is_skipped, plan) = (node.is_skipped, Arc::new(node.clone()));
    let step = w.step(&step_name(ix)).after(parents).retry(node.retry).timeout(TIMEOUT);
    let step = step.skip_if(move |_| is_skipped);
    let takes_time = node.fates.iter().any(|fate| matches!(fate, Fate::Hangs | Fate::Suspends));
    if node.span.is_zero() && !takes_time && ix.is_multiple_of(3) {
        return step.run_blocking(move |ctx, args| act_blocking(&ctx, ix, &plan, read(args)));
    }
    step.run(move |ctx, args| act(ctx, ix, Arc::clone(&plan), read(args)))
}

async fn act(ctx: Ctx<u64, Seat>, ix: usize, plan: Arc<NodePlan>, seen: Vec<Seen>) -> Result<u64> {
    note(&ctx, node(ix), seen);
    if plan.fates.contains(&Fate::Suspends) {
        let (ledger, of) = (&ctx.state().ledger, (*ctx.input(), node(ix), ctx.attempt()));
        let mark = ctx.step("mark", async || Ok(ledger.mark(of, None))).await?;
        ledger.mark(of, Some(mark));
    }
    if plan.fate(ctx.attempt()) == Fate::Suspends {
        ctx.sleep(("nap", ctx.attempt()), NAP).await?;
        return Err(StepError::permanent("it slept in place"));
    }
    if !plan.span.is_zero() {
        ctx.state().clock.sleep(plan.span).await;
    }
    if plan.fate(ctx.attempt()) == Fate::Hangs {
        return std::future::pending().await;
    }
    end(&ctx, ix, &plan)
}

fn act_blocking(ctx: &Ctx<u64, Seat>, ix: usize, plan: &NodePlan, seen: Vec<Seen>) -> Result<u64> {
    note(ctx, node(ix), seen);
    end(ctx, ix, plan)
}

fn end(ctx: &Ctx<u64, Seat>, ix: usize, plan: &NodePlan) -> Result<u64> {
    match plan.fate(ctx.attempt()) {
        Fate::Completes => Ok(output_of(*ctx.input(), node(ix), ctx.attempt())),
        Fate::FailsForGood => Err(StepError::permanent("planned, for good")),
        // As a panic, without the words on the screen.
        Fate::Panics => std::panic::resume_unwind(Box::new("planned")),
        Fate::Fails | Fate::Hangs => Err(StepError::new("planned")),
        Fate::Waits => unreachable!("plans for engines have no waits"),
        Fate::Suspends => unreachable!("it has slept"),
    }
}

/// A parent of any kind, so that one `Vec` can hold steps and sleeps, plain and needed.
#[derive(Clone, Copy)]
struct AnyParent {
    handle: Handle,
    needed: bool,
}

impl Parent for AnyParent {
    type Arg = Seen;
    type Need = Maybe;
    type Plain = Maybe;

    fn parent_ref(self) -> ParentRef {
        match (self.handle, self.needed) {
            (Handle::Step(step), false) => step.parent_ref(),
            (Handle::Step(step), true) => step.needed().parent_ref(),
            (Handle::Sleep(sleep), false) => sleep.parent_ref(),
            (Handle::Sleep(sleep), true) => sleep.needed().parent_ref(),
        }
    }

    fn arg(codec: &dyn Codec, raw: Option<&Payload>) -> std::result::Result<Seen, Error> {
        match raw {
            Some(payload) if *payload == Payload::empty() => Ok(Seen::Slept),
            raw => {
                let value = <StepRef<u64, Maybe> as Parent>::arg(codec, raw)?;
                Ok(value.map_or(Seen::Nothing, Seen::Output))
            }
        }
    }
}
