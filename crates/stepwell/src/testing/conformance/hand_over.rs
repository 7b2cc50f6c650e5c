//! Hand-over: what becomes ready goes straight to the worker that offers to take it, as if it had
//! claimed right after; and only if nobody waits who would have come first.

use futures_util::FutureExt;
use stepwell_core::run::{RunStatus, TaskState};

use super::world::{
    Batch, CRASH_LIMIT, Flow, LEASE, Run, TENANT, WORKER, World, completed, completed_with, run_of,
    step_of, worker,
};
use crate::ports::{
    ClaimedTask, CommitAnswer, CommitItem, HeartbeatAnswer, Hint, StartAnswer, TaskPlace,
};

/// More than any case makes ready.
const ALL: usize = 1_000;

/// Starts a run of a tenant while [`WORKER`] offers to take everything.
async fn start_over(world: &World, tenant: &str, flow: &Flow) -> (Run, Batch) {
    let request = world.request(tenant, "", flow, b"input");
    let run = run_of(&request, flow);
    let started = world.start_and_claim(vec![request], &worker(WORKER), ALL).await;
    assert!(matches!(started.answers[..], [StartAnswer::Started]), "{:?}", started.answers);
    (run, Batch(started.handed_over.tasks))
}

/// Completes a task while [`WORKER`] offers to take everything.
async fn complete_over(world: &World, task: &ClaimedTask) -> Batch {
    world.complete_for(std::slice::from_ref(task), &worker(WORKER), ALL).await
}

