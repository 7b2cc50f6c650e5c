//! Workers that die or stand still.

use std::time::Duration;

use rstest::rstest;
use rusqlite::Connection;
use stepwell::{AttemptState, TaskState};
use stepwell_fleet::address::Address;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::fault_injector::FaultInjector;
use stepwell_fleet::history::{Mark, open_gate, wait_for};
use stepwell_fleet::plan::{BLOCKING_GATE, NAP};
use stepwell_fleet::process::Worker;
use stepwell_fleet::real_time::{pause, within};

use crate::support::{FleetTest, Kind, WAIT_MAX, executed_by, first_step, task_is};

#[rstest]
#[case::postgres(Kind::Postgres, 30)]
#[case::sqlite(Kind::Sqlite, 10)]
#[tokio::test(flavor = "multi_thread")]
async fn runs_end_right_while_a_worker_is_killed_every_second(
    #[case] kind: Kind,
    #[case] seconds: u64,
) {
    // R5, R14, FA1, FB1, FB2
    let test = FleetTest::new(kind);
    let mut fleet = test.fleet(3).await;
    let mut load = test.load().await;
    let span = Duration::from_secs(seconds);
    let mut injector = FaultInjector::new(&mut fleet, None, 3);
    let (killed, loaded) =
        tokio::join!(injector.kill_every(Duration::from_secs(1), span), load.keep_going(20, span));
    killed.expect("no worker ends by itself");
    loaded.expect("starts are answered");
    let n_kills = injector.counts.kills;
    assert!(n_kills * 2 >= usize::try_from(seconds).expect("it is small"), "{n_kills} kills");
    let evidence = test.end(load, fleet, Faults::Crashes).await;
    assert!(evidence.counts().lost > 0, "the kills hit work");
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn the_late_write_of_a_frozen_worker_changes_nothing(#[case] kind: Kind) {
    // FA2, S6
    let test = FleetTest::new(kind);
    let mut fleet = test.fleet(2).await;
    let mut load = test.load().await;
    let run = load.start(BLOCKING_GATE).await.expect("it starts");
    let began = wait_for(test.folder(), "the first execution", |_| true).await;
    let late = began.expect("somebody executes it").process;
    let place = fleet.find(&late).expect("it lives");
    freeze(&test, fleet.worker(place)).await;
    let is_second = |line: &stepwell_fleet::history::Line| line.attempt == 2;
    wait_for(test.folder(), "the second execution", is_second).await.expect("another takes it");

    // The step is ordinary code, so it goes on to its end whatever its worker learns meanwhile.
    open_gate(test.folder(), &first_step(&run, 1)).expect("a file can be made");
    fleet.worker(place).thaw().expect("it can go on");
    let gave = |line: &stepwell_fleet::history::Line| {
        line.process == late && matches!(line.mark, Mark::Gave(_))
    };
    wait_for(test.folder(), "the late end", gave).await.expect("it comes to its end");
    // Once it has stopped, it has written what it had to write.
    fleet.stop(place).await.expect("it stops as it should");
    task_is(&run, "s0", |task| task.state == TaskState::Running && task.attempt == 2).await;
    assert_eq!(run.attempts().await.expect("they are read").len(), 1);

    open_gate(test.folder(), &first_step(&run, 2)).expect("a file can be made");
    let evidence = test.end(load, fleet, Faults::Crashes).await;
    let log = evidence.dump.runs.values().next().expect("the run is there");
    let ends: Vec<AttemptState> = log.attempts.iter().map(|attempt| attempt.state).collect();
    assert_eq!(ends, [AttemptState::Lost, AttemptState::Completed]);
    assert_eq!(executed_by(&evidence, run.id(), "s0").len(), 2);
}

/// Stops a worker where it stands. One that stands still inside a write to a SQLite file keeps
/// everybody else from writing for as long, and nothing can take the lock from it; so there it is
/// stopped at another moment.
async fn freeze(test: &FleetTest, worker: &Worker) {
    loop {
        worker.freeze().expect("it can be stopped");
        let Address::Sqlite(path) = &test.setup.address else { return };
        let file = Connection::open(path).expect("it opens");
        file.busy_timeout(Duration::from_secs(1)).expect("it can be set");
        if file.execute_batch("begin immediate; rollback").is_ok() {
            return;
        }
        worker.thaw().expect("it can go on");
        pause(Duration::from_millis(20)).await;
    }
}

#[rstest]
#[case::postgres(Kind::Postgres)]
#[case::sqlite(Kind::Sqlite)]
#[tokio::test(flavor = "multi_thread")]
async fn after_the_death_of_the_leader_another_fires_timers_within_ten_seconds(#[case] kind: Kind) {
    // R13, FA4, T5
    let mut test = FleetTest::new(kind);
    // As in production, since the promise is about the defaults.
    test.setup.leader_ttl = stepwell::Config::default().leader_ttl;
    let mut fleet = test.fleet(1).await;
    let mut load = test.load().await;
    // A timer that fired shows that the only worker leads.
    load.start(NAP).await.expect("it starts");
    load.all_ended(WAIT_MAX).await.expect("the only worker wakes it");
    fleet.spawn().expect("it starts");
    fleet.spawn().expect("it starts");
    fleet.ready().await.expect("they start");
    let sleeper = load.start(NAP).await.expect("it starts");
    task_is(&sleeper, "nap1", |task| task.state == TaskState::Sleeping).await;
    fleet.kill(0).expect("it can be killed");
    let took_over = within("another leader", Duration::from_secs(10), sleeper.ended()).await;
    took_over.expect("another leads in time").expect("the store answers");
    test.end(load, fleet, Faults::Crashes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stands_still_for_good_holds_up_nobody() {
    // FB5, FA5: it may stand still inside a transaction, with locks that others need. On SQLite
    // nobody could take those from it.
    let test = FleetTest::new(Kind::Postgres);
    let mut fleet = test.fleet(2).await;
    let mut load = test.load().await;
    let mut still = Vec::new();
    for _ in 0..3 {
        load.keep_going(20, Duration::from_millis(700)).await.expect("starts are answered");
        let worker = fleet.take(0);
        worker.freeze().expect("it can be stopped");
        still.push(worker);
        fleet.spawn().expect("it starts");
        fleet.ready().await.expect("it starts beside one that stands still");
    }
    // None of them goes on before all runs have ended.
    test.end(load, fleet, Faults::Crashes).await;
    drop(still);
}
