//! Signals: each is stored once, answered clearly, and given once. A key tells a repeated one.

use std::time::Duration;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::id::{RunId, RunKey};
use stepwell_core::run::{Attributes, RunStatus, SignalRow};

use super::world::{Run, Sketch, TENANT, World, run_of, tenant};
use crate::ports::{Clock, SignalRequest};

const fn stored(number: u64, is_consumed: bool) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed }
}

/// A run that the store has never seen.
fn unknown(run: &Run) -> Run {
    let id = RunId::new("nowhere").expect("a usable id");
    Run { key: RunKey(77), id, ..run.clone() }
}

pub(super) async fn a_signal_is_stored_with_all_it_carries(world: &World) {
    // L9
    let flow = world.define("a; w ? paid").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_secs(5));
    let paid = world.to(&run, "paid").key("evt-1").with("order", "4711").with("b", "2");
    let digest = SignalRequest::from(paid.clone()).signal.digest;
    world.send(paid).await;
    world.pass(Duration::from_secs(5));
    world.signal(&run, "other").await;
    let signals = world.signals(&run).await;
    let attributes = [("order", "4711"), ("b", "2")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    let expected = SignalRow {
        number: 1,
        name: "paid".to_owned(),
        key: "evt-1".to_owned(),
        attributes: Attributes::from(attributes),
        digest,
        sent_at: world.row(&run).await.started_at.after(Duration::from_secs(5)),
        consumed_by: Some(run.node("w")),
    };
    assert_eq!(signals[0].row, expected);
    assert_eq!(signals[1].row.sent_at, world.clock().now());
    assert_eq!((signals[1].row.number, signals.len()), (2, 2));
    let row = world.row(&run).await;
    assert_eq!((row.n_signals, row.n_unconsumed), (2, 1));
}

pub(super) async fn a_run_is_found_by_key_and_by_id(world: &World) {
    let flow = world.define("w ? paid|sent|done; v ? done").await;
    let run = world.start(&flow).await;
    let request = world.request("zeta", run.id.as_str(), &flow, b"input");
    let twin = run_of(&request, &flow);
    world.try_start(request).await;
    assert_eq!(world.send(world.to(&run, "paid").by_id()).await, stored(1, true));
    assert_eq!(world.send(world.to(&run, "done")).await, stored(2, true));
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.inbox(&twin).await, "", "the same id of another tenant");
    assert_eq!(world.open_waits(&twin).await, "w for paid|sent|done, v for done");
}

pub(super) async fn a_signal_to_a_run_that_is_not_there_is_told(world: &World) {
    let flow = world.define("w ? paid").await;
    let run = world.start(&flow).await;
    let nowhere = unknown(&run);
    let sendings = vec![world.to(&nowhere, "paid"), world.to(&nowhere, "paid").by_id()];
    assert_eq!(world.unchanged_by(world.send_all(sendings)).await, [None, None]);
    assert!(world.signals(&nowhere).await.is_empty());
    assert!(world.waits(&nowhere).await.is_empty());
    let stranger = Run { tenant: tenant("stranger"), ..run };
    let sendings = vec![world.to(&stranger, "paid").by_id()];
    assert_eq!(world.unchanged_by(world.send_all(sendings)).await, [None]);
}

pub(super) async fn no_signals_at_all_are_sent(world: &World) {
    assert!(world.unchanged_by(world.send_all(Vec::new())).await.is_empty());
}

pub(super) async fn a_batch_is_answered_in_its_order(world: &World) {
    // Many runs, the same one twice, by key and by id, some unknown, one that has ended.
    let flow = world.define("w ? paid; v ? paid; b < v").await;
    let short = world.define("w ? paid").await;
    let (one, two) = (world.start(&flow).await, world.start_for("zeta", &flow).await);
    let ended = world.start(&short).await;
    world.signal(&ended, "paid").await;
    let nowhere = unknown(&one);
    let sendings = vec![
        world.to(&two, "paid").by_id(),
        world.to(&nowhere, "paid"),
        world.to(&one, "paid"),
        world.to(&one, "other").by_id(),
        world.to(&ended, "paid"),
        world.to(&two, "paid").key("again"),
        world.to(&nowhere, "paid").by_id(),
        world.to(&one, "paid"),
        world.to(&one, "paid"),
        world.to(&two, "paid").key("again"),
    ];
    let answers = world.send_all(sendings).await;
    let expected = [
        Some(stored(1, true)),
        None,
        Some(stored(1, true)),
        Some(stored(2, false)),
        Some(SignalAnswer::AlreadyEnded(RunStatus::Completed)),
        Some(stored(2, true)),
        None,
        Some(stored(3, true)),
        Some(stored(4, false)),
        // Its first was another signal: keys are compared with what they carry.
        Some(SignalAnswer::KeyTaken),
    ];
    assert_eq!(answers, expected);
    assert_eq!(world.inbox(&one).await, "1 paid to w, 2 other, 3 paid to v, 4 paid");
    assert_eq!(world.inbox(&two).await, "1 paid to w, 2 paid to v");
    assert_eq!(world.drain().await, "b b");
}

