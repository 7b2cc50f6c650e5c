//! Redeployed code: policies apply at once, lines may move, and old structures keep their code.

use stepwell::{Code, Retry, StepError, Workflow};

use crate::support::{DAY, HOUR, MINUTE, SECOND, World, beside, refused, starts_secs, states};

/// Held at a gate first, then a step that fails as often as the input says.
fn flaky(retry: Retry, nap: std::time::Duration) -> Workflow<u32, u32, World> {
    let mut w = Workflow::define::<u32, World>("flaky");
    let gate = w.step("gate").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok(())
    });
    let nap = w.sleep("nap", nap).after(gate);
    let flaky = w.step("flaky").after(nap).retry(retry).run(async |ctx, ()| {
        let n = ctx.attempt();
        if n <= *ctx.input() { Err(StepError::new("again")) } else { Ok(n) }
    });
    w.output(flaky)
}

#[test]
fn new_policies_apply_at_once_to_runs_in_flight() {
    // R11
    let world = World::default();
    let (first, handle) = world.engine(flaky(Retry::never(), DAY));
    first.start(&handle, 2).id("f").now().unwrap();
    first.run_until_idle();
    first.stop(SECOND);
    let second = world.beside(&first, flaky(Retry::fixed(2, MINUTE), HOUR));
    world.gate.let_pass(1);
    second.run_to_end();
    let run = second.run_handle("test", "f").unwrap();
    assert_eq!(run.result().unwrap(), 3, "two retries instead of none");
    let starts = starts_secs(&run, "flaky");
    let spans: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(spans, [60, 60]);
    assert!(starts[0] < DAY.as_secs(), "an hour of sleep instead of a day: {starts:?}");
}

#[test]
fn a_time_out_that_is_set_later_holds_for_the_next_execution() {
    // R11
    let workflow = |timeout| {
        let mut w = Workflow::define::<(), World>("slow");
        w.step("slow").timeout(timeout).run(async |ctx| {
            ctx.state().gate.pass().await;
            Ok(())
        });
        w.no_output()
    };
    let world = World::default();
    let (first, handle) = world.engine(workflow(DAY));
    first.start(&handle, ()).id("s").now().unwrap();
    first.run_until_idle();
    first.stop(SECOND);
    let second = world.beside(&first, workflow(MINUTE));
    second.advance(HOUR);
    let run = second.run_handle("test", "s").unwrap();
    refused(run.result(), Code::RunFailed, &["60s"]);
}

/// Two branches and a join, with the branches and the parents declared in either order.
fn turned(turned: bool) -> Workflow<(), String, World> {
    let mut w = Workflow::define::<(), World>("turned");
    let mut step = |name: &'static str| {
        w.step(name).run(move |ctx| async move {
            ctx.state().gate.pass().await;
            assert_eq!(ctx.step_name(), name);
            Ok(name.to_owned())
        })
    };
    let (left, right) = if turned {
        let right = step("right");
        (step("left"), right)
    } else {
        (step("left"), step("right"))
    };
    let join = w.step("join");
    let join = if turned {
        join.after((right, left)).run(async |_, (r, l): (String, String)| Ok(format!("{l} {r}")))
    } else {
        join.after((left, right)).run(async |_, (l, r): (String, String)| Ok(format!("{l} {r}")))
    };
    w.output(join)
}

#[test]
fn moving_lines_of_a_workflow_is_no_new_version() {
    // R18, R19
    let world = World::default();
    let (first, handle) = world.engine(turned(false));
    first.start(&handle, ()).id("t").now().unwrap();
    first.run_until_idle();
    first.stop(SECOND);
    world.gate.let_pass(4);
    let mut builder = beside(&first).state(world.clone());
    let turned = builder.workflow(turned(true));
    let second = builder.start().unwrap();
    let run = second.run_handle_of(&turned, "test", "t").unwrap();
    assert_eq!(run.result().unwrap(), "left right");
    let left = turned.step::<String>("left").unwrap();
    assert_eq!(run.output(&left).unwrap().unwrap(), "left");
    assert_eq!(run.outputs().unwrap()["right"], "right");
    assert_eq!(second.run(&turned, ()).wait().unwrap(), "left right");
}

#[test]
fn runs_of_an_older_structure_wait_for_workers_that_have_its_code() {
    // L1, L13
    let workflow = |with_more: bool| {
        let mut w = Workflow::define::<(), World>("growing");
        let a = w.step("a").run(async |ctx| {
            ctx.state().gate.pass().await;
            Ok(1)
        });
        let b = w.step("b").after(a).run(async |_, a| Ok(a + 1));
        if with_more {
            w.step("more").after(b).run(async |_, _| Ok(()));
        }
        w.output(b)
    };
    let world = World::default();
    let (old, handle) = world.engine(workflow(false));
    old.start(&handle, ()).id("g").now().unwrap();
    old.run_until_idle();
    old.stop(SECOND);
    let new = world.beside(&old, workflow(true));
    world.gate.let_pass(2);
    new.advance(HOUR);
    let run = new.run_handle("test", "g").unwrap();
    assert_eq!(states(&run), "a QUEUED, b PENDING", "never charged, never failed");
    let fresh = new.start_by_name("growing", &()).now().unwrap();
    assert_eq!(fresh.result().unwrap(), 2, "new runs take the newest structure");
    assert_eq!(states(&fresh), "a COMPLETED, b COMPLETED, more COMPLETED");
    let old_again = world.beside(&new, workflow(false));
    let run = old_again.run_handle("test", "g").unwrap();
    assert_eq!(run.result().unwrap(), 2);
}

on_every_store![
    new_policies_apply_at_once_to_runs_in_flight,
    a_time_out_that_is_set_later_holds_for_the_next_execution,
    moving_lines_of_a_workflow_is_no_new_version,
    runs_of_an_older_structure_wait_for_workers_that_have_its_code,
];
