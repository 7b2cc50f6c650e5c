//! Signals from outside, and steps that wait for them.

use stepwell::{
    AttemptState, CancelAnswer, Code, Resumed, Retry, RunStatus, Sent, StepError, TaskState, Wait,
    Workflow,
};

use crate::support::{DAY, HOUR, World, beside, engine_with, refused, state, trail};

/// Collects a payment: waits for it a day, and may fail and crash on the way.
fn collecting() -> Workflow<(), u32, World> {
    let mut w = Workflow::define::<(), World>("collecting");
    let collect = w.step("collect").retry(Retry::fixed(2, HOUR)).run(async |ctx| {
        let resumed = ctx.resumed::<u32>()?;
        ctx.state().journal.write(format!("{resumed:?} #{}", ctx.attempt()));
        match resumed {
            Resumed::Not => Err(Wait::on("paid").timeout(DAY).into()),
            Resumed::TimedOut => Err(StepError::permanent("nobody paid")),
            Resumed::Signal(amount) if ctx.attempt() == 2 => {
                Err(StepError::new(format!("the bank is closed for {amount}")))
            }
            Resumed::Signal(amount) => Ok(amount),
        }
    });
    w.output(collect)
}

#[test]
fn a_step_that_waits_is_executed_again_with_the_payload_and_charged_nothing() {
    // L5, L7
    let world = World::default();
    let (test, collecting) = world.engine(collecting());
    let run = test.start(&collecting, ()).now().unwrap();
    test.advance(HOUR);
    assert_eq!(state(&run, "collect"), TaskState::Waiting);
    run.signal("paid", &42).wait().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 42);
    let lines = ["Not #1", "Signal(42) #2", "Signal(42) #3"];
    assert_eq!(world.journal.lines(), lines, "it is told the same through retries");
    let trailed = "QUEUED STARTED SUSPENDED WAITING SIGNALLED STARTED RETRYING STARTED COMPLETED";
    assert_eq!(trail(&run, "collect"), trailed);
    let attempts = run.attempts().unwrap();
    let states: Vec<AttemptState> = attempts.iter().map(|(_, attempt)| attempt.state).collect();
    let expected = [AttemptState::Suspended, AttemptState::Failed, AttemptState::Completed];
    assert_eq!(states, expected);
    assert_eq!(run.tasks().unwrap()[0].failures, 1, "waiting is no failure");
}

#[test]
fn a_step_whose_wait_times_out_is_told_so() {
    // L8
    let world = World::default();
    let (test, collecting) = world.engine(collecting());
    let run = test.start(&collecting, ()).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["nobody paid"]);
    assert_eq!(world.journal.lines(), ["Not #1", "TimedOut #2"]);
    let trailed = "QUEUED STARTED SUSPENDED WAITING TIMED_OUT STARTED FAILED";
    assert_eq!(trail(&run, "collect"), trailed);
}

#[test]
fn what_resumed_a_step_survives_the_crash_of_its_worker() {
    // L7, L4
    let world = World::default();
    let mut w = Workflow::define::<(), World>("crashing");
    let step = w.step("step").run(async |ctx| {
        let resumed = ctx.resumed::<u32>()?;
        ctx.state().journal.write(format!("{resumed:?}"));
        match resumed {
            Resumed::Signal(n) if ctx.attempt() > 2 => Ok(n),
            Resumed::Signal(_) => std::future::pending().await,
            _ => Err(Wait::on("go").into()),
        }
    });
    let crashing = w.output(step);
    let (test, handle) = world.engine(crashing);
    let run = test.start(&handle, ()).now().unwrap();
    test.run_until_idle();
    run.signal("go", &7).wait().unwrap();
    test.run_until_idle();
    assert_eq!(world.journal.lines(), ["Not", "Signal(7)"]);
    let mut builder = beside(&test).state(world.clone());
    let mut w = Workflow::define::<(), World>("crashing");
    let step = w.step("step").run(async |ctx| {
        let resumed = ctx.resumed::<u32>()?;
        ctx.state().journal.write(format!("{resumed:?}"));
        Ok(if let Resumed::Signal(n) = resumed { n } else { 0 })
    });
    let again = builder.workflow(w.output(step));
    let other = builder.start().unwrap();
    test.crash();
    other.run_to_end();
    let run = other.run_handle_of(&again, "test", run.id()).unwrap();
    assert_eq!(run.result().unwrap(), 7);
    assert_eq!(world.journal.lines(), ["Not", "Signal(7)", "Signal(7)"]);
}

