//! Opening a SQLite store: what is wrong is told with a code and a remedy, and processes that
//! end are noticed by those that live.
#![cfg(all(feature = "testing", feature = "sqlite"))]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepwell::core::decide::{Notes, RunSeed};
use stepwell::core::id::{Queue, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::lease::LastBeat;
use stepwell::core::workflow::{Definition, Draft, DraftStep, NodeKind, Placement, StepPolicy};
use stepwell::ports::{
    ClaimAnswer, ClaimRequest, Claims, CommitAnswer, CommitItem, Commits, Definitions,
    HeartbeatAnswer, Inspection, Lead, Leadership, MarkedDefinition, Outcome, Payload, ReapRequest,
    StartRequest, Starts, StoreError, Take, WorkerRegistration, Workers,
};
use stepwell::testing::ManualClock;
use stepwell::{Code, RunStatus, SqliteOptions, SqliteStore};
use tempfile::TempDir;

const TTL: Duration = Duration::from_mins(1);

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    (folder, path)
}

fn open(path: &Path, clock: &Arc<ManualClock>) -> SqliteStore {
    SqliteStore::with_clock(SqliteOptions::new(path), Arc::clone(clock) as _).expect("it opens")
}

async fn refused(path: &Path) -> (Code, String) {
    let error = SqliteStore::open(path).await.expect_err("it is refused");
    (error.code(), error.to_string())
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a good name")
}

async fn register(store: &SqliteStore, name: &str) {
    let registration = WorkerRegistration {
        worker: worker(name),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: TTL,
    };
    store.register_worker(registration).await.expect("it registers");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    let text = "dear diary, ".repeat(100);
    std::fs::write(&path, &text).expect("it is written");
    let (code, message) = refused(&path).await;
    assert_eq!(code, Code::NotAStore);
    assert!(message.contains("stepwell.db") && message.contains("path of a store"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is read"), text);
}

#[tokio::test]
async fn a_folder_that_is_missing_is_named() {
    let (folder, _) = folder();
    let (code, message) = refused(&folder.path().join("none").join("stepwell.db")).await;
    assert_eq!(code, Code::NoSuchPlace);
    assert!(message.contains("make the folder"), "{message}");
    assert!(!folder.path().join("none").exists());
}

#[tokio::test]
async fn a_folder_in_the_place_of_a_file_is_refused() {
    let (folder, _) = folder();
    let (code, message) = refused(folder.path()).await;
    assert_eq!(code, Code::NotAStore);
    assert!(message.contains("this is a folder"), "{message}");
}

#[tokio::test]
async fn a_newer_file_is_refused() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path).await.expect("it opens"));
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    connection.execute("insert into stepwell_migration values (99, 0)", []).expect("it is stored");
    let (code, message) = refused(&path).await;
    assert_eq!(code, Code::NewerSchema);
    assert!(message.contains("newer program"), "{message}");
}

#[tokio::test]
async fn a_worker_whose_process_is_gone_is_reaped_without_waiting_for_its_lease() {
    // FA1: two stores on one file know of each other only what two processes would.
    let (_folder, path) = folder();
    let clock = Arc::new(ManualClock::new());
    let (gone, living) = (open(&path, &clock), open(&path, &clock));
    register(&gone, "gone").await;
    let locks = locks(&path);
    register(&living, "living").await;
    let lead = living.lead(&worker("living"), TTL).await.expect("it leads");
    let Lead::Leading(epoch) = lead else { panic!("nobody else leads") };
    let known_to_be_gone = async || -> Vec<LastBeat> {
        let lives = living.lives().await.expect("it looks").into_iter();
        lives.filter(|life| life.is_gone).map(|life| life.last_beat).collect()
    };
    assert_eq!(known_to_be_gone().await, []);
    drop(gone);
    wait_until_free(&locks);
    let request = ReapRequest { crash_limit: 3, dead: known_to_be_gone().await };
    assert_eq!(living.reap(epoch, request).await.expect("it reaps").n_workers, 1);
    let beat = living.heartbeat(&worker("gone"), &[]).await.expect("it answers");
    assert_eq!(beat, HeartbeatAnswer::Dead);
    let beat = living.heartbeat(&worker("living"), &[]).await.expect("it answers");
    assert!(matches!(beat, HeartbeatAnswer::Alive { .. }));
}

