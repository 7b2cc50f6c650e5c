//! A standby takes over from a primary that dies under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepwell_cluster::{ClusterError, Pair, find_programs};
use stepwell_fleet::Failure;
use stepwell_fleet::address::Address;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::real_time::until;
use tempfile::TempDir;

use crate::server::n_done;
use crate::support::{FleetTest, WAIT_MAX};

/// Far longer than a fail-over, and short enough to find soon what a dying server did not answer.
const LEASE: Duration = Duration::from_secs(15);

/// Executions that end before the primary dies, and after.
const N_BETWEEN: usize = 60;

/// Kills the primary and promotes its standby, beside everything else.
#[expect(clippy::disallowed_methods, reason = "servers come and go while the load goes on")]
async fn fail_over(mut pair: Pair) -> Result<Pair, Failure> {
    let fail_over = move || {
        pair.kill_primary()?;
        pair.promote_standby()?;
        Ok(pair)
    };
    let done = tokio::task::spawn_blocking(fail_over).await.expect("it does not panic");
    done.map_err(|error: ClusterError| Failure(error.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_a_standby_takes_over_from_a_killed_primary() {
    // R5, FA6, FB1, S1
    let programs = find_programs().expect("a PostgreSQL server is installed");
    let pair = Pair::start(&programs, vec!["max_connections=200".to_owned()]);
    let pair = pair.expect("both servers start");
    let address = Address::Postgres { url: pair.url(), schema: "stepwell".to_owned() };
    // All leases outlast the fail-over, so nothing may be taken from anybody: an attempt that is
    // lost would be one that runs twice.
    let mut test = FleetTest::at(address, TempDir::new().expect("there is room for files"));
    test.setup.lease = LEASE;
    let mut fleet = test.fleet(3).await;
    let mut load = test.load().await;
    let goes_on = AtomicBool::new(true);
    let some_work = async |what: &str| {
        let n_before = n_done(test.folder())?;
        let work = || Ok((n_done(test.folder())? >= n_before + N_BETWEEN).then_some(()));
        until(what, WAIT_MAX, work).await
    };
    let fail_over = async {
        some_work("work on the primary").await?;
        let pair = fail_over(pair).await?;
        some_work("work on the promoted standby").await?;
        Ok::<Pair, Failure>(pair)
    };
    let fail_over = async {
        let done = fail_over.await;
        goes_on.store(false, Ordering::Release);
        done
    };
    let loaded = load.keep_going_while(20, || goes_on.load(Ordering::Acquire));
    let (failed_over, loaded) = tokio::join!(fail_over, loaded);
    let _pair = failed_over.expect("the standby takes over, and work goes on");
    loaded.expect("starts are answered");
    assert_eq!(fleet.ended_by_themselves().expect("the system tells"), Vec::<String>::new());
    test.end(load, fleet, Faults::Restarts).await;
}
