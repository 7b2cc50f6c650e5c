//! The PostgreSQL store keeps every promise of its ports.
#![cfg(all(feature = "testing", feature = "postgres"))]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use stepwell::core::id::{Queue, WorkerId};
use stepwell::core::workflow::{Definition, Draft, DraftStep, NodeKind, Placement, StepPolicy};
use stepwell::ports::{
    Definitions, DynStore, Hint, Hints, Store, StoredDefinition, WorkerRegistration, Workers,
};
use stepwell::testing::conformance::{StoreFixture, World};
use stepwell::testing::{ManualClock, TestDatabase};
use stepwell::{PostgresStore, Retry};

/// A database of its own in the tests' server, which lives as long as this.
#[derive(Default)]
struct Postgres(OnceLock<TestDatabase>);

#[async_trait]
impl StoreFixture for Postgres {
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore {
        let database = TestDatabase::create().await;
        let options = database.options().connections_max(4).poll_only().clock(clock);
        let options = options.passing_eagerly();
        self.0.set(database).expect("a case opens one store");
        Arc::new(PostgresStore::connect_with(options).await.expect("the server answers"))
    }
}

stepwell::conformance_suite!(Postgres::default());

#[tokio::test]
async fn every_statement_fits_the_migrated_schema() {
    let database = TestDatabase::create().await;
    let store = database.store().await;
    assert!(store.prepare_every_statement().await.expect("all fit") > 50);
}

#[tokio::test]
async fn what_one_process_makes_ready_wakes_another() {
    // FC1, FC2: nothing here polls, so only the notification can end the wait.
    let database = TestDatabase::create().await;
    let (one, other) = (database.store().await, database.store().await);
    let mut hints = listening(&other).await;
    let registration = WorkerRegistration {
        worker: WorkerId::new("one").expect("a good name"),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: Duration::from_secs(30),
    };
    one.register_worker(registration).await.expect("it registers");
    hints.given(Hint::Ready).await;
}

#[tokio::test]
async fn others_are_woken_for_what_there_is_to_see_and_for_nothing_else() {
    // A fleet in which everything wakes everybody has more to look at the more of it there is.
    let database = TestDatabase::create().await;
    let (one, other) = (database.store().await, database.store().await);
    let mut hints = listening(&other).await;
    let world = World::new(Arc::new(one), Arc::new(ManualClock::new()));
    let flow = world.define("a").await;
    world.start(&flow).await;
    hints.given(Hint::Ready).await;
    let task = world.claim_one().await;
    world.complete(&task).await;
    hints.given(Hint::Ended).await;
    for silent in [Hint::Timers, Hint::Claims] {
        assert!(hints.given(silent).now_or_never().is_none(), "{silent:?}");
    }
    let sleepy = world.define("s ~ 1h; a").await;
    let run = world.start(&sleepy).await;
    hints.given(Hint::Timers).await;
    world.claim_one().await;
    let [own, others] = ["worker", "another"].map(|name| WorkerId::new(name).expect("good"));
    world.cancel(&run).await;
    hints.claims_taken_from(&own).await;
    assert!(hints.claims_taken_from(&others).now_or_never().is_none(), "it held nothing");
}

/// What a store tells that has begun to listen to others.
async fn listening(store: &PostgresStore) -> Hints {
    let mut hints = store.hints();
    // The first hints say so.
    for hint in Hint::ALL {
        hints.given(hint).await;
        hints.look(hint);
    }
    hints
}

#[tokio::test]
async fn policies_that_another_process_replaced_hold_from_the_next_heartbeat_on() {
    // G13
    let database = TestDatabase::create().await;
    let connect = || async {
        let options = database.options().poll_only();
        PostgresStore::connect_with(options).await.expect("the server answers")
    };
    let (one, other) = (connect().await, connect().await);
    let plain = definition(Retry::never());
    let id = one.register(&plain).await.expect("it is stored").id;
    let retries = |stored: &StoredDefinition| stored.definition.policy.steps[0].retry.retries_max;
    let seen = other.definition(id).await.expect("it is read").expect("it is there");
    assert_eq!(retries(&seen), 0);
    one.register(&definition(Retry::exponential(5))).await.expect("it is stored");
    let worker = WorkerId::new("other").expect("a good name");
    other.heartbeat(&worker, &[]).await.expect("it answers");
    let seen = other.definition(id).await.expect("it is read").expect("it is there");
    assert_eq!(retries(&seen), 5);
}

fn definition(retry: Retry) -> Definition {
    let policy = StepPolicy { retry, ..StepPolicy::default() };
    let (name, kind) = ("a".to_owned(), NodeKind::Step);
    let step = DraftStep { name, kind, placement: Placement::Explicit(Vec::new()), policy };
    let draft = Draft { workflow: "w".to_owned(), steps: vec![step], ..Draft::default() };
    draft.resolve().expect("a good draft")
}
