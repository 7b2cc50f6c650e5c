//! A SQLite file on a disk that fills up, and has room again.
//!
//! The disk is a small file system in memory where we may mount one. Elsewhere the process may not
//! write files beyond a size, which fails its writes in the same way.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use stepwell_fleet::address::Address;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::fleet::Fleet;
use stepwell_fleet::real_time::until;
use stepwell_fleet::start_record::{self, StartRecord};
use tempfile::TempDir;

use crate::support::{FleetTest, WAIT_MAX};

/// Room on the small disk, or the largest file.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A mounted file system; it is gone when this is dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = TempDir::new().expect("there is room for a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={BYTES_MAX}"), "tmpfs"]);
        let mounted = mount.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut ballast = fs::File::create(self.path().join("ballast")).expect("there is room");
        for size in [64 * 1024, 1024, 1] {
            while ballast.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.path().join("ballast")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nothing_acknowledged_is_lost_and_work_resumes_with_room() {
    // FD10
    match SmallDisk::mount() {
        Some(disk) => {
            let test = test_on(disk.path().join("stepwell.db"));
            let fleet = test.fleet(1).await;
            fill_and_make_room(&test, fleet, |_| disk.fill(), |_| disk.make_room()).await;
        }
        None => work_with_limit().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_limit_of_file_sizes_nothing_acknowledged_is_lost_and_work_resumes() {
    // FD10
    work_with_limit().await;
}

async fn work_with_limit() {
    let folder = TempDir::new().expect("there is room for a file");
    let test = test_on(folder.path().join("stepwell.db"));
    let fleet = test.fleet(1).await;
    // What is there already may be written again, but no file grows.
    let limit = |fleet: &mut Fleet| fleet.worker(0).limit_files(Some(128 * 1024));
    let lift = |fleet: &mut Fleet| fleet.worker(0).limit_files(None);
    fill_and_make_room(
        &test,
        fleet,
        |fleet| limit(fleet).expect("it can be limited"),
        |fleet| lift(fleet).expect("it can be lifted"),
    )
    .await;
}

fn test_on(path: std::path::PathBuf) -> FleetTest {
    let folder = TempDir::new().expect("there is room for files");
    let mut test = FleetTest::at(Address::Sqlite(path), folder).without_deaths();
    test.setup.starts_runs = true;
    test
}

async fn fill_and_make_room(
    test: &FleetTest,
    mut fleet: Fleet,
    fill: impl Fn(&mut Fleet),
    make_room: impl Fn(&mut Fleet),
) {
    acknowledged_after(test, 0).await;
    fill(&mut fleet);
    let refused = until("a start that finds no room", WAIT_MAX, || {
        let records = start_record::read(test.folder())?;
        let is_refused = |record: &StartRecord| matches!(record, StartRecord::Unavailable(_));
        Ok(records.iter().any(is_refused).then(|| start_record::acknowledged(records).len()))
    });
    let n_before = refused.await.expect("the disk fills up");
    make_room(&mut fleet);
    acknowledged_after(test, n_before).await;
    // What was executed while there was no room may have been sent more than once, but counts
    // once; nothing is lost.
    fleet.stop_all().await.expect("it stops as it should");
    let records = start_record::read(test.folder()).expect("they can be read");
    let acknowledged = start_record::acknowledged(records);
    let mut load = test.load().await;
    load.adopt("writer", &acknowledged).await.expect("all of them are there");
    let rest = Fleet::start(without_starts(test), 1).await.expect("it starts");
    test.end(load, rest, Faults::Restarts).await;
}

/// Another worker, under another name, that only finishes what is open.
fn without_starts(test: &FleetTest) -> stepwell_fleet::process::Setup {
    let mut setup = test.setup.clone();
    setup.starts_runs = false;
    setup.names_from = 100;
    setup
}

async fn acknowledged_after(test: &FleetTest, n_before: usize) {
    let look = || {
        let n = start_record::acknowledged(start_record::read(test.folder())?).len();
        Ok((n > n_before).then_some(()))
    };
    until("an acknowledgement", WAIT_MAX, look).await.expect("starts are acknowledged");
}
