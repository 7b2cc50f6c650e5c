//! Signals, waits and deadlines on PostgreSQL: what one connection decides meets what others do.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use stepwell::core::decide::{CancelAnswer, CancelRequest, NewSignal, SignalAnswer};
use stepwell::core::id::RunId;
use stepwell::core::run::{Attributes, Resumed, RunStatus, TaskState, WaitFor};
use stepwell::ports::{
    Clock, CommitAnswer, CommitItem, Outcome, SignalRequest, SignalTarget, WaitingRuns,
};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{
    Run, Sketch, WORKER, completed, payload, run_of, step_of, tenant, worker,
};
use support_postgres::{Schema, rows};

const HOUR: Duration = Duration::from_hours(1);

fn world(schema: &Schema) -> World {
    World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock))
}

/// A signal `name` to a run under a key, which is its payload as well.
fn signal(run: &Run, name: &str, key: &str) -> SignalRequest {
    let signal = NewSignal {
        name: name.to_owned(),
        key: key.to_owned(),
        attributes: Attributes::new(),
        digest: Sha256::digest(format!("{name} {key}")).into(),
        only_if_awaited: false,
    };
    SignalRequest { to: SignalTarget::Key(run.key), signal, payload: payload(key.as_bytes()) }
}

/// Sends signals to runs that exist.
async fn send(world: &World, requests: Vec<SignalRequest>) -> Vec<SignalAnswer> {
    let answers = world.store().signal(requests).await.expect("send signals");
    world.check().await;
    answers.into_iter().map(|answer| answer.expect("the run is there")).collect()
}

const fn stored(number: u64, is_consumed: bool) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed }
}

/// What a task left, in words.
async fn left(world: &World, run: &Run, step: &str) -> String {
    match world.output(run, step).await {
        None => "nothing".to_owned(),
        Some(left) if left.is_timed_out() => "timed out".to_owned(),
        Some(left) => {
            let text = String::from_utf8_lossy(&left.bytes).into_owned();
            format!("{} {text}", left.signal_name().unwrap_or("output"))
        }
    }
}

#[tokio::test]
async fn a_signal_before_its_wait_is_kept_and_given_by_a_timer_that_is_due_at_once() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("a; w ? paid/3h < a; b < w").await;
    let run = world.start(&flow).await;
    assert_eq!(send(&world, vec![signal(&run, "paid", "k")]).await, [stored(1, false)]);
    assert_eq!(world.step().await, "a");
    assert_eq!(world.states(&run).await, "a COMPLETED, w WAITING, b PENDING");
    assert_eq!(world.fire().await.n_fired, 1);
    let b = world.claim_one().await;
    assert_eq!(step_of(&b), "b");
    let parents = world.inputs(&b).await.parents;
    let got = parents[0].output.as_ref().expect("the wait is done");
    assert_eq!((&*got.bytes, got.signal_name()), (b"k".as_slice(), Some("paid")));
    assert_eq!(b.inputs.expect("a claim brings them along").parents, parents);
    assert_eq!(left(&world, &run, "w").await, "paid k");
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    assert_eq!(outputs[1].1.signal_name(), Some("paid"));
    let signals = world.store().signals(run.key).await.expect("read signals");
    assert_eq!(signals[0].row.consumed_by, Some(run.node("w")));
    assert_eq!(signals[0].payload, *got);
    let shown = "select step, output, codec from outputs where node = 1";
    assert_eq!(rows(&schema.client, shown).await, ["w | - | test"]);
    schema.remove().await;
}

#[tokio::test]
async fn the_oldest_wait_comes_first_and_a_key_counts_once() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("v ? paid; w ? paid|void; b < v, w").await;
    let run = world.start(&flow).await;
    let [one, other] = ["one", "other"].map(|key| signal(&run, "paid", key));
    let mut taken = signal(&run, "paid", "one");
    taken.signal.digest = [7; 32];
    let by_id = SignalTarget::Id(run.tenant.clone(), run.id.clone());
    let other = SignalRequest { to: by_id, ..other };
    let nobody = SignalTarget::Id(run.tenant.clone(), RunId::new("nobody").expect("a name"));
    let nobody = SignalRequest { to: nobody, ..one.clone() };
    let batch = vec![one.clone(), taken, nobody, other.clone()];
    let answers = world.store().signal(batch).await.expect("send signals");
    let expected = [Some(stored(1, true)), Some(SignalAnswer::KeyTaken), None];
    assert_eq!(answers, [&expected[..], &[Some(stored(2, true))]].concat());
    assert_eq!(left(&world, &run, "v").await, "paid one");
    assert_eq!(left(&world, &run, "w").await, "paid other");
    assert_eq!(world.step().await, "b");
    let again = send(&world, vec![one, other, signal(&run, "paid", "late")]).await;
    let known = |number| SignalAnswer::AlreadyStored { number };
    let late = SignalAnswer::AlreadyEnded(RunStatus::Completed);
    assert_eq!(again, [known(1), known(2), late]);
    schema.remove().await;
}

