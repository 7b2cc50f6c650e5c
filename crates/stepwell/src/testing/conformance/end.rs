//! The end of a run: by itself when all tasks are done, after its failure handler if it failed.

use std::time::Duration;

use stepwell_core::decide::CancelRequest;
use stepwell_core::failure::FailureKind;
use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::RunStatus;

use super::world::{CRASH_LIMIT, Sketch, World, completed, failed, failed_for_good, step_of};
use crate::ports::{
    AwaitedRun, Clock, CommitItem, EndOutput, EndedRun, EndedRuns, Hints, Outcome, RunEnd,
};

pub(super) async fn a_run_ends_when_its_last_task_does(world: &World) {
    // R16
    let flow = world.define("a; b < a; c").await;
    let run = world.start(&flow).await;
    assert_eq!(world.drain().await, "a c b");
    let row = world.row(&run).await;
    assert_eq!((row.status, row.n_open, row.failure), (RunStatus::Completed, 0, None));
}

pub(super) async fn a_run_keeps_the_time_of_its_end(world: &World) {
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.pass(Duration::from_secs(90));
    world.step().await;
    let row = world.row(&run).await;
    assert_eq!(row.ended_at, Some(world.clock().now()));
    assert_eq!(row.ended_at.map(|at| at.since(row.started_at)), Some(Duration::from_secs(90)));
}

