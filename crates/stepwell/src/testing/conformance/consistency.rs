//! Consistency: whatever happens, in whatever order and at the same moment, the rows agree.

use std::time::Duration;

use futures_util::future::{join, join_all};
use stepwell_core::decide::CancelRequest;
use stepwell_core::id::Node;
use stepwell_core::workflow::NodeKind;

use super::check_invariants;
use super::world::{
    Chance, Flow, LEASE, Run, Sending, Sketch, TENANT, WORKER, World, completed, failed,
    failed_for_good, run_of, waiting, worker,
};
use crate::ports::{BoxFuture, ClaimAnswer, ClaimedTask, Clock, CommitItem, Outcome};

/// Workflows that random work is done on.
const RANDOM_FLOWS: &[&str] = &[
    "a; b < a; c < a; d < b, c",
    "a * 2; b < a!; c; d < b!, c",
    "a; b; c; d < a, b, c; e < d; f < d; g < e, f!",
    "a * 1/5s; s ~ 10s < a; b < s, a",
    "a; s ~? 3s < a; b < s",
    "a * 3/1s @ slow; b @ slow < a; c < a",
    "w ? paid/20s; a; b < w, a; v ? sent < b; c < v, a!",
    "a; w ?? paid|sent/9s < a; v ? paid&order=1/30s < a; u ? paid < w; b < v, u",
];

/// Of these, some runs wait from the start and others get there.
const WAITING_FLOWS: &[&str] = &["w ? paid/20s; v ? paid; a < w; b < v", RANDOM_FLOWS[7]];

/// What random signals are called.
const SIGNALS: &[&str] = &["paid", "sent", "other"];

pub(super) async fn random_work_keeps_every_invariant(world: &World) {
    // S3, S4, S8, S10, S16, S19: the world checks them after every verb.
    for seed in 1..=4 {
        let mut chance = Chance::new(seed);
        let text = RANDOM_FLOWS[chance.below(RANDOM_FLOWS.len())];
        let flows = [
            world.define(text).await,
            world.define(Sketch::from(RANDOM_FLOWS[1]).on_failure()).await,
            world.define(Sketch::from(RANDOM_FLOWS[2]).fail_fast()).await,
            world.define(Sketch::from(WAITING_FLOWS[0]).on_failure()).await,
            world.define(Sketch::from(WAITING_FLOWS[1]).fail_fast()).await,
        ];
        world.limit("zeta", 3).await;
        let runs = work_at_random(world, &mut chance, &flows).await;
        finish(world, &runs).await;
        for run in runs {
            assert!(world.status(&run).await.is_terminal(), "T1: {:?} goes on", run.id);
        }
    }
}

