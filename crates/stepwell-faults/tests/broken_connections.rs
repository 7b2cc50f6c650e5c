//! Engines whose connections to PostgreSQL break in every way, on real time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::core::id::{Queue, WorkerId};
use stepwell::ports::{DynStore, Hint, Store, StoreDump, WorkerRegistration, Workers};
use stepwell::testing::conformance::check_invariants;
use stepwell::{
    AttemptState, Config, Engine, Error, PostgresOptions, PostgresStore, Retry, RunStatus,
    StepError, Workflow, WorkflowRef,
};
use stepwell_faults::database::{OwnDatabase, connect, eventually};
use stepwell_faults::pooler::{Pooler, PreparedStatements};
use stepwell_faults::wire::{LostReplies, SessionView, Statement, Wire};
use tokio::sync::Semaphore;

const TENANT: &str = "acme";

fn server() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of broken connections need a PostgreSQL server: run `cargo xtask test`, which \
         brings its own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

/// One execution: the run, the step and the number of the attempt.
type Execution = (String, String, u32);

/// What was executed in this process, and who may go on.
struct Journal {
    executions: Mutex<Vec<Execution>>,
    /// One permit per execution of `double` that may end.
    permits: Semaphore,
}

impl Journal {
    fn new(n_permits: usize) -> Arc<Self> {
        let executions = Mutex::default();
        Arc::new(Self { executions, permits: Semaphore::new(n_permits) })
    }

    /// Notes an execution; says the how manieth one of this run's step it is. A claim whose reply
    /// was lost takes a number too, so the number of the attempt does not tell.
    fn note(&self, ctx: &stepwell::Ctx<u32, Arc<Self>>, step: &str) -> usize {
        let execution = (ctx.run_id().to_string(), step.to_owned(), ctx.attempt());
        let mut executions = self.executions.lock().expect("nobody panics");
        executions.push(execution.clone());
        let is_same = |other: &&Execution| (&other.0, &other.1) == (&execution.0, &execution.1);
        executions.iter().filter(is_same).count()
    }

    fn executions(&self) -> Vec<Execution> {
        self.executions.lock().expect("nobody panics").clone()
    }
}

/// a -> (double, nap) -> add; `double` fails once for every fifth run.
fn sums() -> Workflow<u32, u32, Arc<Journal>> {
    let mut w = Workflow::define::<u32, Arc<Journal>>("sums");
    let a = w.step("a").run(async |ctx| {
        ctx.state().note(&ctx, "a");
        Ok(*ctx.input())
    });
    let retry = Retry::fixed(1, Duration::from_millis(5));
    let double = w.step("double").after(a).retry(retry).run(async |ctx, n| {
        let n_executions = ctx.state().note(&ctx, "double");
        ctx.state().permits.acquire().await.map_err(StepError::new)?.forget();
        if n % 5 == 0 && n_executions == 1 {
            return Err(StepError::new("flaky"));
        }
        Ok(2 * n)
    });
    let nap = w.sleep("nap", Duration::from_millis(10)).after(a);
    let add = w.step("add").after((a, double, nap)).run(async |ctx, (a, double, ())| {
        ctx.state().note(&ctx, "add");
        Ok(a + double)
    });
    w.output(add)
}

/// Beats often, so that claims whose reply was lost come back soon.
fn config(lease: Duration) -> Config {
    Config {
        lease,
        heartbeat_interval: Duration::from_millis(200),
        poll_interval: Duration::from_millis(100),
        leader_ttl: Duration::from_secs(1),
        ..Config::default()
    }
}

async fn store(url: &str) -> PostgresStore {
    PostgresStore::connect_with(PostgresOptions::new(url)).await.expect("the server answers")
}

async fn engine(
    store: PostgresStore,
    journal: &Arc<Journal>,
    lease: Duration,
) -> (Engine, WorkflowRef<u32, u32>) {
    let mut builder = Engine::builder(store).state(Arc::clone(journal)).config(config(lease));
    let sums = builder.workflow(sums());
    (builder.start().await.expect("the engine starts"), sums)
}

