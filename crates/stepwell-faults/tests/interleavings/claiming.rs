//! Claims that race for the same tasks.

use std::collections::BTreeSet;

use stepwell::testing::conformance::world::{CRASH_LIMIT, Sketch, WORKER, World, failed, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Time, Tried};

/// Plans that are known to run a LIMIT more than once unless the statement forbids it. They look
/// so dear to the server that it would compile them each time.
const BAD_PLANS: &str = "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_sort=off \
    -c enable_material=off -c jit=off";

/// Two workers ask for three tasks each, of which there are four.
async fn two_claims(stage: &Stage) -> [Act; 2] {
    let world = &stage.world;
    let flow = world.define("k").await;
    let other = world.hire("other").await;
    world.start_many_for("acme", &flow, 3).await;
    world.start_for("zeta", &flow).await;
    [acts::claim(&worker(WORKER), 3, 1), acts::claim(&other, 3, 2)]
}

fn check_claims(tried: &Tried) {
    assert!(tried.n_orders >= 30, "{tried:?}");
    for answers in &tried.answers {
        let lists = answers.each_ref().map(|list| list.matches("run-").count());
        assert!(lists.iter().all(|n| *n <= 3), "never more than asked for: {answers:?}");
        let runs: BTreeSet<&str> = answers
            .iter()
            .flat_map(|list| list.split('"'))
            .filter(|r| r.contains("run-"))
            .collect();
        assert_eq!(lists.iter().sum::<usize>(), 4, "{answers:?}");
        assert_eq!(runs.len(), 4, "no task twice: {answers:?}");
    }
}

#[tokio::test]
async fn two_claims_never_take_more_than_asked_nor_a_task_twice() {
    // FB4
    let stage = Stage::open().await;
    let [one, other] = two_claims(&stage).await;
    let meeting = stage.meeting(&one, &other).await;
    let all = meeting.try_all().await;
    check_claims(&all);
    let tried = meeting.explore(Explorer::default()).await;
    assert!(tried.n_orders < all.n_orders, "{} of {}", tried.n_orders, all.n_orders);
    assert_eq!(tried.answers, all.answers, "orders that were left out come to nothing else");
    drop(meeting);
    stage.close().await;
}

#[tokio::test]
async fn two_claims_never_take_more_than_asked_on_bad_plans() {
    // FB4
    let stage = Stage::open_with(BAD_PLANS, Time::Stands).await;
    let [one, other] = two_claims(&stage).await;
    check_claims(&stage.meet(&one, &other).await);
    stage.close().await;
}

/// Runs of one task, each a suspect.
async fn suspects(world: &World, n: usize) {
    let flow = world.define("k").await;
    world.start_many_for("acme", &flow, n).await;
    for round in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{round}")).await;
        assert_eq!(world.claim(&unlucky, n).await.len(), n);
        world.lose(&unlucky).await;
    }
}

#[tokio::test]
async fn two_that_ask_for_a_trial_at_the_same_moment_get_one() {
    // R14
    let stage = Stage::open().await;
    suspects(&stage.world, 2).await;
    let other = stage.world.hire("other").await;
    let (one, other) = (acts::claim_suspect(&worker(WORKER), 1), acts::claim_suspect(&other, 2));
    let tried = stage.meet(&one, &other).await;
    assert!(tried.did_meet(), "{tried:?}");
    for answers in &tried.answers {
        let n_refused = answers.iter().filter(|answer| *answer == "no trial").count();
        assert_eq!(n_refused, 1, "{answers:?}");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_suspect_whose_reply_is_late_gets_no_company() {
    // R14, FA10: a worker that heard nothing of its claim asks for other tasks.
    let stage = Stage::open().await;
    let world = &stage.world;
    suspects(world, 1).await;
    let plain = world.define("p").await;
    world.start(&plain).await;
    let late = acts::claim_suspect(&worker(WORKER), 1);
    let tried = stage.meet(&late, &acts::claim(&worker(WORKER), 3, 2)).await;
    assert!(tried.did_meet(), "{tried:?}");
    for answers in &tried.answers {
        let n_handed_out: usize = answers.iter().map(|list| list.matches("run-").count()).sum();
        assert_eq!(n_handed_out, 1, "one or the other: {answers:?}");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_task_is_not_claimed_before_it_was_queued_by_the_database_s_time() {
    // S11: the claim's transaction may have begun before the one that made the task ready.
    let stage = Stage::open_with("", Time::GoesOn).await;
    let world = &stage.world;
    let flow = world.define("k").await;
    let start = acts::start(world.request("acme", "", &flow, b"input"));
    stage.survive(&acts::claim(&worker(WORKER), 3, 1), &start).await;
    stage.close().await;
}

#[tokio::test]
async fn a_failure_that_cancels_the_rest_of_its_run_meets_a_claim_of_it() {
    // What is queued may be claimed until it is locked, whatever was read of it before.
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define(Sketch::from("a; b; c").fail_fast()).await;
    world.start(&flow).await;
    let failing = world.claim_one().await;
    let one = acts::commit(failing.claim, failed("boom"));
    let tried = stage.meet(&one, &acts::claim(&worker(WORKER), 3, 1)).await;
    assert!(tried.n_as.iter().all(|n| *n > 0), "each goes first: {tried:?}");
    stage.close().await;
}

#[tokio::test]
async fn an_attempt_does_not_end_before_it_began_by_the_database_s_time() {
    // The cancellation's transaction may have begun before that of the claim it ends.
    let stage = Stage::open_with("", Time::GoesOn).await;
    let world = &stage.world;
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    stage.survive(&acts::claim(&worker(WORKER), 3, 1), &acts::cancel(run.key)).await;
    stage.close().await;
}