pub(super) async fn a_failed_task_cancels_its_descendants_only(world: &World) {
    // L6
    let flow = world.define("a; b < a; c < b; x; y < x; j < c, y").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.fail(roots.of("a")).await;
    let expected = "a FAILED, b CANCELLED, c CANCELLED, x RUNNING, y PENDING, j CANCELLED";
    assert_eq!(world.states(&run).await, expected);
    assert_eq!(world.status(&run).await, RunStatus::Running);
    world.complete(roots.of("x")).await;
    assert_eq!(world.drain().await, "y");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_run_that_fails_fast_cancels_everything_else(world: &World) {
    let flow = world.define(Sketch::from("a; b < a; x; y < x; s ~ 1h").fail_fast()).await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.fail(roots.of("a")).await;
    let expected = "a FAILED, b CANCELLED, x CANCELLED, y CANCELLED, s CANCELLED";
    assert_eq!(world.states(&run).await, expected);
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    let late = world.commit_one(roots.of("x"), completed());
    world.unchanged_by(late).await;
}

pub(super) async fn the_first_final_failure_decides_the_run(world: &World) {
    let flow = world.define("a; b; c").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.settle(roots.of("b"), failed_for_good("first")).await;
    world.settle(roots.of("a"), failed_for_good("second")).await;
    world.complete(roots.of("c")).await;
    let row = world.row(&run).await;
    let failure = row.failure.expect("the run says why");
    assert_eq!((failure.step.as_str(), failure.failure.message.as_str()), ("b", "first"));
    assert_eq!((failure.node, row.n_failed), (run.node("b"), 2));
}

pub(super) async fn the_failure_handler_runs_last_and_once(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a; b; c < b").on_failure()).await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.fail(roots.of("a")).await;
    assert_eq!(world.status(&run).await, RunStatus::Running);
    world.complete(roots.of("b")).await;
    world.step().await;
    assert_eq!(world.status(&run).await, RunStatus::Ending);
    let expected = "a FAILED, b COMPLETED, c COMPLETED, on_failure QUEUED";
    assert_eq!(world.states(&run).await, expected);
    assert_eq!(world.drain().await, "on_failure");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    assert!(world.claim_all().await.is_empty());
}

pub(super) async fn the_failure_handler_gets_the_input_and_the_error(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a").on_failure()).await;
    world.start(&flow).await;
    world.settle(&world.claim_one().await, failed("the reason")).await;
    let handler = world.claim_one().await;
    assert_eq!((handler.claim.node, step_of(&handler)), (Node::ON_FAILURE, "on_failure"));
    let inputs = world.inputs(&handler).await;
    assert_eq!(&*inputs.input.bytes, b"input");
    assert!(inputs.parents.is_empty());
    let failure = inputs.failure.expect("it is told why");
    assert_eq!((failure.step.as_str(), failure.failure.message.as_str()), ("a", "the reason"));
}

pub(super) async fn the_failure_handlers_own_failure_is_recorded_and_not_retried(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a * 1").on_failure()).await;
    let run = world.start(&flow).await;
    world.settle(&world.claim_one().await, failed_for_good("first")).await;
    world.settle(&world.claim_one().await, failed("of the handler")).await;
    assert_eq!(world.states(&run).await, "a FAILED, on_failure FAILED");
    let row = world.row(&run).await;
    assert_eq!(row.status, RunStatus::Failed);
    assert_eq!(row.failure.expect("the run says why").failure.message, "first");
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    let attempt = log.attempts.iter().find(|attempt| attempt.node == Node::ON_FAILURE);
    let failure = attempt.and_then(|attempt| attempt.failure.clone()).expect("it is kept");
    assert_eq!(failure.message, "of the handler");
}

pub(super) async fn a_lost_failure_handler_runs_again_within_the_crash_limit(world: &World) {
    // R20, R14
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let (saved, doomed) = (world.start(&flow).await, world.start_for("zeta", &flow).await);
    let roots = world.claim_all().await;
    world.fail(&roots[0]).await;
    lose_handler(world, 1).await;
    assert_eq!(world.drain().await, "on_failure");
    assert_eq!(world.states(&saved).await, "a FAILED, on_failure COMPLETED");
    let rest = roots.iter().find(|task| task.claim.run == doomed.key).expect("it was claimed");
    world.fail(rest).await;
    lose_handler(world, CRASH_LIMIT).await;
    assert_eq!(world.states(&doomed).await, "a FAILED, on_failure FAILED");
    assert_eq!(world.status(&doomed).await, RunStatus::Failed);
}

async fn lose_handler(world: &World, times: u32) {
    for n in 0..times {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        assert_eq!(world.claim(&unlucky, 1).await.steps(), "on_failure");
        world.lose(&unlucky).await;
    }
}

pub(super) async fn the_failure_handler_does_not_run_without_a_failure(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let (good, gone) = (world.start(&flow).await, world.start(&flow).await);
    world.cancel(&gone).await;
    assert_eq!(world.drain().await, "a");
    assert_eq!(world.states(&good).await, "a COMPLETED");
    assert_eq!(world.states(&gone).await, "a CANCELLED");
    assert_eq!(world.status(&gone).await, RunStatus::Cancelled);
}

pub(super) async fn the_failure_handler_runs_when_a_crash_fails_the_run(world: &World) {
    // R20, R14
    let flow = world.define(Sketch::from("a").on_failure()).await;
    let run = world.start(&flow).await;
    for n in 0..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        world.claim(&unlucky, 1).await;
        world.lose(&unlucky).await;
    }
    let handler = world.claim_one().await;
    let failure = world.inputs(&handler).await.failure.expect("it is told why");
    assert_eq!(failure.failure.kind, FailureKind::Crashed);
    world.complete(&handler).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn the_failure_handler_runs_when_the_output_was_skipped(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a").must_give("a").on_failure()).await;
    let run = world.start(&flow).await;
    world.skip(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a SKIPPED, on_failure QUEUED");
    assert_eq!(world.drain().await, "on_failure");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_batch_may_fail_a_run_and_bring_its_handler(world: &World) {
    // R20
    let flow = world.define(Sketch::from("a; b").on_failure()).await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    let items = vec![
        CommitItem { claim: roots.of("a").claim, outcome: failed("boom") },
        CommitItem { claim: roots.of("b").claim, outcome: Outcome::Skipped },
    ];
    world.commit(items).await;
    assert_eq!(world.states(&run).await, "a FAILED, b SKIPPED, on_failure QUEUED");
}

pub(super) async fn ended_runs_are_told_from_others_in_one_read(world: &World) {
    // R22
    let flow = world.define("a").await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(world.start(&flow).await.key);
    }
    let batch = world.claim_all().await;
    world.complete(&batch[0]).await;
    world.fail(&batch[1]).await;
    let store = world.store();
    store.cancel(runs[2], CancelRequest::by("a test")).await.expect("cancel");
    let asked = runs.iter().copied().chain([RunKey(77)]).map(AwaitedRun::from);
    let mut ended = store.ended(&asked.collect::<Vec<_>>()).await.expect("read ends");
    ended.sort_unstable_by_key(|(run, _)| *run);
    let statuses: Vec<_> = ended.iter().map(|(run, end)| (*run, end.status)).collect();
    let expected = [
        (runs[0], RunStatus::Completed),
        (runs[1], RunStatus::Failed),
        (runs[2], RunStatus::Cancelled),
    ];
    assert_eq!(statuses, expected);
    let failed: Vec<bool> = ended.iter().map(|(_, end)| end.failure.is_some()).collect();
    assert_eq!(failed, [false, true, false]);
    assert!(store.ended(&[]).await.expect("read ends").is_empty());
}

pub(super) async fn ended_runs_are_read_with_what_a_step_left(world: &World) {
    // R22
    let flow = world.define("a; b < a; s ~ 1s").await;
    let run = world.start(&flow).await;
    let other = world.start(&flow).await;
    world.pass(Duration::from_secs(1));
    world.fire().await;
    world.drain().await;
    world.drain().await;
    let store = world.store();
    // There is no fourth step.
    for node in (0..4).map(Node) {
        let asked = [AwaitedRun { run: run.key, output: Some(node) }, other.key.into()];
        let ended = store.ended(&asked).await.expect("read ends");
        assert_eq!(ended.len(), 2);
        for (key, end) in ended {
            let asked = (key == run.key).then_some(node);
            assert_eq!((end.status, end.output_of), (RunStatus::Completed, asked));
            let left = store.output(run.key, node).await.expect("read the output");
            assert_eq!(end.output, EndOutput::Known(left.filter(|_| asked.is_some())));
        }
    }
}

pub(super) async fn the_end_of_a_run_tells_what_its_own_commit_knows(world: &World) {
    // R22: whoever waits in the same process reads nothing.
    let flow = world.define(Sketch::from("a; b < a").gives("b")).await;
    let output = Some(Node(1));
    let ends_of = |hints: &mut Hints| match hints.look_at_ended() {
        EndedRuns::Named(ended) => ended,
        EndedRuns::Any => panic!("it names them"),
    };
    let mut hints = world.store().hints();
    let run = world.start(&flow).await;
    assert_eq!(world.step().await, "a");
    assert!(ends_of(&mut hints).is_empty());
    assert_eq!(world.step().await, "b");
    let told = ends_of(&mut hints);
    let asked = AwaitedRun { run: run.key, output };
    let read = world.store().ended(&[asked]).await.expect("read the end");
    let read: Vec<EndedRun> = read.into_iter().map(told_of).collect();
    assert_eq!(told, read);
    let failing = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    let told = ends_of(&mut hints);
    let asked = AwaitedRun { run: failing.key, ..asked };
    let read = world.store().ended(&[asked]).await.expect("read the end");
    assert!(read.iter().all(|(_, end)| end.failure.is_some()));
    assert_eq!(told, read.into_iter().map(told_of).collect::<Vec<_>>());
}

fn told_of((run, end): (RunKey, RunEnd)) -> EndedRun {
    EndedRun { run, end: Some(Box::new(end)) }
}