#[test]
fn a_condition_is_not_asked_again_of_a_step_that_has_waited() {
    // R21
    let world = World::default();
    let mut w = Workflow::define::<(), World>("asked");
    let first = w.step("first").run(async |_| Ok(1));
    let journal = world.journal.clone();
    let step = w
        .step("step")
        .after(first)
        .skip_if(move |_| {
            journal.write("asked");
            false
        })
        .run_blocking(|ctx, n: u32| match ctx.resumed::<u32>()? {
            Resumed::Signal(more) => Ok(n + more),
            _ => Err(Wait::on("more").into()),
        });
    let (test, asked) = world.engine(w.output(step));
    let run = test.start(&asked, ()).now().unwrap();
    test.run_until_idle();
    run.signal("more", &2).wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), Some(3));
    assert_eq!(world.journal.count("asked"), 1);
}

#[test]
fn a_step_may_wait_several_times_and_hears_of_each_signal_once_and_in_order() {
    // L9
    let mut w = Workflow::define::<(), World>("loop");
    let step = w.step("loop").run(async |ctx| {
        if let Resumed::Signal(n) = ctx.resumed::<u32>()? {
            ctx.state().journal.write(n);
        }
        let lines = ctx.state().journal.lines();
        if lines.len() < 4 { Err(Wait::on("next").into()) } else { Ok(lines.join("")) }
    });
    let world = World::default();
    let (test, looping) = world.engine(w.output(step));
    let run = test.start(&looping, ()).now().unwrap();
    for n in 1..=3 {
        run.signal("next", &n).wait().unwrap();
    }
    test.run_until_idle();
    run.signal("next", &4).wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), "1234");
}

#[test]
fn the_same_key_again_is_the_same_signal() {
    // L10
    let mut w = Workflow::define::<(), ()>("keyed");
    let first = w.wait::<u32>("first", "paid").from_start();
    let second = w.wait::<u32>("second", "paid").after(first);
    let (test, keyed) = engine_with((), w.output(second));
    let run = test.start(&keyed, ()).now().unwrap();
    let send = |n: u32| run.signal("paid", &n).key("evt-1").wait();
    assert_eq!(send(1).unwrap(), Sent::Accepted { number: 1 });
    assert_eq!(send(1).unwrap(), Sent::Accepted { number: 1 });
    test.run_until_idle();
    assert_eq!(state(&run, "second"), TaskState::Waiting, "it was delivered once");
    assert_eq!(send(1).unwrap(), Sent::Accepted { number: 1 });
    refused(send(2), Code::SignalKeyConflict, &["evt-1", "paid"]);
    let other = run.signal("refunded", &1).key("evt-1").wait();
    refused(other, Code::SignalKeyConflict, &["evt-1"]);
    let with_attribute = run.signal("paid", &1).key("evt-1").attr("a", 1).wait();
    refused(with_attribute, Code::SignalKeyConflict, &["evt-1"]);
    run.signal("paid", &2).key("evt-2").wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), 2);
    assert_eq!(send(1).unwrap(), Sent::Accepted { number: 1 }, "also after the end");
}

#[test]
fn a_signal_to_a_run_that_is_over_is_told_so() {
    // L9
    let mut w = Workflow::define::<(), ()>("over");
    w.wait::<u32>("wait", "paid").from_start();
    let (test, over) = engine_with((), w.no_output());
    let run = test.start(&over, ()).now().unwrap();
    assert_eq!(run.cancel().wait().unwrap(), CancelAnswer::Cancelled);
    let sent = test.signal("paid", &1).to("test", run.id()).wait().unwrap();
    assert_eq!(sent, Sent::AlreadyEnded(RunStatus::Cancelled));
    assert!(run.signals().unwrap().is_empty());
    let unknown = test.signal("paid", &1).to("test", "nobody").wait();
    refused(unknown, Code::UnknownRun, &["nobody"]);
    assert!(run.waits().unwrap().is_empty(), "the wait went with the cancel");
}

