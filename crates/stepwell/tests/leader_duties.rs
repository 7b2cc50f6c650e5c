//! What a leader does when one of its duties fails, takes long, or meets a row that makes no sense.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]

mod support_log;
mod support_props;

use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::core::id::WorkerId;
use stepwell::ports::{Clock, Lead, Leadership, StoreError};
use stepwell::testing::{Gate, ManualClock, TestDatabase, TestEngine, TestEngineBuilder};
use stepwell::{EngineBuilder, RunStatus, Workflow, WorkflowRef};
use tempfile::TempDir;

use support_props::at_once;
use support_props::fleet::{Fleet, LEASE, settings};
use support_props::steps::Seat;
use support_props::watch::Watch;

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

/// A step that takes an hour, and a sleep of a minute.
fn equip(builder: &mut EngineBuilder<Seat>) {
    let mut w = Workflow::define::<(), Seat>("long");
    w.step("step").run(async |ctx| {
        ctx.state().clock.sleep(HOUR).await;
        Ok(())
    });
    builder.workflow(w.no_output());
    let mut w = Workflow::define::<(), Seat>("nap");
    w.sleep("nap", MINUTE).from_start();
    builder.workflow(w.no_output());
}

fn fleet(n_seats: usize, timer_batch_max: usize) -> Fleet {
    let clock = ManualClock::new();
    let watch = Watch::strict(&clock);
    let config = stepwell::Config { timer_batch_max, ..settings(2, 3) };
    Fleet::new((clock, watch), n_seats, config, Box::new(|_, builder| equip(builder)))
}

fn start(fleet: &Fleet, workflow: &'static str) {
    let engine = fleet.engine(0).clone();
    let start = async move { engine.start_by_name(workflow, &()).tenant("t").await };
    fleet.drive(start).expect("it starts");
}

fn unavailable() -> StoreError {
    StoreError::Unavailable { operation: "postgres", why: "statement timeout".into() }
}

fn corrupt() -> StoreError {
    StoreError::Corrupt { what: "a timer of no run".into() }
}

#[test]
fn the_dead_are_found_while_another_duty_fails_again_and_again() {
    for error in [unavailable(), corrupt()] {
        let mut fleet = fleet(2, 1_000);
        start(&fleet, "long");
        for seat in 0..2 {
            fleet.link(seat).fail(Some(("fire timers", error.clone())));
        }
        fleet.advance(LEASE);
        let dead = usize::from(fleet.engine(0).n_running() == 0);
        fleet.crash(dead);
        let n_losses = |fleet: &Fleet| {
            let tasks = fleet.watch.dump().tasks;
            tasks.values().flatten().map(|task| task.losses).sum::<u32>()
        };
        let bound = LEASE + LEASE / 2 + Duration::from_secs(2);
        assert!(fleet.until(bound, || n_losses(&fleet) == 1), "after {error}");
    }
}

#[test]
fn leadership_is_renewed_between_the_pieces_of_a_long_duty() {
    // Each takes a third of the term, and there are twenty.
    let fleet = fleet(2, 1);
    for _ in 0..20 {
        start(&fleet, "nap");
    }
    for seat in 0..2 {
        fleet.link(seat).let_firing_take(Duration::from_secs(5));
    }
    fleet.to_end(HOUR);
    let (store, candidate) = (&fleet.watch.store, WorkerId::new("last").expect("a good name"));
    fleet.clock.advance(LEASE);
    let Lead::Leading(epoch) = at_once(store.lead(&candidate, LEASE)).expect("it answers") else {
        panic!("nobody else has asked")
    };
    assert_eq!(epoch.0, 2, "one term until now");
}

fn napping(name: &str) -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>(name);
    let nap = w.sleep("nap", HOUR).from_start();
    w.step("after").after(nap).run(async |_, ()| Ok(()));
    w.no_output()
}

