//! What a step is handed, and what it can leave.

use std::collections::BTreeSet;

use stepwell::blocking::Run;
use stepwell::{AttemptState, Code, Retry, StepError, Workflow};

use crate::support::{HOUR, SECOND, World, builder, engine_with, refused, trail};

#[test]
fn a_step_knows_its_run_its_names_its_attempt_and_the_time() {
    // R18
    let mut w = Workflow::define::<u8, World>("names");
    let nap = w.sleep("nap", HOUR).from_start();
    w.step("known").after(nap).retry(Retry::fixed(1, SECOND)).run(async |ctx, ()| {
        let ctx = ctx.clone();
        ctx.state().journal.write(format!(
            "{} {} {} {} #{} {}",
            ctx.tenant(),
            ctx.run_id(),
            ctx.workflow(),
            ctx.step_name(),
            ctx.attempt(),
            ctx.input(),
        ));
        ctx.state().journal.write(ctx.now());
        ctx.state().takes(SECOND).await;
        ctx.state().journal.write(ctx.now());
        if ctx.attempt() == 1 { Err(StepError::new("again")) } else { Ok(()) }
    });
    let world = World::default();
    let (test, names) = world.engine(w.no_output());
    test.start(&names, 7).tenant("acme").id("run-7").now().unwrap();
    let start = test.now().after(HOUR);
    test.advance(2 * HOUR);
    let at = |secs: u32| start.after(SECOND * secs).to_string();
    let line = |n| format!("acme run-7 names known #{n} 7");
    assert_eq!(world.journal.lines(), [line(1), at(0), at(1), line(2), at(2), at(3)]);
}

#[test]
fn a_run_without_an_id_of_its_own_gets_a_unique_one() {
    // R27
    let mut w = Workflow::define::<(), ()>("ids");
    let id = w.step("id").run(async |ctx| Ok(ctx.run_id().to_owned()));
    let (test, ids) = engine_with((), w.output(id));
    let runs: Vec<_> = (0..10).map(|_| test.start(&ids, ()).now().unwrap()).collect();
    let seen: BTreeSet<String> = runs.iter().map(|run| run.result().unwrap()).collect();
    assert_eq!(seen.len(), 10);
    assert!(runs.iter().all(|run| run.result().unwrap() == run.id()));
}

#[test]
fn an_idempotency_key_is_the_same_for_all_attempts_and_for_nothing_else() {
    // R5
    let workflow = |name: &str| {
        let mut w = Workflow::define::<(), World>(name);
        let a = w.step("a").retry(Retry::fixed(2, SECOND)).run(async |ctx| {
            ctx.state().journal.write(ctx.idempotency_key());
            if ctx.attempt() < 3 { Err(StepError::new("again")) } else { Ok(()) }
        });
        w.step("b").after(a).run(async |ctx, ()| {
            ctx.state().journal.write(ctx.idempotency_key());
            Ok(())
        });
        w.no_output()
    };
    let world = World::default();
    let mut builder = builder().state(world.clone());
    let (one, two) = (builder.workflow(workflow("one")), builder.workflow(workflow("two")));
    let test = builder.start().unwrap();
    for (workflow, tenant) in [(&one, "x"), (&one, "y"), (&two, "x")] {
        test.start(workflow, ())
            .tenant(tenant)
            .id(format!("{}-id", workflow.name()))
            .now()
            .unwrap();
        test.run_to_end();
    }
    let keys = world.journal.lines();
    assert_eq!(keys.len(), 3 * 4);
    for run in keys.chunks(4) {
        assert!(run[0] == run[1] && run[1] == run[2] && run[2] != run[3], "{run:?}");
    }
    let distinct: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), 3 * 2, "distinct per step and run");
}

