//! The PostgreSQL store keeps every promise of its ports.
#![cfg(all(feature = "testing", feature = "postgres"))]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stepwell::core::id::{Queue, WorkerId};
use stepwell::core::workflow::{Definition, Draft, DraftStep, NodeKind, Placement, StepPolicy};
use stepwell::ports::{
    Definitions, DynStore, Hint, Store, StoredDefinition, WorkerRegistration, Workers,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::StoreFixture;
use stepwell::{PostgresOptions, PostgresStore, Retry};

/// A schema of its own in the tests' database.
struct Postgres;

fn url() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of the PostgreSQL store need a server: run `cargo xtask test`, which brings its \
         own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

/// A name that no other test uses, in earlier runs on the same server neither.
fn schema() -> String {
    format!("test_{:016x}", RandomState::new().build_hasher().finish())
}

#[async_trait]
impl StoreFixture for Postgres {
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore {
        let options = PostgresOptions::new(url())
            .schema(schema())
            .connections_max(4)
            .poll_only()
            .clock(clock);
        Arc::new(PostgresStore::connect_with(options).await.expect("the server answers"))
    }
}

stepwell::conformance_suite!(Postgres);

#[tokio::test]
async fn every_statement_fits_the_migrated_schema() {
    let options = PostgresOptions::new(url()).schema(schema());
    let store = PostgresStore::connect_with(options).await.expect("the server answers");
    assert!(store.prepare_every_statement().await.expect("all fit") > 50);
}

#[tokio::test]
async fn what_one_process_makes_ready_wakes_another() {
    // FC1, FC2: nothing here polls, so only the notification can end the wait.
    let schema = schema();
    let connect = || async {
        let options = PostgresOptions::new(url()).schema(schema.clone());
        PostgresStore::connect_with(options).await.expect("the server answers")
    };
    let (one, other) = (connect().await, connect().await);
    let mut hints = other.hints();
    // The first hint says that the other listens.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    let registration = WorkerRegistration {
        worker: WorkerId::new("one").expect("a good name"),
        queues: vec![Queue::default_queue()],
        definitions: Vec::new(),
        lease: Duration::from_secs(30),
    };
    one.register_worker(registration).await.expect("it registers");
    hints.given(Hint::Ready).await;
}

#[tokio::test]
async fn a_schema_name_that_needs_quotes_is_refused() {
    for schema in ["", "Upper", "a b", "x\"; drop schema public; --", "1st"] {
        let options = PostgresOptions::new(url()).schema(schema);
        let refused = PostgresStore::connect_with(options).await.expect_err(schema);
        assert!(refused.to_string().contains("lower-case"), "{refused}");
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_is_refused() {
    let refused = PostgresStore::connect("postgres://:::").await.expect_err("refused");
    assert!(refused.to_string().contains("url"), "{refused}");
}

#[tokio::test]
async fn policies_that_another_process_replaced_hold_from_the_next_heartbeat_on() {
    // G13
    let schema = schema();
    let connect = || async {
        let options = PostgresOptions::new(url()).schema(schema.clone()).poll_only();
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
