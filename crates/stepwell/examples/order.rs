//! An order is charged and shipped, or declined: `cargo run -p stepwell --example order`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::{Engine, Error, MemoryStore, Retry, StepError, Workflow};

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
}

/// What the steps share: here a stand-in for the services of a shop.
struct Shop {
    stock: Vec<&'static str>,
}

fn order_workflow() -> Workflow<Order, String, Shop> {
    let mut w = Workflow::define::<Order, Shop>("order");
    let in_stock = w
        .step("check-stock")
        .run(async |ctx| Ok(ctx.state().stock.contains(&ctx.input().item.as_str())));
    let charge = w
        .step("charge")
        .after(in_stock)
        .when(|in_stock| *in_stock)
        .retry(Retry::exponential(3).jitter())
        .timeout(Duration::from_secs(30))
        .run(async |ctx, _| Ok(format!("{} for {}", ctx.idempotency_key(), ctx.input().cents)));
    let pause = w.sleep("fraud-window", Duration::from_millis(20)).after(charge);
    let ship = w
        .step("ship")
        .after((charge.needed(), pause.needed()))
        .run(async |ctx, (_receipt, ())| Ok(format!("{} is on its way", ctx.input().item)));
    let decline = w
        .step("decline")
        .after(in_stock)
        .skip_if(|in_stock| *in_stock)
        .run_blocking(|ctx, _| Ok(format!("{} is sold out", ctx.input().item)));
    let answer = w.step("answer").after((ship, decline)).run(async |_ctx, (shipped, declined)| {
        shipped.or(declined).ok_or_else(|| StepError::permanent("neither branch ran"))
    });
    w.output_required(answer)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let mut builder = Engine::builder(MemoryStore::new()).state(Shop { stock: vec!["lamp"] });
    let orders = builder.workflow(order_workflow());
    let engine = builder.start().await?;
    for (item, expected) in [("lamp", "lamp is on its way"), ("chair", "chair is sold out")] {
        let order = Order { item: item.to_owned(), cents: 2_500 };
        let answer = engine.run(&orders, order).tenant("customer-1").id(item).await?;
        eprintln!("{answer}");
        assert_eq!(answer, expected);
    }
    engine.stop(Duration::from_secs(30)).await;
    Ok(())
}
