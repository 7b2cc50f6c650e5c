//! What running steps tell of how far they have come goes with their attempt.

use stepwell_core::id::RunKey;
use stepwell_core::limits::PROGRESS_BYTES_MAX;

use super::world::{Run, WORKER, World, worker};
use crate::ports::{ClaimedTask, Clock, ProgressReport};

/// Tells the progress of a task, as its worker does.
async fn tell(world: &World, name: &str, told: &[(&ClaimedTask, &str)]) {
    let report = |(task, text): &(&ClaimedTask, &str)| ProgressReport {
        claim: task.claim,
        text: (*text).into(),
    };
    let reports: Vec<ProgressReport> = told.iter().map(report).collect();
    world.store().report_progress(&worker(name), &reports).await.expect("tell progress");
}

/// The progress of a run's tasks, as in `a: half`.
async fn told(world: &World, run: &Run) -> String {
    let told = world.store().progress(run.key).await.expect("read progress");
    let name = |node| run.flow.0.definition.name(node).to_owned();
    let lines: Vec<String> =
        told.iter().map(|told| format!("{}: {}", name(told.node), told.text)).collect();
    lines.join(", ")
}

pub(super) async fn the_latest_progress_of_a_running_task_is_read(world: &World) {
    // R14
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    assert_eq!(told(world, &run).await, "");
    tell(world, WORKER, &[(batch.of("b"), "1 of 3")]).await;
    assert_eq!(told(world, &run).await, "b: 1 of 3");
    world.pass(std::time::Duration::from_secs(2));
    tell(world, WORKER, &[(batch.of("a"), "begun"), (batch.of("b"), "2 of 3")]).await;
    assert_eq!(told(world, &run).await, "a: begun, b: 2 of 3");
    let stored = world.store().progress(run.key).await.expect("read progress");
    assert!(stored.iter().all(|told| told.told_at == world.clock().now()), "{stored:?}");
    assert_eq!(stored[0].token, batch.of("a").claim.token);
}

pub(super) async fn progress_goes_with_its_attempt(world: &World) {
    // R14
    let flow = world.define("a * 3/0s; b").await;
    let run = world.start(&flow).await;
    let batch = world.claim_all().await;
    tell(world, WORKER, &[(batch.of("a"), "half"), (batch.of("b"), "half")]).await;
    world.complete(batch.of("b")).await;
    assert_eq!(told(world, &run).await, "a: half");
    world.fail(batch.of("a")).await;
    assert_eq!(told(world, &run).await, "");
    let again = world.claim_one().await;
    assert_eq!(told(world, &run).await, "", "the next attempt begins anew");
    tell(world, WORKER, &[(&again, "again")]).await;
    assert_eq!(told(world, &run).await, "a: again");
    world.cancel(&run).await;
    assert_eq!(told(world, &run).await, "");
}

pub(super) async fn progress_under_an_old_token_is_dropped(world: &World) {
    // R14, S10
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    let lost = world.claim(&second, 1).await;
    tell(world, "second", &[(&lost[0], "mine")]).await;
    world.lose(&second).await;
    assert_eq!(told(world, &run).await, "");
    let task = world.claim_one().await;
    tell(world, WORKER, &[(&task, "ours")]).await;
    tell(world, "second", &[(&lost[0], "still mine")]).await;
    assert_eq!(told(world, &run).await, "a: ours");
    world.complete(&task).await;
    tell(world, WORKER, &[(&task, "done")]).await;
    assert_eq!(told(world, &run).await, "");
}

pub(super) async fn progress_of_many_runs_is_told_at_once(world: &World) {
    // R14
    let flow = world.define("a").await;
    let runs = world.start_many_for("acme", &flow, 20).await;
    let batch = world.claim_all().await;
    let texts: Vec<String> = batch.iter().map(|task| task.run_id.as_str().to_owned()).collect();
    let tasks: Vec<(&ClaimedTask, &str)> =
        batch.iter().zip(&texts).map(|(task, text)| (task, text.as_str())).collect();
    tell(world, WORKER, &tasks).await;
    for run in &runs {
        assert_eq!(told(world, run).await, format!("a: {}", run.id.as_str()));
    }
    tell(world, WORKER, &[]).await;
    assert_eq!(told(world, &runs[0]).await, format!("a: {}", runs[0].id.as_str()));
}

pub(super) async fn progress_may_say_anything(world: &World) {
    // R14
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    let long = "é".repeat(PROGRESS_BYTES_MAX / 2);
    for text in ["", "'; drop table task; --", "{\"a\": [1, 2]}", "日本語\n\t\u{1f980}", &long] {
        tell(world, WORKER, &[(&task, text)]).await;
        assert_eq!(told(world, &run).await, format!("a: {text}"));
    }
    let unknown = world.store().progress(RunKey(77)).await.expect("read progress");
    assert!(unknown.is_empty());
}
