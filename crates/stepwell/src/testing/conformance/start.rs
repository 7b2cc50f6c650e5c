//! Starts: a run is stored whole, and only once however often it is asked for.

use futures_util::future::join_all;
use stepwell_core::code::Code;
use stepwell_core::id::{DefinitionId, Mark, Queue, RunKey};
use stepwell_core::run::RunStatus;

use super::world::{LEASE, Sketch, TENANT, World, run_of, worker};
use crate::ports::{Clock, MarkedService, StartAnswer, StoreError, TaskPlace, WorkerRegistration};

fn expect_refused(answer: &StartAnswer, expected: Code) {
    let StartAnswer::Refused(StoreError::Refused { code, message }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(*code, expected);
    assert!(!message.is_empty());
}

fn expect_known(answer: &StartAnswer, expected: RunKey) {
    let StartAnswer::AlreadyStarted(key) = answer else { panic!("{answer:?}") };
    assert_eq!(*key, expected);
}

pub(super) async fn a_run_has_all_its_tasks_from_the_start(world: &World) {
    // L1
    let flow = world.define("a; s ~ 1h; t ~? 1h; b < a; c < a, b!").await;
    let run = world.start(&flow).await;
    let expected = "a QUEUED, s SLEEPING, t QUEUED, b PENDING, c PENDING";
    assert_eq!(world.states(&run).await, expected);
    let row = world.row(&run).await;
    assert_eq!((row.status, row.n_open), (RunStatus::Running, 5));
    assert_eq!((&row.tenant, &row.id, row.definition), (&run.tenant, &run.id, flow.0.id));
    assert_eq!((row.started_at, row.ended_at), (world.clock().now(), None));
}

pub(super) async fn the_same_start_again_finds_the_run(world: &World) {
    // R27, S2
    let flow = world.define("a").await;
    let first = world.request(TENANT, "order-1", &flow, b"input");
    let key = first.seed.key;
    assert!(matches!(world.try_start(first).await, StartAnswer::Started));
    let again = world.request(TENANT, "order-1", &flow, b"input");
    assert_ne!(again.seed.key, key);
    expect_known(&world.unchanged_by(world.try_start(again)).await, key);
}

pub(super) async fn a_start_repeated_after_a_lost_reply_finds_itself(world: &World) {
    // FB1, S2
    let flow = world.define("a").await;
    let request = world.request(TENANT, "order-1", &flow, b"input");
    world.try_start(request.clone()).await;
    let key = request.seed.key;
    expect_known(&world.unchanged_by(world.try_start(request)).await, key);
}

pub(super) async fn the_same_start_finds_a_run_that_has_ended(world: &World) {
    // R27
    let flow = world.define("a").await;
    let request = world.request(TENANT, "order-1", &flow, b"input");
    world.try_start(request.clone()).await;
    world.drain().await;
    let key = request.seed.key;
    expect_known(&world.unchanged_by(world.try_start(request)).await, key);
}

pub(super) async fn the_same_id_with_another_input_is_refused(world: &World) {
    // R27, FB7
    let flow = world.define("a").await;
    world.try_start(world.request(TENANT, "order-1", &flow, b"input")).await;
    let other = world.request(TENANT, "order-1", &flow, b"other input");
    expect_refused(&world.unchanged_by(world.try_start(other)).await, Code::RunIdConflict);
}

pub(super) async fn the_same_id_of_another_workflow_is_refused(world: &World) {
    // R27, FB7
    let (flow, other) = (world.define("a").await, world.define("a").await);
    world.try_start(world.request(TENANT, "order-1", &flow, b"input")).await;
    let request = world.request(TENANT, "order-1", &other, b"input");
    expect_refused(&world.unchanged_by(world.try_start(request)).await, Code::RunIdConflict);
}

pub(super) async fn the_same_start_after_a_deploy_finds_the_run(world: &World) {
    // R27: what counts is the workflow, not which structure of it.
    let old = world.define(Sketch::from("a").named("orders")).await;
    let first = world.request(TENANT, "order-1", &old, b"input");
    let key = first.seed.key;
    world.try_start(first).await;
    let new = world.define(Sketch::from("a; b < a").named("orders")).await;
    let again = world.request(TENANT, "order-1", &new, b"input");
    expect_known(&world.unchanged_by(world.try_start(again)).await, key);
}

pub(super) async fn the_same_id_of_two_tenants_is_two_runs(world: &World) {
    // R27, S18
    let flow = world.define("a").await;
    for tenant in ["acme", "zeta"] {
        let request = world.request(tenant, "order-1", &flow, tenant.as_bytes());
        let run = run_of(&request, &flow);
        assert!(matches!(world.try_start(request).await, StartAnswer::Started));
        let found = world.store().find(&run.tenant, &run.id).await.expect("find a run");
        assert_eq!(found.expect("it was started").row.key, run.key);
    }
    assert_eq!(world.claim_all().await.len(), 2);
}

pub(super) async fn ids_that_differ_by_case_or_accent_are_different(world: &World) {
    // FB7: ids are bytes, not words of a language.
    let flow = world.define("a").await;
    for id in ["order", "Order", "ORDER", "órder", "order ", "o\u{301}rder"] {
        let request = world.request(TENANT, id, &flow, id.as_bytes());
        assert!(matches!(world.try_start(request).await, StartAnswer::Started), "{id}");
    }
}

pub(super) async fn the_same_run_twice_in_one_batch_is_started_once(world: &World) {
    // R27, FB8
    let flow = world.define("a").await;
    let first = world.request(TENANT, "order-1", &flow, b"input");
    let second = world.request(TENANT, "order-1", &flow, b"input");
    let other = world.request(TENANT, "order-1", &flow, b"other input");
    let key = first.seed.key;
    let answers = world.start_all(vec![first, second, other]).await;
    assert!(matches!(answers[0], StartAnswer::Started));
    expect_known(&answers[1], key);
    expect_refused(&answers[2], Code::RunIdConflict);
    assert_eq!(world.claim_all().await.len(), 1);
}

pub(super) async fn one_run_started_at_the_same_moment_is_started_once(world: &World) {
    // S2, FB7
    let flow = world.define("a").await;
    let requests: Vec<_> =
        (0..6).map(|_| world.request(TENANT, "order-1", &flow, b"input")).collect();
    let starts = requests.into_iter().map(|request| world.store().start(vec![request]));
    let answers: Vec<_> = join_all(starts).await.into_iter().map(|a| a.expect("start")).collect();
    let n_started = answers.iter().filter(|a| matches!(a[0], StartAnswer::Started)).count();
    assert_eq!(n_started, 1, "{answers:?}");
    world.check().await;
    assert_eq!(world.claim_all().await.len(), 1);
}

pub(super) async fn batches_that_share_runs_start_at_the_same_moment(world: &World) {
    // FB3: in opposite orders, which would lock keys crosswise.
    let flow = world.define("a").await;
    let request = |n: usize| world.request(TENANT, &format!("order-{n}"), &flow, b"input");
    let forwards: Vec<_> = (0..10).map(request).collect();
    let backwards: Vec<_> = (0..10).rev().map(request).collect();
    let store = world.store();
    let answers = join_all([store.start(forwards), store.start(backwards)]).await;
    let n_started = answers
        .into_iter()
        .flat_map(|answers| answers.expect("start"))
        .filter(|answer| matches!(answer, StartAnswer::Started))
        .count();
    assert_eq!(n_started, 10);
    world.check().await;
}

pub(super) async fn a_refused_start_does_not_touch_the_others(world: &World) {
    // S1
    let flow = world.define("a").await;
    world.try_start(world.request(TENANT, "taken", &flow, b"input")).await;
    let mut unknown = world.request(TENANT, "unknown", &flow, b"input");
    unknown.seed.definition = DefinitionId(flow.0.id.0 + 1_000);
    let requests = vec![
        world.request(TENANT, "first", &flow, b"input"),
        unknown,
        world.request(TENANT, "taken", &flow, b"other input"),
        world.request(TENANT, "last", &flow, b"input"),
    ];
    let answers = world.start_all(requests).await;
    assert!(matches!(answers[0], StartAnswer::Started));
    expect_refused(&answers[1], Code::UnknownWorkflow);
    expect_refused(&answers[2], Code::RunIdConflict);
    assert!(matches!(answers[3], StartAnswer::Started));
    assert_eq!(world.claim_all().await.len(), 3);
}

pub(super) async fn a_refused_start_stores_nothing(world: &World) {
    let flow = world.define("a").await;
    let mut request = world.request("stranger", "unknown", &flow, b"input");
    request.seed.definition = DefinitionId(flow.0.id.0 + 1_000);
    let run = run_of(&request, &flow);
    expect_refused(&world.unchanged_by(world.try_start(request)).await, Code::UnknownWorkflow);
    assert!(world.store().find(&run.tenant, &run.id).await.expect("find a run").is_none());
    assert!(world.store().run(run.key).await.expect("read a run").is_none());
}

pub(super) async fn a_start_that_means_another_definition_stores_nothing(world: &World) {
    // FD11: as whoever remembers a number has it that was given anew in a restored database.
    let flow = world.define("a").await;
    let mut request = world.request(TENANT, "mistaken", &flow, b"input");
    request.mark = Mark(request.mark.0.wrapping_add(1));
    expect_refused(&world.unchanged_by(world.try_start(request)).await, Code::UnknownWorkflow);
}

pub(super) async fn a_worker_that_means_another_definition_is_not_registered(world: &World) {
    // FD11
    let flow = world.define_unserved("a").await;
    let MarkedService { id, mark } = flow.0.marked_service();
    let mistaken = MarkedService { id, mark: Mark(mark.0.wrapping_add(1)) };
    let registration = WorkerRegistration {
        worker: worker("mistaken"),
        queues: vec![Queue::default_queue()],
        services: vec![mistaken],
        lease: LEASE,
    };
    let register = world.store().register_worker(registration);
    let refused = world.unchanged_by(register).await.expect_err("it means another definition");
    assert!(matches!(refused, StoreError::Refused { code: Code::UnknownWorkflow, .. }));
    let run = world.start(&flow).await;
    assert_eq!(world.place(&run, "a").await, Some(TaskPlace::Parked));
}

pub(super) async fn an_empty_batch_starts_nothing(world: &World) {
    assert!(world.unchanged_by(world.start_all(Vec::new())).await.is_empty());
}

pub(super) async fn a_thousand_runs_start_in_one_batch(world: &World) {
    let flow = world.define("a; b < a").await;
    world.start_many_for(TENANT, &flow, 1_000).await;
    assert_eq!(world.tenant_view(TENANT).await.n_ready, 1_000);
}

pub(super) async fn tenants_of_one_batch_are_numbered_in_its_order(world: &World) {
    let flow = world.define("a").await;
    let names = ["zeta", "acme", "zeta", "mole"];
    let requests = names.iter().map(|name| world.request(name, "", &flow, b"input")).collect();
    world.start_all(requests).await;
    for (number, name) in (0..).zip(["zeta", "acme", "mole"]) {
        assert_eq!(world.tenant_view(name).await.tenant_no.0, number, "{name}");
    }
}
