//! Claims begin to look where the last one found something, and still find what lies before that.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::sync::Arc;

use stepwell::ports::{ClaimAnswer, ClaimRequest, Claims};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{TENANT, WORKER, worker};
use support_postgres::Schema;

#[tokio::test]
async fn a_task_that_turns_up_before_the_mark_is_found_within_sixteen_looks() {
    // FD1: dead rows before the mark cost nothing. R2: nothing waits there for long.
    let schema = Schema::make("marks").await;
    let world = World::new(Arc::new(schema.store.clone()), Arc::new(ManualClock::new()));
    let flow = world.define("k").await;
    let runs = world.start_many_for(TENANT, &flow, 40).await;
    let claim = async || {
        let (worker, tasks_max, crash_limit) = (worker(WORKER), 1, 3);
        let request = ClaimRequest { worker, tasks_max, suspect: true, crash_limit, salt: 1 };
        let answer = schema.store.claim(request).await.expect("it answers");
        let ClaimAnswer::Claimed { tasks, .. } = answer else { panic!("the worker is registered") };
        tasks[0].run_id.clone()
    };
    for run in &runs[..3] {
        assert_eq!(claim().await, run.id);
    }
    // As if placed by a process that had read the frontier long ago.
    let place =
        "update ready set order_key = 0 where order_key = (select max(order_key) from ready)";
    schema.client.batch_execute(place).await.expect("it is placed");
    let mut n_looks = 1;
    while claim().await != runs[39].id {
        n_looks += 1;
    }
    assert!((2..=16).contains(&n_looks), "found by look {n_looks}");
    drop(world);
    schema.remove().await;
}
