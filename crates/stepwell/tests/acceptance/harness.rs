//! The harness that users test their workflows with: virtual time, turns, and no surprises.

use std::time::Duration;

use stepwell::blocking::Run;
use stepwell::core::limits::PAGE_LOOKS_MAX;
use stepwell::{Code, NewRun, Retry, RunStatus, StepError, TaskState, Workflow};

use crate::support::{
    DAY, HOUR, MINUTE, SECOND, World, beside, builder, engine_with, log, refused, state, states,
};

/// A bit of everything: fans, retries with jitter, skips, sleeps, failures and a handler.
fn scenario(seed: u64) -> Vec<String> {
    let mut w = Workflow::define::<u32, World>("scenario");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let retry = Retry::exponential(3).jitter();
    let parts: Vec<_> = (0..5)
        .map(|k| {
            let part = w.step(&format!("part-{k}")).after(a).retry(retry);
            part.run(move |ctx, n| async move {
                ctx.state().journal.write(format!("{}/{k}", ctx.tenant()));
                if (n + k) % 3 >= ctx.attempt() { Err(StepError::new("again")) } else { Ok(n + k) }
            })
        })
        .collect();
    let odd = w.step("odd").after(a).when(|n| n % 2 == 1).run(async |_, n| Ok(n));
    let nap = w.sleep("nap", HOUR).after(odd);
    w.step("join").after((odd, nap)).run(async |_, _| Ok(()));
    w.step("sum").after(parts).run(async |ctx, parts| {
        if *ctx.input() == 7 { Err(StepError::permanent("no sevens")) } else { Ok(parts.len()) }
    });
    w.on_failure(async |_, _| Ok(()));
    let world = World::default();
    let builder = builder().seed(seed).configure(|config| config.slots = 3);
    let mut builder = builder.state(world.clone());
    let handle = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    let start = |n| test.start(&handle, n).tenant(format!("tenant-{}", n % 3)).now().unwrap();
    let runs: Vec<Run<()>> = (0..12).map(start).collect();
    test.run_to_end();
    let mut story = world.journal.lines();
    for run in &runs {
        story.push(format!("{} of {}, key {}", run.id(), run.tenant(), run.key()));
        story.extend(log(run));
    }
    story.push(format!("ended at {}", test.now()));
    story
}

#[test]
fn the_same_scenario_gives_the_same_story_every_time() {
    // R6
    let first = scenario(1);
    assert!(first.len() > 300, "a story worth comparing: {} lines", first.len());
    assert_eq!(first, scenario(1));
    assert_ne!(first, scenario(2), "another seed, other jitter");
}

fn nap() -> Workflow<(), u32> {
    let mut w = Workflow::define::<(), ()>("nap");
    let nap = w.sleep("nap", HOUR).from_start();
    let after = w.step("after").after(nap).run(async |_, ()| Ok(7));
    w.output(after)
}

#[test]
fn time_moves_by_spans_and_to_moments_and_never_by_itself() {
    // R6
    let (test, nap) = engine_with((), nap());
    let run = test.start(&nap, ()).now().unwrap();
    let start = test.now();
    test.run_until_idle();
    assert_eq!(test.now(), start);
    test.advance(10 * MINUTE);
    assert_eq!(test.now(), start.after(10 * MINUTE));
    test.advance_to(start.after(HOUR - SECOND));
    assert_eq!(state(&run, "nap"), TaskState::Sleeping);
    test.advance_to(start);
    assert_eq!(test.now(), start.after(HOUR - SECOND), "never back");
    test.advance(SECOND);
    assert_eq!(test.run_until_complete(&run).unwrap(), 7);
    assert_eq!(test.now(), start.after(HOUR));
}