#[test]
fn a_signal_reaches_all_who_wait_for_it_and_says_how_many() {
    // L7
    let mut w = Workflow::define::<(), ()>("many");
    let first = w.wait::<u32>("first", "go").from_start();
    let second = w.wait::<u32>("second", "go").from_start();
    let both = w.step("both").after((first, second)).run(async |_, (a, b)| Ok(a + b));
    let (test, many) = engine_with((), w.output(both));
    let runs = [0; 3].map(|_| test.start(&many, ()).now().unwrap());
    let other = test.start(&many, ()).tenant("other").now().unwrap();
    runs[2].cancel().wait().unwrap();
    test.run_until_idle();
    let send = || test.signal("go", &1).to_waiting("test", &many).key("k").wait().unwrap();
    assert_eq!(send(), 2, "one signal a run, to its oldest wait");
    assert_eq!(state(&runs[0], "first"), TaskState::Completed);
    assert_eq!(state(&runs[0], "second"), TaskState::Waiting);
    assert_eq!(send(), 0, "the key is per run");
    assert_eq!(test.signal("go", &2).to_waiting_by_name("test", "many").wait().unwrap(), 2);
    test.run_until_idle();
    assert_eq!(runs[1].result().unwrap(), 3);
    assert_eq!(state(&other, "first"), TaskState::Waiting);
    let nobody = test.signal("unheard-of", &1).to_waiting("test", &many).wait().unwrap();
    assert_eq!(nobody, 0);
    assert!(other.signals().unwrap().is_empty(), "who does not wait gets nothing");
}

#[test]
fn a_run_that_refuses_a_signal_to_many_keeps_it_from_nobody_else() {
    // L10
    let mut w = Workflow::define::<(), ()>("many");
    let wait = w.wait::<u32>("wait", "go").from_start();
    let (test, many) = engine_with((), w.output(wait));
    let runs = [0; 3].map(|_| test.start(&many, ()).now().unwrap());
    runs[0].signal("other", &0).key("k").wait().unwrap();
    let sent = test.signal("go", &1).to_waiting("test", &many).key("k").wait();
    refused(sent, Code::SignalKeyConflict, &["\"k\""]);
    test.run_until_idle();
    assert_eq!(
        runs.each_ref().map(|run| state(run, "wait")),
        [TaskState::Waiting, TaskState::Completed, TaskState::Completed]
    );
}

#[test]
fn a_signal_to_many_of_an_unknown_workflow_is_refused() {
    // L9
    let mut w = Workflow::define::<(), ()>("many");
    w.wait::<u32>("wait", "go").from_start();
    let (test, _) = engine_with((), w.no_output());
    let send = |workflow: &str| test.signal("go", &1).to_waiting_by_name("test", workflow).wait();
    refused(send("mane"), Code::UnknownWorkflow, &["mane"]);
    refused(send("a\0b"), Code::BadName, &["workflow"]);
    refused(send(&"x".repeat(201)), Code::BadName, &["workflow", "201"]);
}

#[test]
fn a_signal_that_makes_no_sense_is_refused_and_nothing_is_stored() {
    // L9
    let mut w = Workflow::define::<(), ()>("strict");
    w.wait::<u32>("wait", "paid").from_start();
    let (test, strict) = engine_with((), w.no_output());
    let run = test.start(&strict, ()).now().unwrap();
    refused(run.signal("", &1).wait(), Code::BadName, &["signal", "empty"]);
    refused(run.signal(&"x".repeat(201), &1).wait(), Code::BadName, &["signal", "201"]);
    refused(run.signal("paid", &1).key("k".repeat(201)).wait(), Code::BadName, &["key"]);
    let long = run.signal("paid", &1).attr("a", "v".repeat(257)).wait();
    refused(long, Code::BadArgument, &["256"]);
    let many = (0..9).fold(run.signal("paid", &1), |signal, n| signal.attr(format!("a{n}"), n));
    refused(many.wait(), Code::BadArgument, &["8 attributes"]);
    let large = run.signal("paid", &"x".repeat(3 << 20)).wait();
    refused(large, Code::PayloadTooLarge, &["paid"]);
    refused(test.signal("paid", &1).to("", run.id()).wait(), Code::BadName, &["tenant"]);
    assert!(run.signals().unwrap().is_empty());
    assert_eq!(state(&run, "wait"), TaskState::Waiting);
}

