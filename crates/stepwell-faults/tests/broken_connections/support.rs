//! Engines that write down what they execute, and a check of what became of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::ports::{DynStore, StoreDump};
use stepwell::testing::conformance::check_invariants;
use stepwell::{
    AttemptState, Config, Engine, Error, PostgresOptions, PostgresStore, Retry, RunStatus,
    StepError, Workflow, WorkflowRef,
};
use stepwell_faults::database::eventually;
use tokio::sync::Semaphore;

pub(crate) const TENANT: &str = "acme";

pub(crate) fn server() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of broken connections need a PostgreSQL server: run `cargo xtask test`, which \
         brings its own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

/// One execution: the run, the step and the number of the attempt.
pub(crate) type Execution = (String, String, u32);

/// What was executed in this process, and who may go on.
pub(crate) struct Journal {
    executions: Mutex<Vec<Execution>>,
    /// One permit per execution of `double` that may end.
    pub(crate) permits: Semaphore,
}

impl Journal {
    pub(crate) fn new(n_permits: usize) -> Arc<Self> {
        let executions = Mutex::default();
        Arc::new(Self { executions, permits: Semaphore::new(n_permits) })
    }

    /// Notes an execution; says the how manieth one of this run's step it is. A claim whose reply
    /// was lost takes a number too, so the number of the attempt does not tell.
    pub(crate) fn note(&self, ctx: &stepwell::Ctx<u32, Arc<Self>>, step: &str) -> usize {
        let execution = (ctx.run_id().to_string(), step.to_owned(), ctx.attempt());
        let mut executions = self.executions.lock().expect("nobody panics");
        executions.push(execution.clone());
        let is_same = |other: &&Execution| (&other.0, &other.1) == (&execution.0, &execution.1);
        executions.iter().filter(is_same).count()
    }

    pub(crate) fn executions(&self) -> Vec<Execution> {
        self.executions.lock().expect("nobody panics").clone()
    }
}

/// a -> (double, nap) -> add; `double` fails once for every fifth run.
pub(crate) fn sums() -> Workflow<u32, u32, Arc<Journal>> {
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
pub(crate) fn config(lease: Duration) -> Config {
    Config {
        lease,
        heartbeat_interval: Duration::from_millis(200),
        poll_interval: Duration::from_millis(100),
        leader_ttl: Duration::from_secs(1),
        ..Config::default()
    }
}

pub(crate) async fn store(url: &str) -> PostgresStore {
    PostgresStore::connect_with(PostgresOptions::new(url)).await.expect("the server answers")
}

pub(crate) async fn engine(
    store: PostgresStore,
    journal: &Arc<Journal>,
    lease: Duration,
) -> (Engine, WorkflowRef<u32, u32>) {
    let mut builder = Engine::builder(store).state(Arc::clone(journal)).config(config(lease));
    let sums = builder.workflow(sums());
    (builder.start().await.expect("the engine starts"), sums)
}

/// Starts a run; a start that the store did not answer is repeated, as its error says.
pub(crate) async fn start(engine: &Engine, sums: &WorkflowRef<u32, u32>, n: u32) {
    loop {
        match engine.start(sums, n).tenant(TENANT).id(format!("run-{n}")).await {
            Ok(_) => return,
            Err(Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Every run ended once with the right output, and its log has the executions that there were.
pub(crate) async fn all_came_right(url: &str, journal: &Journal, n_runs: u32) -> StoreDump {
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

pub(crate) fn count(dump: &StoreDump, state: AttemptState) -> usize {
    let attempts = dump.runs.values().flat_map(|log| &log.attempts);
    attempts.filter(|attempt| attempt.state == state).count()
}