#[test]
fn notes_stay_with_their_attempt_and_show_in_the_log() {
    // R17
    let mut w = Workflow::define::<(), ()>("notes");
    w.step("a").retry(Retry::fixed(1, SECOND)).run(async |ctx| {
        ctx.note("invoice", format!("no. {}", ctx.attempt()));
        ctx.note("bytes", 12_345);
        ctx.note("bytes", 67_890);
        if ctx.attempt() == 1 { Err(StepError::new("again")) } else { Ok(()) }
    });
    let (test, notes) = engine_with((), w.no_output());
    let run = test.start(&notes, ()).now().unwrap();
    test.run_to_end();
    let attempts = run.attempts().unwrap();
    let invoices: Vec<&str> =
        attempts.iter().map(|(_, attempt)| attempt.notes["invoice"].as_str()).collect();
    assert_eq!(invoices, ["no. 1", "no. 2"]);
    assert_eq!(attempts[1].1.notes["bytes"], "67890");
    assert_eq!(attempts[0].1.state, AttemptState::Failed, "also those of a failed attempt");
    let events = run.events().unwrap();
    let completed = events.iter().find(|event| event.kind.name() == "COMPLETED").unwrap();
    let notes = attempts[1].1.notes.clone();
    assert_eq!(completed.kind, stepwell::EventKind::Completed { notes });
}

#[test]
fn a_step_can_note_only_so_much() {
    let mut w = Workflow::define::<(), ()>("chatty");
    w.step("a").run(async |ctx| {
        for n in 0..1_000 {
            ctx.note(format!("note {n}"), n);
        }
        Ok(())
    });
    let (test, chatty) = engine_with((), w.no_output());
    let run = test.start(&chatty, ()).now().unwrap();
    run.result().unwrap();
    assert_eq!(run.attempts().unwrap()[0].1.notes.len(), stepwell::core::limits::NOTES_MAX);
}

#[test]
fn a_note_that_is_too_long_is_cut() {
    let mut w = Workflow::define::<(), ()>("wordy");
    w.step("a").run(async |ctx| {
        ctx.note("n".repeat(1_000), "ä".repeat(100_000));
        Ok(())
    });
    let (test, wordy) = engine_with((), w.no_output());
    let run = test.start(&wordy, ()).now().unwrap();
    run.result().unwrap();
    let attempts = run.attempts().unwrap();
    let (name, text) = attempts[0].1.notes.first_key_value().unwrap();
    assert_eq!((name.len(), text.len()), (200, 8 * 1024));
}

#[test]
fn outputs_of_all_ancestors_can_be_read_async_and_blocking() {
    // R19
    let mut w = Workflow::define::<bool, ()>("ancestors");
    let a = w.step("a").run(async |_| Ok("a".to_owned()));
    let maybe = w.step("maybe").after(a).when(|_| false).run(async |_, a| Ok(a));
    let b = w.step("b").after((a, maybe)).run(async |_, _| Ok(2));
    let nap = w.sleep("nap", SECOND).after(b);
    let c = w.step("c").after(nap).run(move |ctx, ()| async move {
        let maybe: Option<String> = ctx.output(&maybe).await?;
        Ok(format!("{} {maybe:?} {}", ctx.output(&a).await?, ctx.output(&b).await?))
    });
    let d = w.step("d").after(c).run_blocking(move |ctx, c| {
        let maybe: Option<String> = ctx.output(&maybe)?;
        ctx.output(&nap)?;
        Ok(format!("{} {maybe:?} {} / {c}", ctx.output(&a)?, ctx.output(&b)?))
    });
    let (test, ancestors) = engine_with((), w.output(d));
    let run = test.start(&ancestors, true).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), "a None 2 / a None 2");
}

#[test]
fn a_step_that_does_not_lie_upstream_is_refused_and_no_retry_would_mend_it() {
    // R19
    let mut other = Workflow::define::<(), ()>("other");
    let foreign = other.step("foreign").run(async |_| Ok(1));
    let mut w = Workflow::define::<u8, ()>("sideways");
    let side = w.step("side").run(async |_| Ok(1));
    let retry = Retry::exponential(5);
    let itself = stepwell::StepRef::clone(&side);
    w.step("reader").retry(retry).run(move |ctx| async move {
        match ctx.input() {
            0 => ctx.output(&side).await,
            1 => ctx.output(&foreign).await,
            _ => ctx.output(&itself).await,
        }
    });
    w.step("blocking").retry(retry).run_blocking(move |ctx| match ctx.input() {
        2 => ctx.output(&side),
        _ => Ok(0),
    });
    let (test, sideways) = engine_with((), w.no_output());
    let run = |input| test.start(&sideways, input).now().unwrap();
    let aside = run(0);
    refused(aside.result(), Code::RunFailed, &["SW0014", "\"side\"", "upstream", "\"reader\""]);
    assert_eq!(trail(&aside, "reader"), "QUEUED STARTED FAILED");
    refused(run(1).result(), Code::RunFailed, &["SW0014", "another workflow"]);
    refused(run(2).result(), Code::RunFailed, &["SW0014", "\"side\"", "upstream"]);
}

