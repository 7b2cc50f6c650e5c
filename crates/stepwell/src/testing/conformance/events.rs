//! Events: the log as it is read is complete, in order, and never rewritten.

use std::time::Duration;

use stepwell_core::failure::FailureKind;
use stepwell_core::id::Node;
use stepwell_core::run::{EventKind, TaskState, fold};

use super::world::{
    CRASH_LIMIT, Sketch, WORKER, World, completed, failed, failed_for_good, step_of, worker,
};
use crate::ports::{Clock, Outcome};

pub(super) async fn the_log_of_a_completed_run(world: &World) {
    // R17
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    world.drain().await;
    let expected = "RUN_STARTED, a QUEUED, a STARTED, a COMPLETED, b QUEUED, b STARTED, \
                    b COMPLETED, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn open_tasks_are_shown_without_a_number(world: &World) {
    // R17
    let flow = world.define("a; b").await;
    let run = world.start(&flow).await;
    assert_eq!(world.trail(&run).await, "RUN_STARTED, (a QUEUED), (b QUEUED)");
    world.pass(Duration::from_secs(1));
    world.claim(&worker(WORKER), 1).await;
    let expected = "RUN_STARTED, (a QUEUED), (b QUEUED), (a STARTED)";
    assert_eq!(world.trail(&run).await, expected);
    let event = world.last_event(&run, "STARTED").await;
    assert_eq!(event.kind, EventKind::Started { worker: worker(WORKER) });
    assert_eq!((event.at, event.attempt), (world.clock().now(), 1));
}

pub(super) async fn the_log_of_a_retried_step(world: &World) {
    // R17
    let flow = world.define("a * 2/1s").await;
    let run = world.start(&flow).await;
    for _ in 0..2 {
        world.fail(&world.claim_one().await).await;
        world.pass(Duration::from_secs(1));
        world.fire().await;
    }
    let so_far = "RUN_STARTED, a QUEUED, a STARTED, a RETRYING, a STARTED, a RETRYING";
    assert_eq!(world.trail(&run).await, so_far);
    world.drain().await;
    let expected = format!("{so_far}, a STARTED, a COMPLETED, RUN_ENDED COMPLETED");
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn the_log_of_a_skipped_branch(world: &World) {
    // R17, R21: out of the queue by its own condition, along with its parent without one.
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    world.skip(&world.claim_one().await).await;
    let expected = "RUN_STARTED, a QUEUED, a SKIPPED, b SKIPPED, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn the_log_of_a_sleep(world: &World) {
    // R17
    let flow = world.define("s ~ 1h").await;
    let run = world.start(&flow).await;
    let until = world.clock().now().after(Duration::from_hours(1));
    assert_eq!(
        world.last_event(&run, "SLEEPING").await.kind,
        EventKind::Sleeping { until, keys: Vec::new() }
    );
    world.pass(Duration::from_hours(1));
    world.fire().await;
    let expected = "RUN_STARTED, s SLEEPING, s WOKEN, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
    let woken = EventKind::Woken { into: TaskState::Completed, key: String::new() };
    assert_eq!(world.last_event(&run, "WOKEN").await.kind, woken);
}

pub(super) async fn the_log_of_a_conditional_sleep(world: &World) {
    // R17: the claim executed nothing, so it is not in the log.
    let flow = world.define("s ~? 1h").await;
    let run = world.start(&flow).await;
    world.settle(&world.claim_one().await, Outcome::Slept).await;
    world.pass(Duration::from_hours(1));
    world.fire().await;
    let expected = "RUN_STARTED, s QUEUED, s SLEEPING, s WOKEN, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn the_log_of_a_failed_run(world: &World) {
    // R17, R20
    let flow = world.define(Sketch::from("a; b < a; c < b").on_failure()).await;
    let run = world.start(&flow).await;
    world.settle(&world.claim_one().await, failed_for_good("boom")).await;
    world.drain().await;
    let expected = "RUN_STARTED, a QUEUED, a STARTED, a FAILED, b CANCELLED, c CANCELLED, \
                    RUN_ENDING FAILED, on_failure QUEUED, on_failure STARTED, \
                    on_failure COMPLETED, RUN_ENDED FAILED";
    assert_eq!(world.trail(&run).await, expected);
    let EventKind::Failed { failure } = world.last_event(&run, "FAILED").await.kind else {
        panic!("a FAILED event has its failure")
    };
    assert_eq!(failure.message, "boom");
    assert_eq!(world.last_event(&run, "QUEUED").await.node, Some(Node::ON_FAILURE));
}

pub(super) async fn the_log_of_a_cancelled_run(world: &World) {
    // R17, L12: each state leaves the log that its task had come to.
    let flow = world.define("run; queue; retry * 1/1h; s ~ 1h; p < run").await;
    let run = world.start(&flow).await;
    let first = world.claim(&worker(WORKER), 3).await;
    world.release(first.of("queue")).await;
    world.fail(first.of("retry")).await;
    world.cancel(&run).await;
    let trail = world.trail(&run).await;
    let before = "RUN_STARTED, s SLEEPING, queue QUEUED, queue STARTED, queue RELEASED, \
                  retry QUEUED, retry STARTED, retry RETRYING, run QUEUED, RUN_CANCELLED, ";
    let rest = trail.strip_prefix(before).unwrap_or_else(|| panic!("{trail}"));
    let rest = rest.strip_suffix(", RUN_ENDED CANCELLED").unwrap_or_else(|| panic!("{trail}"));
    let mut rest: Vec<&str> = rest.split(", ").collect();
    // In which order the tasks of one run are cancelled is not prescribed.
    rest.sort_unstable();
    let expected = [
        "p CANCELLED",
        "queue CANCELLED",
        "retry CANCELLED",
        "run CANCELLED",
        "run STARTED",
        "s CANCELLED",
    ];
    assert_eq!(rest, expected);
}

pub(super) async fn the_log_of_a_run_cancelled_in_its_queue(world: &World) {
    // R17
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    world.cancel(&run).await;
    let expected = "RUN_STARTED, a QUEUED, RUN_CANCELLED, a CANCELLED, RUN_ENDED CANCELLED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn the_log_of_a_lost_and_released_task(world: &World) {
    // R17, L4
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.lose(&second).await;
    world.release(&world.claim_one().await).await;
    world.drain().await;
    let expected = "RUN_STARTED, a QUEUED, a STARTED, a LEASE_LOST, a STARTED, a RELEASED, \
                    a STARTED, a COMPLETED, RUN_ENDED COMPLETED";
    assert_eq!(world.trail(&run).await, expected);
}

pub(super) async fn the_log_of_a_task_that_reached_the_crash_limit(world: &World) {
    // R17, R14
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    for n in 0..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        world.claim(&unlucky, 1).await;
        world.lose(&unlucky).await;
    }
    let expected = "RUN_STARTED, a QUEUED, a STARTED, a LEASE_LOST, a STARTED, a LEASE_LOST, \
                    a STARTED, a LEASE_LOST, a FAILED, RUN_ENDED FAILED";
    assert_eq!(world.trail(&run).await, expected);
    let EventKind::Failed { failure } = world.last_event(&run, "FAILED").await.kind else {
        panic!("a FAILED event has its failure")
    };
    assert_eq!(failure.kind, FailureKind::Crashed);
}

