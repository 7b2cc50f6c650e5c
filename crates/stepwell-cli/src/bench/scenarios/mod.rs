//! What is measured, one file per scenario.

mod callers;
mod claims;
mod fair;
mod fan;
mod fleet;
mod functions;
mod idle;
mod large;
mod latency;
mod processes;
mod signals;
mod snapshot;
mod throughput;
mod timers;

use clap::ValueEnum;

use super::bench_store::StoreKind;
use super::report::Part;
use super::scenario_input::ScenarioInput;
use crate::commands::Failure;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Callers that wait for each result, 1 to 512 at a time, with default settings
    Callers,
    /// One caller that waits for runs of one step, then 100, then one, with default settings
    Single,
    /// Runs of one step, start included
    One,
    /// Runs of five steps, one after the other
    Chain,
    /// Runs of one step, then 100, then one
    Fan,
    /// Runs of one step, then 10,000, then one
    Wide,
    /// One run of ten steps at a time
    Latency,
    /// Durable functions of five steps, 64 at a time, beside an insert per step
    Function,
    /// Durable functions of five steps, one at a time, beside an insert per step
    FunctionLatency,
    /// Signals to 10,000 runs that wait, and to single ones
    Signals,
    /// A tenant behind the crowd of another, and a hundred tenants at once
    Fair,
    /// How late sleeps end: 10,000 at one instant, and single ones
    Timers,
    /// What a worker without work asks of its store, over ten seconds
    Idle,
    /// What a claim costs with 1,000, 100,000 and 1,000,000 tasks in the queue
    Depth,
    /// Runs of one step with 1, 2, 4 and 10 worker processes
    Workers,
    /// From the end of a run to a caller in another process
    Result,
    /// What a claim costs among 300,000 tasks that cannot be claimed, and with a hundred services
    Blocked,
    /// A run of 100,000 tasks, and 100 runs of 1,000
    Large,
    /// Throughput while a snapshot is held open; PostgreSQL only
    Snapshot,
    /// What a heartbeat costs that names 100,000 claims
    Beats,
    /// How long others wait while workers come, go and die, among 2,000,000 tasks that wait
    Comings,
}

impl Scenario {
    /// Those that take seconds, which are measured unless the user names others.
    pub(super) const QUICK: &[Self] = &[
        Self::Callers,
        Self::Single,
        Self::One,
        Self::Chain,
        Self::Fan,
        Self::Wide,
        Self::Latency,
        Self::Function,
        Self::FunctionLatency,
        Self::Signals,
        Self::Fair,
        Self::Timers,
        Self::Idle,
        Self::Result,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Callers => "callers",
            Self::Single => "single",
            Self::One => "one",
            Self::Chain => "chain",
            Self::Fan => "fan",
            Self::Wide => "wide",
            Self::Latency => "latency",
            Self::Function => "function",
            Self::FunctionLatency => "function-latency",
            Self::Signals => "signals",
            Self::Fair => "fair",
            Self::Timers => "timers",
            Self::Idle => "idle",
            Self::Depth => "depth",
            Self::Workers => "workers",
            Self::Result => "result",
            Self::Blocked => "blocked",
            Self::Large => "large",
            Self::Snapshot => "snapshot",
            Self::Beats => "beats",
            Self::Comings => "comings",
        }
    }

    /// Whether it can be measured on this kind of store at all.
    pub(super) fn fits(self, kind: StoreKind) -> bool {
        match self {
            // What is in memory belongs to one process.
            Self::Workers | Self::Result => kind != StoreKind::Memory,
            Self::Snapshot => kind == StoreKind::Postgres,
            _ => true,
        }
    }

    /// Whether its throughput can be held against the limit.
    pub(super) fn has_rate(self) -> bool {
        matches!(
            self,
            Self::One
                | Self::Chain
                | Self::Fan
                | Self::Wide
                | Self::Workers
                | Self::Large
                | Self::Snapshot
        )
    }

    pub(super) async fn measure(self, input: &ScenarioInput<'_>) -> Result<Vec<Part>, Failure> {
        match self {
            Self::Callers => callers::callers(input).await,
            Self::Single => callers::single(input).await,
            Self::One => throughput::one(input).await,
            Self::Chain => throughput::chain(input).await,
            Self::Fan => fan::fan(input).await,
            Self::Wide => fan::wide(input).await,
            Self::Latency => latency::measure(input).await,
            Self::Function => functions::function(input).await,
            Self::FunctionLatency => functions::latency(input).await,
            Self::Signals => signals::measure(input).await,
            Self::Fair => fair::measure(input).await,
            Self::Timers => timers::measure(input).await,
            Self::Idle => idle::measure(input).await,
            Self::Depth => claims::depth(input).await,
            Self::Workers => processes::workers(input).await,
            Self::Result => processes::result(input).await,
            Self::Blocked => claims::blocked(input).await,
            Self::Large => large::measure(input).await,
            Self::Snapshot => snapshot::measure(input).await,
            Self::Beats => fleet::beats(input).await,
            Self::Comings => fleet::comings(input).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_called_what_the_user_types() {
        for scenario in Scenario::value_variants() {
            let value = scenario.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), scenario.name());
        }
    }
}