#[tokio::test]
async fn a_leader_whose_process_is_gone_is_followed_at_once() {
    let (_folder, path) = folder();
    let clock = Arc::new(ManualClock::new());
    let (gone, living) = (open(&path, &clock), open(&path, &clock));
    register(&gone, "gone").await;
    let locks = locks(&path);
    let Lead::Leading(epoch) = gone.lead(&worker("gone"), TTL).await.expect("it leads") else {
        panic!("nobody else leads")
    };
    assert_eq!(living.lead(&worker("living"), TTL).await.expect("it follows"), Lead::Following);
    drop(gone);
    wait_until_free(&locks);
    let lead = living.lead(&worker("living"), TTL).await.expect("it leads");
    assert!(matches!(lead, Lead::Leading(next) if next > epoch), "{lead:?}");
    let request = ReapRequest { crash_limit: 3, dead: Vec::new() };
    let late = living.reap(epoch, request).await;
    assert!(matches!(late, Err(StoreError::NotLeader)), "{late:?}");
}

/// The process locks beside a database.
fn locks(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path.with_file_name("stepwell.db-workers"));
    entries.expect("it is there").map(|entry| entry.expect("it is listed").path()).collect()
}

/// The writing thread of a dropped store ends by itself a moment later: waits for its lock.
fn wait_until_free(locks: &[PathBuf]) {
    for lock in locks {
        std::fs::File::open(lock).expect("it is there").lock().expect("it can be locked");
    }
}

