//! Durable sleeps: they take time and nothing else.

use std::time::Duration;

use stepwell::testing::TestEngine;
use stepwell::{EventKind, RunEvent, TaskState, Workflow};

use crate::support::{
    DAY, HOUR, MINUTE, SECOND, World, beside, builder, engine_with, starts_secs, state, states,
    trail,
};

/// One step, a day of sleep, another step.
fn day() -> Workflow<(), String> {
    let mut w = Workflow::define::<(), ()>("day");
    let before = w.step("before").run(async |_| Ok("slept".to_owned()));
    let nap = w.sleep("nap", DAY).after(before);
    let after = w
        .step("after")
        .after((before, nap))
        .run(async |_, (before, ()): (String, ())| Ok(format!("{before} well")));
    w.output(after)
}

#[test]
fn a_sleep_goes_from_sleeping_to_completed_when_its_time_comes() {
    // R4, R6, R17
    let (test, day) = engine_with((), day());
    let run = test.start(&day, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(states(&run), "before COMPLETED, nap SLEEPING, after PENDING");
    test.advance(DAY - Duration::from_micros(1));
    assert_eq!(state(&run, "nap"), TaskState::Sleeping);
    test.advance(Duration::from_micros(1));
    assert_eq!(states(&run), "before COMPLETED, nap COMPLETED, after COMPLETED");
    assert_eq!(run.result().unwrap(), "slept well");
    assert_eq!(trail(&run, "nap"), "SLEEPING WOKEN");
    assert_eq!(starts_secs(&run, "after"), [DAY.as_secs()]);
}

#[test]
fn the_log_says_until_when_and_into_what() {
    // R17
    let (test, day) = engine_with((), day());
    let run = test.start(&day, ()).now().unwrap();
    let start = test.now();
    test.run_to_end();
    let events = run.events().unwrap();
    let of_nap: Vec<_> =
        events.iter().filter(|event| event.step.as_deref() == Some("nap")).collect();
    assert_eq!(of_nap[0].kind, EventKind::Sleeping { until: start.after(DAY), keys: Vec::new() });
    assert_eq!(of_nap[0].at, start);
    assert_eq!(of_nap[1].kind, EventKind::Woken { into: TaskState::Completed, key: String::new() });
    assert_eq!(of_nap[1].at, start.after(DAY));
}

#[test]
fn a_sleep_from_the_start_and_one_of_no_length_work_too() {
    // R4
    let mut w = Workflow::define::<(), ()>("edges");
    let first = w.sleep("first", HOUR).from_start();
    let none = w.sleep("none", Duration::ZERO).after(first);
    w.step("last").after(none).run(async |_, ()| Ok(()));
    let (test, edges) = engine_with((), w.no_output());
    let run = test.start(&edges, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(states(&run), "first COMPLETED, none COMPLETED, last COMPLETED");
    assert_eq!(starts_secs(&run, "last"), [HOUR.as_secs()]);
}

#[test]
fn a_sleep_in_one_branch_does_not_hold_up_the_other() {
    // R4
    let mut w = Workflow::define::<(), ()>("branch");
    let a = w.step("a").run(async |_| Ok(1));
    let nap = w.sleep("nap", DAY).after(a);
    let slow = w.step("slow").after(nap).run(async |_, ()| Ok(2));
    let quick = w.step("quick").after(a).run(async |_, a| Ok(a + 10));
    let more = w.step("more").after(quick).run(async |_, n| Ok(n + 10));
    let join = w.step("join").after((slow, more)).run(async |_, (s, m)| Ok(s + m));
    let (test, branch) = engine_with((), w.output(join));
    let run = test.start(&branch, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(
        states(&run),
        "a COMPLETED, nap SLEEPING, slow PENDING, quick COMPLETED, more COMPLETED, join PENDING"
    );
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 23);
    assert_eq!(starts_secs(&run, "join"), [DAY.as_secs()]);
}

#[test]
fn two_sleeps_pass_at_the_same_time() {
    // R4
    let mut w = Workflow::define::<(), ()>("two");
    let short = w.sleep("short", HOUR).from_start();
    let long = w.sleep("long", 3 * HOUR).from_start();
    let then = w.sleep("then", HOUR).after(short);
    w.step("last").after((long, then)).run(async |_, _| Ok(()));
    let (test, two) = engine_with((), w.no_output());
    let run = test.start(&two, ()).now().unwrap();
    test.advance(2 * HOUR);
    assert_eq!(states(&run), "short COMPLETED, long SLEEPING, then COMPLETED, last PENDING");
    test.run_to_end();
    assert_eq!(starts_secs(&run, "last"), [3 * HOUR.as_secs()], "three hours, not five");
}

#[test]
fn a_sleep_can_have_conditions() {
    // R4, R21
    let mut w = Workflow::define::<u32, ()>("risky");
    let score = w.step("score").run(async |ctx| Ok(*ctx.input()));
    let check = w.sleep("check", DAY).after_if(score).when(|score| *score > 50);
    let wait = w.sleep("wait", HOUR).after_if(score).skip_if(|score| *score > 50);
    let join = w
        .step("join")
        .after((check, wait))
        .run(async |_, (check, wait)| Ok((check.is_some(), wait.is_some())));
    let (test, risky) = engine_with((), w.output(join));
    let risk = test.start(&risky, 80).now().unwrap();
    let safe = test.start(&risky, 20).now().unwrap();
    test.run_until_idle();
    assert_eq!(states(&risk), "score COMPLETED, check SLEEPING, wait SKIPPED, join PENDING");
    assert_eq!(states(&safe), "score COMPLETED, check SKIPPED, wait SLEEPING, join PENDING");
    test.run_to_end();
    assert_eq!(risk.result().unwrap(), Some((true, false)));
    assert_eq!(safe.result().unwrap(), Some((false, true)));
    assert_eq!(starts_secs(&risk, "join"), [DAY.as_secs()]);
    assert_eq!(starts_secs(&safe, "join"), [HOUR.as_secs()]);
    assert_eq!(trail(&risk, "check"), "QUEUED SLEEPING WOKEN");
    assert_eq!(trail(&risk, "wait"), "QUEUED SKIPPED");
    let of_sleeps = risk.attempts().unwrap().into_iter().filter(|(step, _)| step == "check");
    assert_eq!(of_sleeps.count(), 0, "looking at a condition is no attempt");
}

#[test]
fn a_thousand_sleepers_leave_the_only_slot_to_others() {
    // R4
    let mut w = Workflow::define::<u32, ()>("sleeper");
    let nap = w.sleep("nap", DAY).from_start();
    w.step("up").after(nap).run(async |_, ()| Ok(()));
    let mut busy = Workflow::define::<u32, ()>("busy");
    let a = busy.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = busy.step("b").after(a).run(async |_, n| Ok(n + 1));
    let mut builder = builder().configure(|config| config.slots = 1);
    let sleeper = builder.workflow(w.no_output());
    let busy = builder.workflow(busy.output(b));
    let test = builder.start().unwrap();
    let sleepers: Vec<_> = (0..1_000).map(|n| test.start(&sleeper, n).now().unwrap()).collect();
    test.run_until_idle();
    assert!(sleepers.iter().all(|run| state(run, "nap") == TaskState::Sleeping));
    assert_eq!(test.as_async().n_running(), 0);
    assert_eq!(test.run(&busy, 1).wait().unwrap(), 2);
    test.run_to_end();
    assert!(sleepers.iter().all(|run| state(run, "up") == TaskState::Completed));
}

#[test]
fn a_sleep_survives_the_stop_and_the_crash_of_engines() {
    // R4
    let (first, handle) = engine_with((), day());
    let run = first.start(&handle, ()).id("night").now().unwrap();
    first.run_until_idle();
    assert_eq!(state(&run, "nap"), TaskState::Sleeping);
    first.advance(HOUR);
    first.stop(SECOND);
    let start_beside = |engine: &TestEngine| {
        let mut builder = beside(engine);
        builder.workflow(day());
        builder.start().unwrap()
    };
    let second = start_beside(&first);
    second.advance(HOUR);
    second.crash();
    let third = start_beside(&second);
    third.run_to_end();
    let run = third.run_handle("test", "night").unwrap();
    assert_eq!(run.result().unwrap(), "slept well");
    assert_eq!(starts_secs(&run, "after"), [DAY.as_secs()]);
}

#[test]
fn a_sleep_ends_without_any_worker_that_has_the_code() {
    // R4, L1
    let (first, handle) = engine_with((), day());
    first.start(&handle, ()).id("night").now().unwrap();
    first.run_until_idle();
    first.stop(SECOND);
    let stranger = beside(&first).start().unwrap();
    stranger.advance(DAY + MINUTE);
    let run = stranger.run_handle("test", "night").unwrap();
    assert_eq!(states(&run), "before COMPLETED, nap COMPLETED, after QUEUED");
    let mut builder = beside(&stranger);
    builder.workflow(day());
    let knowing = builder.start().unwrap();
    let run = knowing.run_handle("test", "night").unwrap();
    assert_eq!(run.result().unwrap(), "slept well");
}

#[test]
fn sleeps_of_any_length_end_within_a_tenth_of_a_second_of_being_due() {
    // R4: the leader looks when the next one is due, not at a beat of its own.
    let spans = [1, 7, 99, 100, 101, 777, 999, 1_001, 2_345, 5_999, 6_001, 61_803];
    let mut w = Workflow::define::<(), ()>("spans");
    for millis in spans {
        let nap = w.sleep(&format!("nap {millis}"), Duration::from_millis(millis)).from_start();
        w.step(&format!("after {millis}")).after(nap).run(async |_, ()| Ok(()));
    }
    let (test, naps) = engine_with((), w.no_output());
    let run = test.start(&naps, ()).now().unwrap();
    test.run_to_end();
    let events = run.events().unwrap();
    for millis in spans {
        let name = format!("nap {millis}");
        let is_end = |event: &&RunEvent| {
            event.step.as_deref() == Some(&name) && matches!(event.kind, EventKind::Woken { .. })
        };
        let woken = events.iter().find(is_end).expect("it ended").at.since(events[0].at);
        let late = woken.checked_sub(Duration::from_millis(millis)).expect("never early");
        assert!(late <= Duration::from_millis(100), "{name} ended {late:?} late");
    }
}

#[test]
fn a_month_of_sleeps_passes_in_a_moment() {
    // R6
    let mut w = Workflow::define::<(), World>("month");
    let mut last = w.sleep("day-1", DAY).from_start();
    for day in 2..=30 {
        last = w.sleep(&format!("day-{day}"), DAY).after(last);
    }
    w.step("old").after(last).run(async |ctx, ()| {
        ctx.state().journal.write("old");
        Ok(())
    });
    let world = World::default();
    let (test, month) = world.engine(w.no_output());
    let start = test.now();
    test.start(&month, ()).now().unwrap();
    test.advance_to(start.after(30 * DAY - SECOND));
    assert_eq!(world.journal.count("old"), 0);
    test.advance_to(start.after(30 * DAY));
    assert_eq!(world.journal.count("old"), 1);
}

on_every_store![
    a_sleep_goes_from_sleeping_to_completed_when_its_time_comes,
    the_log_says_until_when_and_into_what,
    a_sleep_from_the_start_and_one_of_no_length_work_too,
    a_sleep_in_one_branch_does_not_hold_up_the_other,
    two_sleeps_pass_at_the_same_time,
    a_sleep_can_have_conditions,
    a_sleep_survives_the_stop_and_the_crash_of_engines,
    a_sleep_ends_without_any_worker_that_has_the_code,
    sleeps_of_any_length_end_within_a_tenth_of_a_second_of_being_due,
];

not_on_postgres!("thousands of round trips would show nothing that fewer do not":
    a_thousand_sleepers_leave_the_only_slot_to_others,
    a_month_of_sleeps_passes_in_a_moment,
);
