//! Limits: a tenant's ready and running tasks never exceed its limit; the rest is held back.

use std::time::Duration;

use futures_util::FutureExt;
use stepwell_core::code::Code;
use stepwell_core::run::TaskState;

use super::world::{
    Chance, TENANT, WORKER, World, completed, failed, failed_for_good, tenant, waiting, worker,
};
use crate::ports::{ClaimedTask, Hint, Outcome, StoreError, TaskPlace, TenantSettings};

/// Ready, running and held back.
async fn counts(world: &World, tenant: &str) -> (usize, usize, usize) {
    let view = world.tenant_view(tenant).await;
    (view.n_ready, view.n_running, view.n_throttled)
}

pub(super) async fn what_is_over_the_limit_is_held_back(world: &World) {
    // R26, S15
    let flow = world.define("a").await;
    world.limit(TENANT, 3).await;
    let runs = world.start_many_for(TENANT, &flow, 10).await;
    assert_eq!(counts(world, TENANT).await, (3, 0, 7));
    assert_eq!(world.place(&runs[9], "a").await, Some(TaskPlace::Throttled));
    assert_eq!(world.task(&runs[9], "a").await.state(), TaskState::Queued);
    assert_eq!(world.claim_all().await.len(), 3);
    assert_eq!(counts(world, TENANT).await, (0, 3, 7));
    assert!(world.claim_all().await.is_empty());
}

/// However a task leaves RUNNING, the next one gets its slot.
async fn check_freed_by(world: &World, text: &str, outcome: Outcome) {
    let flow = world.define(text).await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &flow, 2).await;
    let first = world.claim_one().await;
    assert_eq!(counts(world, TENANT).await, (0, 1, 1));
    world.settle(&first, outcome).await;
    let second = world.claim_one().await;
    assert_ne!(second.claim.run, first.claim.run);
}

pub(super) async fn a_completion_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a", completed()).await;
}

pub(super) async fn a_failure_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a", failed_for_good("boom")).await;
}

pub(super) async fn a_delayed_retry_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a * 1/10s", failed("boom")).await;
}

pub(super) async fn a_retry_lines_up_behind_what_is_held_back(world: &World) {
    // R26
    check_freed_by(world, "a * 1", failed("boom")).await;
}

pub(super) async fn a_release_lines_up_behind_what_is_held_back(world: &World) {
    // R26
    check_freed_by(world, "a", Outcome::Released).await;
}

pub(super) async fn a_skip_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a", Outcome::Skipped).await;
}

pub(super) async fn a_sleep_lets_the_next_task_in(world: &World) {
    // R26, R4
    check_freed_by(world, "a ~? 1h", Outcome::Slept).await;
}

pub(super) async fn a_wait_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a", waiting("paid")).await;
}

pub(super) async fn a_conditional_wait_lets_the_next_task_in(world: &World) {
    // R26
    check_freed_by(world, "a ?? paid", waiting("paid/1h")).await;
}

pub(super) async fn a_loss_lets_the_next_task_in(world: &World) {
    // R26
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &flow, 2).await;
    let second = world.hire("second").await;
    let lost = world.claim(&second, 5).await;
    assert_eq!(lost.len(), 1);
    world.lose(&second).await;
    assert_eq!(counts(world, TENANT).await, (1, 0, 1));
}

pub(super) async fn a_cancelled_run_lets_the_next_task_in(world: &World) {
    // R26
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    world.claim_one().await;
    world.cancel(&runs[0]).await;
    assert_eq!(counts(world, TENANT).await, (1, 0, 1));
    world.cancel(&runs[1]).await;
    assert_eq!(world.claim_one().await.claim.run, runs[2].key);
}

pub(super) async fn a_cancelled_task_that_was_held_back_is_gone(world: &World) {
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    world.cancel(&runs[1]).await;
    assert_eq!(counts(world, TENANT).await, (1, 0, 1));
    world.step().await;
    assert_eq!(world.claim_one().await.claim.run, runs[2].key);
}

pub(super) async fn what_waited_longest_comes_in_first(world: &World) {
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(world.start(&flow).await.key);
    }
    for run in runs {
        let task = world.claim_one().await;
        assert_eq!(task.claim.run, run);
        world.complete(&task).await;
    }
}

pub(super) async fn a_raised_limit_lets_tasks_in_at_once(world: &World) {
    // R26
    let flow = world.define("a").await;
    world.limit(TENANT, 1).await;
    world.start_many_for(TENANT, &flow, 6).await;
    world.limit(TENANT, 4).await;
    assert_eq!(counts(world, TENANT).await, (4, 0, 2));
    world.limit(TENANT, None).await;
    assert_eq!(counts(world, TENANT).await, (6, 0, 0));
}

pub(super) async fn a_lowered_limit_takes_the_last_ready_tasks_back(world: &World) {
    // R26
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, 6).await;
    world.limit(TENANT, 2).await;
    assert_eq!(counts(world, TENANT).await, (2, 0, 4));
    let claimed: Vec<_> = world.claim_all().await.iter().map(|task| task.claim.run).collect();
    assert_eq!(claimed, [runs[0].key, runs[1].key]);
}

pub(super) async fn a_lowered_limit_lets_running_tasks_go_on(world: &World) {
    // R26
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 6).await;
    let running = world.claim(&worker(WORKER), 4).await;
    world.limit(TENANT, 2).await;
    assert_eq!(counts(world, TENANT).await, (0, 4, 2));
    for (n_done, expected) in [(0, 4), (1, 3), (2, 2)] {
        assert_eq!(counts(world, TENANT).await.1, expected, "after {n_done}");
        assert!(world.claim_all().await.is_empty());
        world.complete(&running[n_done]).await;
    }
    assert_eq!(counts(world, TENANT).await, (1, 1, 1));
}