#[tokio::test]
async fn a_wait_whose_deadline_passed_times_out_whoever_sends_later() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("w ? paid/3h; b < w").await;
    let run = world.start(&flow).await;
    world.pass(3 * HOUR);
    assert_eq!(send(&world, vec![signal(&run, "paid", "late")]).await, [stored(1, false)]);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(left(&world, &run, "w").await, "timed out");
    let b = world.claim_one().await;
    let got = world.inputs(&b).await.parents.remove(0).output.expect("the wait is done");
    assert!(got.is_timed_out());
    assert_eq!(world.row(&run).await.n_unconsumed, 1);
    let shown = "select step, codec, n_bytes from outputs";
    assert_eq!(rows(&schema.client, shown).await, ["w | timed-out | 0"]);
    schema.remove().await;
}

#[tokio::test]
async fn a_look_that_finds_nothing_goes_back_to_the_deadline() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("a; w ? paid/3h < a").await;
    let run = world.start(&flow).await;
    send(&world, vec![signal(&run, "other", "k")]).await;
    world.step().await;
    world.fire().await;
    let deadline = world.clock().now().after(3 * HOUR);
    assert_eq!(world.dump().await.timers[&(run.key, run.node("w"))], deadline);
    assert_eq!(send(&world, vec![signal(&run, "paid", "l")]).await, [stored(2, true)]);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert!(world.dump().await.timers.is_empty());
    schema.remove().await;
}

#[tokio::test]
async fn a_step_that_waits_is_told_what_ended_it_until_it_is_done() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("a * 1; b < a").await;
    world.limit("zeta", 1).await;
    for whose in ["acme", "zeta"] {
        let run = world.start_for(whose, &flow).await;
        let wait_for = wait_for_order();
        let waits = Outcome::Waits { wait_for: wait_for.clone(), notes: Attributes::new() };
        let first = world.claim_one().await;
        world.settle(&first, waits.clone()).await;
        assert_eq!(world.commit_one(&first, waits).await, CommitAnswer::Accepted, "repeated");
        let waits = world.store().waits(run.key).await.expect("read waits");
        assert_eq!(
            (&waits[0].signals, &waits[0].matching),
            (&wait_for.signals, &wait_for.matching)
        );
        let mut order = signal(&run, "paid", "k");
        assert_eq!(send(&world, vec![order.clone()]).await, [stored(1, false)], "not this order");
        order.signal.attributes = wait_for.matching;
        order.signal.key = "l".to_owned();
        assert_eq!(send(&world, vec![order]).await, [stored(2, true)]);
        for _ in 0..2 {
            let again = world.claim_one().await;
            assert_eq!(again.resumed, Some(Resumed::Signal(2)));
            let resumed = world.inputs(&again).await.resumed.expect("a signal ended its wait");
            assert_eq!(resumed.signal_name(), Some("paid"));
            assert_eq!(again.inputs.as_ref().expect("they come along").resumed, Some(resumed));
            if again.attempt == 2 {
                world.fail(&again).await;
            } else {
                world.complete(&again).await;
            }
        }
        assert_eq!(world.task(&run, "a").await.resumed, None);
        world.drain().await;
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
    schema.remove().await;
}