pub(super) async fn a_child_goes_straight_to_the_worker_that_offers(world: &World) {
    let flow = world.define("a; b < a").await;
    let run = world.start(&flow).await;
    let a = world.claim_one().await;
    let batch = complete_over(world, &a).await;
    assert_eq!(batch.steps(), "b");
    let b = batch.of("b");
    assert_eq!((&b.run_id, b.tenant.as_str(), b.attempt), (&run.id, TENANT, 1));
    assert_eq!(world.place(&run, "b").await, None);
    let row = world.task(&run, "b").await;
    assert_eq!((row.state(), row.attempt), (TaskState::Running, 1));
    assert!(row.is_held_by(b.claim.token));
    let held = world.dump().await.claims.remove(&worker(WORKER));
    assert_eq!(held, Some(vec![b.claim]));
    assert!(world.claim_all().await.is_empty());
    world.complete(b).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_root_goes_straight_to_the_worker_that_offers(world: &World) {
    let flow = world.define("a; b; c < a, b").await;
    let (run, batch) = start_over(world, TENANT, &flow).await;
    assert_eq!(batch.steps(), "a b");
    assert_eq!(world.states(&run).await, "a RUNNING, b RUNNING, c PENDING");
    assert!(world.claim_all().await.is_empty());
    world.complete_together(&batch).await;
    assert_eq!(world.drain().await, "c");
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_whole_run_can_go_from_hand_to_hand(world: &World) {
    // The trail is that of a run whose tasks were claimed.
    let flow = world.define("a; b < a; c < a; d < b, c").await;
    let claimed = world.start(&flow).await;
    assert_eq!(world.drain().await, "a b c d");
    let (run, mut batch) = start_over(world, TENANT, &flow).await;
    let mut steps = Vec::new();
    while !batch.is_empty() {
        steps.push(batch.steps());
        batch = world.complete_for(&batch, &worker(WORKER), ALL).await;
    }
    assert_eq!(steps, ["a", "b c", "d"]);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.row(&run).await.next_event, world.row(&claimed).await.next_event);
    assert!(world.dump().await.places.is_empty());
}

pub(super) async fn a_token_carries_the_random_bits_of_the_offer(world: &World) {
    // FA2
    let flow = world.define("a").await;
    let mut offer = world.claim_request(&worker(WORKER), 1);
    offer.salt = 0xdead_beef_cafe_f00d;
    let request = world.request(TENANT, "", &flow, b"input");
    let started = world.store().start_and_claim(vec![request], Some(offer)).await;
    let tasks = started.expect("it starts").handed_over.tasks;
    assert_eq!(tasks[0].claim.token.salt(), 0xdead_beef_cafe_f00d);
    world.release(&tasks[0]).await;
    assert_ne!(world.claim_one().await.claim.token, tasks[0].claim.token);
}

pub(super) async fn inputs_are_the_same_as_those_of_a_claim(world: &World) {
    let flow = world.define("a; b < a").await;
    let (_, batch) = start_over(world, TENANT, &flow).await;
    let item = CommitItem { claim: batch.of("a").claim, outcome: completed_with(b"7") };
    let committed = world.commit_for(vec![item], &worker(WORKER), 1).await;
    for task in [batch.of("a"), &committed.handed_over.tasks[0]] {
        let read = world.inputs(task).await;
        assert_eq!(&*read.input.bytes, b"input");
        let Some(given) = &task.inputs else { continue };
        assert_eq!(format!("{given:?}"), format!("{read:?}"), "{}", step_of(task));
    }
    let read = world.inputs(&committed.handed_over.tasks[0]).await;
    let output = read.parents[0].output.as_ref().expect("a left one");
    assert_eq!(&*output.bytes, b"7");
}

pub(super) async fn whoever_waits_goes_first(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let a = world.claim_one().await;
    let waiting = world.start_for("other", &flow).await;
    assert!(complete_over(world, &a).await.is_empty());
    assert!(start_over(world, TENANT, &flow).await.1.is_empty());
    assert_eq!(world.claim_one().await.run_id, waiting.id);
    assert_eq!(world.claim_all().await.len(), 2);
}

pub(super) async fn whoever_waits_in_another_queue_of_the_worker_goes_first(world: &World) {
    // A chain in one queue would keep a worker's only slot from the other for ever.
    let (chain, slow) = (world.define("a; b < a").await, world.define("s @ slow").await);
    let both = world.hire_for("both", &["default", "slow"], &[&chain, &slow]).await;
    world.start(&chain).await;
    let a = world.claim(&both, 1).await;
    world.start(&slow).await;
    assert!(world.complete_for(&a, &both, 1).await.is_empty());
    let (first, second) = (world.claim(&both, 1).await, world.claim(&both, 1).await);
    let mut steps = [first.steps(), second.steps()];
    steps.sort_unstable();
    assert_eq!(steps, ["b", "s"]);
}

pub(super) async fn what_waits_for_other_queues_holds_nobody_up(world: &World) {
    let (chain, slow) = (world.define("a; b < a").await, world.define("s @ slow").await);
    world.hire_for("slow", &["slow"], &[&slow]).await;
    let quick = world.hire_for("quick", &["default"], &[&chain]).await;
    world.start(&slow).await;
    world.start(&chain).await;
    let a = world.claim(&quick, 1).await;
    assert_eq!(world.complete_for(&a, &quick, 1).await.steps(), "b");
}

pub(super) async fn what_waits_for_other_code_holds_nobody_up(world: &World) {
    // The backlog of another service in the same queue is nothing that this worker could take.
    let (chain, other) = (world.define("a; b < a").await, world.define("s").await);
    let quick = world.hire_for("quick", &["default"], &[&chain]).await;
    world.start_many_for("other", &other, 5).await;
    let request = world.request(TENANT, "", &chain, b"input");
    let started = world.start_and_claim(vec![request], &quick, 1).await;
    let a = Batch(started.handed_over.tasks);
    assert_eq!(a.steps(), "a");
    assert_eq!(world.complete_for(&a, &quick, 1).await.steps(), "b");
    assert_eq!(world.claim_all().await.steps(), "s s s s s");
}

pub(super) async fn no_more_is_handed_over_than_was_offered(world: &World) {
    // FB4
    let flow = world.define("a; b < a; c < a; d < a; e < a").await;
    let run = world.start(&flow).await;
    let a = world.claim_all().await;
    let batch = world.complete_for(&a, &worker(WORKER), 2).await;
    assert_eq!(batch.steps(), "b c");
    assert_eq!(world.claim_all().await.steps(), "d e");
    assert_eq!(world.states(&run).await.matches("RUNNING").count(), 4);
}

pub(super) async fn an_offer_of_nothing_gets_nothing(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let a = world.claim_all().await;
    assert!(world.complete_for(&a, &worker(WORKER), 0).await.is_empty());
    assert_eq!(world.claim_all().await.steps(), "b");
}

pub(super) async fn tenants_are_handed_over_in_turn(world: &World) {
    // R2
    let flow = world.define("a").await;
    let tenants = ["long", "long", "long", "short"];
    let requests = tenants.map(|tenant| world.request(tenant, "", &flow, b"input")).to_vec();
    let started = world.start_and_claim(requests, &worker(WORKER), 2).await;
    let (batch, left) = (Batch(started.handed_over.tasks), world.claim_all().await);
    assert!(batch.len() <= 2, "{}", batch.tenants());
    let order = format!("{} {}", batch.tenants(), left.tenants());
    assert_eq!(order.trim(), "long short long long");
}

pub(super) async fn a_newcomer_is_overtaken_by_one_task_at_most_after_hand_overs(world: &World) {
    // R2
    let flow = world.define("a").await;
    for _ in 0..3 {
        assert_eq!(start_over(world, "old", &flow).await.1.len(), 1);
    }
    for tenant in ["old", "old", "new", "old", "new"] {
        world.start_for(tenant, &flow).await;
    }
    let order = world.claim_all().await.tenants();
    assert!(["old new old new old", "new old new old old"].contains(&&*order), "{order}");
}

pub(super) async fn a_worker_that_is_not_there_gets_nothing(world: &World) {
    // FA1
    let flow = world.define("a; b < a").await;
    for name in ["stranger", "gone", "dead"] {
        let run = world.start(&flow).await;
        let a = world.claim_all().await;
        match name {
            "gone" => {
                let gone = world.hire(name).await;
                world.dismiss(&gone).await;
            }
            "dead" => {
                let dead = world.hire(name).await;
                world.lose(&dead).await;
            }
            _ => {}
        }
        assert!(world.complete_for(&a, &worker(name), ALL).await.is_empty(), "{name}");
        assert_eq!(world.states(&run).await, "a COMPLETED, b QUEUED", "{name}");
        assert_eq!(world.drain().await, "b");
    }
}

pub(super) async fn a_worker_gets_only_what_it_serves(world: &World) {
    let (mine, other) = (world.define("a; b < a; c @ slow < a").await, world.define("x").await);
    world.hire_for("slow", &["slow"], &[&mine]).await;
    let quick = world.hire_for("quick", &["default"], &[&mine]).await;
    let run = world.start(&mine).await;
    let a = world.claim(&quick, 1).await;
    assert_eq!(world.complete_for(&a, &quick, ALL).await.steps(), "b");
    let place = world.place(&run, "c").await;
    assert!(matches!(place, Some(TaskPlace::Ready(..))), "{place:?}");
    let request = world.request(TENANT, "", &other, b"input");
    let started = world.start_and_claim(vec![request], &quick, ALL).await;
    assert!(started.handed_over.tasks.is_empty());
    assert_eq!(world.claim_all().await.steps(), "x c");
}

pub(super) async fn what_nobody_serves_is_parked_all_the_same(world: &World) {
    // L2
    world.define("a").await;
    let flow = world.define_unserved("x").await;
    let (run, batch) = start_over(world, TENANT, &flow).await;
    assert!(batch.is_empty());
    assert!(matches!(world.place(&run, "x").await, Some(TaskPlace::Parked)));
}

pub(super) async fn a_suspect_is_never_handed_over(world: &World) {
    // FA10, R14
    let flow = world.define("a").await;
    world.start(&flow).await;
    for n in 1..CRASH_LIMIT {
        let unlucky = world.hire(&format!("unlucky-{n}")).await;
        assert_eq!(world.claim(&unlucky, 1).await.len(), 1);
        world.lose(&unlucky).await;
    }
    let suspect = world.claim_one().await;
    assert!(suspect.is_suspect);
    let second = world.hire("second").await;
    let offer = world.claim_request(&second, 1);
    let item = CommitItem { claim: suspect.claim, outcome: crate::ports::Outcome::Released };
    let committed = world.store().commit_and_claim(vec![item], Some(offer)).await;
    assert!(committed.expect("it is handed back").handed_over.tasks.is_empty());
    assert!(world.claim_one().await.is_suspect);
}

pub(super) async fn a_repeated_commit_hands_nothing_over_again(world: &World) {
    // FA4
    let flow = world.define("a; b < a").await;
    world.start(&flow).await;
    let a = world.claim_one().await;
    let item = || vec![CommitItem { claim: a.claim, outcome: completed() }];
    let first = world.commit_for(item(), &worker(WORKER), ALL).await;
    assert_eq!(first.handed_over.tasks.len(), 1);
    let again = world.unchanged_by(world.commit_for(item(), &worker(WORKER), ALL)).await;
    assert_eq!(again.answers, [CommitAnswer::Accepted]);
    assert!(again.handed_over.tasks.is_empty());
}

pub(super) async fn a_repeated_start_hands_nothing_over_again(world: &World) {
    let flow = world.define("a").await;
    let request = world.request(TENANT, "once", &flow, b"input");
    let worker = worker(WORKER);
    let first = world.start_and_claim(vec![request.clone()], &worker, ALL).await;
    assert_eq!(first.handed_over.tasks.len(), 1);
    let again = world.unchanged_by(world.start_and_claim(vec![request], &worker, ALL)).await;
    assert!(matches!(again.answers[..], [StartAnswer::AlreadyStarted(_)]), "{:?}", again.answers);
    assert!(again.handed_over.tasks.is_empty());
}

pub(super) async fn a_join_is_handed_over_once(world: &World) {
    // R15, S4
    let flow = world.define("a; b; c < a, b").await;
    let (_, batch) = start_over(world, TENANT, &flow).await;
    assert!(complete_over(world, batch.of("a")).await.is_empty());
    assert_eq!(complete_over(world, batch.of("b")).await.steps(), "c");
    let (_, batch) = start_over(world, TENANT, &flow).await;
    assert_eq!(world.complete_for(&batch, &worker(WORKER), ALL).await.steps(), "c");
}

pub(super) async fn what_was_handed_over_comes_back_from_a_dead_worker(world: &World) {
    // L4
    let flow = world.define("a").await;
    let unlucky = world.hire("unlucky").await;
    let request = world.request(TENANT, "", &flow, b"input");
    let run = run_of(&request, &flow);
    let started = world.start_and_claim(vec![request], &unlucky, 1).await;
    let late = &started.handed_over.tasks[0];
    assert_eq!(world.lose(&unlucky).await.n_tasks, 1);
    assert_eq!(world.states(&run).await, "a QUEUED");
    let task = world.claim_one().await;
    assert_eq!(task.attempt, 2);
    assert_eq!(world.commit_one(late, completed()).await, CommitAnswer::NotMine);
    world.complete(&task).await;
}

pub(super) async fn a_heartbeat_knows_what_was_handed_over(world: &World) {
    // L4: also when the reply that told of it was lost.
    let flow = world.define("a").await;
    let (_, batch) = start_over(world, TENANT, &flow).await;
    let claim = batch.of("a").claim;
    world.pass(LEASE / 2);
    assert_eq!(world.beat(&worker(WORKER), &[claim]).await, []);
    let answer = world.try_beat(&worker(WORKER), &[]).await;
    assert_eq!(answer, HeartbeatAnswer::Alive { lost: vec![], unknown: vec![claim] });
}

pub(super) async fn a_cancelled_run_takes_back_what_was_handed_over(world: &World) {
    // S8
    let flow = world.define("a; b < a").await;
    let (run, batch) = start_over(world, TENANT, &flow).await;
    world.cancel(&run).await;
    assert_eq!(world.commit_one(batch.of("a"), completed()).await, CommitAnswer::NotMine);
    assert_eq!(world.states(&run).await, "a CANCELLED, b CANCELLED");
}

pub(super) async fn a_tenant_never_runs_more_than_its_limit_by_hand_over(world: &World) {
    // S15
    let flow = world.define("a; b < a").await;
    world.limit(TENANT, 1).await;
    let requests = (0..3).map(|_| world.request(TENANT, "", &flow, b"input")).collect();
    let started = world.start_and_claim(requests, &worker(WORKER), ALL).await;
    let mut held = started.handed_over.tasks;
    for _ in 0..6 {
        held.extend(world.claim_all().await.0);
        assert_eq!(held.len(), 1, "it may hold one");
        held = complete_over(world, &held.remove(0)).await.0;
    }
    assert!(held.is_empty() && world.claim_all().await.is_empty());
}

pub(super) async fn a_sleep_is_not_handed_over(world: &World) {
    let flow = world.define("a; s ~ 1h < a; b < s").await;
    let (run, batch) = start_over(world, TENANT, &flow).await;
    assert!(complete_over(world, batch.of("a")).await.is_empty());
    assert_eq!(world.states(&run).await, "a COMPLETED, s SLEEPING, b PENDING");
}

pub(super) async fn hints_are_given_for_what_is_left_in_line_only(world: &World) {
    let flow = world.define("a; b < a; c < a").await;
    let mut hints = world.store().hints();
    let (_, batch) = start_over(world, TENANT, &flow).await;
    let all = complete_over(world, batch.of("a")).await;
    assert_eq!(all.len(), 2);
    assert!(hints.given(Hint::Ready).now_or_never().is_none(), "nothing is left to claim");
    world.complete_together(&all).await;
    let (_, batch) = start_over(world, TENANT, &flow).await;
    world.complete_for(&batch, &worker(WORKER), 1).await;
    assert!(hints.given(Hint::Ready).now_or_never().is_some(), "one is left");
}
