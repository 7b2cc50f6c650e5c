//! Tasks that go from hand to hand, and whoever comes across.

use stepwell::core::id::WorkerId;
use stepwell::testing::conformance::world::{Flow, LEASE, Run, TENANT, WORKER, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Tried};

/// A run with two parents of a join, both claimed, and a second worker. Nothing waits in line.
struct Scene {
    flow: Flow,
    run: Run,
    other: WorkerId,
    /// Completes either parent while either worker offers to take what becomes ready.
    parents: [Act; 2],
}

impl Scene {
    async fn set(stage: &Stage) -> Self {
        let world = &stage.world;
        let flow = world.define("p; q; a < p; j < p, q").await;
        let other = world.hire("other").await;
        let run = world.start(&flow).await;
        let claimed = world.claim_all().await;
        let parents = [
            acts::complete_for(claimed.of("p").claim, &worker(WORKER), 1),
            acts::complete_for(claimed.of("q").claim, &other, 2),
        ];
        Self { flow, run, other, parents }
    }
}

/// How many tasks the calls were handed, in every order.
fn n_handed(tried: &Tried) -> Vec<usize> {
    tried.answers.iter().map(|answers| answers.concat().matches("for the 1.").count()).collect()
}

#[tokio::test]
async fn a_join_is_handed_over_once_when_its_parents_commit_in_two_transactions() {
    // FB2, S4
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    let tried = stage.meet(&scene.parents[0], &scene.parents[1]).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    assert!(n_handed(&tried).iter().all(|n| *n == 2), "{tried:?}");
    stage.close().await;
}

/// A start and a commit have few tables apart, so there are thousands of orders; with one
/// interruption each they are few.
async fn meet_a_start(is_handed_over: bool) {
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    let request = stage.world.request("zeta", "", &scene.flow, b"input");
    let start = if is_handed_over {
        acts::start_for(request, &scene.other, 3)
    } else {
        acts::start(request)
    };
    let meeting = stage.meeting(&scene.parents[0], &start).await;
    let tried = meeting.explore(Explorer::with_interruptions_max(1)).await;
    assert!(tried.n_as.iter().all(|n| *n > 0) || is_handed_over, "each goes first: {tried:?}");
    drop(meeting);
    stage.close().await;
}

#[tokio::test]
async fn a_hand_over_meets_a_start_that_goes_into_line() {
    meet_a_start(false).await;
}

#[tokio::test]
async fn a_hand_over_meets_a_start_that_is_handed_over() {
    meet_a_start(true).await;
}

async fn meet_a_claim(of_the_same_worker: bool) {
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    stage.world.start_for("zeta", &scene.flow).await;
    let claimant = if of_the_same_worker { worker(WORKER) } else { scene.other };
    stage.meet(&scene.parents[0], &acts::claim(&claimant, 3, 3)).await;
    stage.close().await;
}

#[tokio::test]
async fn a_hand_over_meets_a_claim_of_the_same_worker() {
    meet_a_claim(true).await;
}

#[tokio::test]
async fn a_hand_over_meets_a_claim_of_another_worker() {
    meet_a_claim(false).await;
}

#[tokio::test]
async fn a_hand_over_meets_the_cancellation_of_its_run() {
    // S8
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    let tried = stage.meet(&scene.parents[0], &acts::cancel(scene.run.key)).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_hand_over_meets_the_heartbeat_of_its_worker() {
    // L4: what it was handed is not taken for lost.
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    stage.meet(&scene.parents[1], &acts::heartbeat(&scene.other, &[])).await;
    stage.close().await;
}

#[tokio::test]
async fn a_hand_over_meets_the_death_of_its_worker() {
    // FA1, L4: nobody is handed anything once it is taken for dead.
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    stage.world.pass(LEASE * 2);
    let epoch = stage.world.lead().await;
    stage.world.beat(&worker(WORKER), &[]).await;
    let reap = acts::reap(epoch, stage.world.reap_request().await);
    let tried = stage.meet(&scene.parents[1], &reap).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_hand_over_meets_its_worker_that_leaves() {
    let stage = Stage::open().await;
    let scene = Scene::set(&stage).await;
    let tried = stage.meet(&scene.parents[1], &acts::deregister(&scene.other)).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_commit_that_is_sent_again_while_it_hands_over_hands_over_once() {
    // FB1
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("a; b < a").await;
    world.start_for(TENANT, &flow).await;
    let claim = world.claim_one().await.claim;
    let other = world.hire("other").await;
    let acts =
        [acts::complete_for(claim, &worker(WORKER), 1), acts::complete_for(claim, &other, 2)];
    let tried = stage.meet(&acts[0], &acts[1]).await;
    assert!(n_handed(&tried).iter().all(|n| *n <= 1), "{tried:?}");
    stage.close().await;
}