#[tokio::test]
async fn a_cancelled_run_waits_for_nothing() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("w ? paid/3h; v ? paid").await;
    let run = world.start(&flow).await;
    send(&world, vec![signal(&run, "other", "k")]).await;
    let request = CancelRequest { reason: Some("changed".to_owned()), ..CancelRequest::by("me") };
    let answer = world.store().cancel(run.key, request).await.expect("cancel a run");
    assert_eq!(answer, Some(CancelAnswer::Cancelled));
    world.check().await;
    let dump = world.dump().await;
    assert!(dump.timers.is_empty() && dump.waits[&run.key].is_empty());
    let late = SignalAnswer::AlreadyEnded(RunStatus::Cancelled);
    assert_eq!(send(&world, vec![signal(&run, "paid", "l")]).await, [late]);
    let shown = "select detail::json ->> 'reason', detail::json ->> 'by' from events \
        where event = 'RUN_CANCELLED'";
    assert_eq!(rows(&schema.client, shown).await, ["changed | me"]);
    schema.remove().await;
}

#[tokio::test]
async fn the_views_show_what_the_log_tells() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let sketch = Sketch::from("a; v ? paid/1h; w ? never/0s; b < v, w").deadline(2 * HOUR);
    let run = world.start(&world.define(sketch).await).await;
    let wait_for = WaitFor { signals: vec!["ok".to_owned()], ..wait_for_order() };
    let waits = Outcome::Waits { wait_for, notes: Attributes::new() };
    world.settle(&world.claim_one().await, waits).await;
    let timers = "select step, timer from timers order by due_at";
    assert_eq!(rows(&schema.client, timers).await, ["w | wait", "v | wait", "- | deadline"]);
    send(&world, vec![signal(&run, "paid", "k")]).await;
    world.fire().await;
    world.pass(2 * HOUR);
    world.fire().await;
    let shown = "select number, coalesce(attempt, 0), event from events order by number";
    let logged = world.events(&run).await.into_iter().filter_map(|event| {
        Some(format!("{} | {} | {}", event.number?, event.attempt, event.kind.name()))
    });
    assert_eq!(rows(&schema.client, shown).await, logged.collect::<Vec<_>>());
    let details = "select event, detail from events where number = 3 or event in \
        ('SUSPENDED', 'SIGNALLED', 'TIMED_OUT', 'DEADLINE_PASSED') order by number";
    let shown = [
        "WAITING | {\"until\": 1767225600000000, \"signals\": [\"never\"], \"matching\": {}}",
        "SUSPENDED | -",
        "SIGNALLED | {\"into\": \"COMPLETED\", \"number\": 1, \"signal\": \"paid\"}",
        "TIMED_OUT | {\"into\": \"COMPLETED\"}",
        "DEADLINE_PASSED | -",
    ];
    assert_eq!(rows(&schema.client, details).await, shown);
    let signals =
        "select number, signal, signal_key, attributes, consumed_by, n_bytes from signals";
    assert_eq!(rows(&schema.client, signals).await, ["1 | paid | k | {} | v | 1"]);
    schema.remove().await;
}

/// A wait for the payment of one order.
fn wait_for_order() -> WaitFor {
    let matching = Attributes::from([("order".to_owned(), "7".to_owned())]);
    WaitFor { signals: vec!["paid".to_owned()], matching, timeout: None }
}

#[tokio::test]
async fn nothing_of_a_run_past_its_deadline_starts_but_its_handler() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define(Sketch::from("a; b; c < a").on_failure().deadline(2 * HOUR)).await;
    let mut request = world.request("acme", "", &flow, b"input");
    request.seed.deadline = Some(HOUR);
    let (own, by_policy) = (run_of(&request, &flow), world.start(&flow).await);
    world.start_all(vec![request]).await;
    let batch = world.claim(&worker(WORKER), 1).await;
    let a = batch.of("a");
    let spans = [&own, &by_policy].map(|run| run.key);
    for (key, span) in spans.into_iter().zip([HOUR, 2 * HOUR]) {
        let row = world.store().run(key).await.expect("read a run").expect("it is there").row;
        assert_eq!(row.deadline, Some(row.started_at.after(span)));
    }
    world.pass(HOUR);
    assert_eq!(world.claim_all().await.iter().count(), 1, "only the other run goes on");
    world.pass(HOUR);
    let commit = vec![CommitItem { claim: a.claim, outcome: completed() }];
    let committed = world.commit_for(commit, &worker(WORKER), 5).await;
    assert!(committed.handed_over.tasks.is_empty(), "the child may not start");
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.fire().await.n_fired, 2);
    assert_eq!(world.claim_all().await.steps(), "on_failure on_failure");
    let failure = world.row(&own).await.failure.expect("it failed");
    assert_eq!(failure.failure.message, "the run did not end before its deadline");
    schema.remove().await;
}