pub(super) async fn a_batch_to_one_run_goes_from_wait_to_wait(world: &World) {
    // A wait that opens by a signal of the same batch may look at the others later, but loses none.
    let flow = world.define("w ? go; v ? paid/3h < w; u ? paid < v; t ? done/1h < u").await;
    let run = world.start(&flow).await;
    let names = ["go", "paid", "paid", "done"];
    let sendings = names.iter().map(|name| world.to(&run, name)).collect();
    let answers = world.send_all(sendings).await;
    for (number, answer) in (1..).zip(answers) {
        let Some(SignalAnswer::Stored { number: got, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(got, number);
    }
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 go to w, 2 paid to v, 3 paid to u, 4 done to t");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_thousand_runs_are_signalled_in_one_batch(world: &World) {
    let flow = world.define("w ? paid; b < w").await;
    let runs = world.start_many_for(TENANT, &flow, 1_000).await;
    let answers = world.send_all(runs.iter().map(|run| world.to(run, "paid")).collect()).await;
    assert_eq!(answers, vec![Some(stored(1, true)); 1_000]);
    assert_eq!(world.claim_all().await.len(), 1_000);
}

pub(super) async fn the_same_signal_again_is_stored_once(world: &World) {
    // L10, FB1
    let flow = world.define("w ? paid; v ? paid").await;
    let run = world.start(&flow).await;
    let other = world.to(&run, "other");
    assert_eq!(world.send(other.clone()).await, stored(1, false));
    let paid = world.to(&run, "paid").with("order", "4711");
    assert_eq!(world.send(paid.clone()).await, stored(2, true));
    world.pass(Duration::from_hours(1));
    let known = |number| SignalAnswer::AlreadyStored { number };
    assert_eq!(world.unchanged_by(world.send(other.by_id())).await, known(1));
    assert_eq!(world.unchanged_by(world.send(paid.clone())).await, known(2), "consumed");
    world.signal(&run, "paid").await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.unchanged_by(world.send(paid)).await, known(2), "ended");
}

pub(super) async fn the_same_signal_twice_in_one_batch_is_stored_once(world: &World) {
    // L10
    let flow = world.define("w ? paid; v ? paid").await;
    let run = world.start(&flow).await;
    let paid = world.to(&run, "paid");
    let answers = world.send_all(vec![paid.clone(), paid.clone().by_id(), paid]).await;
    let known = Some(SignalAnswer::AlreadyStored { number: 1 });
    assert_eq!(answers, [Some(stored(1, true)), known, known]);
    assert_eq!(world.states(&run).await, "w COMPLETED, v WAITING");
}

pub(super) async fn of_two_signals_under_one_key_in_a_batch_the_first_is_stored(world: &World) {
    // L10
    let flow = world.define("w ? paid; v ? paid").await;
    let run = world.start(&flow).await;
    let paid = |bytes: &[u8]| world.to(&run, "paid").key("evt-1").carrying(bytes);
    let answers = world.send_all(vec![paid(b"one"), paid(b"two"), paid(b"one")]).await;
    let known = SignalAnswer::AlreadyStored { number: 1 };
    assert_eq!(answers, [stored(1, true), SignalAnswer::KeyTaken, known].map(Some));
    assert_eq!(world.inbox(&run).await, "1 paid to w");
    assert_eq!(&*world.signals(&run).await[0].payload.bytes, b"one");
    assert_eq!(&*world.output(&run, "w").await.expect("it completed").bytes, b"one");
}

pub(super) async fn another_signal_under_a_known_key_is_refused(world: &World) {
    // L10
    let flow = world.define("w ? paid; v ? paid").await;
    let run = world.start(&flow).await;
    let paid = || world.to(&run, "paid").key("evt-1").with("order", "1").carrying(b"10 EUR");
    world.send(paid()).await;
    let named = || world.to(&run, "sent").key("evt-1").with("order", "1").carrying(b"10 EUR");
    let plain = || world.to(&run, "paid").key("evt-1").carrying(b"10 EUR");
    for _ in 0..2 {
        let others =
            [paid().carrying(b"11 EUR"), paid().with("order", "2"), named(), plain(), paid()];
        let expected = [SignalAnswer::KeyTaken; 4];
        let answers = world.unchanged_by(world.send_all(others.to_vec())).await;
        assert_eq!(answers[..4], expected.map(Some));
        assert_eq!(answers[4], Some(SignalAnswer::AlreadyStored { number: 1 }));
        // The same once the run has ended.
        world.send(world.to(&run, "paid").key("evt-2")).await;
        assert_eq!(world.status(&run).await, RunStatus::Completed);
    }
}

pub(super) async fn keys_belong_to_their_run(world: &World) {
    let flow = world.define("w ? paid").await;
    let (one, two) = (world.start(&flow).await, world.start(&flow).await);
    let to = |run: &Run, bytes: &[u8]| world.to(run, "paid").key("evt-1").carrying(bytes);
    assert_eq!(world.send(to(&one, b"one")).await, stored(1, true));
    assert_eq!(world.send(to(&two, b"two")).await, stored(1, true));
    assert_eq!(&*world.output(&two, "w").await.expect("it completed").bytes, b"two");
}

pub(super) async fn keys_that_differ_by_case_or_space_are_different(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let keys = ["evt", "EVT", "evt ", " evt", "\u{e9}vt", "e\u{301}vt", "null", "NULL"];
    for (number, key) in (1..).zip(keys) {
        assert_eq!(world.send(world.to(&run, "paid").key(key)).await, stored(number, false));
    }
    let stored: Vec<String> =
        world.signals(&run).await.into_iter().map(|signal| signal.row.key).collect();
    assert_eq!(stored, keys);
}

pub(super) async fn a_run_that_has_ended_takes_no_signal(world: &World) {
    let flow = world.define("a; b < a").await;
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    let batch = world.claim_all().await;
    world.complete(&batch[0]).await;
    world.fail(&batch[1]).await;
    world.cancel(&runs[2]).await;
    world.drain().await;
    let ends = [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];
    for (run, end) in runs.iter().zip(ends) {
        let answer = world.unchanged_by(world.signal(run, "paid")).await;
        assert_eq!(answer, SignalAnswer::AlreadyEnded(end));
        let answer = world.unchanged_by(world.send(world.to(run, "paid").if_awaited())).await;
        assert_eq!(answer, SignalAnswer::AlreadyEnded(end));
    }
}

pub(super) async fn a_run_that_is_ending_takes_no_signal(world: &World) {
    let flow = world.define(Sketch::from("a; w ? paid < a").on_failure()).await;
    let run = world.start(&flow).await;
    let early = world.to(&run, "paid");
    world.send(early.clone()).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.status(&run).await, RunStatus::Ending);
    let answer = world.unchanged_by(world.signal(&run, "paid")).await;
    assert_eq!(answer, SignalAnswer::AlreadyEnding(RunStatus::Failed));
    let again = world.unchanged_by(world.send(early)).await;
    assert_eq!(again, SignalAnswer::AlreadyStored { number: 1 }, "the key is looked up first");
    assert_eq!(world.drain().await, "on_failure");
}

