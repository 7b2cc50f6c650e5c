//! The runs that wait for a signal, page by page, so that one signal can go to all of them.

use stepwell_core::decide::SignalAnswer;
use stepwell_core::id::RunKey;

use super::world::{Run, Sketch, TENANT, World, run_of};
use crate::ports::SignalRequest;

/// Everything that waits for a signal, by pages of so many.
async fn all(world: &World, asked: (&str, &str, &str), rows_max: usize) -> Vec<RunKey> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.waiting_runs(asked, after, rows_max).await;
        assert!(page.len() <= rows_max);
        let is_last = page.len() < rows_max;
        found.extend(page);
        if is_last {
            return found;
        }
        after = found.last().copied();
    }
}

fn keys(runs: &[Run]) -> Vec<RunKey> {
    runs.iter().map(|run| run.key).collect()
}

pub(super) async fn runs_that_wait_are_listed_in_the_order_of_their_keys(world: &World) {
    let flow = world.define(Sketch::from("w ? paid; b < w").named("order")).await;
    let runs = world.start_many_for(TENANT, &flow, 7).await;
    for rows_max in [1, 2, 3, 7, 100] {
        assert_eq!(all(world, (TENANT, "order", "paid"), rows_max).await, keys(&runs));
    }
    let after = world.waiting_runs((TENANT, "order", "paid"), Some(runs[4].key), 100).await;
    assert_eq!(after, keys(&runs[5..]));
    let after = world.waiting_runs((TENANT, "order", "paid"), Some(runs[6].key), 100).await;
    assert!(after.is_empty());
}

pub(super) async fn keys_of_waiting_runs_are_ordered_as_whole_numbers(world: &World) {
    // FD7: a key is a number of 128 bits, whatever a store keeps it as.
    let flow = world.define(Sketch::from("w ? paid").named("order")).await;
    let keys = [1, 2, 256, u128::from(u64::MAX), 1 << 64, (1 << 127) - 1, 1 << 127, u128::MAX - 1];
    for key in keys.iter().rev() {
        let mut request = world.request(TENANT, "", &flow, b"input");
        request.seed.key = RunKey(*key);
        world.try_start(request).await;
    }
    let found = all(world, (TENANT, "order", "paid"), 3).await;
    assert_eq!(found, keys.map(RunKey));
}

pub(super) async fn a_run_with_several_waits_is_listed_once(world: &World) {
    let flow = world.define(Sketch::from("w ? paid; v ? paid|sent; u ? paid").named("order")).await;
    let runs = world.start_many_for(TENANT, &flow, 3).await;
    assert_eq!(all(world, (TENANT, "order", "paid"), 2).await, keys(&runs));
    assert_eq!(all(world, (TENANT, "order", "sent"), 2).await, keys(&runs));
}

pub(super) async fn waiting_runs_are_told_apart_by_tenant_workflow_and_signal(world: &World) {
    // S18
    let order = world.define(Sketch::from("w ? paid|sent").named("order")).await;
    let refund = world.define(Sketch::from("w ? paid").named("refund")).await;
    let mine = world.start(&order).await.key;
    let others = world.start_for("zeta", &order).await.key;
    let refunded = world.start(&refund).await.key;
    let expected = [
        ((TENANT, "order", "paid"), vec![mine]),
        ((TENANT, "order", "sent"), vec![mine]),
        (("zeta", "order", "paid"), vec![others]),
        ((TENANT, "refund", "paid"), vec![refunded]),
        ((TENANT, "refund", "sent"), vec![]),
        ((TENANT, "order", "pai"), vec![]),
        ((TENANT, "order", "Paid"), vec![]),
        ((TENANT, "orde", "paid"), vec![]),
        (("nobody", "order", "paid"), vec![]),
    ];
    for (asked, runs) in expected {
        assert_eq!(world.waiting_runs(asked, None, 10).await, runs, "{asked:?}");
    }
}

pub(super) async fn runs_of_every_version_of_a_workflow_are_listed(world: &World) {
    let old = world.define(Sketch::from("w ? paid").named("order")).await;
    let new = world.define(Sketch::from("w ? paid; v ? sent").named("order")).await;
    assert_ne!(old.0.id, new.0.id);
    let runs =
        [world.start(&new).await, world.start(&old).await, world.start(&new).await].map(|r| r.key);
    assert_eq!(all(world, (TENANT, "order", "paid"), 10).await, runs);
    assert_eq!(all(world, (TENANT, "order", "sent"), 10).await, [runs[0], runs[2]]);
}