/// Starts a run; a start that the store did not answer is repeated, as its error says.
async fn start(engine: &Engine, sums: &WorkflowRef<u32, u32>, n: u32) {
    loop {
        match engine.start(sums, n).tenant(TENANT).id(format!("run-{n}")).await {
            Ok(_) => return,
            Err(Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Every run ended once with the right output, and its log has the executions that there were.
async fn all_came_right(url: &str, journal: &Journal, n_runs: u32) -> StoreDump {
    let direct: DynStore = Arc::new(store(url).await);
    let all_ended = async || {
        let dump = direct.dump().await.expect("it answers");
        let is_over = |status: RunStatus| status == RunStatus::Completed;
        dump.runs.len() == n_runs as usize && dump.runs.values().all(|log| is_over(log.run.status))
    };
    eventually("all runs complete, and no others are there", all_ended).await;
    let dump = check_invariants(&*direct).await;
    let mut logged = Vec::new();
    for (key, log) in &dump.runs {
        let stored = direct.definition(log.run.definition).await.expect("it answers");
        let definition = &stored.expect("it is there").definition;
        let n: u32 = log.run.id.as_str().trim_start_matches("run-").parse().expect("our id");
        let add = definition.find("add").expect("a step");
        let output = direct.output(*key, add).await.expect("it answers").expect("it completed");
        assert_eq!(&*output.bytes, (3 * n).to_string().as_bytes());
        // A claim whose reply was lost is handed back; nobody has executed it.
        let executed = log.attempts.iter().filter(|row| row.state != AttemptState::Released);
        let id = log.run.id.as_str();
        let name = |node| definition.name(node).to_owned();
        logged.extend(executed.map(|row| (id.to_owned(), name(row.node), row.attempt)));
    }
    let mut executed = journal.executions();
    executed.sort();
    logged.sort();
    assert_eq!(executed, logged, "S10: what was executed, and what the log says");
    dump
}

fn count(dump: &StoreDump, state: AttemptState) -> usize {
    let attempts = dump.runs.values().flat_map(|log| &log.attempts);
    attempts.filter(|attempt| attempt.state == state).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_replies_to_commits_are_lost() {
    // FB1, S1, S2, S10
    const N_RUNS: u32 = 60;
    let database = OwnDatabase::make(&server()).await;
    let journal = Journal::new(1_000);
    let wire = Wire::to(database.url()).await;
    let lease = Duration::from_secs(30);
    let (first, sums) = engine(store(wire.url()).await, &journal, lease).await;
    let (second, _) = engine(store(wire.url()).await, &journal, lease).await;
    wire.lose_replies(LostReplies::by_chance(15, 4711, Statement::is_commit));
    let engines = [&first, &second];
    for n in 0..N_RUNS {
        start(engines[n as usize % 2], &sums, n).await;
        // Again, as a caller whose own reply was lost would do.
        start(engines[(n as usize + 1) % 2], &sums, n).await;
    }
    let dump = all_came_right(database.url(), &journal, N_RUNS).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    assert_eq!(count(&dump, AttemptState::Failed), N_RUNS as usize / 5);
    let n_lost: u64 = wire.sessions().iter().map(|session| session.n_replies_lost).sum();
    assert!(n_lost > 20, "only {n_lost} replies were lost");
    wire.lose_replies(None);
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}

/// When workers were seen last, by worker, in the database's own time; and what it is now.
async fn seen(client: &tokio_postgres::Client) -> (BTreeMap<String, i64>, i64) {
    let read = "select id, seen_at, (extract(epoch from clock_timestamp()) * 1e6)::bigint \
        from stepwell.worker where state = 0";
    let rows = client.query(read, &[]).await.expect("it answers");
    let now = rows.first().map_or(0, |row| row.get(2));
    (rows.iter().map(|row| (row.get(0), row.get(1))).collect(), now)
}

/// How often dead workers were looked for through a wire, as leaders do when they renew their term.
fn n_rounds(wire: &Wire) -> u64 {
    wire.sessions().iter().map(|session| session.n_sent("-- read_lives")).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_longer_than_the_lease_costs_nobody_an_attempt() {
    // FA1, FA4, S9: the leader was cut off itself, so it cannot tell who is dead.
    const N_RUNS: u32 = 8;
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let journal = Journal::new(0);
    let lease = Duration::from_secs(5);
    let wires = [Wire::to(database.url()).await, Wire::to(database.url()).await];
    let (first, sums) = engine(store(wires[0].url()).await, &journal, lease).await;
    let (second, _) = engine(store(wires[1].url()).await, &journal, lease).await;
    for n in 0..N_RUNS {
        start(&first, &sums, n).await;
    }
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("all runs are in their second step", async || n_begun() == N_RUNS as usize).await;

    wires.iter().for_each(Wire::black_out);
    let silence = i64::try_from(lease.as_micros()).expect("a short lease");
    eventually("everybody is silent for longer than a lease", async || {
        let (seen, now) = seen(&client).await;
        seen.len() == 2 && seen.values().all(|seen| now - seen > silence)
    })
    .await;
    let (before, _) = seen(&client).await;
    // One of them is back first, and leads. It must not judge the other by the silence.
    wires[0].light();
    eventually("the first beats again", async || {
        let (seen, _) = seen(&client).await;
        seen.get(first.worker_id()) > before.get(first.worker_id())
    })
    .await;
    // The next look for dead workers shows that the one before has ended.
    let n_before = n_rounds(&wires[0]);
    eventually("the first leads", async || n_rounds(&wires[0]) >= n_before + 2).await;
    wires[1].light();

    journal.permits.add_permits(1_000);
    start(&second, &sums, N_RUNS).await;
    let dump = all_came_right(database.url(), &journal, N_RUNS + 1).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    let (after, _) = seen(&client).await;
    let ids = |seen: &BTreeMap<String, i64>| seen.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids(&before), ids(&after), "nobody was taken for dead");
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}

/// Does something that other processes are told of.
async fn tell_others(store: &PostgresStore) {
    let registration = WorkerRegistration {
        worker: WorkerId::new("one").expect("a good name"),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: Duration::from_secs(30),
    };
    store.register_worker(registration).await.expect("it registers");
}

#[tokio::test]
async fn wake_ups_come_back_after_the_listening_connection_was_cut() {
    // FC1
    let database = OwnDatabase::make(&server()).await;
    let wire = Wire::to(database.url()).await;
    let (one, other) = (store(database.url()).await, store(wire.url()).await);
    let mut hints = other.hints();
    // The first hint says that it listens.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    let listens = |session: &SessionView| session.has_sent("listen ");
    assert_eq!(wire.cut(listens), 1, "one connection listens");
    // Listening again, it says once that there may be something to see.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    let is_back = |session: &SessionView| listens(session) && !session.is_over;
    assert_eq!(wire.sessions().iter().filter(|session| is_back(session)).count(), 1);
    // Nothing here polls, so only a notification can end the wait.
    tell_others(&one).await;
    hints.given(Hint::Ready).await;
    database.abandon().await;
}

#[tokio::test]
async fn a_line_that_does_not_hear_itself_is_given_up_and_tried_again() {
    // FC1: it looks healthy, and delivers nothing.
    let database = OwnDatabase::make(&server()).await;
    let wire = Wire::to(database.url()).await;
    wire.deafen(true);
    let (one, other) = (store(database.url()).await, store(wire.url()).await);
    let mut hints = other.hints();
    let listens = |session: &SessionView| session.has_sent("listen ");
    let n_lines = || wire.sessions().iter().filter(|session| listens(session)).count();
    eventually("it gives the line up and listens anew", async || n_lines() >= 2).await;
    let is_told = tokio::select! {
        biased;
        () = hints.given(Hint::Ready) => true,
        () = std::future::ready(()) => false,
    };
    assert!(!is_told, "a line that hears nothing promises nothing");
    wire.deafen(false);
    // Heard again, it says once that there may be something to see.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    tell_others(&one).await;
    hints.given(Hint::Ready).await;
    database.abandon().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_behind_a_transaction_pooler_do_their_work_by_polling() {
    // FC3
    behind_a_pooler(PreparedStatements::Kept, |options, _| options.poll_only()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_that_know_of_the_pooler_leave_nothing_behind_on_its_connections() {
    // FC3
    behind_a_pooler(PreparedStatements::LeftBehind, |options, _| options.pooled()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_behind_a_pooler_wake_and_lead_by_a_direct_way() {
    // FC3
    let direct = |options: PostgresOptions, url: &str| options.direct(url);
    behind_a_pooler(PreparedStatements::LeftBehind, direct).await;
}

async fn behind_a_pooler(
    statements: PreparedStatements,
    choose: impl Fn(PostgresOptions, &str) -> PostgresOptions,
) {
    const N_RUNS: u32 = 40;
    let database = OwnDatabase::make(&server()).await;
    let journal = Journal::new(1_000);
    let pooler = Pooler::to(database.url(), 3, statements).await;
    let behind = async || {
        let options = choose(PostgresOptions::new(pooler.url()), database.url());
        PostgresStore::connect_with(options).await.expect("the server answers")
    };
    let lease = Duration::from_secs(30);
    let (first, sums) = engine(behind().await, &journal, lease).await;
    let (second, _) = engine(behind().await, &journal, lease).await;
    for n in 0..N_RUNS {
        start(&first, &sums, n).await;
    }
    let dump = all_came_right(database.url(), &journal, N_RUNS).await;
    assert_eq!((count(&dump, AttemptState::Lost), count(&dump, AttemptState::Released)), (0, 0));
    assert!(pooler.n_clients() > 3, "more clients than connections: {}", pooler.n_clients());
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}
