//! Listing: runs newest first, in pages, by tenant, workflow and status.

use stepwell_core::decide::CancelRequest;
use stepwell_core::id::{Node, RunId, RunKey};
use stepwell_core::run::RunStatus;

use super::world::{Run, Sketch, TENANT, World, run_of, tenant};
use crate::ports::RunFilter;

/// The keys of all runs a filter lets through, read in pages of this many rows.
async fn list(world: &World, filter: &RunFilter, rows_max: usize) -> Vec<RunKey> {
    let (mut keys, mut before) = (Vec::new(), None);
    loop {
        let page = world.store().list(filter, before, rows_max).await.expect("list runs");
        assert!(page.runs.len() <= rows_max);
        keys.extend(page.runs.iter().map(|run| run.row.key));
        assert!(keys.is_sorted_by(|newer, older| newer > older), "{keys:?}");
        assert!(page.next.is_none() || !page.runs.is_empty(), "an empty page is the last");
        match page.next {
            Some(next) => before = Some(next),
            None => return keys,
        }
    }
}

fn newest_first(runs: &[Run]) -> Vec<RunKey> {
    runs.iter().rev().map(|run| run.key).collect()
}

pub(super) async fn runs_are_listed_newest_first(world: &World) {
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, 5).await;
    assert_eq!(list(world, &RunFilter::default(), 100).await, newest_first(&runs));
}

pub(super) async fn pages_neither_repeat_nor_lose_a_run(world: &World) {
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, 10).await;
    for rows_max in [1, 3, 5, 10, 11] {
        let listed = list(world, &RunFilter::default(), rows_max).await;
        assert_eq!(listed, newest_first(&runs), "in pages of {rows_max}");
    }
}

pub(super) async fn a_listing_of_nothing_is_one_empty_page(world: &World) {
    let page = world.store().list(&RunFilter::default(), None, 10).await.expect("list runs");
    assert!(page.runs.is_empty() && page.next.is_none());
}

pub(super) async fn a_full_last_page_promises_no_further_one(world: &World) {
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, 4).await;
    let store = world.store();
    let first = store.list(&RunFilter::default(), None, 2).await.expect("list runs");
    let last = store.list(&RunFilter::default(), first.next, 2).await.expect("list runs");
    assert!(first.next.is_some() && last.next.is_none(), "{:?}, {:?}", first.next, last.next);
    assert_eq!((first.runs.len(), last.runs.len()), (2, 2));
}

pub(super) async fn runs_started_while_paging_do_not_disturb_it(world: &World) {
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, 4).await;
    let store = world.store();
    let first = store.list(&RunFilter::default(), None, 2).await.expect("list runs");
    world.start_many_for(TENANT, &flow, 3).await;
    let second = store.list(&RunFilter::default(), first.next, 2).await.expect("list runs");
    let keys = first.runs.iter().chain(&second.runs).map(|run| run.row.key);
    assert_eq!(keys.collect::<Vec<_>>(), newest_first(&runs));
}

pub(super) async fn runs_are_listed_by_tenant(world: &World) {
    // S18
    let flow = world.define("a").await;
    let mine = world.start_many_for("acme", &flow, 2).await;
    world.start_many_for("zeta", &flow, 2).await;
    let more = world.start_many_for("acme", &flow, 2).await;
    let filter = RunFilter { tenant: Some(tenant("acme")), ..RunFilter::default() };
    let expected = newest_first(&[mine, more].concat());
    assert_eq!(list(world, &filter, 3).await, expected);
    let nobody = RunFilter { tenant: Some(tenant("nobody")), ..RunFilter::default() };
    assert!(list(world, &nobody, 3).await.is_empty());
}

pub(super) async fn runs_are_listed_by_status(world: &World) {
    let flow = world.define("a").await;
    let runs = world.start_many_for(TENANT, &flow, 4).await;
    let batch = world.claim_all().await;
    world.complete(&batch[0]).await;
    world.fail(&batch[1]).await;
    world.cancel(&runs[2]).await;
    let expected = [
        (RunStatus::Completed, runs[0].key),
        (RunStatus::Failed, runs[1].key),
        (RunStatus::Cancelled, runs[2].key),
        (RunStatus::Running, runs[3].key),
    ];
    for (status, key) in expected {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        assert_eq!(list(world, &filter, 2).await, [key], "{status}");
    }
}

