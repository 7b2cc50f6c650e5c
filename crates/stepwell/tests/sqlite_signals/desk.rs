//! A store in a file with short verbs. They check no invariants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell::core::decide::{NewSignal, SignalAnswer};
use stepwell::core::id::Node;
use stepwell::core::run::SignalRow;
use stepwell::ports::{
    ClaimAnswer, ClaimedTask, CommitAnswer, CommitItem, DynStore, Outcome, Payload, SignalRequest,
    SignalTarget,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{Flow, Run, payload, run_of, worker};
use stepwell::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// A file, and the store in it as long as nobody opens it anew.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) folder: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a test machine has a folder for temporary files");
        let clock = Arc::new(ManualClock::new());
        let world = World::new(open(&folder, &clock), Arc::clone(&clock));
        Self { world, clock, folder }
    }

    /// Goes on with what the file says alone.
    pub(crate) fn reopen(&mut self) {
        self.world = World::new(open(&self.folder, &self.clock), Arc::clone(&self.clock));
    }

    pub(crate) async fn start(&self, flow: &Flow) -> Run {
        self.start_for("acme", flow).await
    }

    pub(crate) async fn start_for(&self, tenant: &str, flow: &Flow) -> Run {
        let request = self.world.request(tenant, "", flow, b"input");
        let run = run_of(&request, flow);
        self.world.store().start(vec![request]).await.expect("start a run");
        run
    }

    pub(crate) async fn claim(&self) -> Vec<ClaimedTask> {
        let request = self.world.claim_request(&worker("worker"), 100);
        match self.world.store().claim(request).await.expect("claim tasks") {
            ClaimAnswer::Claimed { tasks, .. } => tasks,
            other => panic!("the worker is registered: {other:?}"),
        }
    }

    pub(crate) async fn claim_one(&self) -> ClaimedTask {
        let mut tasks = self.claim().await;
        assert_eq!(tasks.len(), 1, "one task is ready");
        tasks.remove(0)
    }

    pub(crate) async fn settle(&self, task: &ClaimedTask, outcome: Outcome) {
        let item = CommitItem { claim: task.claim, outcome };
        let answers = self.world.store().commit(vec![item]).await.expect("commit");
        assert_eq!(answers, [CommitAnswer::Accepted]);
    }

    pub(crate) async fn fire(&self) -> usize {
        let epoch = self.world.lead().await;
        self.world.store().fire_timers(epoch, 1_000).await.expect("fire timers").n_fired
    }

    pub(crate) async fn send(
        &self,
        run: &Run,
        name: &str,
        key: &str,
        bytes: &[u8],
    ) -> SignalAnswer {
        let answers = self.world.store().signal(vec![signal(run, name, key, bytes)]).await;
        answers.expect("send a signal").remove(0).expect("the run is there")
    }

    /// The signals of a run as `number name by`, with the node that got each.
    pub(crate) async fn signals(&self, run: &Run) -> Vec<String> {
        let signals = self.world.store().signals(run.key).await.expect("read signals");
        let by = |node: Option<Node>| node.map_or("-", |node| run.flow.0.definition.name(node));
        let line = |row: &SignalRow| {
            format!("{} {} {}", row.number, row.name, by(row.consumed_by).to_owned())
        };
        signals.iter().map(|signal| line(&signal.row)).collect()
    }

    pub(crate) async fn n_waits(&self, run: &Run) -> usize {
        self.world.store().waits(run.key).await.expect("read waits").len()
    }
}

pub(crate) fn open(folder: &TempDir, clock: &Arc<ManualClock>) -> DynStore {
    let options = SqliteOptions::new(folder.path().join("stepwell.db")).synchronous_normal();
    Arc::new(SqliteStore::with_clock(options, Arc::clone(clock) as _).expect("the file opens"))
}

pub(crate) fn signal(run: &Run, name: &str, key: &str, bytes: &[u8]) -> SignalRequest {
    let mut digest = [0; 32];
    digest[..bytes.len()].copy_from_slice(bytes);
    let signal = NewSignal {
        name: name.to_owned(),
        key: key.to_owned(),
        attributes: BTreeMap::new(),
        digest,
        only_if_awaited: false,
    };
    SignalRequest { to: SignalTarget::Key(run.key), signal, payload: payload(bytes) }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be missing")]
pub(crate) fn received(name: &str, bytes: &[u8]) -> Option<Payload> {
    Some(payload(bytes).of_signal(name))
}

pub(crate) const fn stored(number: u64, is_consumed: bool) -> SignalAnswer {
    SignalAnswer::Stored { number, is_consumed }
}