#[test]
fn playing_to_the_end_jumps_from_timer_to_timer() {
    // R6
    let (test, handle) = engine_with((), nap());
    let start = test.now();
    let first = test.start(&handle, ()).now().unwrap();
    test.advance(30 * MINUTE);
    let second = test.start(&handle, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(test.now(), start.after(90 * MINUTE), "not a moment longer than needed");
    assert_eq!(first.result().unwrap() + second.result().unwrap(), 14);
    test.run_to_end();
    assert_eq!(test.now(), start.after(90 * MINUTE), "nothing is left to wait for");
}

#[test]
fn timers_on_the_way_fire_at_their_own_moments() {
    // R6
    let mut w = Workflow::define::<(), World>("many");
    for n in 1..=5 {
        let nap = w.sleep(&format!("nap-{n}"), MINUTE * n).from_start();
        w.step(&format!("step-{n}")).after(nap).run(async |ctx, ()| {
            ctx.state().journal.write(ctx.now());
            Ok(())
        });
    }
    let world = World::default();
    let (test, many) = world.engine(w.no_output());
    let start = test.now();
    test.start(&many, ()).now().unwrap();
    test.advance(DAY);
    let expected: Vec<String> = (1..=5).map(|n| start.after(MINUTE * n).to_string()).collect();
    assert_eq!(world.journal.lines(), expected);
}

#[test]
fn a_cycle_is_one_turn_for_whoever_has_something_to_do() {
    // R6
    let mut w = Workflow::define::<(), World>("turns");
    w.step("turns").run(async |ctx| {
        ctx.state().gate.pass().await;
        for n in 0..3 {
            ctx.state().journal.write(n);
            // Waits for its next turn without waiting for anything.
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    let world = World::default();
    let (test, turns) = world.engine(w.no_output());
    test.start(&turns, ()).now().unwrap();
    assert!(!test.run_cycle(), "everybody waits");
    world.gate.let_pass(1);
    let mut n_cycles = 0;
    while test.run_cycle() {
        n_cycles += 1;
        assert!(world.journal.lines().len() <= n_cycles, "one turn at a time");
    }
    assert!(n_cycles >= 3);
    assert_eq!(world.journal.lines(), ["0", "1", "2"]);
}

#[test]
#[should_panic(expected = "1 run is open and nothing will ever happen to it")]
fn a_run_that_can_never_end_is_reported_instead_of_waited_for() {
    let (worker, handle) = engine_with((), nap());
    worker.start(&handle, ()).now().unwrap();
    worker.stop(SECOND);
    beside(&worker).start().unwrap().run_to_end();
}

#[test]
#[should_panic(expected = "the next timer is due in 1 h.")]
fn a_wait_that_needs_time_to_move_says_so() {
    let (test, nap) = engine_with((), nap());
    let _ = test.run(&nap, ()).wait();
}

#[test]
fn two_engines_share_store_and_time() {
    // R3, R6
    let world = World::default();
    let workflow = || {
        let mut w = Workflow::define::<u32, World>("shared");
        let retry = Retry::fixed(1, SECOND);
        w.step("a").retry(retry).run(async |ctx| {
            ctx.state().gate.pass().await;
            Ok(())
        });
        w.no_output()
    };
    let (first, handle) = world.engine(workflow());
    let second = world.beside(&first, workflow());
    let runs: Vec<_> = (0..20).map(|n| first.start(&handle, n).now().unwrap()).collect();
    second.run_until_idle();
    let n_running = [first.as_async().n_running(), second.as_async().n_running()];
    assert_eq!(n_running, [10, 10], "both have all their slots filled");
    world.gate.let_pass(20);
    first.run_until_idle();
    for run in &runs {
        run.result().unwrap();
        assert_eq!(run.tasks().unwrap()[0].attempt, 1, "no task ran twice");
    }
    assert_eq!(first.now(), second.now());
    first.advance(Duration::from_secs(5));
    assert_eq!(first.now(), second.now());
}

#[test]
fn settings_can_be_changed_one_after_the_other() {
    let mut w = Workflow::define::<(), World>("set");
    w.step("a").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok("x".repeat(11))
    });
    let builder = builder().configure(|config| config.slots = 1);
    let builder = builder.configure(|config| config.payload_bytes_max = 10);
    let world = World::default();
    let mut builder = builder.state(world.clone());
    let set = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    let runs = [(); 2].map(|()| test.start(&set, ()).now().unwrap());
    test.run_until_idle();
    assert_eq!(runs.each_ref().map(states), ["a RUNNING", "a QUEUED"], "one slot");
    world.gate.let_pass(2);
    refused(runs[1].result(), Code::RunFailed, &["13 bytes", "10"]);
}

#[test]
fn playing_to_the_end_waits_for_a_run_behind_ten_thousand_that_have_ended() {
    let mut builder = builder();
    let (nap, quick) = (builder.workflow(nap()), builder.workflow(quick()));
    let test = builder.start().unwrap();
    let run = test.start(&nap, ()).now().unwrap();
    let others = std::iter::repeat_with(|| NewRun::new(())).take(PAGE_LOOKS_MAX + 1);
    for other in test.start_many(&quick, others).unwrap() {
        other.unwrap();
    }
    test.run_until_idle();
    test.run_to_end();
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
}

fn quick() -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>("quick");
    w.step("a").run(async |_| Ok(()));
    w.no_output()
}

on_every_store![
    the_same_scenario_gives_the_same_story_every_time,
    settings_can_be_changed_one_after_the_other,
    time_moves_by_spans_and_to_moments_and_never_by_itself,
    playing_to_the_end_jumps_from_timer_to_timer,
    timers_on_the_way_fire_at_their_own_moments,
    two_engines_share_store_and_time,
];

in_memory_only!("turns and messages do not depend on the store":
    a_cycle_is_one_turn_for_whoever_has_something_to_do,
    a_run_that_can_never_end_is_reported_instead_of_waited_for,
    a_wait_that_needs_time_to_move_says_so,
    playing_to_the_end_waits_for_a_run_behind_ten_thousand_that_have_ended,
);
