//! What the store answers at edges that play does not reach: rows are changed by hand.
#![cfg(all(feature = "testing", feature = "sqlite"))]

use std::sync::Arc;
use std::time::Duration;

use stepwell::core::decide::RunSeed;
use stepwell::core::id::{RunId, RunKey, Tenant, WorkerId};
use stepwell::core::queue::{BLOCK_LENGTH, POSITION_MAX};
use stepwell::core::workflow::{Draft, DraftStep, NodeKind, Placement, StepPolicy};
use stepwell::ports::{
    Definitions, Inspection, Lead, Leadership, MarkedDefinition, Payload, StartAnswer,
    StartRequest, Starts, StoreError, Timers,
};
use stepwell::testing::ManualClock;
use stepwell::{Code, SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A store with a workflow of one step that nobody serves, and a second connection to its file.
struct Edge {
    store: SqliteStore,
    workflow: MarkedDefinition,
    file: rusqlite::Connection,
    clock: Arc<ManualClock>,
    _folder: TempDir,
}

impl Edge {
    async fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a file");
        let path = folder.path().join("stepwell.db");
        let clock = Arc::new(ManualClock::new());
        let options = SqliteOptions::new(&path);
        let store = SqliteStore::with_clock(options, Arc::clone(&clock) as _).expect("it opens");
        let (placement, policy) = (Placement::Explicit(Vec::new()), StepPolicy::default());
        let step = DraftStep { name: "step".to_owned(), kind: NodeKind::Step, placement, policy };
        let draft = Draft { workflow: "w".to_owned(), steps: vec![step], ..Draft::default() };
        let definition = draft.resolve().expect("a good workflow");
        let workflow = store.register(&definition).await.expect("it registers").marked();
        let file = rusqlite::Connection::open(path).expect("it opens again");
        Self { store, workflow, file, clock, _folder: folder }
    }

    async fn start(&self, tenant: &str, key: u128) -> StartAnswer {
        let seed = RunSeed {
            key: RunKey(key),
            tenant: Tenant::new(tenant).expect("a good name"),
            id: RunId::new(format!("run-{key}")).expect("a good name"),
            definition: self.workflow.id,
            deadline: None,
        };
        let (input, mark) = (Payload::empty(), self.workflow.mark);
        let request = StartRequest { seed, mark, input, input_digest: [0; 32] };
        let answers = self.store.start(vec![request]).await.expect("the store answers");
        answers.into_iter().next().expect("an answer to each request")
    }

    fn change(&self, sql: &str) {
        self.file.execute_batch(sql).expect("the rows make sense");
    }
}

fn is_refused(answer: &StartAnswer) -> bool {
    let StartAnswer::Refused(StoreError::Refused { code, .. }) = answer else { return false };
    *code == Code::FairnessLimit
}

#[tokio::test]
async fn a_start_without_a_position_left_is_refused_and_a_repeated_one_is_not() {
    // R2
    let edge = Edge::new().await;
    assert!(matches!(edge.start("t", 1).await, StartAnswer::Started));
    let last = format!("insert into tenant_position values (0, 'default', {POSITION_MAX})");
    edge.change(&last);
    let answer = edge.start("t", 2).await;
    assert!(is_refused(&answer), "{answer:?}");
    let again = edge.start("t", 1).await;
    assert!(matches!(again, StartAnswer::AlreadyStarted(RunKey(1))), "{again:?}");
    assert!(matches!(edge.start("u", 3).await, StartAnswer::Started), "others have positions");
    let dump = edge.store.dump().await.expect("it is read");
    assert_eq!(dump.runs.keys().collect::<Vec<_>>(), [&RunKey(1), &RunKey(3)]);
}

#[tokio::test]
async fn one_tenant_too_many_is_refused() {
    // R2
    let edge = Edge::new().await;
    assert!(matches!(edge.start("t", 1).await, StartAnswer::Started));
    let last = BLOCK_LENGTH - 1;
    edge.change(&format!("insert into tenant (tenant_no, name) values ({last}, 'last')"));
    let answer = edge.start("new", 2).await;
    assert!(is_refused(&answer), "{answer:?}");
    assert!(matches!(edge.start("t", 3).await, StartAnswer::Started), "those known go on");
    assert!(matches!(edge.start("last", 4).await, StartAnswer::Started), "those known go on");
}

#[tokio::test]
async fn a_timer_that_nothing_waits_for_goes_without_being_counted() {
    let edge = Edge::new().await;
    assert!(matches!(edge.start("t", 1).await, StartAnswer::Started));
    edge.change("insert into timer (due_at, number, run, node) select 0, 9, run, node from task");
    edge.clock.advance(Duration::from_secs(1));
    let worker = WorkerId::new("w").expect("a good name");
    let lead = edge.store.lead(&worker, Duration::from_mins(1)).await.expect("it leads");
    let Lead::Leading(epoch) = lead else { panic!("nobody else leads") };
    for n_fired in [0, 0] {
        let fired = edge.store.fire_timers(epoch, 10).await.expect("it answers");
        assert_eq!((fired.n_fired, fired.next_due), (n_fired, None));
    }
}
