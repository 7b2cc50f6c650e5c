//! A database that was put back to an earlier state under a store that has been working on it.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use stepwell::{Engine, Workflow};
use support_postgres::{Schema, rows};

#[tokio::test]
async fn a_run_never_goes_to_another_tenant_whatever_a_process_remembers_of_their_numbers() {
    // R24: the store remembers the numbers of tenants, and checks them in every start.
    let schema = Schema::make("restored").await;
    let mut builder = Engine::builder(schema.store.clone()).client_only();
    let mut w = Workflow::define::<(), ()>("flow");
    w.step("a").run(async |_| Ok(()));
    let flow = builder.workflow(w.no_output());
    let engine = builder.start().await.expect("the engine starts");
    engine.start(&flow, ()).tenant("acme").id("before").await.expect("it starts");
    // In the restored database the number belongs to somebody else.
    let rename = "update tenant set name = 'zeta' where name = 'acme'";
    schema.client.batch_execute(rename).await.expect("it is renamed");
    engine.start(&flow, ()).tenant("acme").id("after").await.expect("it starts");
    let runs = "select tenant.name, run.id from run join tenant using (tenant_no) order by run.id";
    assert_eq!(rows(&schema.client, runs).await, ["acme | after", "zeta | before"]);
    engine.stop_gracefully().await;
    schema.remove().await;
}
