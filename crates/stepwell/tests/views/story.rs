//! The story that is told to both stores.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::core::decide::NewSignal;
use stepwell::core::failure::{Failure, FailureKind};
use stepwell::core::run::{Attributes, MemoOutcome, MemoRow};
use stepwell::ports::{
    ClaimRef, Clock, MemoAnswer, MemoRequest, Outcome, Payload, SignalRequest, SignalTarget,
    StoredMemo,
};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{
    Run, Sketch, failed, failed_for_good, payload, worker,
};

/// Something of every kind: a retry, a sleep, a claim, a limit, nobody's work, a failure, a wait.
pub(crate) async fn tell(world: &World) {
    let order = Sketch::from("a; b * 1/10s < a; n ~ 24h < a; c < b, n").named("order");
    let order = world.define(order).await;
    world.start_for("acme", &order).await;
    let (codec, bytes) = (Cow::Borrowed("json"), br#"{"ok":true}"#.as_slice());
    let notes = BTreeMap::from([("seen".to_owned(), "7".to_owned())]);
    let output = Payload::new(codec, bytes);
    let a = world.claim_one().await;
    world.pass(Duration::from_secs(1));
    world.settle(&a, Outcome::Completed { output, notes }).await;
    let b = world.claim_one().await;
    world.settle(&b, failed("card declined")).await;

    let solo = world.define(Sketch::from("s").named("solo")).await;
    world.start_for("mole", &solo).await;
    let s = world.claim_one().await;
    remember(world, s.claim).await;

    let broken = world.define(Sketch::from("f; g < f").named("broken").on_failure()).await;
    world.start_for("mole", &broken).await;
    let f = world.claim_one().await;
    world.settle(&f, failed_for_good("no such file")).await;
    let handler = world.claim_one().await;
    world.complete(&handler).await;

    world.limit("zeta", 1).await;
    let pair = world.define(Sketch::from("x; y").named("pair")).await;
    world.start_for("zeta", &pair).await;
    let lonely = world.define_unserved(Sketch::from("p").named("lonely")).await;
    world.start_for("zeta", &lonely).await;
    let idle = world.hire_for("idle", &["slow"], &[&solo]).await;
    world.dismiss(&idle).await;
    world.lead().await;
    world.beat(&worker("worker"), &[]).await;

    let parcel = "approval ? approved|refused/72h; payment ? paid; ship < approval, payment";
    let parcel = Sketch::from(parcel).named("parcel").deadline(Duration::from_hours(96));
    let parcel = world.define_unserved(parcel).await;
    let parcel = world.start_for("acme", &parcel).await;
    let order = Attributes::from([("order".to_owned(), "4711".to_owned())]);
    let amount = Payload::new(Cow::Borrowed("json"), br#"{"amount":12}"#.as_slice());
    send(world, &parcel, ("paid", "evt-1"), order, amount).await;
    send(world, &parcel, ("reminded", "evt-2"), Attributes::new(), payload(b"now")).await;
}

/// Sends a signal under a key.
/// A function has done one thing, and will try another again.
async fn remember(world: &World, claim: ClaimRef) {
    let now = world.clock().now();
    let memo = |key: &str, number, outcome, tries| MemoRow {
        node: claim.node,
        key: key.to_owned(),
        number,
        outcome,
        tries,
        began_at: now,
        at: now,
    };
    let seat = Payload::new(Cow::Borrowed("json"), br#"{"seat":7}"#.as_slice());
    let given = StoredMemo { row: memo("reserve", 1, MemoOutcome::Given, 1), payload: Some(seat) };
    let failure = Some(Failure::new(FailureKind::Error, "", "card declined"));
    let due = Some(now.after(Duration::from_mins(1)));
    let begun = memo("pay", 0, MemoOutcome::Begun { due, failure }, 2);
    let memos = vec![given, StoredMemo { row: begun, payload: None }];
    let request = MemoRequest { claim, memos, forgives: false };
    let answers = world.store().store_memos(vec![request]).await.expect("store memos");
    assert!(matches!(answers[..], [MemoAnswer::Stored(_)]));
}

pub(crate) async fn send(
    world: &World,
    run: &Run,
    (name, key): (&str, &str),
    attributes: Attributes,
    payload: Payload,
) {
    let (name, key) = (name.to_owned(), key.to_owned());
    let signal = NewSignal { name, key, attributes, digest: [0; 32], only_if_awaited: false };
    let request = SignalRequest { to: SignalTarget::Key(run.key), signal, payload };
    world.store().signal(vec![request]).await.expect("send a signal");
}
