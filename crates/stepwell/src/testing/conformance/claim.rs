//! Claims: ready tasks go to workers, each to one, under a fresh token.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use stepwell_core::run::TaskState;
use stepwell_core::time::Timestamp;

use super::world::{LEASE, TENANT, WORKER, World, completed_with, step_of, worker};
use crate::ports::{ClaimAnswer, ClaimedTask, Clock, InputsOf};

pub(super) async fn tasks_of_one_tenant_come_in_the_order_they_became_ready(world: &World) {
    let flow = world.define("a").await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(world.start(&flow).await.id);
    }
    let claimed: Vec<_> = world.claim_all().await.iter().map(|task| task.run_id.clone()).collect();
    assert_eq!(claimed, runs);
}

pub(super) async fn tasks_of_many_services_come_in_one_order(world: &World) {
    // T3: long runs of one service, a mixture, and what another worker serves in between.
    let mut flows = Vec::new();
    for _ in 0..5 {
        flows.push(world.define("a").await);
    }
    let foreign = world.define("f").await;
    let own = world.hire_for("own", &["default"], &flows.iter().collect::<Vec<_>>()).await;
    let order = [vec![0; 70], vec![3; 40], (0..40).map(|n| n % 5).collect(), vec![1; 20]].concat();
    let mut runs = Vec::new();
    for (ix, flow) in order.into_iter().enumerate() {
        if ix % 3 == 0 {
            world.start(&foreign).await;
        }
        runs.push(world.start(&flows[flow]).await.id);
    }
    let mut claimed = Vec::new();
    for tasks_max in [60, 1, 7, 30, 2, 100] {
        let batch = world.claim(&own, tasks_max).await;
        claimed.extend(batch.iter().map(|task| task.run_id.clone()));
        assert_eq!(claimed, runs[..claimed.len()], "{tasks_max} at once");
    }
    assert_eq!(claimed.len(), runs.len());
}

pub(super) async fn a_claim_hands_out_at_most_what_was_asked_for(world: &World) {
    // FB4
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 50).await;
    let worker = worker(WORKER);
    for expected in [2, 7, 41] {
        assert_eq!(world.claim(&worker, expected).await.len(), expected);
    }
    assert!(world.claim(&worker, 10).await.is_empty());
}

pub(super) async fn a_claim_for_nothing_takes_nothing(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let worker = worker(WORKER);
    assert!(world.unchanged_by(world.claim(&worker, 0)).await.is_empty());
}

pub(super) async fn a_claimed_task_runs_and_waits_nowhere(world: &World) {
    // L2
    let flow = world.define("a").await;
    let run = world.start(&flow).await;
    assert!(world.place(&run, "a").await.is_some());
    let task = world.claim_one().await;
    assert_eq!(world.place(&run, "a").await, None);
    let row = world.task(&run, "a").await;
    assert_eq!(row.state(), TaskState::Running);
    let claim = row.claim().expect("it runs");
    assert_eq!((&claim.worker, claim.token), (&worker(WORKER), task.claim.token));
    let held = world.dump().await.claims.remove(&worker(WORKER));
    assert_eq!(held, Some(vec![task.claim]));
}

pub(super) async fn two_workers_never_get_the_same_task(world: &World) {
    // R3, S5
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 60).await;
    let mut requests = Vec::new();
    for n in 0..6 {
        let worker = world.hire(&format!("worker-{n}")).await;
        requests.extend([world.claim_request(&worker, 7), world.claim_request(&worker, 7)]);
    }
    let claims = requests.into_iter().map(|request| world.store().claim(request));
    let mut seen = BTreeSet::new();
    for answer in join_all(claims).await {
        let Ok(ClaimAnswer::Claimed { tasks, .. }) = answer else { panic!("{answer:?}") };
        assert!(tasks.len() <= 7);
        for task in tasks {
            assert!(seen.insert((task.claim.run, task.claim.node)), "{task:?} went to two");
        }
    }
    // A claim may come back short while others hold rows, but nothing is lost by it.
    let rest = world.claim_all().await;
    assert!(rest.iter().all(|task| seen.insert((task.claim.run, task.claim.node))));
    assert_eq!(seen.len(), 60);
}

pub(super) async fn the_attempt_is_counted_when_it_is_claimed(world: &World) {
    // FA10
    let flow = world.define("a * 5").await;
    let run = world.start(&flow).await;
    assert_eq!(world.task(&run, "a").await.attempt, 0);
    for expected in 1..=3 {
        let task = world.claim_one().await;
        assert_eq!(task.attempt, expected);
        assert_eq!(world.task(&run, "a").await.attempt, expected);
        world.fail(&task).await;
    }
}

pub(super) async fn every_claim_has_a_fresh_token(world: &World) {
    // S5, FA2
    let flow = world.define("a").await;
    world.start(&flow).await;
    let mut tokens = BTreeSet::new();
    for _ in 0..10 {
        let task = world.claim_one().await;
        assert!(tokens.insert(task.claim.token), "a token came twice");
        world.release(&task).await;
    }
}

