//! `idle`: what a worker with nothing to do asks of its store.

use std::time::Duration;

use crate::bench::load::{self, Load, SLOTS};
use crate::bench::measure;
use crate::bench::meter::Meter;
use crate::bench::report::Part;
use crate::bench::run_times::RunTimes;
use crate::bench::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// What starting up costs is over by then.
const SETTLE: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(10);

pub(super) async fn measure(input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
    let flow = load::chain("idle", 1, false);
    let load = Load::start(&input.store.open, flow, RunTimes::new(0, 1), SLOTS).await?;
    measure::pause(SETTLE).await;
    let meter = Meter::begin(input.store).await?;
    measure::pause(SPAN).await;
    let part = meter.end(input.store, "10 s without work", 0, 0).await?;
    load.stop().await;
    let per_second = |n: Option<u64>| measure::rate(n.unwrap_or_default(), SPAN);
    let (statements, transactions) = (per_second(part.statements), per_second(part.transactions));
    let note = format!("{statements:.1} statements and {transactions:.1} transactions a second");
    let note = part.statements.map(|_| note);
    let (statements, transactions) = (part.statements, part.transactions);
    let (seconds, rss_bytes) = (part.seconds, part.rss_bytes);
    Ok(vec![Part { seconds, rss_bytes, statements, transactions, note, ..Part::named(&part.name) }])
}
