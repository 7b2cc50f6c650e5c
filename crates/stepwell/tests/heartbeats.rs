//! Who beats because claims were taken, and how often.
#![cfg(feature = "testing")]

mod support_props;

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::ports::Clock;
use stepwell::testing::ManualClock;
use stepwell::{Config, EngineBuilder, Run, Workflow};

use support_props::fleet::{Fleet, settings};
use support_props::steps::Seat;
use support_props::watch::Watch;

const TENANT: &str = "t";

/// A step that takes an hour, and one that fails at once.
fn equip(builder: &mut EngineBuilder<Seat>) {
    let mut w = Workflow::define::<(), Seat>("long");
    w.step("wait").run(async |ctx| {
        ctx.state().clock.sleep(Duration::from_hours(1)).await;
        Ok(())
    });
    builder.workflow(w.no_output());
    let mut w = Workflow::define::<(), Seat>("failing");
    w.step("fail").run(async |_| -> Result<(), _> { Err(stepwell::StepError::new("no")) });
    builder.workflow(w.no_output());
}

fn fleet(n_seats: usize, slots: usize) -> Fleet {
    let clock = ManualClock::new();
    let watch = Watch::strict(&clock);
    let config = Config { poll_interval: Duration::from_secs(5), ..settings(slots, 3) };
    Fleet::new((clock, watch), n_seats, config, Box::new(|_, builder| equip(builder)))
}

/// How often each worker has beaten.
fn beats(fleet: &Fleet) -> BTreeMap<String, usize> {
    let beats = |seat| (fleet.engine(seat).worker_id().to_owned(), fleet.link(seat).n_beats());
    (0..fleet.n_seats()).map(beats).collect()
}

fn start(fleet: &Fleet, workflow: &'static str, n: usize) -> Vec<Run> {
    let engine = fleet.engine(0).clone();
    let start = async move {
        let mut runs = Vec::new();
        for _ in 0..n {
            engine.start_by_name(workflow, &()).tenant(TENANT).await?;
        }
        for run in engine.list(&stepwell::RunFilter::default(), None, n).await?.runs {
            runs.push(engine.run_handle(TENANT, run.id.as_str()).await?);
        }
        Ok::<_, stepwell::Error>(runs)
    };
    fleet.drive(start).expect("they start")
}

fn cancel(fleet: &Fleet, run: &Run) {
    let run = run.clone();
    fleet.drive(async move { run.cancel().await }).expect("it answers");
}

#[test]
fn only_the_worker_whose_claim_was_taken_beats_at_once() {
    let fleet = fleet(3, 1);
    let runs = start(&fleet, "long", 3);
    // Everybody has claimed by then, and nobody beats for another while.
    fleet.advance(Duration::from_secs(12));
    let holders: BTreeMap<_, _> = fleet
        .watch
        .dump()
        .claims
        .into_iter()
        .flat_map(|(worker, claims)| claims.into_iter().map(move |it| (it.run, worker.clone())))
        .collect();
    assert_eq!(holders.len(), 3, "one each");
    for run in &runs {
        let before = beats(&fleet);
        cancel(&fleet, run);
        let mut expected = before;
        *expected.get_mut(holders[&run.key()].as_str()).expect("it lives") += 1;
        assert_eq!(beats(&fleet), expected);
    }
}

#[test]
fn a_failed_attempt_makes_nobody_beat() {
    let fleet = fleet(3, 1);
    fleet.advance(Duration::from_secs(12));
    let before = beats(&fleet);
    start(&fleet, "failing", 20);
    assert_eq!(fleet.watch.store.n_open_runs(), 0, "all have failed");
    assert_eq!(beats(&fleet), before);
}

#[test]
fn claims_that_are_taken_one_after_the_other_are_told_together() {
    const N_RUNS: usize = 100;
    let fleet = fleet(1, N_RUNS);
    let runs = start(&fleet, "long", N_RUNS);
    fleet.advance(Duration::from_secs(12));
    assert_eq!(fleet.engine(0).n_running(), N_RUNS);
    let n_beats = |fleet: &Fleet| beats(fleet).into_values().sum::<usize>();
    let before = n_beats(&fleet);
    for run in &runs {
        cancel(&fleet, run);
        fleet.advance(Duration::from_millis(10));
    }
    // In one second: the first at once, and then no more than these.
    let n = n_beats(&fleet) - before;
    assert!((5..=6).contains(&n), "{n} heartbeats");
    fleet.advance(Duration::from_secs(1));
    assert_eq!(fleet.engine(0).n_running(), 0, "all of them have been told");
}
