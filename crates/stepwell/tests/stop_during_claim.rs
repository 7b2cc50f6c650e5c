//! A stop that begins while a claim is under way.
#![cfg(feature = "testing")]

mod support_props;

use std::sync::{Arc, Mutex};

use stepwell::ports::{Inspection, Runs, Spawner};
use stepwell::testing::{CountedIds, ManualClock, ManualScheduler};
use stepwell::{AttemptState, Engine, RunStatus, StopReport, Workflow};

use support_props::at_once;
use support_props::fleet::settings;
use support_props::link::Link;
use support_props::watch::Watch;

fn one_step() -> Workflow<u32, u32> {
    let mut w = Workflow::define::<u32, ()>("one-step");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    w.output(a)
}

/// Spawns a future and gives the place where its output will be.
fn spawn<F>(scheduler: &ManualScheduler, future: F) -> Arc<Mutex<Option<F::Output>>>
where
    F: IntoFuture,
    F::IntoFuture: Send + 'static,
    F::Output: Send + 'static,
{
    let (slot, future) = (Arc::new(Mutex::new(None)), future.into_future());
    let filled = Arc::clone(&slot);
    scheduler.spawn(Box::pin(async move {
        let output = future.await;
        *filled.lock().expect("no holder of the lock panics") = Some(output);
    }));
    scheduler.run_until_idle();
    slot
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().expect("no holder of the lock panics").take()
}

#[test]
fn a_stop_drains_what_a_claim_under_way_brings() {
    // R12, FA9, S10
    let (clock, scheduler) = (ManualClock::new(), ManualScheduler::new());
    let watch = Watch::strict(&clock);
    let link = Link::new(&watch);
    let mut builder = Engine::builder(link.clone())
        .config(settings(2, 3))
        .default_tenant("t")
        .runtime(Arc::new(clock), Arc::new(scheduler.clone()), Arc::new(CountedIds::new(1)));
    let workflow = builder.workflow(one_step());
    let engine = take(&spawn(&scheduler, Box::pin(builder.start()))).expect("it answers");
    let engine = engine.expect("it starts");

    link.hold_claims();
    let run = take(&spawn(&scheduler, engine.start(&workflow, 7))).expect("it answers");
    let run = run.expect("it starts");
    let stopping = engine.clone();
    let stopped = spawn(&scheduler, Box::pin(async move { stopping.stop_gracefully().await }));
    assert!(take(&stopped).is_none(), "it stopped before the claim's reply had come");
    let held: usize =
        at_once(watch.store.dump()).expect("a dump").claims.values().map(Vec::len).sum();
    assert_eq!(held, 1, "the claim took effect under a worker that is still registered");

    link.let_claims_go();
    scheduler.run_until_idle();
    let report: StopReport = take(&stopped).expect("it stops");
    assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
    let log = at_once(watch.store.log(run.key())).expect("a log").expect("the run is there");
    assert_eq!(log.run.status, RunStatus::Completed);
    let states: Vec<AttemptState> = log.attempts.iter().map(|attempt| attempt.state).collect();
    assert_eq!(states, [AttemptState::Completed]);
}
