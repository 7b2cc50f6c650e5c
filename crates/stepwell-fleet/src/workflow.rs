//! Plans as workflows: their steps do what was planned and write down that they did.

use std::sync::Arc;
use std::time::Duration;

use stepwell::{
    Ctx, Definer, EngineBuilder, Maybe, Needed, Parents, Result, Resumed, Retry, Signalled,
    StepError, StepRef, Wait, Workflow,
};

use crate::history::{Execution, Mark, Recorder};
use crate::plan::{Plan, StepPlan, output};
use crate::real_time::pause;

/// What the steps of a process share.
pub type State = Arc<Recorder>;

type Handle = StepRef<u64, Maybe>;

/// How often a step looks at its gate.
const GATE_POLL: Duration = Duration::from_millis(5);

/// Registers the workflow of a plan. The output of its runs is that of its last step.
pub fn register(builder: &mut EngineBuilder<State>, plan: &Plan) {
    let mut w = Workflow::define::<u64, State>(&plan.name);
    let mut handles: Vec<Handle> = Vec::new();
    for (place, step) in plan.steps.iter().enumerate() {
        let handle = declare(&mut w, place, step, &handles);
        handles.push(handle);
    }
    if plan.has_handler {
        w.on_failure(async |ctx: Ctx<u64, State>, _| {
            ctx.state().note(execution(&ctx), Mark::Began(Vec::new()))?;
            Ok(ctx.state().note(execution(&ctx), Mark::Gave(0))?)
        });
    }
    let last = *handles.last().expect("a plan has a step");
    builder.workflow(w.output(last));
}

/// Declares a step by the parents an author would write.
fn declare(
    w: &mut Definer<u64, State>,
    place: usize,
    step: &StepPlan,
    handles: &[Handle],
) -> Handle {
    let parents: Vec<Handle> = step.parents.iter().map(|parent| handles[*parent]).collect();
    if let Some(span) = step.nap {
        let nap = w.sleep(&StepPlan::nap_name(place), span).after(parents[0]);
        return add(w, place, step, (parents[0], nap), |(value, _)| vec![*value]);
    }
    if let Some(wait) = step.wait_before() {
        let (name, signal) = (StepPlan::wait_name(place), StepPlan::signal_name(place));
        let builder = w.wait::<u64>(&name, &signal);
        if let Some(timeout) = wait.timeout {
            let wait = builder.timeout(timeout).after(parents[0]);
            let read = |(value, sent): &(_, Option<Signalled<u64>>)| {
                vec![*value, sent.and_then(Signalled::received)]
            };
            return add(w, place, step, (parents[0], wait), read);
        }
        let wait = builder.after(parents[0]);
        return add(w, place, step, (parents[0], wait), |(value, sent)| vec![*value, *sent]);
    }
    if step.needs_all {
        let needed: Vec<Needed<u64>> = parents.iter().map(|parent| parent.needed()).collect();
        let some = |values: &Vec<u64>| values.iter().copied().map(Some).collect();
        return add(w, place, step, needed, some);
    }
    add(w, place, step, parents, Clone::clone)
}

fn add<P: Parents<Kind = Maybe>>(
    w: &mut Definer<u64, State>,
    place: usize,
    step: &StepPlan,
    parents: P,
    read: fn(&P::Args) -> Vec<Option<u64>>,
) -> Handle {
    let retry = Retry::fixed(step.n_failures, step.backoff);
    let (plan, condition) = (Arc::new(step.clone()), step.clone());
    let builder = w.step(&StepPlan::name(place)).after(parents).retry(retry);
    let builder = builder.skip_if(move |values| condition.is_skipped(&read(values)));
    if step.is_blocking {
        return builder
            .run_blocking(move |ctx, values| act_blocking(&ctx, place, &plan, &read(&values)));
    }
    builder.run(move |ctx, values| act(ctx, place, Arc::clone(&plan), read(&values)))
}

async fn act(
    ctx: Ctx<u64, State>,
    place: usize,
    plan: Arc<StepPlan>,
    seen: Vec<Option<u64>>,
) -> Result<u64> {
    ctx.state().note(execution(&ctx), Mark::Began(seen.clone()))?;
    while plan.has_gate && !ctx.state().is_open(&execution(&ctx)) {
        pause(GATE_POLL).await;
    }
    if !plan.span.is_zero() {
        pause(plan.span).await;
    }
    end(&ctx, place, &plan, &seen)
}

#[expect(clippy::disallowed_methods, reason = "a blocking step takes real time")]
fn act_blocking(
    ctx: &Ctx<u64, State>,
    place: usize,
    plan: &StepPlan,
    seen: &[Option<u64>],
) -> Result<u64> {
    ctx.state().note(execution(ctx), Mark::Began(seen.to_vec()))?;
    // It does not ask whether it should stop, so nothing but its gate ends it.
    while plan.has_gate && !ctx.state().is_open(&execution(ctx)) {
        std::thread::sleep(GATE_POLL);
    }
    std::thread::sleep(plan.span);
    end(ctx, place, plan, seen)
}

fn end(ctx: &Ctx<u64, State>, place: usize, plan: &StepPlan, seen: &[Option<u64>]) -> Result<u64> {
    let mut given = seen.to_vec();
    if let Some(wait) = plan.own_wait() {
        match ctx.resumed::<u64>()? {
            Resumed::Signal(payload) => given.push(Some(payload)),
            Resumed::TimedOut => given.push(None),
            Resumed::Not => {
                ctx.state().note(execution(ctx), Mark::Waits)?;
                let on = Wait::on(StepPlan::signal_name(place));
                return Err(wait.timeout.map_or(on.clone(), |span| on.timeout(span)).into());
            }
        }
    }
    if ctx.attempt() <= plan.last_failure() {
        ctx.state().note(execution(ctx), Mark::Failed)?;
        return Err(StepError::new("planned"));
    }
    let output = output(*ctx.input(), place, &given);
    ctx.state().note(execution(ctx), Mark::Gave(output))?;
    Ok(output)
}

fn execution(ctx: &Ctx<u64, State>) -> Execution {
    let (run, step) = (ctx.run_id().to_owned(), ctx.step_name().to_owned());
    Execution { run, step, attempt: ctx.attempt() }
}