pub(super) async fn runs_are_listed_by_workflow_in_all_its_versions(world: &World) {
    // L13
    let old = world.define(Sketch::from("a").named("orders")).await;
    let first = world.start(&old).await;
    let other = world.define(Sketch::from("a").named("refunds")).await;
    world.start(&other).await;
    let new = world.define(Sketch::from("a; b").named("orders")).await;
    let second = world.start(&new).await;
    let filter = RunFilter { workflow: Some("orders".to_owned()), ..RunFilter::default() };
    assert_eq!(list(world, &filter, 1).await, newest_first(&[first, second]));
}

pub(super) async fn filters_hold_together(world: &World) {
    let flow = world.define(Sketch::from("a").named("orders")).await;
    let other = world.define(Sketch::from("a").named("refunds")).await;
    world.start_for("acme", &other).await;
    world.start_for("zeta", &flow).await;
    world.drain().await;
    let done = world.start_for("acme", &flow).await;
    world.drain().await;
    world.start_for("acme", &flow).await;
    let filter = RunFilter {
        tenant: Some(tenant("acme")),
        workflow: Some("orders".to_owned()),
        status: Some(RunStatus::Completed),
    };
    assert_eq!(list(world, &filter, 10).await, [done.key]);
}

pub(super) async fn keys_are_ordered_as_whole_numbers(world: &World) {
    // A key's upper bit is no sign, and its bytes are in order.
    let flow = world.define("a").await;
    let mut keys = [1, 256, u128::MAX >> 1, 1 << 127, u128::MAX - 1].map(RunKey);
    for key in keys {
        let mut request = world.request(TENANT, "", &flow, b"input");
        request.seed.key = key;
        world.try_start(request).await;
    }
    keys.reverse();
    assert_eq!(list(world, &RunFilter::default(), 2).await, keys);
}

pub(super) async fn a_run_is_found_by_tenant_and_id(world: &World) {
    // R22, S18
    let flow = world.define("a").await;
    let request = world.request("acme", "order-1", &flow, b"input");
    let run = run_of(&request, &flow);
    world.try_start(request).await;
    let store = world.store();
    let found = store.find(&run.tenant, &run.id).await.expect("find a run").expect("it exists");
    assert_eq!((found.row.key, found.definition.id), (run.key, flow.0.id));
    assert!(store.find(&tenant("zeta"), &run.id).await.expect("find a run").is_none());
    let other = RunId::new("order-2").expect("a usable id");
    assert!(store.find(&run.tenant, &other).await.expect("find a run").is_none());
    assert!(store.run(RunKey(77)).await.expect("read a run").is_none());
    assert!(store.log(RunKey(77)).await.expect("read a log").is_none());
}

pub(super) async fn tasks_are_listed_by_node(world: &World) {
    let flow = world.define("c < b; b < a; a").await;
    let run = world.start(&flow).await;
    world.drain().await;
    let tasks = world.store().tasks(run.key).await.expect("read tasks");
    let nodes: Vec<u32> = tasks.iter().map(|task| task.node.0).collect();
    assert_eq!(nodes, [0, 1, 2]);
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    assert_eq!(outputs.iter().map(|(node, _)| node.0).collect::<Vec<_>>(), [0, 1, 2]);
}

pub(super) async fn a_run_that_is_not_there_has_nothing(world: &World) {
    let (key, store) = (RunKey(7), world.store());
    assert!(store.run(key).await.expect("read a run").is_none());
    assert!(store.tasks(key).await.expect("read tasks").is_empty());
    assert!(store.outputs(key).await.expect("read outputs").is_empty());
    assert!(store.output(key, Node(0)).await.expect("read an output").is_none());
    assert!(store.log(key).await.expect("read a log").is_none());
    assert!(store.snapshot(key).await.expect("read a run").is_none());
    assert!(store.cancel(key, CancelRequest::by("a test")).await.expect("cancel a run").is_none());
}
