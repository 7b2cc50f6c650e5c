//! Claims that were made together lie in one row. It shrinks as they end, so that a heartbeat reads
//! what its worker holds, not what was once claimed along with it.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{TENANT, WORKER, worker};
use support_postgres::{Schema, rows};

const N: usize = 100;

#[tokio::test]
async fn a_batch_of_claims_is_never_more_than_twice_what_is_left_of_it() {
    // FE1: work per heartbeat is linear in the claims that are held.
    let schema = Schema::make("claims").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::clone(&schema.clock));
    let flow = world.define("a").await;
    world.start_many_for(TENANT, &flow, N).await;
    let mut held: Vec<_> = world.claim(&worker(WORKER), N).await.iter().cloned().collect();
    assert_eq!(held.len(), N);
    while let Some(task) = held.pop() {
        world.complete(&task).await;
        let left = rows(&schema.client, "select n_open, cardinality(runs) from claim").await;
        let [left] = left.as_slice() else {
            assert!(held.is_empty() && left.is_empty(), "{left:?} for {}", held.len());
            break;
        };
        let (n_open, n_named) = left.split_once(" | ").expect("two columns");
        let [n_open, n_named] = [n_open, n_named].map(|n| n.parse::<usize>().expect("a count"));
        assert_eq!(n_open, held.len());
        assert!(n_named < 2 * n_open, "{n_named} for {n_open}");
        let claims: Vec<_> = held.iter().map(|task| task.claim).collect();
        assert_eq!(world.beat(&worker(WORKER), &claims).await, []);
    }
    assert!(held.is_empty());
    world.check().await;
    schema.remove().await;
}