pub(super) async fn a_token_carries_the_random_bits_of_its_claimant(world: &World) {
    // FA2: a database that failed over may count from the same number again.
    let flow = world.define("a").await;
    world.start(&flow).await;
    let mut request = world.claim_request(&worker(WORKER), 1);
    request.salt = 0xdead_beef_cafe_f00d;
    let answer = world.store().claim(request).await;
    let Ok(ClaimAnswer::Claimed { tasks, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(tasks[0].claim.token.0 & u128::from(u64::MAX), 0xdead_beef_cafe_f00d);
}

pub(super) async fn an_unregistered_worker_gets_nothing(world: &World) {
    let flow = world.define("a").await;
    world.start(&flow).await;
    let stranger = worker("stranger");
    let answer = world.unchanged_by(world.try_claim(&stranger, 1)).await;
    assert!(matches!(answer, ClaimAnswer::NotRegistered));
}

pub(super) async fn a_worker_taken_for_dead_gets_nothing(world: &World) {
    // S5: nothing slips in behind a reaping.
    let flow = world.define("a").await;
    world.start(&flow).await;
    let second = world.hire("second").await;
    world.lose(&second).await;
    let answer = world.unchanged_by(world.try_claim(&second, 1)).await;
    assert!(matches!(answer, ClaimAnswer::NotRegistered));
    let again = world.hire("second").await;
    assert_eq!(world.claim(&again, 1).await.steps(), "a");
}

pub(super) async fn a_worker_that_left_gets_nothing(world: &World) {
    // R12
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 2).await;
    let second = world.hire("second").await;
    world.claim(&second, 1).await;
    world.dismiss(&second).await;
    let answer = world.unchanged_by(world.try_claim(&second, 1)).await;
    assert!(matches!(answer, ClaimAnswer::NotRegistered));
}

pub(super) async fn a_worker_gets_only_workflows_it_knows(world: &World) {
    // FE3
    let (old, new) = (world.define("old").await, world.define("new").await);
    for _ in 0..3 {
        world.start(&new).await;
        world.start(&old).await;
    }
    let veteran = world.hire_for("veteran", &["default"], &[&old]).await;
    assert_eq!(world.claim(&veteran, 10).await.steps(), "old old old");
    assert_eq!(world.claim_all().await.steps(), "new new new");
}

pub(super) async fn a_worker_gets_only_from_queues_it_serves(world: &World) {
    let flow = world.define("quick; slow @ slow").await;
    world.start_many_for(TENANT, &flow, 2).await;
    let special = world.hire_for("special", &["slow"], &[&flow]).await;
    assert_eq!(world.claim(&special, 10).await.steps(), "slow slow");
    assert_eq!(world.claim_all().await.steps(), "quick quick");
}

pub(super) async fn a_worker_takes_turns_between_its_queues(world: &World) {
    let flow = world.define("left @ left; right @ right").await;
    world.start_many_for(TENANT, &flow, 20).await;
    let steps = world.claim(&worker(WORKER), 10).await.steps();
    assert_eq!(steps.matches("left").count(), 5, "{steps}");
}

pub(super) async fn single_claims_take_turns_between_queues_too(world: &World) {
    // A worker whose slots come free one by one must not stay with its first queue for ever.
    let flow = world.define("left @ left; right @ right").await;
    world.start_many_for(TENANT, &flow, 30).await;
    let mut n_left = 0;
    for _ in 0..30 {
        n_left += usize::from(step_of(&world.claim_one().await) == "left");
    }
    assert!((12..=18).contains(&n_left), "{n_left} of 30 came from one of two queues");
}

pub(super) async fn an_empty_queue_does_not_hold_up_the_others(world: &World) {
    let flow = world.define("a @ busy; b @ idle < a").await;
    world.start_many_for(TENANT, &flow, 9).await;
    assert_eq!(world.claim(&worker(WORKER), 9).await.len(), 9);
}

pub(super) async fn a_claim_tells_whose_task_it_is(world: &World) {
    // L13, R3
    let flow = world.define("a").await;
    let run = world.start_for("zeta", &flow).await;
    let task = world.claim_one().await;
    assert_eq!((task.claim.run, task.claim.node), (run.key, run.node("a")));
    assert_eq!((&task.tenant, &task.run_id), (&run.tenant, &run.id));
    assert_eq!(task.definition.id, flow.0.id);
    assert_eq!(task.definition.version, flow.0.version);
    assert_eq!(task.definition.definition, flow.0.definition);
    assert_eq!((task.attempt, task.is_suspect), (1, false));
}

pub(super) async fn a_claim_tells_the_stores_time(world: &World) {
    // FA3
    let flow = world.define("a").await;
    world.pass(LEASE / 3);
    let run = world.start(&flow).await;
    world.pass(LEASE / 3);
    let answer = world.try_claim(&worker(WORKER), 1).await;
    let ClaimAnswer::Claimed { now, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(now, world.clock().now());
    assert_ne!(now, Timestamp::EPOCH);
    let row = world.task(&run, "a").await;
    let claim = row.claim().expect("it runs");
    assert_eq!(claim.started_at, now);
    assert_eq!(claim.started_at.since(claim.queued_at), LEASE / 3);
}

pub(super) async fn a_task_is_not_handed_out_before_its_parents_are_done(world: &World) {
    // S3
    let flow = world.define("a; b < a; c < a, b").await;
    world.start(&flow).await;
    let a = world.claim_all().await;
    assert_eq!(a.steps(), "a");
    assert!(world.claim_all().await.is_empty());
    world.complete(&a[0]).await;
    let b = world.claim_all().await;
    assert_eq!(b.steps(), "b");
    world.complete(&b[0]).await;
    assert_eq!(world.claim_all().await.steps(), "c");
}

pub(super) async fn inputs_hold_the_runs_input_and_the_parents_outputs(world: &World) {
    // R18, S7
    let flow = world.define("a; b; c < b, a").await;
    world.start(&flow).await;
    let roots = world.claim_all().await;
    world.settle(roots.of("a"), completed_with(b"of a")).await;
    world.settle(roots.of("b"), completed_with(b"of b")).await;
    let inputs = world.inputs(&world.claim_one().await).await;
    assert_eq!(&*inputs.input.bytes, b"input");
    let parents: Vec<_> = inputs
        .parents
        .iter()
        .map(|parent| (parent.node, parent.state, parent.output.clone().expect("it completed")))
        .collect();
    let expected = [(flow.node("b"), &b"of b"[..]), (flow.node("a"), &b"of a"[..])];
    assert_eq!(parents.len(), 2);
    for ((node, state, output), (expected_node, bytes)) in parents.iter().zip(expected) {
        assert_eq!((*node, *state), (expected_node, TaskState::Completed));
        assert_eq!(&*output.bytes, bytes);
    }
    assert_eq!(inputs.failure, None);
}

pub(super) async fn inputs_show_a_skipped_parent_without_an_output(world: &World) {
    let flow = world.define("a; b; c < a, b").await;
    world.start(&flow).await;
    let roots = world.claim_all().await;
    world.skip(roots.of("a")).await;
    world.complete(roots.of("b")).await;
    let inputs = world.inputs(&world.claim_one().await).await;
    let states: Vec<_> = inputs.parents.iter().map(|parent| parent.state).collect();
    assert_eq!(states, [TaskState::Skipped, TaskState::Completed]);
    assert!(inputs.parents[0].output.is_none());
}

pub(super) async fn inputs_come_in_the_order_asked_for(world: &World) {
    let flow = world.define("a").await;
    for id in ["first", "second", "third"] {
        let request = world.request(TENANT, id, &flow, id.as_bytes());
        world.try_start(request).await;
    }
    let batch = world.claim_all().await;
    let backwards: Vec<InputsOf> = batch.iter().rev().map(ClaimedTask::inputs_of).collect();
    let inputs = world.store().inputs(&backwards).await.expect("read inputs");
    let inputs: Vec<&[u8]> = inputs.iter().map(|inputs| &*inputs.input.bytes).collect();
    assert_eq!(inputs, [&b"third"[..], b"second", b"first"]);
}

pub(super) async fn inputs_of_siblings_are_told_apart(world: &World) {
    // R18, S7
    let flow = world.define("a; b; c < a; d < a; e < b; f < b; g < a, b").await;
    for _ in 0..2 {
        world.start(&flow).await;
    }
    let roots = world.claim_all().await;
    for (n, root) in roots.iter().enumerate() {
        world.settle(root, completed_with(format!("of {n}").as_bytes())).await;
    }
    let batch = world.claim_all().await;
    assert_eq!(batch.len(), 10);
    let tasks: Vec<InputsOf> = batch.iter().map(ClaimedTask::inputs_of).collect();
    let together = world.store().inputs(&tasks).await.expect("read inputs");
    for (task, inputs) in batch.iter().zip(together) {
        assert_eq!(inputs, world.inputs(task).await, "{}", step_of(task));
    }
}

pub(super) async fn turns_pass_on_when_every_queue_ran_dry(world: &World) {
    let left = world.define_unserved("a @ left; b @ left").await;
    let right = world.define_unserved("x @ right").await;
    let worker = world.hire_for("w", &["left", "right"], &[&left, &right]).await;
    world.start(&left).await;
    assert_eq!(world.claim(&worker, 3).await.steps(), "a b");
    world.start(&left).await;
    world.start(&right).await;
    assert_eq!(world.claim(&worker, 1).await.steps(), "x");
}

pub(super) async fn a_worker_that_registers_anew_begins_with_its_first_queue(world: &World) {
    let flow = world.define_unserved("a @ left; b @ left; x @ right").await;
    let worker = world.hire_for("w", &["left", "right"], &[&flow]).await;
    world.start(&flow).await;
    assert_eq!(world.claim(&worker, 1).await.steps(), "a");
    world.hire_for("w", &["left", "right"], &[&flow]).await;
    assert_eq!(world.claim(&worker, 1).await.steps(), "b");
}
