//! A SQLite file and a machine whose clock is set, ahead or back, while it is open or closed.
#![cfg(all(feature = "sqlite", feature = "testing"))]

mod support_log;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stepwell::RunStatus;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

const YEAR: Duration = Duration::from_hours(365 * 24);
const HOUR: Duration = Duration::from_hours(1);
const HALF: Duration = Duration::from_mins(30);

fn open(folder: &TempDir, clock: &Arc<ManualClock>) -> World {
    World::new(Arc::new(store(folder.path(), clock)), Arc::clone(clock))
}

fn store(folder: &Path, clock: &Arc<ManualClock>) -> SqliteStore {
    let options = SqliteOptions::new(folder.join("stepwell.db")).synchronous_normal();
    SqliteStore::with_clock(options, Arc::clone(clock) as _).expect("it opens")
}

fn setting() -> (TempDir, Arc<ManualClock>) {
    let folder = TempDir::new().expect("there is room for a file");
    (folder, Arc::new(ManualClock::new()))
}

#[tokio::test]
async fn a_timer_set_by_a_clock_that_was_ahead_is_due_after_its_span() {
    let (folder, clock) = setting();
    let world = open(&folder, &clock);
    let flow = world.define("s ~ 1h").await;
    clock.jump(10 * YEAR);
    let run = world.start(&flow).await;
    clock.jump_back(10 * YEAR);
    clock.advance(HOUR.saturating_sub(Duration::from_secs(1)));
    assert_eq!(world.fire().await.n_fired, 0, "a second is left");
    clock.advance(Duration::from_secs(1));
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn time_goes_on_while_a_file_is_closed_whose_clock_was_ahead() {
    let (folder, clock) = setting();
    let world = open(&folder, &clock);
    let flow = world.define("s ~ 1h").await;
    clock.jump(YEAR);
    let run = world.start(&flow).await;
    clock.jump_back(YEAR);
    // Written down once by the clock that is right again.
    world.lead().await;
    drop(world);
    clock.advance(HALF);
    let world = open(&folder, &clock);
    assert_eq!(world.fire().await.next_due, Some(HALF));
    clock.advance(HALF);
    assert_eq!(world.fire().await.n_fired, 1);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn two_processes_share_a_time_that_never_goes_back() {
    let (folder, clock) = setting();
    let (one, other) = (open(&folder, &clock), open(&folder, &clock));
    let flow = one.define("s ~ 1h").await;
    clock.jump(YEAR);
    let run = one.start(&flow).await;
    clock.jump_back(YEAR);
    clock.advance(HALF);
    // The first has seen the half hour pass, the other learns of it from the file.
    assert_eq!(one.fire().await.next_due, Some(HALF));
    assert_eq!(other.fire().await.next_due, Some(HALF));
    clock.advance(HALF);
    assert_eq!(other.fire().await.n_fired, 1);
    assert_eq!(one.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn a_clock_that_is_behind_is_told_with_both_times() {
    support_log::keep();
    let (folder, clock) = setting();
    let told = || support_log::warnings(&["clock is behind", "2028-12-31", "2026-01-01"]).len();
    let world = open(&folder, &clock);
    clock.jump(3 * YEAR);
    world.lead().await;
    assert_eq!(told(), 0);
    clock.jump_back(3 * YEAR);
    for _ in 0..3 {
        world.lead().await;
    }
    assert_eq!(told(), 1, "once, when it is found");
    drop(world);
    open(&folder, &clock).lead().await;
    assert_eq!(told(), 2, "and when the file is opened again");
}
