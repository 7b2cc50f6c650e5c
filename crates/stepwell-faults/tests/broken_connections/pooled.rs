//! Engines behind a transaction pooler.

use std::time::Duration;

use stepwell::{AttemptState, PostgresOptions, PostgresStore};
use stepwell_faults::database::OwnDatabase;
use stepwell_faults::pooler::{Pooler, PreparedStatements};

use crate::support::{Journal, all_came_right, count, engine, server, start};

#[tokio::test(flavor = "multi_thread")]
async fn engines_behind_a_transaction_pooler_do_their_work_by_polling() {
    // FC3
    behind_a_pooler(PreparedStatements::Kept, |options, _| options.poll_only()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_that_know_of_the_pooler_leave_nothing_behind_on_its_connections() {
    // FC3
    behind_a_pooler(PreparedStatements::LeftBehind, |options, _| options.pooled()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_behind_a_pooler_wake_and_lead_by_a_direct_way() {
    // FC3
    let direct = |options: PostgresOptions, url: &str| options.direct(url);
    behind_a_pooler(PreparedStatements::LeftBehind, direct).await;
}

async fn behind_a_pooler(
    statements: PreparedStatements,
    choose: impl Fn(PostgresOptions, &str) -> PostgresOptions,
) {
    const N_RUNS: u32 = 40;
    let database = OwnDatabase::make(&server()).await;
    let journal = Journal::new(1_000);
    let pooler = Pooler::to(database.url(), 3, statements).await;
    let behind = async || {
        let options = choose(PostgresOptions::new(pooler.url()), database.url());
        PostgresStore::connect_with(options).await.expect("the server answers")
    };
    let lease = Duration::from_secs(30);
    let (first, sums) = engine(behind().await, &journal, lease).await;
    let (second, _) = engine(behind().await, &journal, lease).await;
    for n in 0..N_RUNS {
        start(&first, &sums, n).await;
    }
    let dump = all_came_right(database.url(), &journal, N_RUNS).await;
    assert_eq!((count(&dump, AttemptState::Lost), count(&dump, AttemptState::Released)), (0, 0));
    assert!(pooler.n_clients() > 3, "more clients than connections: {}", pooler.n_clients());
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}
