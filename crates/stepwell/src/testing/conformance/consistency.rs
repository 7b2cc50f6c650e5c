//! Consistency: whatever happens, in whatever order and at the same moment, the rows agree.

use std::time::Duration;

use futures_util::future::{join, join_all};
use stepwell_core::workflow::NodeKind;

use super::check_invariants;
use super::world::{
    CRASH_LIMIT, Chance, Flow, LEASE, Run, Sketch, TENANT, WORKER, World, completed, failed,
    failed_for_good, worker,
};
use crate::ports::{BoxFuture, ClaimAnswer, ClaimedTask, CommitItem, Outcome, ReapRequest};

/// Workflows that random work is done on.
const RANDOM_FLOWS: &[&str] = &[
    "a; b < a; c < a; d < b, c",
    "a * 2; b < a!; c; d < b!, c",
    "a; b; c; d < a, b, c; e < d; f < d; g < e, f!",
    "a * 1/5s; s ~ 10s < a; b < s, a",
    "a; s ~? 3s < a; b < s",
    "a * 3/1s @ slow; b @ slow < a; c < a",
];

pub(super) async fn random_work_keeps_every_invariant(world: &World) {
    // S3, S4, S8, S10, S16, S19: the world checks them after every verb.
    for seed in 1..=4 {
        let mut chance = Chance::new(seed);
        let text = RANDOM_FLOWS[chance.below(RANDOM_FLOWS.len())];
        let flows = [
            world.define(text).await,
            world.define(Sketch::from(RANDOM_FLOWS[1]).on_failure()).await,
            world.define(Sketch::from(RANDOM_FLOWS[2]).fail_fast()).await,
        ];
        world.limit("zeta", 3).await;
        let runs = work_at_random(world, &mut chance, &flows).await;
        finish(world).await;
        for run in runs {
            assert!(world.status(&run).await.is_terminal(), "T1: {:?} goes on", run.id);
        }
    }
}

async fn work_at_random(world: &World, chance: &mut Chance, flows: &[Flow]) -> Vec<Run> {
    let (mut held, mut runs): (Vec<ClaimedTask>, Vec<Run>) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        match chance.below(12) {
            0 | 1 => {
                let tenant = ["acme", "zeta"][chance.below(2)];
                runs.push(world.start_for(tenant, &flows[chance.below(flows.len())]).await);
            }
            2..=4 => held.extend(world.claim(&worker(WORKER), 1 + chance.below(3)).await.0),
            5..=8 if !held.is_empty() => {
                let task = held.swap_remove(chance.below(held.len()));
                world.commit_one(&task, outcome_at_random(chance, &task)).await;
            }
            9 => {
                world.pass(Duration::from_secs(2));
                world.fire().await;
            }
            10 if !runs.is_empty() && chance.below(3) == 0 => {
                world.cancel(&runs[chance.below(runs.len())]).await;
            }
            11 if chance.below(3) == 0 => {
                let unlucky = world.hire("unlucky").await;
                world.claim(&unlucky, 2).await;
                world.lose(&unlucky).await;
            }
            _ => {}
        }
    }
    for task in held {
        world.commit_one(&task, ending(&task)).await;
    }
    runs
}

fn outcome_at_random(chance: &mut Chance, task: &ClaimedTask) -> Outcome {
    match chance.below(9) {
        0 => failed("by chance"),
        1 => failed_for_good("by chance"),
        2 => Outcome::Released,
        3 | 4 => Outcome::Skipped,
        _ => ending(task),
    }
}

/// What a task comes to if all goes well.
fn ending(task: &ClaimedTask) -> Outcome {
    match task.definition.definition.graph.kind(task.claim.node) {
        NodeKind::ConditionalSleep => Outcome::Slept,
        _ => completed(),
    }
}

/// Lets all go well until nothing is left to do.
async fn finish(world: &World) {
    for _ in 0..1_000 {
        let batch = world.claim_all().await;
        for task in batch.iter() {
            world.commit_one(task, ending(task)).await;
        }
        world.pass(Duration::from_mins(1));
        if batch.is_empty() && world.fire().await.n_fired == 0 {
            return;
        }
    }
    panic!("work does not come to an end")
}

