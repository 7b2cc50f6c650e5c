//! What a loop of steps costs by their number: statements and transactions where there are some,
//! turns of the engine in memory. Ten times the steps cost ten times as much, and going on after a
//! wait reads what was done at once, however much it is.
#![cfg(all(feature = "testing", feature = "postgres", feature = "sqlite"))]

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use stepwell::testing::{ManualClock, TestDatabase, TestEngine};
use stepwell::{Ctx, PostgresStore, Result, SqliteOptions, SqliteStore, Traffic, WorkflowRef};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_hours(1);

/// A loop of steps, and once more over what they gave after a wait.
async fn in_a_row(ctx: Ctx<u64>) -> Result<u64> {
    let mut sum = 0;
    for _ in 0..*ctx.input() {
        sum += ctx.step("add", async || Ok(1)).await?;
    }
    ctx.sleep("pause", HOUR).await?;
    Ok(sum)
}

/// What a function cost until it slept, and after that.
#[derive(Clone, Copy, Debug)]
struct Costs {
    live: Traffic,
    replay: Traffic,
}

/// Plays a function of so many steps, and counts by what has been done so far.
fn play(
    test: &TestEngine,
    handle: &WorkflowRef<u64, u64>,
    n_steps: u64,
    wait: impl Fn(&TestEngine),
    count: &impl Fn() -> Traffic,
) -> Costs {
    let before = count();
    let run = test.start(handle, n_steps).now().expect("it starts");
    wait(test);
    let live = count().since(before);
    assert_eq!(run.memos().expect("they are read").len() as u64, n_steps);
    let asleep = count();
    test.advance(HOUR);
    wait(test);
    let replay = count().since(asleep);
    assert_eq!(run.result().expect("it ends"), n_steps);
    Costs { live, replay }
}

/// Asserts that each step costs the same, and little.
fn check_live(few: Costs, many: Costs) {
    let of = |costs: Costs| [costs.live.statements, costs.live.transactions];
    for (few, many) in of(few).into_iter().zip(of(many)) {
        let most = few * N_MANY / N_FEW;
        assert!(many <= most + most / 20, "{N_FEW} steps cost {few}, {N_MANY} cost {many}");
        assert!(few <= 5 * N_FEW, "{N_FEW} steps cost {few}");
    }
}

const N_FEW: u64 = 1_000;
const N_MANY: u64 = 10_000;

/// Counts everything that a store sends to its database.
fn on_store(
    store: impl stepwell::ports::Store,
    clock: ManualClock,
    traffic: &impl Fn() -> Traffic,
) {
    let mut builder = TestEngine::on(store, clock).real_time_max(Duration::from_mins(2));
    let handle = builder.function("in-a-row", in_a_row);
    let test = builder.start().expect("it starts");
    // What is done for the first time may cost more.
    let [_, few, many] =
        [1, N_FEW, N_MANY].map(|n| play(&test, &handle, n, TestEngine::run_until_idle, traffic));
    check_live(few, many);
    let (most, found) = (few.replay, many.replay);
    let is_same =
        found.statements <= most.statements + 3 && found.transactions <= most.transactions + 3;
    assert!(is_same, "{most:?} for {N_FEW} steps, {found:?} for {N_MANY}");
}

#[test]
fn a_loop_of_ten_thousand_steps_costs_the_same_for_each_in_memory() {
    // D2
    let mut builder = TestEngine::builder();
    let handle = builder.function("in-a-row", in_a_row);
    let test = builder.start().expect("it starts");
    let n_turns = Cell::new(0);
    let turns = |test: &TestEngine| {
        while test.run_cycle() {
            n_turns.set(n_turns.get() + 1);
        }
    };
    let count = || Traffic { statements: n_turns.get(), transactions: 0 };
    let [few, many] = [N_FEW, N_MANY].map(|n| play(&test, &handle, n, turns, &count));
    check_live(few, many);
    let most = few.replay.statements * N_MANY / N_FEW;
    assert!(many.replay.statements <= most, "{few:?}, with ten times the steps {many:?}");
}

#[test]
fn a_loop_of_ten_thousand_steps_costs_the_same_for_each_on_sqlite() {
    // D2
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let clock = ManualClock::new();
    let options = SqliteOptions::new(folder.path().join("cost.db")).synchronous_normal();
    let store = SqliteStore::with_clock(options, Arc::new(clock.clone())).expect("a fresh file");
    let sent = store.clone();
    on_store(store, clock, &|| sent.traffic());
}

#[test]
fn a_loop_of_ten_thousand_steps_costs_the_same_for_each_on_postgres() {
    // D2
    let database = TestDatabase::create_blocking();
    let clock = ManualClock::new();
    let options = database.options().connections_max(2).poll_only().without_migration();
    let options = options.clock(Arc::new(clock.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a test can have a runtime");
    let store = runtime.block_on(PostgresStore::connect_with(options)).expect("it answers");
    let sent = store.clone();
    on_store(store, clock, &|| sent.traffic());
}
