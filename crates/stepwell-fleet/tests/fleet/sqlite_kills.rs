//! A process that commits to a SQLite file all the time is killed again and again.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use stepwell_fleet::chance::Chance;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::process::Worker;
use stepwell_fleet::real_time::{pause, until};
use stepwell_fleet::start_record;

use crate::support::{FleetTest, Kind, WAIT_MAX};

const N_KILLS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_kills_leave_a_sound_file_with_everything_acknowledged() {
    // FD8, FD9, S1
    let mut test = FleetTest::new(Kind::Sqlite);
    let path = test.folder().join("stepwell.db");
    let mut chance = Chance::new(11);
    test.setup.starts_runs = true;
    for number in 0..N_KILLS {
        let name = format!("k{number:03}");
        let mut worker = Worker::spawn(&test.setup, &name).expect("it starts");
        let records = || start_record::read_of(test.folder(), &name);
        let first = || Ok((!records()?.is_empty()).then_some(()));
        let goes_on = until("an acknowledgement", WAIT_MAX, first).await;
        goes_on.expect("it goes on where the last one was killed");
        pause(Duration::from_micros(chance.next() % 30_000)).await;
        worker.kill().expect("it can be killed");
        let records = records().expect("they can be read");
        check_file(&path, &start_record::acknowledged(records));
    }
    // One that is left alone finishes what all the others began.
    test.setup.starts_runs = false;
    let fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let records = start_record::read(test.folder()).expect("they can be read");
    let acknowledged = start_record::acknowledged(records);
    load.adopt("writer", &acknowledged).await.expect("all of them are there");
    let evidence = test.end(load, fleet, Faults::Crashes).await;
    assert!(evidence.counts().runs >= N_KILLS);
}

/// SQLite finds nothing wrong, and what the last process was promised is there.
fn check_file(path: &Path, acknowledged: &[String]) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = Connection::open_with_flags(path, flags).expect("it opens");
    let verdict: String =
        file.query_row("pragma integrity_check", [], |row| row.get(0)).expect("it can be read");
    assert_eq!(verdict, "ok");
    let mut find = file.prepare("select 1 from run where id = ?1").expect("there are runs");
    for id in acknowledged {
        assert!(find.exists([id]).expect("it can be read"), "run {id} is lost");
    }
}