pub(super) async fn a_look_never_shows_half_a_commit(world: &World) {
    // FB2, S4: a commit is one transaction, and a dump is one snapshot.
    let flow = world.define("a; b; c < a, b; d < c").await;
    world.start_many_for(TENANT, &flow, 10).await;
    for _ in 0..3 {
        let batch = world.claim_all().await;
        let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
        let commit = world.store().commit(batch.iter().map(item).collect());
        let looks = join_all((0..4).map(|_| check_invariants(&**world.store())));
        let (answers, _) = join(commit, looks).await;
        answers.expect("commit");
    }
    world.check().await;
}

pub(super) async fn a_look_never_shows_half_a_start(world: &World) {
    // S1, L1
    let flow = world.define("a; b < a; s ~ 1h; c < b, s").await;
    let requests = (0..20).map(|_| world.request(TENANT, "", &flow, b"input")).collect();
    let looks = join_all((0..4).map(|_| check_invariants(&**world.store())));
    let (answers, _) = join(world.store().start(requests), looks).await;
    answers.expect("start");
    world.check().await;
}

pub(super) async fn work_at_the_same_moment_keeps_every_invariant(world: &World) {
    // FB2, FB3, FB6, S4, S5, S16: every round plays many hands at once.
    let flows = [
        world.define(RANDOM_FLOWS[2]).await,
        world.define(Sketch::from(RANDOM_FLOWS[1]).on_failure()).await,
        world.define(Sketch::from(RANDOM_FLOWS[0]).fail_fast()).await,
    ];
    world.limit("zeta", 4).await;
    let mut chance = Chance::new(7);
    let (mut held, mut runs): (Vec<ClaimedTask>, Vec<Run>) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        for tenant in ["acme", "zeta"] {
            runs.push(world.start_for(tenant, &flows[chance.below(flows.len())]).await);
        }
        let unlucky = world.hire("unlucky").await;
        world.claim(&unlucky, 1).await;
        world.pass(LEASE);
        world.beat(&worker(WORKER), &[]).await;
        world.pass(Duration::from_secs(1));
        play(world, &mut chance, &mut held, &runs).await;
        world.check().await;
    }
    for task in held {
        world.commit_one(&task, completed()).await;
    }
    finish(world).await;
    for run in runs {
        assert!(world.status(&run).await.is_terminal(), "T1: {:?} goes on", run.id);
    }
}

/// Commits, claims, a cancellation, timers and a reaping, all at the same moment.
async fn play(world: &World, chance: &mut Chance, held: &mut Vec<ClaimedTask>, runs: &[Run]) {
    let epoch = world.lead().await;
    let mut hands: Vec<BoxFuture<Vec<ClaimedTask>>> = Vec::new();
    for task in held.drain(..) {
        let store = world.store().clone();
        let item = CommitItem { claim: task.claim, outcome: outcome_at_random(chance, &task) };
        hands.push(Box::pin(async move {
            store.commit(vec![item]).await.expect("commit");
            Vec::new()
        }));
    }
    for _ in 0..3 {
        let (store, request) = (world.store().clone(), world.claim_request(&worker(WORKER), 3));
        hands.push(Box::pin(async move {
            match store.claim(request).await.expect("claim") {
                ClaimAnswer::Claimed { tasks, .. } => tasks,
                ClaimAnswer::NotRegistered => panic!("it has just sent a heartbeat"),
            }
        }));
    }
    let (store, gone) = (world.store().clone(), runs[chance.below(runs.len())].key);
    hands.push(Box::pin(async move {
        let request =
            ReapRequest { crash_limit: CRASH_LIMIT, workers_max: 10, judges_silence: true };
        store.reap(epoch, request).await.expect("reap");
        store.fire_timers(epoch, 10).await.expect("fire timers");
        store.cancel(gone).await.expect("cancel");
        Vec::new()
    }));
    held.extend(join_all(hands).await.into_iter().flatten());
}
