//! Who leads on PostgreSQL: the lock makes take-over quick, the epoch makes it safe.
#![cfg(all(feature = "testing", feature = "postgres"))]

use std::sync::Arc;
use std::time::Duration;

use stepwell::PostgresStore;
use stepwell::core::id::{Epoch, WorkerId};
use stepwell::ports::{Lead, Leadership, ReapRequest, StoreError, Timers, Workers};
use stepwell::testing::{ManualClock, TestDatabase};
use tokio_postgres::{Client, NoTls};

const TTL: Duration = Duration::from_mins(1);

/// Two stores know of each other only what two processes would.
struct Rivals {
    clock: Arc<ManualClock>,
    one: PostgresStore,
    other: PostgresStore,
    client: Client,
    _database: TestDatabase,
}

impl Rivals {
    #[expect(clippy::disallowed_methods, reason = "the connection lives on the test's runtime")]
    async fn new() -> Self {
        let database = TestDatabase::create().await;
        let clock = Arc::new(ManualClock::new());
        let connect = || async {
            let clock = Arc::clone(&clock);
            let options = database.options().poll_only().clock(clock);
            PostgresStore::connect_with(options).await.expect("the server answers")
        };
        let (one, other) = (connect().await, connect().await);
        let (client, connection) =
            tokio_postgres::connect(&database.url(), NoTls).await.expect("the server answers");
        drop(tokio::spawn(connection));
        Self { clock, one, other, client, _database: database }
    }

    /// Ends the connection that holds the leader's lock, and waits until it is gone.
    async fn cut_the_leaders_connection(&self) {
        let sql = "select pg_terminate_backend(pid, 10000) from pg_locks \
                   where locktype = 'advisory' and objsubid = 2 and granted \
                   and database = (select oid from pg_database where datname = current_database())";
        let cut = self.client.query(sql, &[]).await.expect("it answers");
        assert_eq!(cut.len(), 1, "one connection holds the lock");
    }
}

async fn lead(store: &PostgresStore, name: &str) -> Option<Epoch> {
    let name = WorkerId::new(name).expect("a good name");
    // A connection that was cut is noticed by the first call on it.
    for _ in 0..3 {
        match store.lead(&name, TTL).await {
            Ok(Lead::Leading(epoch)) => return Some(epoch),
            Ok(Lead::Following) => return None,
            Err(error) => assert!(matches!(error, StoreError::Unavailable { .. }), "{error}"),
        }
    }
    panic!("the server does not answer");
}

#[tokio::test]
async fn a_second_candidate_is_refused_until_the_first_resigns() {
    let rivals = Rivals::new().await;
    let epoch = lead(&rivals.one, "one").await.expect("it leads");
    assert_eq!(lead(&rivals.other, "other").await, None);
    assert_eq!(lead(&rivals.one, "one").await, Some(epoch), "keeping it keeps the epoch");
    rivals.one.resign(epoch).await.expect("it resigns");
    assert!(lead(&rivals.other, "other").await > Some(epoch));
    assert_eq!(lead(&rivals.one, "one").await, None);
}

#[tokio::test]
async fn a_leader_whose_connection_is_gone_is_followed_at_once() {
    // Its term has a minute left; only the lock tells that it is gone.
    let rivals = Rivals::new().await;
    let epoch = lead(&rivals.one, "one").await.expect("it leads");
    assert_eq!(lead(&rivals.other, "other").await, None);
    rivals.cut_the_leaders_connection().await;
    let next = lead(&rivals.other, "other").await.expect("it takes over");
    assert!(next > epoch);
    // The old leader lives: its writes are refused, and it follows.
    let request = ReapRequest { crash_limit: 3, dead: Vec::new() };
    let reaped = loop {
        match rivals.one.reap(epoch, request.clone()).await {
            Err(StoreError::Unavailable { .. }) => {}
            answer => break answer,
        }
    };
    assert!(matches!(reaped, Err(StoreError::NotLeader)), "{reaped:?}");
    let fired = rivals.one.fire_timers(epoch, 10).await;
    assert!(matches!(fired, Err(StoreError::NotLeader)), "{fired:?}");
    assert_eq!(lead(&rivals.one, "one").await, None);
}

#[tokio::test]
async fn a_leader_that_reconnects_first_keeps_its_epoch() {
    let rivals = Rivals::new().await;
    let epoch = lead(&rivals.one, "one").await.expect("it leads");
    rivals.cut_the_leaders_connection().await;
    assert_eq!(lead(&rivals.one, "one").await, Some(epoch));
    assert_eq!(lead(&rivals.other, "other").await, None);
}

#[tokio::test]
async fn a_frozen_leader_is_followed_when_its_term_has_run_out() {
    // It keeps its connection and with it the lock.
    let rivals = Rivals::new().await;
    let epoch = lead(&rivals.one, "one").await.expect("it leads");
    rivals.clock.advance(TTL + Duration::from_secs(1));
    let next = lead(&rivals.other, "other").await.expect("it takes over");
    assert!(next > epoch);
    // Woken up, the old one lets the lock go, and the new one gets it with its next renewal.
    assert_eq!(lead(&rivals.one, "one").await, None);
    assert_eq!(lead(&rivals.other, "other").await, Some(next));
    rivals.cut_the_leaders_connection().await;
    assert!(lead(&rivals.one, "one").await > Some(next));
}

#[tokio::test]
async fn engines_that_share_a_store_do_not_take_the_lead_from_each_other() {
    // They share the connection that holds the lock.
    let rivals = Rivals::new().await;
    let epoch = lead(&rivals.one, "one").await.expect("it leads");
    assert_eq!(lead(&rivals.one, "beside").await, None);
    assert_eq!(lead(&rivals.one, "one").await, Some(epoch));
    assert_eq!(lead(&rivals.other, "other").await, None);
}
