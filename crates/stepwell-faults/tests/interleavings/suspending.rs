//! A step goes waiting while its run is cancelled or its worker is taken for dead.

use std::time::Duration;

use stepwell::core::id::Epoch;
use stepwell::testing::conformance::world::{LEASE, Run, waiting};

use crate::acts::{self, Act};
use crate::stage::Stage;

/// A run of which one task is claimed and about to wait, and one is in line. Its worker has been
/// silent for a lease.
struct Suspending {
    stage: Stage,
    run: Run,
    suspend: Act,
    epoch: Epoch,
}

impl Suspending {
    /// With a signal that is there before, if the step shall look for one.
    async fn new(is_signalled: bool) -> Self {
        let stage = Stage::open().await;
        let world = &stage.world;
        let flow = world.define("a; b; c < a").await;
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        if is_signalled {
            world.signal(&run, "paid").await;
        }
        let epoch = world.lead().await;
        world.pass(LEASE + Duration::from_millis(1));
        let suspend = acts::commit(task.claim, waiting("paid/1h"));
        Self { stage, run, suspend, epoch }
    }

    /// Lets the step go waiting while another call goes on. Either may come first.
    async fn meet(self, other: &Act) {
        let tried = self.stage.meet(&self.suspend, other).await;
        assert!(tried.did_meet(), "they meet: {tried:?}");
        self.stage.close().await;
    }
}

#[tokio::test]
async fn a_step_that_goes_waiting_meets_a_cancel() {
    // L5, L12
    let suspending = Suspending::new(false).await;
    let cancel = acts::cancel(suspending.run.key);
    suspending.meet(&cancel).await;
}

#[tokio::test]
async fn a_step_whose_signal_is_there_meets_a_cancel() {
    // L9, L12
    let suspending = Suspending::new(true).await;
    let cancel = acts::cancel(suspending.run.key);
    suspending.meet(&cancel).await;
}

#[tokio::test]
async fn a_step_that_goes_waiting_meets_a_cancel_by_force() {
    // L5, L12
    let suspending = Suspending::new(false).await;
    let force = acts::force(suspending.run.key);
    suspending.meet(&force).await;
}

#[tokio::test]
async fn a_step_that_goes_waiting_meets_the_reaping_of_its_worker() {
    // L4, L5
    let suspending = Suspending::new(false).await;
    let reap = acts::reap(suspending.epoch, suspending.stage.world.reap_request().await);
    suspending.meet(&reap).await;
}

#[tokio::test]
async fn a_step_that_goes_waiting_meets_itself() {
    // FB1: a commit whose reply was lost is sent again.
    let suspending = Suspending::new(false).await;
    let again = suspending.suspend.clone();
    suspending.meet(&again).await;
}
