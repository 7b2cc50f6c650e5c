//! Waits as nodes of a workflow: nobody is needed for them to go on.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::{Code, EventKind, RunStatus, Sent, Signalled, TaskState, Workflow};

use crate::support::{
    DAY, HOUR, World, beside, dump, engine_with, log, refused, state, states, trail,
};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Approval {
    by: String,
}

fn approval(by: &str) -> Approval {
    Approval { by: by.to_owned() }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Decision {
    Approved(Approval),
    RejectedFor { why: String },
    Withdrawn,
}

/// Asks, waits for an approval, and says what came of it.
fn expense(timeout: Option<Duration>) -> Workflow<(), String> {
    let mut w = Workflow::define::<(), ()>("expense");
    let ask = w.step("ask").run(async |_| Ok(()));
    let wait = w.wait::<Approval>("approval", "approved");
    let book = match timeout {
        None => {
            let approval = wait.after(ask);
            w.step("book").after(approval).run(async |_, approval| Ok(approval.by))
        }
        Some(timeout) => {
            let approval = wait.timeout(timeout).after(ask);
            w.step("book").after(approval).run(async |_, approval| match approval {
                Signalled::Received(approval) => Ok(approval.by),
                Signalled::TimedOut => Ok("nobody".to_owned()),
            })
        }
    };
    w.output(book)
}

#[test]
fn a_wait_gives_the_payload_of_its_signal_to_the_next_step() {
    // L7
    let (test, expense) = engine_with((), expense(None));
    let run = test.start(&expense, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(states(&run), "ask COMPLETED, approval WAITING, book PENDING");
    test.advance(DAY);
    assert_eq!(state(&run, "approval"), TaskState::Waiting, "without a time-out it waits for ever");
    let sent = run.signal("approved", &approval("Grace")).wait().unwrap();
    assert_eq!(sent, Sent::Accepted { number: 1 });
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), "Grace");
    assert_eq!(trail(&run, "approval"), "WAITING SIGNALLED");
}

#[test]
fn a_wait_that_is_not_answered_in_time_says_so() {
    // L8
    let (test, expense) = engine_with((), expense(Some(3 * DAY)));
    let run = test.start(&expense, ()).now().unwrap();
    test.advance(3 * DAY - Duration::from_micros(1));
    assert_eq!(state(&run, "approval"), TaskState::Waiting);
    test.advance(Duration::from_micros(1));
    assert_eq!(run.result().unwrap(), "nobody");
    assert_eq!(trail(&run, "approval"), "WAITING TIMED_OUT");
    let late = run.signal("approved", &approval("Grace")).wait().unwrap();
    assert_eq!(late, Sent::AlreadyEnded(RunStatus::Completed));
    assert!(run.signals().unwrap().is_empty(), "nothing was stored");
}

#[test]
fn a_signal_that_comes_before_its_wait_is_kept_for_it() {
    // L9
    let (test, expense) = engine_with((), expense(Some(Duration::from_secs(1))));
    let run = test.start(&expense, ()).now().unwrap();
    run.signal("approved", &approval("Ada")).wait().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), "Ada");
}

#[test]
fn a_time_out_of_zero_still_takes_a_signal_that_was_there_before() {
    // L9
    let mut w = Workflow::define::<(), ()>("impatient");
    let nap = w.sleep("nap", HOUR).from_start();
    let wait = w.wait::<u32>("wait", "paid").timeout(Duration::ZERO).after(nap);
    let (test, impatient) = engine_with((), w.output(wait));
    let [paid, unpaid] = [7, 8].map(|_| test.start(&impatient, ()).now().unwrap());
    test.run_until_idle();
    paid.signal("paid", &7).wait().unwrap();
    test.run_to_end();
    assert_eq!(paid.result().unwrap(), Signalled::Received(7));
    assert_eq!(unpaid.result().unwrap(), Signalled::TimedOut);
}

#[test]
fn a_waiting_run_holds_no_slot_and_goes_on_without_its_code() {
    // L1, L7
    let world = World::default();
    let mut w = Workflow::define::<(), World>("patient");
    let wait = w.wait::<u32>("first", "one").from_start();
    let more = w.wait::<u32>("second", "two").after(wait);
    let (test, patient) = world.engine(w.output(more));
    let run = test.start(&patient, ()).now().unwrap();
    test.run_until_idle();
    assert!(dump(&test).places.is_empty(), "nothing stands in a queue");
    assert_eq!(test.as_async().n_running(), 0);
    test.stop(Duration::ZERO);
    // It leads, but has no workflow.
    let other = beside(&test).start().unwrap();
    other.signal("two", &2).to("test", run.id()).wait().unwrap();
    other.signal("one", &1).to("test", run.id()).wait().unwrap();
    let handle = other.run_handle("test", run.id()).unwrap();
    other.run_to_end();
    assert_eq!(handle.status().unwrap(), RunStatus::Completed);
    assert_eq!(handle.result().unwrap(), 2);
}