#[test]
fn a_failure_handler_cannot_wait() {
    // L5
    let mut w = Workflow::define::<(), World>("handler");
    w.step("fails").run(async |_| Err::<(), _>(StepError::permanent("broken")));
    w.on_failure(async |ctx, _| {
        ctx.state().journal.write("handled");
        Err(Wait::on("paid").into())
    });
    let world = World::default();
    let (test, handler) = world.engine(w.no_output());
    let run = test.start(&handler, ()).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["broken"]);
    assert_eq!(world.journal.lines(), ["handled"]);
    let attempts = run.attempts().unwrap();
    let failure = attempts[1].1.failure.clone().unwrap();
    assert!(failure.message.contains("cannot wait"), "{}", failure.message);
}

#[test]
fn a_payload_that_does_not_fit_fails_the_step_for_good() {
    // L7
    let world = World::default();
    let (test, collecting) = world.engine(collecting());
    let run = test.start(&collecting, ()).now().unwrap();
    test.run_until_idle();
    run.signal("paid", &"seven").wait().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["signal \"paid\"", "expected u32, found string"]);
    assert_eq!(run.attempts().unwrap().len(), 2, "it is not retried");
}

#[test]
fn a_process_without_slots_sends_signals_and_cancels() {
    // R29
    let mut w = Workflow::define::<(), ()>("served");
    let wait = w.wait::<u32>("wait", "paid").from_start();
    let (test, served) = engine_with((), w.output(wait));
    let [paid, gone] = [0; 2].map(|_| test.start(&served, ()).now().unwrap());
    let client = beside(&test).configure(|config| config.slots = 0).start().unwrap();
    client.signal("paid", &7).to("test", paid.id()).wait().unwrap();
    let handle = client.run_handle("test", gone.id()).unwrap();
    let answer = handle.cancel().reason("customer called").by("ada@desk").wait().unwrap();
    assert_eq!(answer, CancelAnswer::Cancelled);
    test.run_until_idle();
    assert_eq!(paid.result().unwrap(), 7);
    let events = gone.events().unwrap();
    let kind = &events.iter().find(|e| e.kind.name() == "RUN_CANCELLED").unwrap().kind;
    let expected = stepwell::EventKind::RunCancelled {
        by: "ada@desk".to_owned(),
        reason: Some("customer called".to_owned()),
        forced: false,
    };
    assert_eq!(*kind, expected);
}

#[test]
fn the_store_refuses_more_signals_than_a_run_may_hold() {
    // L9
    let mut w = Workflow::define::<(), ()>("full");
    w.wait::<u32>("wait", "paid").from_start();
    let (test, full) = engine_with((), w.no_output());
    let run = test.start(&full, ()).now().unwrap();
    test.run_until_idle();
    let sender = run.clone();
    test.drive(async move {
        let run = sender.as_async();
        for hundred in 0..100 {
            let sends = (0..100).map(|n| run.signal("other", &(hundred * 100 + n)).into_future());
            for sent in futures_util::future::join_all(sends).await {
                sent.unwrap();
            }
        }
    });
    refused(run.signal("other", &1).wait(), Code::TooManySignals, &["10,000"]);
    run.signal("paid", &1).wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.status().unwrap(), RunStatus::Completed, "what is awaited still gets through");
}

on_every_store! {
    a_step_that_waits_is_executed_again_with_the_payload_and_charged_nothing,
    a_step_whose_wait_times_out_is_told_so,
    what_resumed_a_step_survives_the_crash_of_its_worker,
    a_condition_is_not_asked_again_of_a_step_that_has_waited,
    a_step_may_wait_several_times_and_hears_of_each_signal_once_and_in_order,
    the_same_key_again_is_the_same_signal,
    a_signal_to_a_run_that_is_over_is_told_so,
    a_signal_reaches_all_who_wait_for_it_and_says_how_many,
    a_run_that_refuses_a_signal_to_many_keeps_it_from_nobody_else,
    a_signal_to_many_of_an_unknown_workflow_is_refused,
    a_signal_that_makes_no_sense_is_refused_and_nothing_is_stored,
    a_failure_handler_cannot_wait,
    a_payload_that_does_not_fit_fails_the_step_for_good,
    a_process_without_slots_sends_signals_and_cancels,
}

in_memory_only! {
    "ten thousand signals are the same number on every store":
    the_store_refuses_more_signals_than_a_run_may_hold,
}
