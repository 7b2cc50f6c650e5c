//! What becomes of a task when its worker stops or dies, one test per place it may be in.

use std::time::Duration;

use rstest::rstest;
use stepwell::{AttemptState, Run, TaskState};
use stepwell_fleet::checker::{Evidence, Faults};
use stepwell_fleet::history::{Line, Mark, open_gate, wait_for};
use stepwell_fleet::plan::{FLAKY, GATE, NAP, SINGLE};
use stepwell_fleet::process::WorkerMessage;
use stepwell_fleet::real_time::pause;

use crate::support::{FleetTest, Kind, executed_by, first_step, task_is};

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_loses_nothing_and_duplicates_nothing(#[case] kind: Kind) {
    // R12, S9, S10
    let test = FleetTest::new(kind).without_deaths();
    let mut fleet = test.fleet(3).await;
    let mut load = test.load().await;
    let restart = async {
        for _ in 0..3 {
            pause(Duration::from_secs(1)).await;
            fleet.spawn()?;
            fleet.ready().await?;
            fleet.stop(0).await?;
        }
        Ok::<(), stepwell_fleet::Failure>(())
    };
    let (restarted, loaded) = tokio::join!(restart, load.keep_going(15, Duration::from_secs(5)));
    restarted.expect("each stops with exit code 0");
    loaded.expect("starts are answered");
    // The checker refuses lost attempts, and executions that are neither planned nor handed back.
    let evidence = test.end(load, fleet, Faults::Restarts).await;
    let tasks = evidence.dump.tasks.values().flatten();
    assert_eq!(tasks.map(|task| task.losses).sum::<u32>(), 0);
    let planned = evidence.dump.runs.values().flat_map(|log| &log.attempts).count();
    assert!(evidence.counts().executions <= planned);
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_stopped_whole_though_one_of_its_workers_is_gone(#[case] kind: Kind) {
    // Workers that were left running went on to lead, and chaos took them for dead.
    let test = FleetTest::new(kind);
    let mut fleet = test.fleet(3).await;
    fleet.worker(0).kill().expect("it can be killed");
    let failure = fleet.stop_all().await.expect_err("one has ended by itself");
    assert!(failure.to_string().contains("w001 ended"), "{failure}");
    assert!(fleet.is_empty());
    let reports: Vec<String> = ["w002", "w003"]
        .iter()
        .map(|name| std::fs::read_to_string(test.folder().join(format!("out-{name}"))))
        .collect::<Result<_, _>>()
        .expect("each has its file");
    assert!(reports.iter().all(|report| report.contains("stopped")), "{reports:?}");
}

/// A worker at work on the only step of a run with a gate.
async fn at_the_gate(test: &FleetTest, run: &Run, attempt: u32) -> Line {
    let is_meant = |line: &Line| line.run == run.id() && line.attempt == attempt;
    wait_for(test.folder(), "an execution", is_meant).await.expect("it is executed")
}

fn open(test: &FleetTest, run: &Run, attempt: u32) {
    open_gate(test.folder(), &first_step(run, attempt)).expect("a file can be made");
}

fn ends(evidence: &Evidence, run: &Run) -> Vec<AttemptState> {
    evidence.dump.runs[&run.key()].attempts.iter().map(|attempt| attempt.state).collect()
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_task_of_a_stopping_worker_is_taken_by_another(#[case] kind: Kind) {
    let mut test = FleetTest::new(kind).without_deaths();
    test.setup.slots = 1;
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let held = load.start(GATE).await.expect("it starts");
    at_the_gate(&test, &held, 1).await;
    let queued = load.start(SINGLE).await.expect("it starts");
    fleet.worker(0).terminate().expect("it can be asked to stop");
    fleet.spawn().expect("it starts");
    queued.ended().await.expect("another takes it while the first one drains");
    open(&test, &held, 1);
    fleet.worker(0).stopped().await.expect("it stops as it should");
    let name = fleet.worker(0).name().to_owned();
    fleet.kill(0).expect("it is gone already");
    let evidence = test.end(load, fleet, Faults::None).await;
    assert_eq!(executed_by(&evidence, held.id(), "s0"), [(1, name.clone())]);
    assert_ne!(executed_by(&evidence, queued.id(), "s0"), [(1, name)]);
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_running_task_is_drained_and_its_outcome_counts(#[case] kind: Kind) {
    let test = FleetTest::new(kind).without_deaths();
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let run = load.start(GATE).await.expect("it starts");
    let worker = at_the_gate(&test, &run, 1).await.process;
    fleet.worker(0).terminate().expect("it can be asked to stop");
    fleet.spawn().expect("it starts");
    fleet.worker(1).ready().await.expect("it starts");
    open(&test, &run, 1);
    let report = fleet.worker(0).stopped().await.expect("it stops as it should");
    assert_eq!(
        report,
        WorkerMessage::Stopped { n_drained: 1, n_handed_back: 0, n_still_running: 0 }
    );
    fleet.kill(0).expect("it is gone already");
    let evidence = test.end(load, fleet, Faults::None).await;
    assert_eq!(executed_by(&evidence, run.id(), "s0"), [(1, worker)]);
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_task_over_the_grace_period_is_handed_back_uncharged(#[case] kind: Kind) {
    let mut test = FleetTest::new(kind).without_deaths();
    test.setup.grace = Duration::from_millis(100);
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let run = load.start(GATE).await.expect("it starts");
    at_the_gate(&test, &run, 1).await;
    fleet.spawn().expect("it starts");
    let report = fleet.stop(0).await.expect("it stops as it should");
    assert_eq!(
        report,
        WorkerMessage::Stopped { n_drained: 0, n_handed_back: 1, n_still_running: 0 }
    );
    open(&test, &run, 2);
    let evidence = test.end(load, fleet, Faults::Restarts).await;
    assert_eq!(ends(&evidence, &run), [AttemptState::Released, AttemptState::Completed]);
    assert_eq!(evidence.dump.tasks[&run.key()][0].losses, 0);
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_killed_worker_is_lost_and_executed_again(#[case] kind: Kind) {
    let test = FleetTest::new(kind);
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let run = load.start(GATE).await.expect("it starts");
    let dead = at_the_gate(&test, &run, 1).await.process;
    fleet.spawn().expect("it starts");
    fleet.kill(0).expect("it can be killed");
    open(&test, &run, 2);
    let evidence = test.end(load, fleet, Faults::Crashes).await;
    assert_eq!(ends(&evidence, &run), [AttemptState::Lost, AttemptState::Completed]);
    let by = executed_by(&evidence, run.id(), "s0");
    assert_eq!(by[0], (1, dead.clone()));
    assert_ne!(by[1], (2, dead));
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_task_wakes_elsewhere(#[case] kind: Kind) {
    // R4
    let test = FleetTest::new(kind).without_deaths();
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let run = load.start(NAP).await.expect("it starts");
    task_is(&run, "nap1", |task| task.state == TaskState::Sleeping).await;
    fleet.stop(0).await.expect("it stops as it should");
    task_is(&run, "nap1", |task| task.state == TaskState::Sleeping).await;
    fleet.spawn().expect("it starts");
    let evidence = test.end(load, fleet, Faults::None).await;
    let (before, after) =
        (executed_by(&evidence, run.id(), "s0"), executed_by(&evidence, run.id(), "s1"));
    assert_ne!(before[0].1, after[0].1);
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn a_task_in_backoff_is_retried_elsewhere(#[case] kind: Kind) {
    // R11
    let test = FleetTest::new(kind).without_deaths();
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    let run = load.start(FLAKY).await.expect("it starts");
    let failed = |line: &Line| line.mark == Mark::Failed;
    wait_for(test.folder(), "the failure", failed).await.expect("it fails as planned");
    task_is(&run, "s0", |task| task.state == TaskState::Queued && task.failures == 1).await;
    fleet.stop(0).await.expect("it stops as it should");
    fleet.spawn().expect("it starts");
    let evidence = test.end(load, fleet, Faults::None).await;
    let by = executed_by(&evidence, run.id(), "s0");
    assert_eq!(by.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2]);
    assert_ne!(by[0].1, by[1].1);
}