/// Waits for a decision, and says what it was.
fn deciding() -> Workflow<(), String> {
    let mut w = Workflow::define::<(), ()>("deciding");
    let decision = w.wait_any::<Decision>("decision").timeout(DAY).from_start();
    let told = w.step("tell").after(decision).run(async |_, decision| Ok(format!("{decision:?}")));
    w.output(told)
}

#[test]
fn one_of_several_signals_is_read_as_the_variant_of_an_enum() {
    // L7
    let (test, deciding) = engine_with((), deciding());
    let runs = [0; 4].map(|_| test.start(&deciding, ()).now().unwrap());
    runs[0].signal("approved", &approval("Ada")).wait().unwrap();
    runs[1].signal("rejected-for", &serde_json::json!({"why": "cost"})).wait().unwrap();
    runs[2].signal("withdrawn", &()).wait().unwrap();
    runs[3].signal("unheard-of", &()).wait().unwrap();
    test.run_to_end();
    let told = runs.each_ref().map(|run| run.result().unwrap());
    let expected = [
        r#"Received(Approved(Approval { by: "Ada" }))"#,
        r#"Received(RejectedFor { why: "cost" })"#,
        "Received(Withdrawn)",
        "TimedOut",
    ];
    assert_eq!(told, expected);
    let outputs = runs[0].outputs().unwrap();
    assert_eq!(outputs["decision"], serde_json::json!({"approved": {"by": "Ada"}}));
    let outputs = runs[3].outputs().unwrap();
    assert_eq!(outputs["decision"], serde_json::Value::Null);
}

#[test]
fn a_wait_takes_only_signals_that_carry_what_it_asks_for() {
    // L7
    let mut w = Workflow::define::<u32, ()>("matching");
    let fixed = w
        .wait::<u32>("fixed", "paid")
        .matching("currency", "EUR")
        .matching_input("shop", |input| input + 1)
        .from_start();
    let asked = w
        .wait::<u32>("asked", "paid")
        .after_if(fixed)
        .matching_by("order", |input, fixed| input + fixed)
        .always();
    let (test, matching) = engine_with((), w.output(asked));
    let run = test.start(&matching, 4_700).now().unwrap();
    run.signal("paid", &1).attr("currency", "USD").wait().unwrap();
    let paid = run.signal("paid", &11).attr("currency", "EUR").attr("shop", 4_701);
    paid.attr("order", 9).wait().unwrap();
    test.run_until_idle();
    assert_eq!(state(&run, "asked"), TaskState::Waiting);
    let waits = run.waits().unwrap();
    assert_eq!((waits[0].step.as_str(), &*waits[0].matching["order"]), ("asked", "4711"));
    run.signal("paid", &3).attr("order", 4_711).wait().unwrap();
    test.run_until_idle();
    assert_eq!(run.result().unwrap(), 3);
    let left: Vec<u64> = run
        .signals()
        .unwrap()
        .iter()
        .filter(|s| s.consumed_by.is_none())
        .map(|signal| signal.number)
        .collect();
    assert_eq!(left, [1]);
}

#[test]
fn a_wait_with_a_condition_is_skipped_when_it_says_so() {
    // R21
    let mut w = Workflow::define::<u32, ()>("conditional");
    let amount = w.step("amount").run(async |ctx| Ok(*ctx.input()));
    let approval =
        w.wait::<String>("approval", "approved").after_if(amount).when(|amount| *amount > 100);
    let done = w
        .step("done")
        .after((approval, amount))
        .run(async |_, (approval, _)| Ok(approval.unwrap_or_else(|| "not needed".to_owned())));
    let (test, conditional) = engine_with((), w.output(done));
    let small = test.start(&conditional, 7).now().unwrap();
    let large = test.start(&conditional, 700).now().unwrap();
    test.run_until_idle();
    assert_eq!(small.result().unwrap(), "not needed");
    assert_eq!(state(&large, "approval"), TaskState::Waiting);
    assert_eq!(trail(&large, "approval"), "QUEUED WAITING");
    large.signal("approved", &"by Grace").wait().unwrap();
    test.run_until_idle();
    assert_eq!(large.result().unwrap(), "by Grace");
}

