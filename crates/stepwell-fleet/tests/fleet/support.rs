//! A test of a fleet: a store of its own, a folder for what processes write down, and a client.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::Duration;

use stepwell::{Run, TaskStatus};
use stepwell_fleet::address::Address;
use stepwell_fleet::asked::Asked;
use stepwell_fleet::checker::{Evidence, Faults};
use stepwell_fleet::fleet::Fleet;
use stepwell_fleet::history::{Execution, Mark};
use stepwell_fleet::load::Load;
use stepwell_fleet::process::Setup;
use stepwell_fleet::real_time::{Deadline, pause};
use tempfile::TempDir;

/// How long anything may take that is waited for.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(90);

/// The store of a test.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Postgres,
    Sqlite,
}

pub(crate) struct FleetTest {
    pub(crate) setup: Setup,
    folder: TempDir,
}

impl FleetTest {
    pub(crate) fn new(kind: Kind) -> Self {
        let folder = TempDir::new().expect("there is room for files");
        let address = match kind {
            Kind::Postgres => shared_server(),
            Kind::Sqlite => Address::Sqlite(folder.path().join("stepwell.db")),
        };
        Self::at(address, folder)
    }

    pub(crate) fn at(address: Address, folder: TempDir) -> Self {
        let program = env!("CARGO_BIN_EXE_fleet-worker");
        Self { setup: Setup::new(program, address, folder.path()), folder }
    }

    /// No worker dies in this test, and a machine under load must not make it look so.
    pub(crate) fn without_deaths(mut self) -> Self {
        self.setup.lease = Duration::from_secs(30);
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn fleet(&self, n_workers: usize) -> Fleet {
        Fleet::start(self.setup.clone(), n_workers).await.expect("they start")
    }

    pub(crate) async fn load(&self) -> Load {
        Load::connect(&self.setup.address, "run", 7).await.expect("the store answers")
    }

    /// Waits for all ends, stops the fleet, and checks what became of everything.
    pub(crate) async fn end(&self, mut load: Load, mut fleet: Fleet, faults: Faults) -> Evidence {
        load.all_ended(WAIT_MAX).await.expect("all runs end");
        fleet.stop_all().await.expect("all workers stop as they should");
        self.check(load.asked().clone(), faults).await
    }

    pub(crate) async fn check(&self, asked: Asked, faults: Faults) -> Evidence {
        let store = self.setup.address.open().await.expect("the store answers");
        let evidence = Evidence::gather(store.as_ref(), self.folder(), asked).await;
        let evidence = evidence.expect("everything can be read");
        let violations = evidence.violations(faults);
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        evidence
    }
}

/// A schema of its own on the server that the tests were given.
pub(crate) fn shared_server() -> Address {
    let url = std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of the PostgreSQL store need a server: run `cargo xtask test`, which brings its \
         own, or set STEPWELL_TEST_DATABASE_URL",
    );
    let schema = format!("fleet_{:016x}", RandomState::new().build_hasher().finish());
    Address::Postgres { url, schema }
}

/// Those who began executions of a step of a run, by attempt.
pub(crate) fn executed_by(evidence: &Evidence, run: &str, step: &str) -> Vec<(u32, String)> {
    let is_meant = |line: &&stepwell_fleet::history::Line| {
        line.run == run && line.step == step && matches!(line.mark, Mark::Began(_))
    };
    let lines = evidence.history.iter().filter(is_meant);
    let by: BTreeSet<_> = lines.map(|line| (line.attempt, line.process.clone())).collect();
    by.into_iter().collect()
}

/// The only step of a run that has one, in this attempt.
pub(crate) fn first_step(run: &Run, attempt: u32) -> Execution {
    Execution { run: run.id().to_owned(), step: "s0".to_owned(), attempt }
}

/// Waits until a task of a run is as it should be.
pub(crate) async fn task_is(run: &Run, step: &str, is_so: impl Fn(&TaskStatus) -> bool) {
    let deadline = Deadline::after(WAIT_MAX);
    loop {
        let tasks = run.tasks().await.expect("the store answers");
        let task = tasks.iter().find(|task| task.step == step).expect("it has the step");
        if is_so(task) {
            return;
        }
        assert!(!deadline.has_passed(), "it stays {task:?}");
        pause(Duration::from_millis(10)).await;
    }
}
