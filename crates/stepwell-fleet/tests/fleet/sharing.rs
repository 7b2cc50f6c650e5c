//! Several processes share the work of one store.

use std::collections::BTreeMap;
use std::sync::Barrier;

use rstest::rstest;
use stepwell::{SqliteOptions, SqliteStore};
use stepwell_fleet::checker::Faults;
use stepwell_fleet::plan::WIDE;
use tempfile::TempDir;

use crate::support::{FleetTest, Kind};

/// Steps of a wide run.
const N_STEPS: usize = 100;

#[rstest]
#[case::ten_thousand_on_postgres(Kind::Postgres, 100)]
#[case::six_thousand_on_sqlite(Kind::Sqlite, 60)]
#[tokio::test(flavor = "multi_thread")]
async fn three_processes_share_tasks_and_execute_each_exactly_once(
    #[case] kind: Kind,
    #[case] n_runs: usize,
) {
    // R3, S10
    let mut test = FleetTest::new(kind).without_deaths();
    test.setup.slots = 32;
    let fleet = test.fleet(3).await;
    let mut load = test.load().await;
    load.start_many(WIDE, n_runs).await.expect("they start");
    let evidence = test.end(load, fleet, Faults::None).await;
    let counts = evidence.counts();
    assert_eq!(counts.tasks, n_runs * N_STEPS);
    assert_eq!(counts.executions, n_runs * N_STEPS);
    let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &evidence.history {
        *shares.entry(&line.process).or_default() += 1;
    }
    assert_eq!(shares.len(), 3, "everybody works: {shares:?}");
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_open_a_new_store_at_the_same_moment_all_start(#[case] kind: Kind) {
    // FD6
    for _ in 0..4 {
        let test = FleetTest::new(kind);
        let mut fleet = test.fleet(5).await;
        fleet.stop_all().await.expect("all workers stop as they should");
    }
}

#[test]
fn a_new_file_that_many_open_at_the_same_moment_opens_for_all() {
    // FD6: as above, closer together than processes can be started.
    const N_OPENING: usize = 8;
    for _ in 0..20 {
        let folder = TempDir::new().expect("there is room for a file");
        let (path, start) = (folder.path().join("stepwell.db"), Barrier::new(N_OPENING));
        let open = || {
            start.wait();
            SqliteStore::open_with(SqliteOptions::new(&path)).map(drop)
        };
        std::thread::scope(|scope| {
            let opening: Vec<_> = (0..N_OPENING).map(|_| scope.spawn(open)).collect();
            for opened in opening {
                opened.join().expect("it does not panic").expect("it opens");
            }
        });
    }
}
