//! A run is cancelled while its tasks are in line.

use stepwell::testing::conformance::world::{TENANT, WORKER, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts;
use crate::stage::Stage;

#[tokio::test]
async fn a_run_in_line_is_cancelled_or_claimed_but_not_both() {
    // S12, FB6
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b; c; j < a, b, c").await;
    let single = world.define("k").await;
    world.limit(TENANT, 4).await;
    let run = world.start(&flow).await;
    world.start_many_for(TENANT, &single, 3).await;
    let claim = acts::claim(&worker(WORKER), 2, 1);
    let tried = stage.meet(&acts::cancel(run.key), &claim).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn two_runs_of_a_tenant_behind_its_limit_are_cancelled_at_once() {
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b; c").await;
    world.limit(TENANT, 4).await;
    let (one, other) = (world.start(&flow).await, world.start(&flow).await);
    world.start(&flow).await;
    let acts = [acts::cancel(one.key), acts::cancel(other.key)];
    // All orders that could matter are thousands: they lock rows of the same tables, if not the
    // same rows.
    let meeting = stage.meeting(&acts[0], &acts[1]).await;
    let tried = meeting.explore(Explorer::with_interruptions_max(1)).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    drop(meeting);
    stage.close().await;
}
