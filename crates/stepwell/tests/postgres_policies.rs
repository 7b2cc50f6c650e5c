//! Policies that another process replaced, met by a store that nobody told of it: it has no channel
//! to hear by, and no worker's heartbeat to look along with.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Flow, Sketch};
use stepwell::{PostgresOptions, PostgresStore};
use support_postgres::{Schema, url};

/// A store as a second process has it that only sends signals and starts runs.
async fn beside(schema: &Schema) -> World {
    let options = PostgresOptions::new(url())
        .schema(schema.name.clone())
        .connections_max(2)
        .poll_only()
        .clock(Arc::clone(&schema.clock) as _);
    let store = PostgresStore::connect_with(options).await.expect("the server answers");
    World::new(Arc::new(store), Arc::clone(&schema.clock))
}

async fn deploy(world: &World, text: &str) -> Flow {
    world.define(Sketch::from(text).named("deployed")).await
}

#[tokio::test]
async fn a_wait_opens_as_deployed_whoever_sends_the_signal_before_it() {
    // G13: a new signal strands nobody.
    let schema = Schema::make("policies").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    let client = beside(&schema).await;
    let flow = deploy(&world, "w ? paid; v ? paid < w").await;
    let [before, after] = [world.start(&flow).await, world.start(&flow).await];
    client.signal(&before, "paid").await;
    assert_eq!(world.open_waits(&before).await, "v for paid");
    deploy(&world, "w ? paid; v ? settled|paid < w").await;
    client.signal(&after, "paid").await;
    assert_eq!(world.open_waits(&after).await, "v for settled|paid");
    schema.remove().await;
}

#[tokio::test]
async fn a_run_that_starts_waits_as_deployed_whoever_starts_it() {
    // G13
    let schema = Schema::make("policies").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    let client = beside(&schema).await;
    let flow = deploy(&world, "w ? paid").await;
    let before = client.start(&flow).await;
    assert_eq!(world.open_waits(&before).await, "w for paid");
    deploy(&world, "w ? settled").await;
    let after = client.start(&flow).await;
    assert_eq!(world.open_waits(&after).await, "w for settled");
    schema.remove().await;
}