#[tokio::test]
async fn two_signals_at_once_go_to_two_waits() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("v ? paid; w ? paid").await;
    for _ in 0..10 {
        let run = world.start(&flow).await;
        let store = world.store();
        let (one, other) = tokio::join!(
            store.signal(vec![signal(&run, "paid", "one")]),
            store.signal(vec![signal(&run, "paid", "other")]),
        );
        let mut answers = [one, other].map(|answer| answer.expect("it is sent")[0]);
        answers.sort_by_key(|answer| *answer != Some(stored(1, true)));
        assert_eq!(answers, [stored(1, true), stored(2, true)].map(Some));
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
    world.check().await;
    schema.remove().await;
}

#[tokio::test]
async fn either_the_signal_wins_or_the_cancel() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("w ? paid").await;
    for _ in 0..10 {
        let run = world.start(&flow).await;
        let (sent, cancelled) = tokio::join!(
            world.store().signal(vec![signal(&run, "paid", "k")]),
            world.store().cancel(run.key, CancelRequest::by("me")),
        );
        let (sent, cancelled) = (sent.expect("sent")[0], cancelled.expect("cancelled"));
        let ended = world.status(&run).await;
        let (won, lost) = match ended {
            RunStatus::Completed => (stored(1, true), CancelAnswer::AlreadyEnded(ended)),
            _ => (SignalAnswer::AlreadyEnded(ended), CancelAnswer::Cancelled),
        };
        assert_eq!((sent, cancelled), (Some(won), Some(lost)));
    }
    world.check().await;
    schema.remove().await;
}

#[tokio::test]
async fn a_signal_that_waits_for_its_run_is_sent_when_it_has_it() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let flow = world.define("w ? paid/3h").await;
    let run = world.start(&flow).await;
    let client = &schema.client;
    client.batch_execute("begin; select from run for update").await.expect("it is locked");
    let meanwhile = async {
        let waits = format!(
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' \
             and query like '%{}%lock_runs%' or query like '%lock_runs%{0}%'",
            schema.name
        );
        while rows(client, &waits).await.is_empty() {}
        world.pass(3 * HOUR);
        client.batch_execute("commit").await.expect("it is let go");
    };
    let (sent, ()) = tokio::join!(world.store().signal(vec![signal(&run, "paid", "k")]), meanwhile);
    assert_eq!(sent.expect("it is sent"), [Some(stored(1, false))], "the deadline has passed");
    let signals = world.store().signals(run.key).await.expect("read signals");
    assert_eq!(signals[0].row.sent_at, world.clock().now());
    schema.remove().await;
}

#[tokio::test]
async fn waiting_runs_of_a_workflow_are_read_in_pages_whatever_their_version() {
    let schema = Schema::make("signals").await;
    let world = world(&schema);
    let old = world.define(Sketch::from("v ? paid; w ? paid").named("order")).await;
    let new = world.define(Sketch::from("w ? paid|void").named("order")).await;
    let other = world.define(Sketch::from("w ? paid").named("other")).await;
    let mut runs = Vec::new();
    for flow in [&old, &new, &old, &other, &new] {
        runs.push(world.start(flow).await);
        world.start_for("zeta", flow).await;
    }
    let asked = WaitingRuns {
        tenant: tenant("acme"),
        workflow: "order".to_owned(),
        signal: "paid".to_owned(),
    };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.store().waiting_runs(&asked, after, 3).await.expect("read waits");
        after = page.last().copied();
        found.extend(page);
        if found.len() % 3 != 0 {
            break;
        }
    }
    let expected = [0, 1, 2, 4].map(|ix: usize| runs[ix].key);
    assert_eq!(found, expected);
    let void = WaitingRuns { signal: "void".to_owned(), ..asked };
    let found = world.store().waiting_runs(&void, None, 9).await.expect("read waits");
    assert_eq!(found, [1, 4].map(|ix: usize| runs[ix].key));
    assert_eq!(world.task(&runs[0], "v").await.state(), TaskState::Waiting);
    let shown = "select run, step, signals, deadline from waits where tenant = 'acme' \
        and run = 'run-3'";
    assert_eq!(rows(&schema.client, shown).await, ["run-3 | w | {paid,void} | -"]);
    let shown = "select step, waits_for from tasks where run = 'run-3'";
    assert_eq!(rows(&schema.client, shown).await, ["w | signal: paid or void"]);
    schema.remove().await;
}