pub(super) async fn a_signal_for_whoever_waits_is_dropped_if_nobody_does(world: &World) {
    let flow = world.define("w ? paid&order=1; a; v ? paid < a").await;
    let run = world.start(&flow).await;
    let paid = || world.to(&run, "paid").key("call").if_awaited();
    assert_eq!(world.unchanged_by(world.send(paid())).await, SignalAnswer::NotAwaited);
    let payload = paid().carrying(b"once");
    world.step().await;
    assert_eq!(world.send(payload.clone()).await, stored(1, true));
    assert_eq!(world.inbox(&run).await, "1 paid to v");
    let again = world.unchanged_by(world.send(payload)).await;
    assert_eq!(again, SignalAnswer::AlreadyStored { number: 1 }, "a repeated call adds none");
}

pub(super) async fn a_signal_for_whoever_waits_is_kept_for_a_wait_that_has_yet_to_look(
    world: &World,
) {
    let flow = world.define("a; w ? paid < a").await;
    let run = world.start(&flow).await;
    world.signal(&run, "other").await;
    world.step().await;
    let paid = world.to(&run, "paid").if_awaited();
    assert_eq!(world.send(paid).await, stored(2, false));
    world.fire_all().await;
    assert_eq!(world.inbox(&run).await, "1 other, 2 paid to w");
}

pub(super) async fn a_signal_for_whoever_waits_is_dropped_once_the_wait_is_over(world: &World) {
    let flow = world.define("w ? paid/1h").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_hours(1));
    let paid = world.to(&run, "paid").if_awaited();
    assert_eq!(world.unchanged_by(world.send(paid)).await, SignalAnswer::NotAwaited);
}

pub(super) async fn signals_touch_no_other_run(world: &World) {
    // S18
    let flow = world.define("w ? paid; b < w").await;
    let (one, other) = (world.start(&flow).await, world.start_for("zeta", &flow).await);
    world.signal(&one, "paid").await;
    assert_eq!(world.states(&other).await, "w WAITING, b PENDING");
    let row = world.row(&other).await;
    assert_eq!((row.n_signals, row.n_unconsumed), (0, 0));
    assert_eq!(world.claim_all().await.tenants(), TENANT);
}
