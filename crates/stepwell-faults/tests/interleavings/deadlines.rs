//! The deadline of a run passes while something else happens to it, and a run is made to end while
//! its failure handler does.

use std::time::Duration;

use stepwell::core::id::Epoch;
use stepwell::ports::ClaimedTask;
use stepwell::testing::conformance::world::{
    Run, Sketch, WORKER, failed_for_good, waiting, worker,
};

use crate::acts::{self, Act};
use crate::stage::Stage;

/// Longer than a lease, so that the deadline finds silent workers.
const DEADLINE: Duration = Duration::from_hours(1);

/// A run whose deadline has passed. Of its tasks one is claimed, one is in line, one waits for a
/// signal, one sleeps and one is pending; a failure handler follows.
struct LateRun {
    stage: Stage,
    run: Run,
    claimed: ClaimedTask,
    epoch: Epoch,
}

impl LateRun {
    async fn new() -> Self {
        let stage = Stage::open().await;
        let world = &stage.world;
        let flow = Sketch::from("a; b; w ? paid/2h; s ~ 2h; c < a").on_failure();
        let flow = world.define(flow).await;
        let run = world.start_within(&flow, DEADLINE).await;
        let claimed = world.claim_one().await;
        let epoch = world.lead().await;
        world.pass(DEADLINE);
        Self { stage, run, claimed, epoch }
    }

    /// Lets the deadline pass while another call goes on. Either may come first.
    async fn meet(self, other: &Act) {
        let tried = self.stage.meet(&acts::fire(self.epoch), other).await;
        assert!(tried.did_meet(), "they meet: {tried:?}");
        self.stage.close().await;
    }
}

#[tokio::test]
async fn a_deadline_meets_the_commit_of_a_task() {
    // L12, FB6
    let late = LateRun::new().await;
    let commit = acts::complete(late.claimed.claim);
    late.meet(&commit).await;
}

#[tokio::test]
async fn a_deadline_meets_the_commit_of_the_last_task() {
    // L12, FB6: the run has completed, or it has failed.
    let stage = Stage::open().await;
    let flow = stage.world.define(Sketch::from("a").on_failure()).await;
    stage.world.start_within(&flow, DEADLINE).await;
    let task = stage.world.claim_one().await;
    let epoch = stage.world.lead().await;
    stage.world.pass(DEADLINE);
    let tried = stage.meet(&acts::fire(epoch), &acts::complete(task.claim)).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "either comes first: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_deadline_meets_a_step_that_goes_waiting() {
    // L5, L12
    let late = LateRun::new().await;
    let suspend = acts::commit(late.claimed.claim, waiting("approved/1h"));
    late.meet(&suspend).await;
}

#[tokio::test]
async fn a_deadline_meets_a_cancel() {
    // L12
    let late = LateRun::new().await;
    let cancel = acts::cancel(late.run.key);
    late.meet(&cancel).await;
}

#[tokio::test]
async fn a_deadline_meets_a_cancel_by_force() {
    // L12
    let late = LateRun::new().await;
    let force = acts::force(late.run.key);
    late.meet(&force).await;
}

#[tokio::test]
async fn a_deadline_meets_the_reaping_of_its_run_s_worker() {
    // L4, L12
    let late = LateRun::new().await;
    let reap = acts::reap(late.epoch, late.stage.world.reap_request().await);
    late.meet(&reap).await;
}

#[tokio::test]
async fn a_deadline_meets_a_claim_which_gets_nothing_but_the_handler() {
    // L12
    let late = LateRun::new().await;
    late.meet(&acts::claim(&worker(WORKER), 3, 1)).await;
}

/// A run that is ending, and the claim of its failure handler.
async fn ending_run(stage: &Stage) -> (Run, ClaimedTask) {
    let flow = stage.world.define(Sketch::from("a").on_failure()).await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    stage.world.settle(&task, failed_for_good("boom")).await;
    (run, stage.world.claim_one().await)
}

#[tokio::test]
async fn a_cancel_by_force_meets_the_commit_of_the_failure_handler() {
    // L12, FB6
    let stage = Stage::open().await;
    let (run, handler) = ending_run(&stage).await;
    let tried = stage.meet(&acts::force(run.key), &acts::complete(handler.claim)).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "either comes first: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_cancel_by_force_meets_a_failure_handler_that_fails() {
    // L12, FB6
    let stage = Stage::open().await;
    let (run, handler) = ending_run(&stage).await;
    let fail = acts::commit(handler.claim, failed_for_good("boom again"));
    let tried = stage.meet(&acts::force(run.key), &fail).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "either comes first: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_cancel_by_force_meets_the_claim_of_the_failure_handler() {
    // L12
    let stage = Stage::open().await;
    let (run, handler) = ending_run(&stage).await;
    stage.world.release(&handler).await;
    let claim = acts::claim(&worker(WORKER), 1, 1);
    let tried = stage.meet(&acts::force(run.key), &claim).await;
    assert!(tried.did_meet(), "they meet: {tried:?}");
    stage.close().await;
}
