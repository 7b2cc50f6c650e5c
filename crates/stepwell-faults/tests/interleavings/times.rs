//! Whoever decides later about a run writes no earlier time into its log, however long it waited
//! for its turn. Time is the database's own; the invariants hold the log to it.

use std::time::Duration;

use stepwell::testing::conformance::world::{WORKER, waiting, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Time};

/// Lets two calls meet. One that began first and comes second has been interrupted once.
async fn meet(stage: Stage, one: &Act, other: &Act) {
    stage.survive_all(one, other, Explorer::with_interruptions_max(1)).await;
    stage.close().await;
}

async fn open() -> Stage {
    Stage::open_with("", Time::GoesOn).await
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_commit_is_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; b < a").await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    meet(stage, &acts::cancel(run.key), &acts::complete(task.claim)).await;
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_claim_is_logged_behind_its_start() {
    // The claim locks no run, only the tasks that it takes.
    let stage = open().await;
    let flow = stage.world.define("a; b; c < a").await;
    let run = stage.world.start(&flow).await;
    let claim = acts::claim(&worker(WORKER), 1, 1);
    meet(stage, &acts::cancel(run.key), &claim).await;
}

#[tokio::test]
async fn a_commit_that_waited_for_another_is_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; b; c < a, b").await;
    stage.world.start(&flow).await;
    let tasks = stage.world.claim_all().await;
    let one = acts::complete(tasks.of("a").claim);
    meet(stage, &one, &acts::commit(tasks.of("b").claim, waiting("paid/1h"))).await;
}

#[tokio::test]
async fn a_signal_that_waited_for_a_commit_is_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; w ? paid; b < a").await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    let signal = acts::signal(stage.world.to(&run, "paid").into());
    meet(stage, &signal, &acts::complete(task.claim)).await;
}

#[tokio::test]
async fn timers_that_waited_for_a_commit_are_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; b; s ~ 0s; w ? paid/0s").await;
    stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    let epoch = stage.world.lead().await;
    meet(stage, &acts::fire(epoch), &acts::complete(task.claim)).await;
}

#[tokio::test]
async fn a_reaping_that_waited_for_a_commit_is_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; b").await;
    stage.world.start(&flow).await;
    let gone = stage.world.hire("gone").await;
    stage.world.claim(&gone, 1).await;
    let task = stage.world.claim_one().await;
    stage.world.dismiss(&gone).await;
    let epoch = stage.world.lead().await;
    let reap = acts::reap(epoch, stage.world.reap_request().await);
    meet(stage, &reap, &acts::complete(task.claim)).await;
}

#[tokio::test]
async fn a_deadline_that_waited_for_a_commit_is_logged_behind_it() {
    let stage = open().await;
    let flow = stage.world.define("a; b").await;
    stage.world.start_within(&flow, Duration::from_hours(1)).await;
    let task = stage.world.claim_one().await;
    let epoch = stage.world.lead().await;
    stage.let_deadlines_pass().await;
    meet(stage, &acts::fire(epoch), &acts::complete(task.claim)).await;
}
