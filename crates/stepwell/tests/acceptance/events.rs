//! Event trails, exactly: numbers, times, attempts, names and what they carry.

use stepwell::{Retry, StepError, Workflow};

use crate::support::{HOUR, MINUTE, SECOND, World, builder, engine_with, log};

#[test]
fn a_plain_run() {
    // R17
    let mut w = Workflow::define::<(), ()>("plain");
    let a = w.step("a").run(async |_| Ok(1));
    w.step("b").after(a).run(async |_, n| Ok(n));
    let (test, plain) = engine_with((), w.no_output());
    let run = test.start(&plain, ()).now().unwrap();
    run.result().unwrap();
    assert_eq!(
        log(&run),
        [
            "1 +0s RUN_STARTED",
            "2 +0s a#1 QUEUED",
            "3 +0s a#1 STARTED",
            "4 +0s a#1 COMPLETED",
            "5 +0s b#1 QUEUED",
            "6 +0s b#1 STARTED",
            "7 +0s b#1 COMPLETED",
            "8 +0s RUN_ENDED COMPLETED",
        ]
    );
}

#[test]
fn a_run_with_a_retry_a_skip_and_a_sleep() {
    // R17
    let mut w = Workflow::define::<(), World>("varied");
    let a = w.step("a").retry(Retry::exponential(1)).run(async |ctx| {
        ctx.state().takes(SECOND).await;
        if ctx.attempt() == 1 { Err(StepError::new("busy")) } else { Ok(1) }
    });
    let skipped = w.step("skipped").after(a).skip_if(|_| true).run(async |_, n| Ok(n));
    w.step("below").after(skipped).run(async |_, n| Ok(n));
    let nap = w.sleep("nap", MINUTE).after(a);
    w.step("last").after((nap, skipped)).run(async |_, _| Ok(()));
    let (test, varied) = World::default().engine(w.no_output());
    let run = test.start(&varied, ()).now().unwrap();
    test.advance(HOUR);
    assert_eq!(
        log(&run),
        [
            "1 +0s RUN_STARTED",
            "2 +0s a#1 QUEUED",
            "3 +0s a#1 STARTED",
            "4 +1s a#1 RETRYING 1 in 1s at +2s: busy",
            "5 +2s a#2 STARTED",
            "6 +3s a#2 COMPLETED",
            "7 +3s nap SLEEPING until +63s",
            "8 +3s skipped QUEUED",
            "9 +3s skipped SKIPPED",
            "10 +3s below SKIPPED",
            "11 +63s nap WOKEN into COMPLETED",
            "12 +63s last#1 QUEUED",
            "13 +63s last#1 STARTED",
            "14 +63s last#1 COMPLETED",
            "15 +63s RUN_ENDED COMPLETED",
        ]
    );
}

#[test]
fn a_run_that_fails_with_a_handler() {
    // R17, R20
    let mut w = Workflow::define::<(), ()>("failing");
    let a = w
        .step("a")
        .retry(Retry::fixed(1, SECOND))
        .run(async |ctx| Err::<u8, _>(StepError::new(format!("failure {}", ctx.attempt()))));
    let b = w.step("b").after(a).run(async |_, n| Ok(n));
    w.step("c").after(b).run(async |_, n| Ok(n));
    w.on_failure(async |_, _| Err(StepError::new("and so does the handler")));
    let (test, failing) = engine_with((), w.no_output());
    let run = test.start(&failing, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(
        log(&run),
        [
            "1 +0s RUN_STARTED",
            "2 +0s a#1 QUEUED",
            "3 +0s a#1 STARTED",
            "4 +0s a#1 RETRYING 1 in 1s at +1s: failure 1",
            "5 +1s a#2 STARTED",
            "6 +1s a#2 FAILED failure 2",
            "7 +1s b CANCELLED",
            "8 +1s c CANCELLED",
            "9 +1s RUN_ENDING FAILED",
            "10 +1s on_failure#1 QUEUED",
            "11 +1s on_failure#1 STARTED",
            "12 +1s on_failure#1 FAILED and so does the handler",
            "13 +1s RUN_ENDED FAILED",
        ]
    );
}

#[test]
fn a_run_whose_worker_dies_and_whose_next_one_hands_it_back() {
    // R17, L4
    let workflow = || {
        let mut w = Workflow::define::<(), World>("moved");
        w.step("a").run(async |ctx| {
            ctx.state().gate.pass().await;
            Ok(())
        });
        w.no_output()
    };
    let world = World::default();
    let (first, handle) = world.engine(workflow());
    first.start(&handle, ()).id("m").now().unwrap();
    first.run_until_idle();
    first.crash();
    let second = world.beside(&first, workflow());
    second.advance(2 * HOUR);
    second.stop(SECOND);
    let third = world.beside(&second, workflow());
    world.gate.let_pass(1);
    let run = third.run_handle("test", "m").unwrap();
    run.result().unwrap();
    let log = log(&run);
    let lost_at = log[3].split(' ').nth(1).unwrap();
    let secs: f64 = lost_at.trim_matches(['+', 's']).parse().unwrap();
    assert!(secs >= HOUR.as_secs_f64() && secs <= 2.0 * HOUR.as_secs_f64(), "{lost_at}");
    assert_eq!(
        log,
        [
            "1 +0s RUN_STARTED",
            "2 +0s a#1 QUEUED",
            "3 +0s a#1 STARTED",
            &format!("4 {lost_at} a#1 LEASE_LOST"),
            &format!("5 {lost_at} a#2 STARTED"),
            "6 +7201s a#2 RELEASED",
            "7 +7201s a#3 STARTED",
            "8 +7201s a#3 COMPLETED",
            "9 +7201s RUN_ENDED COMPLETED",
        ]
    );
}

#[test]
fn open_tasks_show_without_numbers_and_what_has_one_is_never_rewritten() {
    // R17
    let mut w = Workflow::define::<(), World>("open");
    let a = w.step("a").retry(Retry::fixed(2, MINUTE)).run(async |ctx| {
        ctx.state().gate.pass().await;
        if ctx.attempt() < 3 { Err(StepError::new("again")) } else { Ok(()) }
    });
    let nap = w.sleep("nap", HOUR).from_start();
    w.step("b").after((a, nap)).run(async |_, _| Ok(()));
    w.step("waiting").run(async |_| Ok(()));
    let world = World::default();
    let builder = builder().configure(|config| config.slots = 1);
    let mut builder = builder.state(world.clone());
    let open = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    let run = test.start(&open, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(
        log(&run),
        [
            "1 +0s RUN_STARTED",
            "2 +0s nap SLEEPING until +3600s",
            "- +0s a#1 QUEUED",
            "- +0s a#1 STARTED",
            "- +0s waiting#1 QUEUED",
        ]
    );
    let mut known: Vec<String> = Vec::new();
    for _ in 0..40 {
        let now: Vec<String> =
            log(&run).into_iter().take_while(|line| !line.starts_with('-')).collect();
        assert_eq!(now[..known.len()], known, "the numbered part only grows");
        known = now;
        world.gate.let_pass(1);
        test.advance(2 * MINUTE);
    }
    assert!(known.last().unwrap().ends_with("RUN_ENDED COMPLETED"), "{known:?}");
}

on_every_store![
    a_plain_run,
    a_run_with_a_retry_a_skip_and_a_sleep,
    a_run_that_fails_with_a_handler,
    a_run_whose_worker_dies_and_whose_next_one_hands_it_back,
    open_tasks_show_without_numbers_and_what_has_one_is_never_rewritten,
];