pub(super) async fn a_limit_is_one_tenants_own(world: &World) {
    // R26, S18
    let flow = world.define("a").await;
    world.limit("limited", 1).await;
    world.start_many_for("limited", &flow, 5).await;
    world.start_many_for("free", &flow, 5).await;
    assert_eq!(counts(world, "limited").await, (1, 0, 4));
    assert_eq!(counts(world, "free").await, (5, 0, 0));
}

pub(super) async fn the_default_holds_for_tenants_without_settings(world: &World) {
    // R26
    let flow = world.define("a").await;
    world.limit("own", 3).await;
    world.start_many_for("early", &flow, 5).await;
    world.limit_all(2).await;
    world.start_many_for("late", &flow, 5).await;
    world.start_many_for("own", &flow, 5).await;
    assert_eq!(counts(world, "early").await, (2, 0, 3));
    assert_eq!(counts(world, "late").await, (2, 0, 3));
    assert_eq!(counts(world, "own").await, (3, 0, 2));
    world.limit_all(None).await;
    assert_eq!(counts(world, "early").await, (5, 0, 0));
    assert_eq!(counts(world, "own").await, (3, 0, 2));
}

pub(super) async fn another_default_reaches_every_tenant(world: &World) {
    // R26: more tenants than are settled in one transaction.
    let flow = world.define("a").await;
    let names: Vec<String> = (0..230).map(|n| format!("tenant-{n}")).collect();
    let requests = |name: &String| [0, 1].map(|_| world.request(name, "", &flow, b"input"));
    world.start_all(names.iter().flat_map(requests).collect()).await;
    for (limit, expected) in [(Some(1), (1, 0, 1)), (None, (2, 0, 0)), (Some(1), (1, 0, 1))] {
        world.limit_all(limit).await;
        for name in &names {
            assert_eq!(counts(world, name).await, expected, "{name} with {limit:?}");
        }
    }
}

pub(super) async fn settings_that_hold_already_are_not_written_again(world: &World) {
    // R26
    world.limit(TENANT, 1).await;
    world.limit_all(2).await;
    let mut hints = world.store().hints();
    hints.look(Hint::Ready);
    world.limit(TENANT, 1).await;
    world.limit_all(2).await;
    assert!(hints.given(Hint::Ready).now_or_never().is_none(), "nothing has changed");
    world.limit_all(1).await;
    assert!(hints.given(Hint::Ready).now_or_never().is_some());
}

pub(super) async fn a_limit_spans_all_queues(world: &World) {
    let flow = world.define("left @ left; right @ right").await;
    world.limit(TENANT, 3).await;
    world.start_many_for(TENANT, &flow, 4).await;
    assert_eq!(counts(world, TENANT).await, (3, 0, 5));
    assert_eq!(world.claim_all().await.len(), 3);
}

pub(super) async fn a_tenant_is_seen_with_its_settings(world: &World) {
    assert_eq!(world.store().tenant(&tenant("nobody")).await.expect("read a tenant"), None);
    let settings = TenantSettings { weight: 7, tasks_max: Some(9) };
    world.store().set_tenant(&tenant(TENANT), settings).await.expect("set a tenant");
    assert_eq!(world.tenant_view(TENANT).await.settings, settings);
    assert_eq!(counts(world, TENANT).await, (0, 0, 0));
}

pub(super) async fn the_greatest_limit_is_kept_as_it_is(world: &World) {
    // R26
    world.limit(TENANT, i32::MAX.unsigned_abs()).await;
    let settings = world.tenant_view(TENANT).await.settings;
    assert_eq!(settings.tasks_max, Some(2_147_483_647));
}

pub(super) async fn settings_that_make_no_sense_are_refused(world: &World) {
    let bad = [(0, None), (1_001, None), (1, Some(0)), (1, Some(1 << 31)), (1, Some(u32::MAX))];
    for (weight, tasks_max) in bad {
        let settings = TenantSettings { weight, tasks_max };
        let refused = [
            world.store().set_tenant(&tenant(TENANT), settings).await,
            world.store().set_default_tenant(settings).await,
        ];
        for answer in refused {
            let Err(StoreError::Refused { code, .. }) = answer else { panic!("{answer:?}") };
            assert_eq!(code, Code::BadConfig);
        }
    }
}

pub(super) async fn the_limit_holds_at_every_commit_of_random_work(world: &World) {
    // S15, R26
    const LIMIT: u32 = 4;
    let flow = world.define("a * 2; b < a; c * 1/1s < a; s ~? 2s < b; d < b, c, s").await;
    world.limit(TENANT, LIMIT).await;
    let (mut chance, mut held) = (Chance::new(26), Vec::<ClaimedTask>::new());
    for _ in 0..120 {
        match chance.below(8) {
            0 => drop(world.start(&flow).await),
            1..=3 => held.extend(world.claim(&worker(WORKER), 1 + chance.below(4)).await.0),
            4..=6 if !held.is_empty() => {
                let task = held.swap_remove(chance.below(held.len()));
                let is_sleep = task.claim.node == flow.node("s");
                let outcome = match chance.below(6) {
                    0 => failed("by chance"),
                    1 => Outcome::Released,
                    2 => Outcome::Skipped,
                    _ if is_sleep => Outcome::Slept,
                    _ => completed(),
                };
                world.settle(&task, outcome).await;
            }
            _ => {
                world.pass(Duration::from_secs(1));
                world.fire().await;
            }
        }
        if let Some(view) = world.store().tenant(&tenant(TENANT)).await.expect("read a tenant") {
            assert!(view.n_ready + view.n_running <= LIMIT as usize, "{view:?}");
            assert!(view.n_throttled == 0 || view.n_ready + view.n_running == LIMIT as usize);
        }
    }
}
