//! Replies that are lost.

use std::time::Duration;

use stepwell::AttemptState;
use stepwell_faults::database::OwnDatabase;
use stepwell_faults::wire::{LostReplies, Statement, Wire};

use crate::support::{Journal, all_came_right, count, engine, server, start, store};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_replies_to_commits_are_lost() {
    // FB1, S1, S2, S10
    const N_RUNS: u32 = 60;
    let database = OwnDatabase::make(&server()).await;
    let journal = Journal::new(1_000);
    let wire = Wire::to(database.url()).await;
    let lease = Duration::from_secs(30);
    let (first, sums) = engine(store(wire.url()).await, &journal, lease).await;
    let (second, _) = engine(store(wire.url()).await, &journal, lease).await;
    wire.lose_replies(LostReplies::by_chance(15, 4711, Statement::is_commit));
    let engines = [&first, &second];
    for n in 0..N_RUNS {
        start(engines[n as usize % 2], &sums, n).await;
        // Again, as a caller whose own reply was lost would do.
        start(engines[(n as usize + 1) % 2], &sums, n).await;
    }
    let dump = all_came_right(database.url(), &journal, N_RUNS).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    assert_eq!(count(&dump, AttemptState::Failed), N_RUNS as usize / 5);
    let n_lost: u64 = wire.sessions().iter().map(|session| session.n_replies_lost).sum();
    assert!(n_lost > 20, "only {n_lost} replies were lost");
    wire.lose_replies(None);
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}
