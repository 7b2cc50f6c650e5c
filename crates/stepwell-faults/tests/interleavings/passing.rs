//! Queues are passed while others put tasks into them.

use stepwell::PostgresOptions;
use stepwell::testing::conformance::world::{Flow, WORKER, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Time};

/// Each moves the frontier on, and the second and third are rounds, too.
const N_CLAIMS: u64 = 3;

/// A tenant whose places come before those of the tenant whose tasks are taken.
const EARLY: &str = "early";

async fn stage() -> (Stage, Flow) {
    let stage = Stage::open_as("", Time::Stands, PostgresOptions::passing_eagerly).await;
    stage.world.limit(EARLY, None).await;
    let single = stage.world.define("k").await;
    (stage, single)
}

/// Lets a call that puts one task into line meet claims that pass the queue, with so many
/// interruptions. Wherever it stands then, it can be claimed.
async fn meet(stage: Stage, single: &Flow, joining: &Act, n_interruptions: usize) {
    let world = &stage.world;
    world.start_many_for("late", single, 5).await;
    // The frontier has left the beginning, and three are left.
    assert_eq!(world.claim(&worker(WORKER), 2).await.iter().count(), 2);
    let claims = acts::claim_again(&worker(WORKER), N_CLAIMS);
    let meeting = stage.meeting(joining, &claims).await;
    let mut explorer = Explorer::with_interruptions_max(n_interruptions);
    let (mut n_orders, mut n_passed, mut n_left) = (0, 0, 0);
    while explorer.begin() {
        let [_, claimed] = meeting.play_once(&mut explorer).await;
        n_orders += 1;
        n_passed += usize::from(stage.passed().await > 0);
        let left = world.claim_all().await.iter().count();
        n_left += usize::from(left > 0);
        assert_eq!(claimed.matches("run-").count() + left, 4, "{claimed}");
    }
    assert!(n_passed > 0 && n_passed < n_orders, "{n_passed} of {n_orders} passed the queue");
    assert!(n_left > 0, "none of {n_orders} joined behind the last claim");
    drop(meeting);
    stage.close().await;
}

#[tokio::test]
async fn a_start_meets_claims_that_pass_its_queue() {
    let (stage, single) = stage().await;
    let start = acts::start(stage.world.request(EARLY, "", &single, b"input"));
    meet(stage, &single, &start, 1).await;
}

#[tokio::test]
async fn a_start_of_a_limited_tenant_meets_claims_that_pass_its_queue() {
    let (stage, single) = stage().await;
    stage.world.limit(EARLY, 5).await;
    let start = acts::start(stage.world.request(EARLY, "", &single, b"input"));
    meet(stage, &single, &start, 1).await;
}

#[tokio::test]
async fn a_commit_meets_claims_that_pass_the_queue_of_what_becomes_ready() {
    let (stage, single) = stage().await;
    let flow = stage.world.define("a; b < a").await;
    stage.world.start_for(EARLY, &flow).await;
    let parent = stage.world.claim_one().await;
    // Claims, the commit, claims, the commit: it may read the frontier of any round.
    meet(stage, &single, &acts::complete(parent.claim), 2).await;
}