/// A run among others cannot be read when its timer is due: the others go on, and so does that one
/// when it has been mended.
fn a_bad_timer_is_put_off(mut builder: TestEngineBuilder<()>, mend: impl Fn(&str)) {
    support_log::keep();
    let handles: Vec<WorkflowRef<(), ()>> =
        ["good", "bad"].iter().map(|name| builder.workflow(napping(name))).collect();
    let test = builder.start().expect("it starts");
    let mut runs = Vec::new();
    for n in 0..9 {
        let handle = &handles[usize::from(n == 4)];
        let run = test.start(handle, ()).id(format!("{}-{n}", handle.name()));
        runs.push(run.now().expect("it starts"));
    }
    test.run_until_idle();
    mend("update run set definition = 999 where id = 'bad-4'");
    test.advance(HOUR + MINUTE / 2);
    let status = |ix: usize| runs[ix].status().expect("it is read");
    mend(
        "update run set definition = (select id from definition where workflow = 'bad') \
          where id = 'bad-4'",
    );
    for ix in (0..9).filter(|ix| *ix != 4) {
        assert_eq!(status(ix), RunStatus::Completed, "run {ix}");
    }
    assert_eq!(status(4), RunStatus::Running);
    let told = support_log::warnings(&["put off", "definition 999"]);
    assert!(!told.is_empty(), "the log tells of it");
    test.advance(MINUTE);
    assert_eq!(status(4), RunStatus::Completed);
}

/// A step that ends when somebody opens the gate.
fn gated() -> Workflow<(), u32, Gate> {
    let mut w = Workflow::define::<(), Gate>("gated");
    let step = w.step("step").run(async |ctx| {
        ctx.state().pass().await;
        Ok(ctx.attempt())
    });
    w.output(step)
}

/// Two workers die, and the run that the first of them held cannot be read: the other's is
/// executed again, and so is that one when it has been mended.
fn a_bad_worker_is_put_off(builder: TestEngineBuilder<()>, mend: impl Fn(&str)) {
    let gate = Gate::default();
    let engine = |builder: TestEngineBuilder<()>| {
        let mut builder = builder.configure(|config| config.slots = 1).state(gate.clone());
        let handle = builder.workflow(gated());
        (builder.start().expect("it starts"), handle)
    };
    let (first, handle) = engine(builder);
    first.start(&handle, ()).id("bad").now().expect("it starts");
    first.run_until_idle();
    let (second, _) = engine(first.builder_beside());
    first.start(&handle, ()).id("good").now().expect("it starts");
    first.run_until_idle();
    assert_eq!(second.as_async().n_running(), 1);
    first.crash();
    second.crash();
    mend("update run set definition = 999 where id = 'bad'");
    let (third, _) = engine(first.builder_beside());
    third.advance(2 * HOUR);
    gate.let_pass(2);
    let good = third.run_handle_of(&handle, "test", "good").expect("it is there");
    assert_eq!(good.result().expect("it completes"), 2);
    mend("update run set definition = (select id from definition) where id = 'bad'");
    third.advance(HOUR);
    let bad = third.run_handle_of(&handle, "test", "bad").expect("it is there");
    assert_eq!(bad.result().expect("it completes"), 2);
}

/// Writes to a file behind the back of its store.
fn mend_file(path: &Path, sql: &str) {
    let file = rusqlite::Connection::open(path).expect("it opens");
    file.execute_batch("pragma foreign_keys = off").expect("it is set");
    assert_eq!(file.execute(sql, []).expect("it is written"), 1);
}

/// Writes to a schema behind the back of its store.
fn mend_schema(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a test can have a runtime").block_on(async {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the server answers");
        let work = async {
            client.batch_execute("set search_path = stepwell").await.expect("it is set");
            assert_eq!(client.execute(sql, &[]).await.expect("it is written"), 1);
            drop(client);
        };
        let ((), _) = tokio::join!(work, connection);
    });
}

fn file() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    (folder, path)
}

#[test]
fn a_timer_of_a_run_in_a_file_that_cannot_be_read_holds_up_nobody() {
    let (_folder, path) = file();
    a_bad_timer_is_put_off(TestEngine::on_sqlite(&path), |sql| mend_file(&path, sql));
}

#[test]
fn a_timer_of_a_run_in_postgres_that_cannot_be_read_holds_up_nobody() {
    let database = TestDatabase::create_blocking();
    let url = database.url();
    a_bad_timer_is_put_off(TestEngine::on_postgres(database), |sql| mend_schema(&url, sql));
}

#[test]
fn a_dead_worker_in_a_file_that_cannot_be_reaped_holds_up_no_other() {
    let (_folder, path) = file();
    a_bad_worker_is_put_off(TestEngine::on_sqlite(&path), |sql| mend_file(&path, sql));
}

#[test]
fn a_dead_worker_in_postgres_that_cannot_be_reaped_holds_up_no_other() {
    let database = TestDatabase::create_blocking();
    let url = database.url();
    a_bad_worker_is_put_off(TestEngine::on_postgres(database), |sql| mend_schema(&url, sql));
}
