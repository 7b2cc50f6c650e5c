//! The ends of what a PostgreSQL store can count: positions in a queue, and tenants.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;

use std::time::Duration;

use stepwell::core::queue::{BLOCK_LENGTH, POSITION_MAX};
use stepwell::ports::{StartAnswer, StoreError};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Flow, tenant};
use stepwell::{Code, TenantSettings};
use support_postgres::{Schema, rows};

fn world(schema: &Schema) -> World {
    World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock))
}

/// What becomes of starts of tenants in one batch: `started`, or the code they are refused with.
async fn start(world: &World, flow: &Flow, tenants: &[&str]) -> Vec<String> {
    let request = |tenant: &&str| world.request(tenant, "", flow, b"input");
    let answers = world.start_all(tenants.iter().map(request).collect()).await;
    let story = |answer: StartAnswer| match answer {
        StartAnswer::Started => "started".to_owned(),
        StartAnswer::Refused(StoreError::Refused { code, .. }) => code_of(code),
        other => panic!("{other:?}"),
    };
    answers.into_iter().map(story).collect()
}

fn code_of(code: Code) -> String {
    assert_eq!(code, Code::FairnessLimit);
    "SW0022".to_owned()
}

/// Leaves a tenant so many positions in the queue of the tests.
async fn leave_positions(schema: &Schema, name: &str, n: u64) {
    let last = POSITION_MAX - n * BLOCK_LENGTH;
    let sql = format!(
        "update tenant_position set last = {last} where tenant_no = \
         (select tenant_no from tenant where name = '{name}')"
    );
    schema.client.batch_execute(&sql).await.expect("the tenant has a position");
}

async fn n_runs(schema: &Schema) -> String {
    rows(&schema.client, "select count(*) from run").await.remove(0)
}

#[tokio::test]
async fn a_start_is_refused_when_its_tenant_has_used_up_the_positions_of_the_queue() {
    // R2
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a; b < a").await;
    assert_eq!(start(&world, &flow, &["acme", "zeta"]).await, ["started", "started"]);
    let under_way = world.claim_all().await;
    leave_positions(&schema, "acme", 2).await;
    let batch = ["acme", "zeta", "acme", "acme", "zeta"];
    let answers = ["started", "started", "started", "SW0022", "started"];
    assert_eq!(start(&world, &flow, &batch).await, answers, "only those without a position");
    assert_eq!(n_runs(&schema).await, "6", "nothing of a refused start is stored");
    // What is under way goes on, in the last position.
    world.complete_together(&under_way.iter().cloned().collect::<Vec<_>>()).await;
    assert_eq!(start(&world, &flow, &["acme", "zeta"]).await, ["SW0022", "started"]);
    // Given positions again, it starts again.
    leave_positions(&schema, "acme", 9).await;
    assert_eq!(start(&world, &flow, &["acme", "acme"]).await, ["started", "started"]);
    schema.remove().await;
}

#[tokio::test]
async fn a_start_of_a_limited_tenant_is_refused_in_the_same_way() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a").await;
    world.limit("acme", 5).await;
    assert_eq!(start(&world, &flow, &["acme"]).await, ["started"]);
    leave_positions(&schema, "acme", 1).await;
    assert_eq!(start(&world, &flow, &["acme", "acme"]).await, ["started", "SW0022"]);
    schema.remove().await;
}

#[tokio::test]
async fn a_repeated_start_finds_its_run_however_full_the_queue_is() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a").await;
    let first = world.request("acme", "known", &flow, b"input");
    assert!(matches!(world.try_start(first).await, StartAnswer::Started));
    leave_positions(&schema, "acme", 0).await;
    assert_eq!(start(&world, &flow, &["acme"]).await, ["SW0022"]);
    let again = world.request("acme", "known", &flow, b"input");
    let answer = world.try_start(again).await;
    assert!(matches!(answer, StartAnswer::AlreadyStarted(_)), "{answer:?}");
    schema.remove().await;
}

#[tokio::test]
async fn a_start_that_nobody_serves_is_refused_in_the_same_way() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define_unserved("a").await;
    assert_eq!(start(&world, &flow, &["acme"]).await, ["started"]);
    leave_positions(&schema, "acme", 0).await;
    assert_eq!(start(&world, &flow, &["acme", "zeta"]).await, ["SW0022", "started"]);
    schema.remove().await;
}

#[tokio::test]
async fn a_timer_that_nothing_waits_for_goes_without_being_counted() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a").await;
    assert_eq!(start(&world, &flow, &["acme"]).await, ["started"]);
    let stale = "insert into timer (due_at, run, node) select 0, run, node from task";
    schema.client.batch_execute(stale).await.expect("the task has none");
    schema.clock.advance(Duration::from_secs(1));
    let epoch = world.lead().await;
    for n_fired in [0, 0] {
        let fired = world.store().fire_timers(epoch, 10).await.expect("it answers");
        assert_eq!((fired.n_fired, fired.next_due), (n_fired, None));
    }
    schema.remove().await;
}

#[tokio::test]
async fn workers_that_are_gone_share_one_row_of_a_queues_frontier() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a").await;
    let frontiers = "select count(*), max(position) from frontier where queue = 'default'";
    world.start_many_for("acme", &flow, 8).await;
    for (ix, name) in ["left", "killed", "left too", "killed too"].into_iter().enumerate() {
        let worker = world.hire(name).await;
        let batch = world.claim(&worker, 2).await;
        let position = batch.len() as u64 * (ix as u64 + 1) - 1;
        world.complete_together(&batch).await;
        if name.starts_with("left") {
            world.dismiss(&worker).await;
        } else {
            world.lose(&worker).await;
        }
        let expected = format!("1 | {}", position * BLOCK_LENGTH);
        assert_eq!(rows(&schema.client, frontiers).await, [expected], "after {name}");
    }
    world.start_many_for("zeta", &flow, 1).await;
    world.claim_one().await;
    let after = format!("2 | {}", 7 * BLOCK_LENGTH);
    assert_eq!(rows(&schema.client, frontiers).await, [after], "a newcomer begins there");
    schema.remove().await;
}

#[tokio::test]
async fn a_tenant_for_which_there_is_no_number_left_is_refused() {
    let schema = Schema::make("edges").await;
    let world = world(&schema);
    let flow = world.define("a").await;
    assert_eq!(start(&world, &flow, &["acme"]).await, ["started"]);
    let number = BLOCK_LENGTH - 2;
    let almost = format!("insert into tenant (tenant_no, name) values ({number}, 'last but one')");
    schema.client.batch_execute(&almost).await.expect("the number is free");
    let batch = ["last", "too many", "acme", "too many"];
    let answers = ["started", "SW0022", "started", "SW0022"];
    assert_eq!(start(&world, &flow, &batch).await, answers);
    let settings = TenantSettings { weight: 2, tasks_max: None };
    let refused = world.store().set_tenant(&tenant("another"), settings).await;
    let Err(StoreError::Refused { code, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(code_of(code), "SW0022");
    schema.remove().await;
}