pub(super) async fn only_open_waits_are_listed(world: &World) {
    let text = "a; w ? paid < a; v ?? paid";
    let flow = world.define(Sketch::from(text).named("order").fail_fast()).await;
    let asked = (TENANT, "order", "paid");
    let runs = world.start_many_for(TENANT, &flow, 5).await;
    assert!(all(world, asked, 10).await.is_empty(), "none is open yet");
    let batch = world.claim_all().await;
    let of = |run: &Run, step: &str| {
        let is_it = |task: &&crate::ports::ClaimedTask| {
            (task.claim.run, task.claim.node) == (run.key, run.node(step))
        };
        batch.iter().find(is_it).expect("all were claimed")
    };
    for run in &runs {
        world.complete(of(run, "a")).await;
    }
    assert_eq!(all(world, asked, 10).await, keys(&runs));
    world.signal(&runs[0], "paid").await;
    world.cancel(&runs[1]).await;
    world.fail(of(&runs[2], "v")).await;
    world.waits_for(of(&runs[3], "v"), "sent").await;
    assert_eq!(all(world, asked, 10).await, keys(&runs[3..]));
    world.signal(&runs[3], "paid").await;
    assert_eq!(all(world, asked, 10).await, keys(&runs[4..]));
    assert_eq!(all(world, (TENANT, "order", "sent"), 10).await, [runs[3].key]);
}

pub(super) async fn a_step_that_waits_is_listed_by_what_it_waits_for_now(world: &World) {
    let flow = world.define(Sketch::from("a").named("order")).await;
    let run = world.start(&flow).await;
    let listed = async |signal: &str| !all(world, (TENANT, "order", signal), 5).await.is_empty();
    world.waits_for(&world.claim_one().await, "paid|sent").await;
    assert!(listed("paid").await && listed("sent").await);
    world.signal(&run, "paid").await;
    assert!(!listed("paid").await && !listed("sent").await);
    world.waits_for(&world.claim_one().await, "sent").await;
    assert!(!listed("paid").await && listed("sent").await);
}

pub(super) async fn a_page_of_nothing_is_empty(world: &World) {
    let flow = world.define(Sketch::from("w ? paid").named("order")).await;
    world.start(&flow).await;
    assert!(world.waiting_runs((TENANT, "order", "paid"), None, 0).await.is_empty());
}

pub(super) async fn one_signal_reaches_every_run_that_waits_and_no_other(world: &World) {
    // Page by page; a run that was served waits no more, so nothing is sent twice.
    let text = "w ? go; v ? paid < w; u ? paid < w";
    let flow = world.define(Sketch::from(text).named("order")).await;
    let runs = world.start_many_for(TENANT, &flow, 9).await;
    for run in &runs[..5] {
        world.signal(run, "go").await;
    }
    for expected in [5, 0] {
        let (mut n_bound, mut after) = (0, None);
        loop {
            let page = world.waiting_runs((TENANT, "order", "paid"), after, 2).await;
            let Some(last) = page.last() else { break };
            after = Some(*last);
            let to = |key: &RunKey| runs.iter().find(|run| run.key == *key).expect("one of them");
            let sendings = page.iter().map(|key| world.to(to(key), "paid"));
            let sendings = sendings.map(|sending| sending.key("call").carrying(b"x").if_awaited());
            let answers = world.send_all(sendings.collect()).await;
            let is_bound = |answer: &&Option<SignalAnswer>| {
                matches!(answer, Some(SignalAnswer::Stored { is_consumed: true, .. }))
            };
            n_bound += answers.iter().filter(is_bound).count();
        }
        assert_eq!(n_bound, expected, "a repeated call adds none");
    }
    for (ix, run) in runs.iter().enumerate() {
        let expected = if ix < 5 { "1 go to w, 2 paid to v" } else { "" };
        assert_eq!(world.inbox(run).await, expected);
    }
}

pub(super) async fn runs_that_begin_to_wait_while_paging_do_not_disturb_it(world: &World) {
    let flow = world.define(Sketch::from("w ? paid").named("order")).await;
    let runs = world.start_many_for(TENANT, &flow, 4).await;
    let asked = (TENANT, "order", "paid");
    let first = world.waiting_runs(asked, None, 2).await;
    assert_eq!(first, keys(&runs[..2]));
    let early = {
        let mut request = world.request(TENANT, "", &flow, b"input");
        request.seed.key = RunKey(1);
        let run = run_of(&request, &flow);
        world.try_start(request).await;
        run
    };
    let request = SignalRequest::from(world.to(&runs[0], "paid"));
    world.store().signal(vec![request]).await.expect("send a signal");
    let rest = world.waiting_runs(asked, first.last().copied(), 10).await;
    assert_eq!(rest, keys(&runs[2..]));
    let mut expected = vec![early.key];
    expected.extend(keys(&runs[1..]));
    assert_eq!(world.waiting_runs(asked, None, 10).await, expected);
}