#[test]
fn a_payload_that_does_not_fit_fails_the_step_that_reads_it_for_good() {
    // L7
    let (test, expense) = engine_with((), expense(None));
    let run = test.start(&expense, ()).now().unwrap();
    run.signal("approved", &7).wait().unwrap();
    test.run_to_end();
    assert_eq!(states(&run), "ask COMPLETED, approval COMPLETED, book FAILED");
    refused(run.result(), Code::RunFailed, &["signal \"approved\"", "Approval", "7"]);
}

#[test]
fn the_log_tells_what_was_awaited_and_what_came() {
    // R17
    let (test, expense) = engine_with((), expense(Some(HOUR)));
    let run = test.start(&expense, ()).now().unwrap();
    test.run_until_idle();
    run.signal("approved", &approval("Ada")).wait().unwrap();
    let events = run.events().unwrap();
    let kinds: Vec<&EventKind> = events.iter().map(|event| &event.kind).collect();
    let until = Some(events[0].at.after(HOUR));
    let is_waiting = |kind: &&EventKind| {
        matches!(kind, EventKind::Waiting { signals, until: u, .. }
            if signals == &["approved"] && *u == until)
    };
    let is_signalled = |kind: &&EventKind| {
        matches!(kind, EventKind::Signalled { signal, number: 1, into: TaskState::Completed, .. }
            if signal == "approved")
    };
    assert!(kinds.iter().any(is_waiting), "{:?}", log(&run));
    assert!(kinds.iter().any(is_signalled), "{:?}", log(&run));
}

#[test]
fn a_deploy_may_add_or_take_away_the_time_out() {
    // L8
    let (test, first) = engine_with((), expense(None));
    let run = test.start(&first, ()).now().unwrap();
    test.run_until_idle();
    let mut builder = beside(&test);
    let second = builder.workflow(expense(Some(HOUR)));
    let newer = builder.start().unwrap();
    test.stop(Duration::ZERO);
    newer.advance(DAY);
    let handle = newer.run_handle_of(&second, "test", run.id()).unwrap();
    assert_eq!(state(&handle, "approval"), TaskState::Waiting, "its due time was fixed before");
    handle.signal("approved", &approval("Ada")).wait().unwrap();
    newer.run_until_idle();
    assert_eq!(handle.result().unwrap(), "Ada");
    let later = newer.start(&second, ()).now().unwrap();
    newer.run_to_end();
    assert_eq!(later.result().unwrap(), "nobody");
}

#[test]
fn a_wait_that_makes_no_sense_is_refused_when_its_workflow_is_declared() {
    // R0
    let check = |declare: fn(&mut stepwell::Definer<(), ()>), code: Code, words: &[&str]| {
        let mut w = Workflow::define::<(), ()>("odd");
        declare(&mut w);
        refused(w.no_output().check(), code, words);
    };
    let nameless = |w: &mut stepwell::Definer<(), ()>| {
        w.wait::<()>("w", "").from_start();
    };
    check(nameless, Code::BadPolicy, &["\"w\"", "signals"]);
    let too_long = |w: &mut stepwell::Definer<(), ()>| {
        w.wait::<()>("w", "s").timeout(Duration::MAX).from_start();
    };
    check(too_long, Code::BadPolicy, &["\"w\"", "timeout", "hundred years"]);
    let no_enum = |w: &mut stepwell::Definer<(), ()>| {
        w.wait_any::<u32>("w").from_start();
    };
    check(no_enum, Code::BadPolicy, &["\"w\"", "wait_any", "u32"]);
    let many = |w: &mut stepwell::Definer<(), ()>| {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let wait = names.iter().fold(w.wait::<()>("w", "s"), |wait, name| wait.matching(*name, 1));
        wait.from_start();
    };
    check(many, Code::BadPolicy, &["\"w\"", "matching", "8 attributes"]);
}

on_every_store! {
    a_wait_gives_the_payload_of_its_signal_to_the_next_step,
    a_wait_that_is_not_answered_in_time_says_so,
    a_signal_that_comes_before_its_wait_is_kept_for_it,
    a_time_out_of_zero_still_takes_a_signal_that_was_there_before,
    a_waiting_run_holds_no_slot_and_goes_on_without_its_code,
    one_of_several_signals_is_read_as_the_variant_of_an_enum,
    a_wait_takes_only_signals_that_carry_what_it_asks_for,
    a_wait_with_a_condition_is_skipped_when_it_says_so,
    a_payload_that_does_not_fit_fails_the_step_that_reads_it_for_good,
    the_log_tells_what_was_awaited_and_what_came,
    a_deploy_may_add_or_take_away_the_time_out,
    a_wait_that_makes_no_sense_is_refused_when_its_workflow_is_declared,
}
