//! A run is read whole while something happens to it: what is read is one moment of it.

use stepwell::testing::conformance::world::{Run, waiting};

use crate::acts::{self, Act};
use crate::stage::Stage;

/// A run with a task of every kind that signals and outcomes move on, and one that is claimed.
async fn busy_run(stage: &Stage) -> Run {
    let flow = stage.world.define("a; w ? paid/1h; v ? paid; b < w; c < a, v").await;
    stage.world.start(&flow).await
}

/// Reads a run while another call goes on; it is seen as it was before that, or after.
async fn meet(stage: Stage, run: &Run, other: &Act) {
    let snapshot = acts::snapshot(run.key);
    let tried = stage.meet(&snapshot, other).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_is_signalled_is_read_before_it_or_after_it() {
    let stage = Stage::open().await;
    let run = busy_run(&stage).await;
    let signal = acts::signal(stage.world.to(&run, "paid").into());
    meet(stage, &run, &signal).await;
}

#[tokio::test]
async fn a_run_whose_task_goes_waiting_is_read_before_it_or_after_it() {
    let stage = Stage::open().await;
    let run = busy_run(&stage).await;
    let task = stage.world.claim_one().await;
    meet(stage, &run, &acts::commit(task.claim, waiting("approved/1h"))).await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_is_read_before_it_or_after_it() {
    let stage = Stage::open().await;
    let run = busy_run(&stage).await;
    stage.world.claim_one().await;
    meet(stage, &run, &acts::cancel(run.key)).await;
}
