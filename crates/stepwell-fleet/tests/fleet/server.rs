//! The database server dies under load.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use stepwell::{Config, Engine, PostgresStore, RunFilter, Workflow, WorkflowRef};
use stepwell_fleet::address::Address;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::cluster::{Cluster, Crash};
use stepwell_fleet::history::{self, Line, Mark};
use stepwell_fleet::real_time::until;
use stepwell_fleet::{Failure, Result};
use tempfile::TempDir;

use crate::support::{FleetTest, WAIT_MAX};

/// Executions that end between two crashes.
const N_BETWEEN: usize = 40;

const CRASHES: [Crash; 5] =
    [Crash::Immediate, Crash::Kill, Crash::Immediate, Crash::Kill, Crash::Kill];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_crashes_five_times() {
    // R5, FB1, FA8, S1
    let mut cluster = Cluster::start().await.expect("the server starts");
    let address = Address::Postgres { url: cluster.url(), schema: "stepwell".to_owned() };
    let test = FleetTest::at(address, TempDir::new().expect("there is room for files"));
    let mut fleet = test.fleet(3).await;
    let mut load = test.load().await;
    let goes_on = AtomicBool::new(true);
    let crash = async {
        for crash in CRASHES {
            let n_before = n_done(test.folder())?;
            let work = || Ok((n_done(test.folder())? >= n_before + N_BETWEEN).then_some(()));
            until("work between two crashes", WAIT_MAX, work).await?;
            cluster.restart_after(crash).await?;
        }
        Ok::<(), Failure>(())
    };
    let crash = async {
        let crashed = crash.await;
        goes_on.store(false, Ordering::Release);
        crashed
    };
    let loaded = load.keep_going_while(20, || goes_on.load(Ordering::Acquire));
    let (crashed, loaded) = tokio::join!(crash, loaded);
    crashed.expect("work goes on and the server comes back each time");
    loaded.expect("starts are answered");
    assert_eq!(fleet.ended_by_themselves().expect("the system tells"), Vec::<String>::new());
    test.end(load, fleet, Faults::Crashes).await;
}

fn doubling() -> Workflow<u64, u64> {
    let mut w = Workflow::define::<u64, ()>("doubling");
    let double = w.step("double").run(async |ctx| Ok(2 * *ctx.input()));
    w.output(double)
}

/// Asks everything, again and again; no answer may be an error.
async fn ask_on(engine: &Engine, doubling: &WorkflowRef<u64, u64>, is_over: &AtomicBool) {
    for n in 0.. {
        let run = engine.start(doubling, n).tenant("t").await.expect("starts ride it out");
        let same = engine.run_handle("t", run.id()).await.expect("reads ride it out");
        same.events().await.expect("reads ride it out");
        if n % 2 == 0 {
            assert_eq!(run.result().await.expect("results ride it out"), 2 * n);
        } else {
            run.cancel().await.expect("cancels ride it out");
        }
        engine.list(&RunFilter::default(), None, 10).await.expect("lists ride it out");
        if is_over.load(Ordering::Acquire) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_restart_of_the_server_is_no_error_to_anybody() {
    let mut cluster = Cluster::start().await.expect("the server starts");
    let store = PostgresStore::connect(cluster.url()).await.expect("the server answers");
    // How long a restart takes is up to the machine, and this one may be busy.
    let config = Config { patience: WAIT_MAX, ..Config::default() };
    let mut builder = Engine::builder(store).config(config);
    let doubling = builder.workflow(doubling());
    let engine = builder.start().await.expect("it starts");
    let is_over = AtomicBool::new(false);
    let restart = async {
        for _ in 0..3 {
            cluster.restart_after(Crash::Restart).await.expect("it comes back");
        }
        is_over.store(true, Ordering::Release);
    };
    tokio::join!(
        restart,
        ask_on(&engine, &doubling, &is_over),
        ask_on(&engine, &doubling, &is_over),
        ask_on(&engine, &doubling, &is_over),
    );
    engine.stop_gracefully().await;
}

/// How many executions have ended.
pub(crate) fn n_done(folder: &Path) -> Result<usize> {
    let is_end = |line: &Line| !matches!(line.mark, Mark::Began(_));
    Ok(history::read(folder)?.iter().filter(|line| is_end(line)).count())
}
