//! Waits, signals, cancels and deadlines on a file, told to the ports themselves.
#![cfg(all(feature = "testing", feature = "sqlite"))]

mod desk;
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use desk::{Desk, HOUR, open, received, signal, stored};
use stepwell::FailureKind;
use stepwell::core::decide::{CancelAnswer, CancelRequest, RunSeed, SignalAnswer};
use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{Resumed, RunStatus, WaitFor};
use stepwell::ports::{Outcome, Payload, SignalRequest, SignalTarget, StartRequest, WaitingRuns};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{
    Sketch, completed_with, failed, payload, tenant, worker,
};

#[tokio::test]
async fn a_signal_before_the_wait_is_kept_over_every_reopening_of_the_file() {
    let mut desk = Desk::new();
    let flow = desk.world.define("a; w ? paid/1h < a; b < w").await;
    let run = desk.start(&flow).await;
    assert_eq!(desk.send(&run, "paid", "k", b"42").await, stored(1, false));
    desk.reopen();
    let row = desk.world.row(&run).await;
    assert_eq!((row.n_signals, row.n_unconsumed), (1, 1));
    desk.settle(&desk.claim_one().await, completed_with(b"a")).await;
    assert_eq!(desk.world.states(&run).await, "a COMPLETED, w WAITING, b PENDING");
    desk.reopen();
    assert_eq!((desk.fire().await, desk.n_waits(&run).await), (1, 0));
    assert_eq!(desk.signals(&run).await, ["1 paid w"]);
    desk.reopen();
    let b = desk.claim_one().await;
    assert_eq!(desk.world.inputs(&b).await.parents[0].output, received("paid", b"42"));
    desk.settle(&b, completed_with(b"b")).await;
    desk.reopen();
    assert_eq!(desk.world.output(&run, "w").await, received("paid", b"42"));
    let outputs = desk.world.store().outputs(run.key).await.expect("read outputs");
    let outputs: Vec<Option<Payload>> = outputs.into_iter().map(|(_, left)| Some(left)).collect();
    let [a, b] = [b"a", b"b"].map(|bytes| Some(payload(bytes)));
    assert_eq!(outputs, [a, received("paid", b"42"), b]);
    let row = desk.world.row(&run).await;
    assert_eq!((row.status, row.n_unconsumed), (RunStatus::Completed, 0));
}

