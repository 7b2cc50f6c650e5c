//! The database server dies under load.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// How many executions have ended.
fn n_done(folder: &Path) -> Result<usize> {
    let is_end = |line: &Line| !matches!(line.mark, Mark::Began(_));
    Ok(history::read(folder)?.iter().filter(|line| is_end(line)).count())
}