async fn work_at_random(world: &World, chance: &mut Chance, flows: &[Flow]) -> Vec<Run> {
    let (mut held, mut runs): (Vec<ClaimedTask>, Vec<Run>) = (Vec::new(), Vec::new());
    for _ in 0..90 {
        match chance.below(15) {
            0 | 1 => runs.push(start_at_random(world, chance, flows).await),
            2..=4 => {
                let batch = world.claim(&worker(WORKER), 1 + chance.below(3)).await;
                for task in batch.iter() {
                    check_may_start(world, &runs, task).await;
                }
                held.extend(batch.0);
            }
            5..=8 if !held.is_empty() => {
                let task = held.swap_remove(chance.below(held.len()));
                world.commit_one(&task, outcome_at_random(chance, &task)).await;
            }
            9 => {
                world.pass(Duration::from_secs(2));
                world.fire().await;
            }
            10 if !runs.is_empty() && chance.below(3) == 0 => {
                let request = cancel_at_random(chance);
                world.cancel_with(&runs[chance.below(runs.len())], request).await;
            }
            12..=14 if !runs.is_empty() => {
                let n_sent = 1 + chance.below(3);
                let sendings = (0..n_sent).map(|_| signal_at_random(world, chance, &runs));
                world.send_all(sendings.collect()).await;
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

/// One of three has a deadline.
async fn start_at_random(world: &World, chance: &mut Chance, flows: &[Flow]) -> Run {
    let (flow, tenant) = (&flows[chance.below(flows.len())], ["acme", "zeta"][chance.below(2)]);
    let mut request = world.request(tenant, "", flow, b"input");
    if chance.below(3) == 0 {
        request.seed.deadline = Some(Duration::from_secs(chance.below(60) as u64));
    }
    let run = run_of(&request, flow);
    world.try_start(request).await;
    run
}

/// Nothing but a failure handler starts once its run's deadline has passed.
async fn check_may_start(world: &World, runs: &[Run], task: &ClaimedTask) {
    let run = runs.iter().find(|run| run.key == task.claim.run).expect("it was started");
    let deadline = world.row(run).await.deadline.filter(|_| task.claim.node != Node::ON_FAILURE);
    let is_in_time = deadline.is_none_or(|deadline| world.clock().now() < deadline);
    assert!(is_in_time, "{:?} started after its deadline", task.claim);
}

fn cancel_at_random(chance: &mut Chance) -> CancelRequest {
    CancelRequest { force: chance.below(2) == 0, ..CancelRequest::by("a test") }
}

/// Few keys, so that some are used twice.
fn signal_at_random(world: &World, chance: &mut Chance, runs: &[Run]) -> Sending {
    let run = &runs[chance.below(runs.len())];
    let mut sending = world.to(run, SIGNALS[chance.below(SIGNALS.len())]);
    match chance.below(6) {
        0 => sending = sending.key(&format!("key-{}", chance.below(9))),
        1 => sending = sending.by_id(),
        2 => sending = sending.if_awaited(),
        3 | 4 => sending = sending.with("order", "1"),
        _ => {}
    }
    sending
}

fn outcome_at_random(chance: &mut Chance, task: &ClaimedTask) -> Outcome {
    match chance.below(12) {
        0 => failed("by chance"),
        1 => failed_for_good("by chance"),
        2 => Outcome::Released,
        3 | 4 => Outcome::Skipped,
        5..=7 if task.claim.node != Node::ON_FAILURE && kind(task).may_wait() => {
            waiting(["paid", "sent/5s", "paid|sent&order=1/0s"][chance.below(3)])
        }
        _ => ending(task),
    }
}

fn kind(task: &ClaimedTask) -> NodeKind {
    task.definition.definition.graph.kind(task.claim.node)
}

/// What a task comes to if all goes well.
fn ending(task: &ClaimedTask) -> Outcome {
    match kind(task) {
        NodeKind::ConditionalSleep => Outcome::Slept,
        NodeKind::Wait => waiting("paid"),
        _ => completed(),
    }
}

/// Lets all go well until nothing is left to do.
async fn finish(world: &World, runs: &[Run]) {
    for _ in 0..1_000 {
        let batch = world.claim_all().await;
        for task in batch.iter() {
            world.commit_one(task, ending(task)).await;
        }
        let n_sent = send_what_is_awaited(world, runs).await;
        world.pass(Duration::from_mins(1));
        if world.fire_all().await + n_sent + batch.len() == 0 {
            return;
        }
    }
    panic!("work does not come to an end")
}

/// Sends to every run what its oldest wait is for; gives how many signals that were.
async fn send_what_is_awaited(world: &World, runs: &[Run]) -> usize {
    let mut sendings = Vec::new();
    for run in runs {
        let waits = world.waits(run).await;
        sendings.extend(waits.first().map(|wait| {
            let sending = world.to(run, &wait.signals[0]);
            wait.matching.iter().fold(sending, |sending, (name, value)| sending.with(name, value))
        }));
    }
    let n_sent = sendings.len();
    world.send_all(sendings).await;
    n_sent
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
        world.define(Sketch::from(WAITING_FLOWS[0]).on_failure()).await,
        world.define(Sketch::from(WAITING_FLOWS[1])).await,
    ];
    world.limit("zeta", 4).await;
    let mut chance = Chance::new(7);
    let (mut held, mut runs): (Vec<ClaimedTask>, Vec<Run>) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        for _ in 0..3 {
            runs.push(start_at_random(world, &mut chance, &flows).await);
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
        world.commit_one(&task, ending(&task)).await;
    }
    finish(world, &runs).await;
    for run in runs {
        assert!(world.status(&run).await.is_terminal(), "T1: {:?} goes on", run.id);
    }
}

/// Commits, claims, signals, a cancellation, timers and a reaping, all at the same moment.
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
                other => panic!("it has just sent a heartbeat: {other:?}"),
            }
        }));
    }
    for _ in 0..2 {
        let sendings = [0; 3].map(|_| signal_at_random(world, chance, runs).into());
        let store = world.store().clone();
        hands.push(Box::pin(async move {
            store.signal(sendings.into()).await.expect("send signals");
            Vec::new()
        }));
    }
    let (store, gone) = (world.store().clone(), runs[chance.below(runs.len())].key);
    let cancel = cancel_at_random(chance);
    let request = world.reap_request().await;
    hands.push(Box::pin(async move {
        store.reap(epoch, request).await.expect("reap");
        store.fire_timers(epoch, 10).await.expect("fire timers");
        store.cancel(gone, cancel).await.expect("cancel");
        Vec::new()
    }));
    held.extend(join_all(hands).await.into_iter().flatten());
}
