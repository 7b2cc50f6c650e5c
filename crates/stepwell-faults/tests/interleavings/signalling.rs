//! Signals meet what opens, ends and overtakes the waits they are for.

use std::time::Duration;

use stepwell::testing::conformance::world::{LEASE, Run, WORKER, waiting, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Tried};

/// Lets two calls meet, and holds that they do.
async fn meet(stage: Stage, one: &Act, other: &Act) {
    // All orders that could matter are thousands where both insert signals.
    let meeting = stage.meeting(one, other).await;
    let tried = meeting.explore(Explorer::with_interruptions_max(1)).await;
    assert!(did_wait(&tried), "they meet: {tried:?}");
    drop(meeting);
    stage.close().await;
}

fn did_wait(tried: &Tried) -> bool {
    tried.n_waits > 0 || tried.n_as.iter().all(|n| *n > 0)
}

/// A run that waits for `paid` for an hour, with a step behind it.
async fn waiting_run(stage: &Stage) -> Run {
    let flow = stage.world.define("w ? paid/1h; b < w").await;
    stage.world.start(&flow).await
}

fn signal(stage: &Stage, run: &Run) -> Act {
    acts::signal(stage.world.to(run, "paid").into())
}

#[tokio::test]
async fn a_signal_meets_the_commit_that_opens_its_wait() {
    // L9
    let stage = Stage::open().await;
    let flow = stage.world.define("a; w ? paid/1h < a; b < w").await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    let (signal, commit) = (signal(&stage, &run), acts::complete(task.claim));
    meet(stage, &signal, &commit).await;
}

#[tokio::test]
async fn a_signal_meets_the_step_that_goes_waiting_for_it() {
    // L9
    let stage = Stage::open().await;
    let flow = stage.world.define("a; b < a").await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    let commit = acts::commit(task.claim, waiting("paid/1h"));
    let signal = signal(&stage, &run);
    meet(stage, &signal, &commit).await;
}

#[tokio::test]
async fn two_signals_meet_at_two_waits() {
    // L7
    let stage = Stage::open().await;
    let flow = stage.world.define("v ? paid; w ? paid; b < v, w").await;
    let run = stage.world.start(&flow).await;
    let acts = [signal(&stage, &run), signal(&stage, &run)];
    meet(stage, &acts[0], &acts[1]).await;
}

#[tokio::test]
async fn a_signal_meets_itself() {
    // L10
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let act = signal(&stage, &run);
    meet(stage, &act, &act).await;
}

#[tokio::test]
async fn a_signal_meets_another_under_its_key() {
    // L10
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let world = &stage.world;
    let [one, other] =
        [b"one", b"two"].map(|bytes| world.to(&run, "paid").key("k").carrying(bytes));
    let acts = [acts::signal(one.into()), acts::signal(other.into())];
    meet(stage, &acts[0], &acts[1]).await;
}

#[tokio::test]
async fn a_signal_meets_a_cancel() {
    // L12
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let (signal, cancel) = (signal(&stage, &run), acts::cancel(run.key));
    meet(stage, &signal, &cancel).await;
}

#[tokio::test]
async fn a_signal_meets_the_time_out_of_its_wait() {
    // L8
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let epoch = stage.world.lead().await;
    stage.world.pass(Duration::from_hours(1));
    let (signal, fire) = (signal(&stage, &run), acts::fire(epoch));
    meet(stage, &signal, &fire).await;
}

#[tokio::test]
async fn a_signal_meets_a_wait_that_looks_at_an_earlier_one() {
    // L9
    let stage = Stage::open().await;
    let flow = stage.world.define("a; v ? paid < a; w ? paid < a; b < v, w").await;
    let run = stage.world.start(&flow).await;
    let task = stage.world.claim_one().await;
    stage.world.signal(&run, "paid").await;
    stage.world.complete(&task).await;
    let epoch = stage.world.lead().await;
    let (signal, fire) = (signal(&stage, &run), acts::fire(epoch));
    meet(stage, &signal, &fire).await;
}

#[tokio::test]
async fn a_signal_meets_the_deadline_of_its_run() {
    // L12
    let stage = Stage::open().await;
    let flow = stage.world.define("w ? paid; b < w").await;
    let run = stage.world.start_within(&flow, Duration::from_hours(1)).await;
    let epoch = stage.world.lead().await;
    stage.world.pass(Duration::from_hours(1));
    let (signal, fire) = (signal(&stage, &run), acts::fire(epoch));
    meet(stage, &signal, &fire).await;
}

#[tokio::test]
async fn a_signal_meets_the_reaping_of_its_run_s_worker() {
    // L4
    let stage = Stage::open().await;
    let flow = stage.world.define("a; w ? paid; b < w").await;
    let run = stage.world.start(&flow).await;
    stage.world.claim_one().await;
    let epoch = stage.world.lead().await;
    stage.world.pass(LEASE + Duration::from_millis(1));
    let reap = acts::reap(epoch, stage.world.reap_request().await);
    let signal = signal(&stage, &run);
    meet(stage, &signal, &reap).await;
}

#[tokio::test]
async fn a_signal_meets_a_claim() {
    // L7
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let claim = acts::claim(&worker(WORKER), 1, 1);
    let act = signal(&stage, &run);
    let meeting = stage.meeting(&act, &claim).await;
    // A claim that comes too early finds nothing and waits for nobody.
    meeting.explore(Explorer::default()).await;
    drop(meeting);
    stage.close().await;
}

#[tokio::test]
async fn a_time_out_meets_a_cancel() {
    // L8, L12
    let stage = Stage::open().await;
    let run = waiting_run(&stage).await;
    let epoch = stage.world.lead().await;
    stage.world.pass(Duration::from_hours(1));
    let (fire, cancel) = (acts::fire(epoch), acts::cancel(run.key));
    meet(stage, &fire, &cancel).await;
}