#[test]
fn a_closure_may_own_what_it_captured_and_use_it_up_at_every_attempt() {
    // R11
    let mut w = Workflow::define::<(), ()>("owner");
    let names = vec!["Ada".to_owned(), "Grace".to_owned()];
    let owner = w.step("owner").retry(Retry::fixed(1, SECOND)).run(async move |ctx| {
        let names = names.into_iter().collect::<Vec<String>>().join(" and ");
        match ctx.attempt() {
            1 => Err(StepError::new("not yet")),
            _ => Ok(names),
        }
    });
    let (test, owner) = engine_with((), w.output(owner));
    for _ in 0..2 {
        let run = test.start(&owner, ()).now().unwrap();
        test.run_to_end();
        assert_eq!(run.result().unwrap(), "Ada and Grace");
    }
}

/// What a step told last, as `run.tasks()` shows it.
fn progress<O: 'static>(run: &Run<O>, step: &str) -> Option<String> {
    let tasks = run.tasks().unwrap();
    let task = tasks.into_iter().find(|task| task.step == step).expect("the run has the step");
    task.progress.map(|progress| progress.text)
}

#[test]
fn progress_is_told_once_a_second_and_goes_with_its_attempt() {
    // R14
    let mut w = Workflow::define::<(), World>("import");
    w.step("import").retry(Retry::fixed(1, HOUR)).run(async |ctx| {
        for n in 1..=3 {
            ctx.heartbeat_with(format_args!("{n} of 3"))?;
            ctx.state().gate.pass().await;
        }
        if ctx.attempt() == 1 { Err(StepError::new("again")) } else { Ok(()) }
    });
    w.step("silent").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok(())
    });
    let world = World::default();
    let (test, import) = world.engine(w.no_output());
    let run = test.start(&import, ()).now().unwrap();
    let told = || progress(&run, "import");
    assert_eq!(told().as_deref(), Some("1 of 3"), "at once, since nothing was told before");
    assert_eq!(progress(&run, "silent"), None);
    let told_at = test.now();
    world.gate.let_pass(3);
    test.run_until_idle();
    assert_eq!(told().as_deref(), Some("1 of 3"), "a second has not passed");
    test.advance(SECOND);
    assert_eq!(told().as_deref(), Some("3 of 3"), "the latest counts");
    let tasks = run.tasks().unwrap();
    assert_eq!(tasks[0].progress.as_ref().unwrap().told_at, told_at.after(SECOND));
    world.gate.let_pass(1);
    test.run_until_idle();
    assert_eq!(told(), None, "gone with its attempt");
    test.advance(HOUR);
    assert_eq!(told().as_deref(), Some("1 of 3"), "the second attempt");
    world.gate.let_pass(3);
    run.result().unwrap();
    assert_eq!(told(), None);
}

#[test]
fn progress_that_is_too_long_is_cut() {
    // R14
    let mut w = Workflow::define::<(), World>("long");
    w.step("long").run(async |ctx| {
        ctx.heartbeat_with("é".repeat(1_000))?;
        ctx.state().gate.pass().await;
        Ok(())
    });
    let (test, long) = World::default().engine(w.no_output());
    let run = test.start(&long, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(progress(&run, "long").unwrap().len(), 1_024);
}

on_every_store![
    progress_is_told_once_a_second_and_goes_with_its_attempt,
    progress_that_is_too_long_is_cut,
    a_step_knows_its_run_its_names_its_attempt_and_the_time,
    a_run_without_an_id_of_its_own_gets_a_unique_one,
    an_idempotency_key_is_the_same_for_all_attempts_and_for_nothing_else,
    notes_stay_with_their_attempt_and_show_in_the_log,
    a_step_can_note_only_so_much,
    a_note_that_is_too_long_is_cut,
    outputs_of_all_ancestors_can_be_read_async_and_blocking,
    a_closure_may_own_what_it_captured_and_use_it_up_at_every_attempt,
    a_step_that_does_not_lie_upstream_is_refused_and_no_retry_would_mend_it,
];
