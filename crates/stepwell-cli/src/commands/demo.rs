//! `stepwell demo`: a small shop's order workflow, run and shown as it happens.
//!
//! Three tenants send orders to one engine. Some orders are rejected, one is charged at the third
//! attempt, and one fails for good, so that its failure handler runs.

mod live_log;
mod orders;
mod report;
mod workflow;

use std::time::Duration;

use stepwell::cli::{Output, Tone, words};
use stepwell::{Config, Engine, NewRun, WorkflowRef};
use tempfile::TempDir;

use super::Failure;
use crate::args::DemoArgs;
use crate::store;
use live_log::FollowedRun;
use orders::{Incoming, Order, incoming};
use report::RunEnd;
use workflow::{Done, Shop, order_workflow};

/// The demo's steps only wait, so that many at once are no load.
const SLOTS: usize = 100;

/// All runs have ended when the engine is stopped, so there is next to nothing to drain.
const GRACE: Duration = Duration::from_secs(1);

pub(super) fn run(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(demo(args, output))
}

async fn demo(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    let shop = Shop::default();
    let config = Config { slots: SLOTS, ..Config::default() };
    // The demo begins afresh each time; its file goes with it.
    let folder = TempDir::with_prefix("stepwell-demo-")?;
    let store = store::embedded(folder.path()).await?;
    let mut builder = Engine::builder(store).config(config).state(shop.clone());
    let workflow = builder.workflow(order_workflow(args.fraud_window));
    let engine = builder.start().await?;

    print_greeting(args, output)?;
    let mut runs = start(&engine, &workflow, incoming(args.orders, args.seed)).await?;
    live_log::print(&mut runs, output).await?;

    let mut ends = Vec::with_capacity(runs.len());
    for followed in &runs {
        ends.push(RunEnd::read(followed, &shop).await?);
    }
    report::print(&ends, output).await?;
    engine.stop(GRACE).await;
    Ok(())
}

/// Starts a run for each order, all of them together.
async fn start(
    engine: &Engine,
    workflow: &WorkflowRef<Order, Option<Done>>,
    incoming: Vec<Incoming>,
) -> Result<Vec<FollowedRun>, Failure> {
    let new_run = |incoming: &Incoming| {
        NewRun::new(incoming.order.clone()).tenant(incoming.tenant).id(&incoming.order.id)
    };
    let started = engine.start_many(workflow, incoming.iter().map(new_run)).await?;
    let followed = |(incoming, run): (_, Result<_, _>)| Ok(FollowedRun::new(incoming, run?));
    incoming.into_iter().zip(started).map(followed).collect()
}

fn print_greeting(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(());
    }
    let title = output.paint(Tone::Strong, "Stepwell demo");
    let (n_orders, window) = (args.orders, words::span(args.fraud_window));
    let state = store::EMBEDDED;
    output.line(&format!(
        "{title}: {n_orders} orders of three shops, a fraud window of {window}, state {state}"
    ))?;
    Ok(output.line("")?)
}