pub(super) async fn numbers_have_no_gaps_and_never_change(world: &World) {
    // S19: a reader that follows the log by number misses nothing.
    let flow = world.define("a * 1; b; c < a, b").await;
    let run = world.start(&flow).await;
    let mut seen = Vec::new();
    let script =
        [("b", completed()), ("a", failed("once")), ("a", completed()), ("c", completed())];
    for (step, outcome) in script {
        let batch = world.claim_all().await;
        world.settle(batch.of(step), outcome).await;
        for task in batch.iter().filter(|task| step_of(task) != step) {
            world.release(task).await;
        }
        let mut numbered = world.events(&run).await;
        numbered.retain(|event| event.number.is_some());
        assert!(numbered.starts_with(&seen), "the log was rewritten");
        let numbers: Vec<u64> = numbered.iter().filter_map(|event| event.number).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
        seen = numbered;
    }
}

pub(super) async fn folding_the_log_gives_the_states(world: &World) {
    // S19
    let flow = world.define("a; s ~ 1h; x; b < a; c < x; d * 1/1h; e < b, s").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.complete(roots.of("a")).await;
    world.skip(roots.of("x")).await;
    world.fail(roots.of("d")).await;
    world.claim_all().await;
    let (end, states) = fold(&world.events(&run).await).expect("the log is sound");
    assert_eq!(end, world.status(&run).await);
    for task in world.store().tasks(run.key).await.expect("read tasks") {
        let folded = states.get(&task.node).copied().unwrap_or(TaskState::Pending);
        assert_eq!(folded, task.state());
    }
    let expected = "a COMPLETED, s SLEEPING, x SKIPPED, b RUNNING, c SKIPPED, d QUEUED, e PENDING";
    assert_eq!(world.states(&run).await, expected);
}

pub(super) async fn events_carry_the_time_they_happened(world: &World) {
    // R17, FA3
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    let started_at = world.clock().now();
    let second = Duration::from_secs(1);
    world.pass(second);
    let task = world.claim_one().await;
    world.pass(second);
    world.complete(&task).await;
    let events = world.events(&run).await;
    let times: Vec<u64> = events.iter().map(|event| event.at.since(started_at).as_secs()).collect();
    assert_eq!(times, [0, 0, 1, 2, 2]);
    let attempts: Vec<u32> = events.iter().map(|event| event.attempt).collect();
    assert_eq!(attempts, [0, 1, 1, 1, 0]);
}