#[tokio::test]
async fn signals_of_one_call_go_to_the_oldest_wait_one_after_the_other() {
    let desk = Desk::new();
    let flow = desk.world.define("v ? paid; w ? paid/1h < v; x ? paid < w").await;
    let (run, other) = (desk.start(&flow).await, desk.start(&flow).await);
    let send = [
        signal(&run, "paid", "1", b"1"),
        signal(&other, "paid", "1", b"1"),
        signal(&run, "refunded", "2", b"2"),
        signal(&run, "paid", "1", b"1"),
        signal(&run, "paid", "3", b"3"),
    ];
    let answers = desk.world.store().signal(send.into()).await.expect("send signals");
    // A wait that opens by one signal of a call looks at the others of that call by its timer, as
    // one does that opens while some signal is unconsumed.
    let again = SignalAnswer::AlreadyStored { number: 1 };
    let expected = [stored(1, true), stored(1, true), stored(2, false), again, stored(3, false)];
    assert_eq!(answers, expected.map(Some));
    assert_eq!(desk.fire().await, 1, "the second wait looks at what came with the first signal");
    assert_eq!(desk.signals(&run).await, ["1 paid v", "2 refunded -", "3 paid w"]);
    assert_eq!(desk.world.states(&other).await, "v COMPLETED, w WAITING, x PENDING");
    assert_eq!(desk.send(&run, "paid", "4", b"4").await, stored(4, false));
    assert_eq!(desk.fire().await, 1, "the third wait looks at what came before");
    assert_eq!(desk.signals(&run).await[3], "4 paid x");
    assert_eq!(desk.world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn of_two_waits_the_older_gets_the_signal() {
    let desk = Desk::new();
    let flow = desk.world.define("v ? paid|refunded; w ? paid").await;
    let run = desk.start(&flow).await;
    assert_eq!(desk.send(&run, "paid", "1", b"1").await, stored(1, true));
    assert_eq!(desk.world.states(&run).await, "v COMPLETED, w WAITING");
    assert_eq!(desk.send(&run, "refunded", "2", b"2").await, stored(2, false));
    assert_eq!(desk.send(&run, "paid", "3", b"3").await, stored(3, true));
    assert_eq!(desk.signals(&run).await, ["1 paid v", "2 refunded -", "3 paid w"]);
    let nobody = SignalTarget::Key(RunKey(5));
    let lost = SignalRequest { to: nobody, ..signal(&run, "paid", "4", b"4") };
    let to = SignalTarget::Id(run.tenant.clone(), run.id.clone());
    let named = SignalRequest { to, ..signal(&run, "paid", "3", b"3") };
    let answers = desk.world.store().signal(vec![lost, named]).await.expect("send signals");
    assert_eq!(answers, [None, Some(SignalAnswer::AlreadyStored { number: 3 })]);
}

#[tokio::test]
async fn a_key_stands_for_one_signal_even_after_the_end() {
    let mut desk = Desk::new();
    let flow = desk.world.define("w ? paid").await;
    let run = desk.start(&flow).await;
    assert_eq!(desk.send(&run, "paid", "k", b"1").await, stored(1, true));
    desk.reopen();
    assert_eq!(desk.send(&run, "paid", "k", b"1").await, SignalAnswer::AlreadyStored { number: 1 });
    assert_eq!(desk.send(&run, "paid", "k", b"2").await, SignalAnswer::KeyTaken);
    let ended = SignalAnswer::AlreadyEnded(RunStatus::Completed);
    assert_eq!(desk.send(&run, "paid", "l", b"1").await, ended);
    assert_eq!(desk.signals(&run).await, ["1 paid w"]);
}

#[tokio::test]
async fn a_wait_whose_deadline_passed_gets_nothing_and_times_out() {
    let mut desk = Desk::new();
    let flow = desk.world.define("v ? paid/1h; w ? paid/2h; b < v").await;
    let run = desk.start(&flow).await;
    desk.world.pass(HOUR);
    assert_eq!(desk.send(&run, "paid", "1", b"1").await, stored(1, true));
    assert_eq!(desk.signals(&run).await, ["1 paid w"], "the older one was over");
    desk.reopen();
    assert_eq!((desk.fire().await, desk.n_waits(&run).await), (1, 0));
    assert_eq!(desk.world.states(&run).await, "v COMPLETED, w COMPLETED, b QUEUED");
    let b = desk.claim_one().await;
    assert_eq!(desk.world.inputs(&b).await.parents[0].output, Some(Payload::timed_out()));
    assert_eq!(desk.world.output(&run, "v").await, Some(Payload::timed_out()));
    let outputs = desk.world.store().outputs(run.key).await.expect("read outputs");
    assert!(outputs[0].1.is_timed_out());
}

#[tokio::test]
async fn waits_that_look_and_find_nothing_wait_on_until_their_deadline() {
    let mut desk = Desk::new();
    let flow = desk.world.define("a; v ? paid/1h < a; w ? paid < a").await;
    let run = desk.start(&flow).await;
    let begin = desk.world.row(&run).await.started_at;
    assert_eq!(desk.send(&run, "refunded", "1", b"1").await, stored(1, false));
    desk.settle(&desk.claim_one().await, completed_with(b"a")).await;
    assert_eq!(desk.fire().await, 2);
    desk.reopen();
    let due = desk.world.dump().await.timers;
    assert_eq!(due, BTreeMap::from([((run.key, run.node("v")), begin.after(HOUR))]));
    assert_eq!(desk.send(&run, "paid", "2", b"2").await, stored(2, true));
    assert_eq!(desk.signals(&run).await, ["1 refunded -", "2 paid v"]);
    assert!(desk.world.dump().await.timers.is_empty());
}

#[tokio::test]
async fn waits_that_look_together_get_one_signal_each() {
    let mut desk = Desk::new();
    let flow = desk.world.define("a; v ? paid/1h < a; w ? paid < a; x ? paid < a").await;
    let run = desk.start(&flow).await;
    assert_eq!(desk.send(&run, "paid", "1", b"1").await, stored(1, false));
    desk.settle(&desk.claim_one().await, completed_with(b"a")).await;
    assert_eq!(desk.send(&run, "paid", "2", b"2").await, stored(2, false), "they have yet to look");
    desk.reopen();
    assert_eq!(desk.fire().await, 3);
    assert_eq!(desk.signals(&run).await, ["1 paid v", "2 paid w"]);
    assert_eq!((desk.n_waits(&run).await, desk.world.dump().await.timers.len()), (1, 0));
}

#[tokio::test]
async fn a_cancel_closes_waits_and_says_who_asked() {
    let mut desk = Desk::new();
    let flow = desk.world.define(Sketch::from("v ? paid/1h; w ? refunded").deadline(HOUR)).await;
    let run = desk.start(&flow).await;
    desk.send(&run, "shipped", "1", b"1").await;
    desk.reopen();
    let reason = Some("customer called".to_owned());
    let request = CancelRequest { reason, ..CancelRequest::by("eve") };
    let cancel = |request| desk.world.store().cancel(run.key, request);
    let answer = cancel(request.clone()).await.expect("cancel a run");
    assert_eq!(answer, Some(CancelAnswer::Cancelled));
    let again = cancel(request).await.expect("cancel a run");
    assert_eq!(again, Some(CancelAnswer::AlreadyEnded(RunStatus::Cancelled)));
    let dump = desk.world.dump().await;
    assert!(dump.timers.is_empty() && dump.waits[&run.key].is_empty());
    assert_eq!(desk.signals(&run).await, ["1 shipped -"]);
    let said = desk.world.last_event(&run, "RUN_CANCELLED").await.kind;
    let said = serde_json::to_value(said).expect("an event is plain data");
    assert_eq!((&said["by"], &said["reason"]), (&"eve".into(), &"customer called".into()));
    let ended = SignalAnswer::AlreadyEnded(RunStatus::Cancelled);
    assert_eq!(desk.send(&run, "paid", "2", b"2").await, ended);
}

#[tokio::test]
async fn a_task_of_a_run_past_its_deadline_does_not_start_but_its_handler_does() {
    let mut desk = Desk::new();
    let flow = desk.world.define(Sketch::from("a; w ? paid").deadline(HOUR).on_failure()).await;
    let run = desk.start(&flow).await;
    let late = desk.world.request("acme", "", &flow, b"input");
    let seed = RunSeed { deadline: Some(Duration::ZERO), ..late.seed };
    let late = StartRequest { seed, ..late };
    desk.world.pass(HOUR);
    desk.reopen();
    assert_eq!(desk.claim().await.len(), 0);
    assert_eq!(desk.fire().await, 1);
    assert_eq!((desk.world.status(&run).await, desk.n_waits(&run).await), (RunStatus::Ending, 0));
    let handler = desk.claim_one().await;
    assert_eq!(handler.claim.node, Node::ON_FAILURE);
    let offer = desk.world.claim_request(&worker("worker"), 10);
    let started = desk.world.store().start_and_claim(vec![late], Some(offer)).await;
    assert_eq!(started.expect("start a run").handed_over.tasks.len(), 0);
    let failure = desk.world.inputs(&handler).await.failure.expect("a handler is told");
    assert_eq!((failure.node, failure.failure.kind), (Node::DEADLINE, FailureKind::Deadline));
    desk.settle(&handler, completed_with(b"done")).await;
    assert_eq!(desk.world.status(&run).await, RunStatus::Failed);
}

#[tokio::test]
async fn a_step_that_waits_is_told_what_ended_it_until_it_is_done() {
    let mut desk = Desk::new();
    let flow = desk.world.define("a * 1; b < a").await;
    let run = desk.start(&flow).await;
    let (signals, matching) = (vec!["paid".to_owned()], BTreeMap::new());
    let wait_for = WaitFor { signals, matching, timeout: Some(HOUR) };
    let waits = || Outcome::Waits { wait_for: wait_for.clone(), notes: BTreeMap::new() };
    desk.settle(&desk.claim_one().await, waits()).await;
    desk.reopen();
    assert_eq!(desk.send(&run, "paid", "1", b"1").await, stored(1, true));
    for outcome in [failed("no"), waits()] {
        desk.reopen();
        let again = desk.claim_one().await;
        assert_eq!((again.resumed, again.inputs.is_none()), (Some(Resumed::Signal(1)), true));
        assert_eq!(desk.world.inputs(&again).await.resumed, received("paid", b"1"));
        desk.settle(&again, outcome).await;
    }
    desk.world.pass(HOUR);
    assert_eq!(desk.fire().await, 1);
    let last = desk.claim_one().await;
    assert_eq!(last.resumed, Some(Resumed::TimedOut));
    assert_eq!(desk.world.inputs(&last).await.resumed, Some(Payload::timed_out()));
    desk.settle(&last, completed_with(b"a")).await;
    desk.reopen();
    assert_eq!(desk.world.output(&run, "a").await, Some(payload(b"a")));
    assert_eq!(desk.world.task(&run, "a").await.resumed, None);
    let trail = "RUN_STARTED, a QUEUED, a STARTED, a SUSPENDED, a WAITING, a SIGNALLED, \
        a STARTED, a RETRYING, a STARTED, a SUSPENDED, a WAITING, a TIMED_OUT, \
        a STARTED, a COMPLETED, (b QUEUED)";
    assert_eq!(desk.world.trail(&run).await, trail);
}

#[tokio::test]
async fn waiting_runs_are_listed_in_pages_over_all_versions() {
    let desk = Desk::new();
    let old = desk.world.define(Sketch::from("v ? paid; w ? paid|refunded").named("order")).await;
    let new = desk.world.define(Sketch::from("v ? paid; z").named("order")).await;
    let mut expected = Vec::new();
    for flow in [&old, &new, &old, &new] {
        desk.start_for("zeta", flow).await;
        expected.push(desk.start(flow).await.key);
    }
    let asked = |signal: &str| WaitingRuns {
        tenant: tenant("acme"),
        workflow: "order".to_owned(),
        signal: signal.to_owned(),
    };
    let (mut found, mut after) = (Vec::<RunKey>::new(), None);
    loop {
        let page = desk.world.store().waiting_runs(&asked("paid"), after, 3).await;
        let page = page.expect("read waiting runs");
        found.extend(&page);
        after = page.last().copied();
        if page.len() < 3 {
            break;
        }
    }
    assert_eq!(found, expected);
    let refunded = desk.world.store().waiting_runs(&asked("refunded"), None, 100).await;
    assert_eq!(refunded.expect("read waiting runs"), [expected[0], expected[2]]);
}

#[tokio::test]
async fn two_stores_on_one_file_see_each_others_waits_and_signals() {
    let desk = Desk::new();
    let other = World::new(open(&desk.folder, &desk.clock), Arc::clone(&desk.clock));
    let flow = desk.world.define("w ? paid; b < w").await;
    let run = desk.start(&flow).await;
    let sent = other.store().signal(vec![signal(&run, "paid", "1", b"1")]).await;
    assert_eq!(sent.expect("send a signal"), [Some(stored(1, true))]);
    let b = desk.claim_one().await;
    assert_eq!(desk.world.inputs(&b).await.parents[0].output, received("paid", b"1"));
    let again = desk.send(&run, "paid", "1", b"1").await;
    assert_eq!(again, SignalAnswer::AlreadyStored { number: 1 });
}