#[tokio::test]
async fn process_locks_that_no_worker_needs_are_removed() {
    let (_folder, path) = folder();
    let clock = Arc::new(ManualClock::new());
    let store = open(&path, &clock);
    register(&store, "one").await;
    store.deregister_worker(&worker("one")).await.expect("it goes");
    drop(store);
    wait_until_free(&locks(&path));
    drop(open(&path, &clock));
    assert_eq!(locks(&path), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn the_log_is_cut_back_when_a_long_reader_lets_go() {
    let (_folder, path) = folder();
    let store = open(&path, &Arc::new(ManualClock::new()));
    let reader = rusqlite::Connection::open(&path).expect("it opens");
    reader.execute_batch("begin; select count(*) from run").expect("it reads");
    let log = path.with_file_name("stepwell.db-wal");
    let bytes = || std::fs::metadata(&log).expect("it is there").len();
    let bulk = rusqlite::Connection::open(&path).expect("it opens");
    let fill = "create table bulk (x blob); insert into bulk values (zeroblob(80000000))";
    bulk.execute_batch(fill).expect("there is room");
    assert!(bytes() > 64 * 1024 * 1024, "a reader keeps the log from beginning anew");
    reader.execute_batch("commit").expect("it lets go");
    // The next commits of the store find the gap.
    for n in 0..200 {
        register(&store, &format!("worker-{n}")).await;
    }
    assert!(bytes() <= 64 * 1024 * 1024, "{}", bytes());
}

const READ_ON: &str = "with recursive n (x) as \
    (select 1 union all select x + 1 from n where x < 20000) select count(*) from n";

/// Two readers that take turns: one always begins before the other lets go, and each reads for as
/// long as several commits take.
struct Relay {
    is_over: Arc<AtomicBool>,
    readers: Option<std::thread::JoinHandle<()>>,
}

impl Relay {
    #[expect(clippy::disallowed_methods, reason = "connections that read at the same time block")]
    fn start(path: &Path) -> Self {
        let open = || rusqlite::Connection::open(path).expect("it opens");
        let (mut one, mut other) = (open(), open());
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let begin = "begin; select count(*) from run";
        one.execute_batch(begin).expect("it reads");
        let readers = std::thread::spawn(move || {
            while !over.load(Ordering::Acquire) {
                other.execute_batch(begin).expect("it reads");
                one.execute_batch("commit").expect("it lets go");
                std::mem::swap(&mut one, &mut other);
                one.execute_batch(READ_ON).expect("it reads on");
            }
        });
        Self { is_over, readers: Some(readers) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.readers.take().map(std::thread::JoinHandle::join);
    }
}

#[tokio::test]
async fn the_log_is_cut_back_though_readers_leave_no_gap() {
    let (_folder, path) = folder();
    let store = open(&path, &Arc::new(ManualClock::new()));
    let log = path.with_file_name("stepwell.db-wal");
    let bytes = || std::fs::metadata(&log).expect("it is there").len();
    let _relay = Relay::start(&path);
    let bulk = rusqlite::Connection::open(&path).expect("it opens");
    let fill = "create table bulk (x blob); insert into bulk values (zeroblob(80000000))";
    bulk.execute_batch(fill).expect("there is room");
    assert!(bytes() > 64 * 1024 * 1024, "it does not fit");
    for n in 0..2_000 {
        register(&store, &format!("worker-{}", n % 10)).await;
        if bytes() <= 64 * 1024 * 1024 {
            return;
        }
    }
    panic!("after so many commits the log still has {} bytes", bytes());
}

#[tokio::test]
async fn what_another_process_wrote_is_known_to_the_next_transaction() {
    // Two stores on one file know of each other only what two processes would.
    let (_folder, path) = folder();
    let clock = Arc::new(ManualClock::new());
    let (one, other) = (open(&path, &clock), open(&path, &clock));
    let definition = one.register(&definition()).await.expect("it registers").marked();
    let registration = WorkerRegistration {
        worker: worker("w"),
        queues: vec![Queue::default_queue()],
        services: vec![definition.service()],
        lease: TTL,
    };
    one.register_worker(registration).await.expect("it registers");
    for key in 1..=6 {
        let store = if key % 2 == 0 { &other } else { &one };
        start(store, definition, key).await.expect("it is started");
    }
    let mut claimed = Vec::new();
    for (n, store) in [&one, &other, &one].into_iter().enumerate() {
        let request = ClaimRequest {
            worker: worker("w"),
            tasks_max: 2,
            take: Take::Plain,
            crash_limit: 3,
            salt: n as u64,
        };
        match store.claim(request).await.expect("it answers") {
            ClaimAnswer::Claimed { tasks, .. } => claimed.extend(tasks),
            answer => panic!("{answer:?}"),
        }
    }
    let keys: Vec<u128> = claimed.iter().map(|task| task.claim.run.0).collect();
    assert_eq!(keys, [1, 2, 3, 4, 5, 6]);
    for (n, task) in claimed.iter().enumerate() {
        let outcome = Outcome::Completed { output: Payload::empty(), notes: Notes::new() };
        let item = CommitItem { claim: task.claim, outcome };
        let store = if n % 2 == 0 { &other } else { &one };
        let answers = store.commit(vec![item]).await.expect("it answers");
        assert_eq!(answers, [CommitAnswer::Accepted]);
    }
    let dump = one.dump().await.expect("it is read");
    assert!(dump.runs.values().all(|log| log.run.status == RunStatus::Completed));
    assert!(dump.admitted.values().all(|n| *n == 0), "{:?}", dump.admitted);
}

/// A workflow of one step.
fn definition() -> Definition {
    let (name, kind) = ("step".to_owned(), NodeKind::Step);
    let (placement, policy) = (Placement::Explicit(Vec::new()), StepPolicy::default());
    let step = DraftStep { name, kind, placement, policy };
    let draft = Draft { workflow: "w".to_owned(), steps: vec![step], ..Draft::default() };
    draft.resolve().expect("a good workflow")
}

async fn start(store: &SqliteStore, flow: MarkedDefinition, key: u128) -> Result<(), StoreError> {
    let id = RunId::new(format!("run-{key}")).expect("a good name");
    let tenant = Tenant::new("t").expect("a good name");
    let MarkedDefinition { id: definition, mark } = flow;
    let seed = RunSeed { key: RunKey(key), tenant, id, definition, deadline: None };
    let request = StartRequest { seed, mark, input: Payload::empty(), input_digest: [0; 32] };
    store.start(vec![request]).await.map(drop)
}

#[tokio::test]
async fn a_call_whose_rows_are_refused_fails_alone() {
    let (_folder, path) = folder();
    let store = open(&path, &Arc::new(ManualClock::new()));
    let definition = store.register(&definition()).await.expect("it registers").marked();
    let other = rusqlite::Connection::open(&path).expect("it opens");
    let refuse = "create trigger refuse before insert on task \
        when new.run = (select no from run where key = x'00000000000000000000000000000002') \
        begin select raise(abort, 'refused'); end";
    other.execute_batch(refuse).expect("it is made");
    // What is asked for while somebody else writes goes into one transaction.
    other.execute_batch("begin immediate").expect("it is locked");
    let unlock = async { other.execute_batch("rollback").expect("it is unlocked") };
    let (one, two, three, ()) = tokio::join!(
        start(&store, definition, 1),
        start(&store, definition, 2),
        start(&store, definition, 3),
        unlock
    );
    assert!(matches!(two, Err(StoreError::Corrupt { .. })), "{two:?}");
    one.expect("it is started");
    three.expect("it is started");
    let dump = store.dump().await.expect("it is read");
    let runs: Vec<RunKey> = dump.runs.keys().copied().collect();
    assert_eq!(runs, [RunKey(1), RunKey(3)]);
    assert_eq!(dump.places.len(), 2);
}
