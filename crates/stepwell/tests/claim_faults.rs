//! Claims whose reply comes late, or never, and commits that are refused.
#![cfg(feature = "testing")]

mod support_props;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::core::id::RunKey;
use stepwell::ports::{Clock, Inspection, Runs, Spawner, StoreError};
use stepwell::testing::{CountedIds, ManualClock, ManualScheduler};
use stepwell::{AttemptState, Code, Engine, NewRun, RunStatus, StopReport, Workflow, WorkflowRef};

use support_props::at_once;
use support_props::fleet::{LEASE, POLL_INTERVAL, settings};
use support_props::link::Link;
use support_props::watch::Watch;

/// So many steps, one after the other.
fn chain(n_steps: u32) -> Workflow<u32, u32> {
    let mut w = Workflow::define::<u32, ()>("chain");
    let mut last = w.step("step 1").run(async |ctx| Ok(*ctx.input()));
    for n in 2..=n_steps {
        last = w.step(&format!("step {n}")).after(last).run(async |_, given| Ok(given + 1));
    }
    w.output(last)
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

/// An engine on virtual time whose link to its store can be held and can lose replies.
struct Bench {
    clock: ManualClock,
    scheduler: ManualScheduler,
    watch: Arc<Watch>,
    link: Link,
    engine: Engine,
    workflow: WorkflowRef<u32, u32>,
}

impl Bench {
    /// Its workflow has so many steps.
    fn new(n_steps: u32) -> Self {
        Self::with_slots(n_steps, 2)
    }

    fn with_slots(n_steps: u32, slots: usize) -> Self {
        let (clock, scheduler) = (ManualClock::new(), ManualScheduler::new());
        let watch = Watch::strict(&clock);
        let link = Link::new(&watch);
        let mut builder = Engine::builder(link.clone()).config(settings(slots, 3)).runtime(
            Arc::new(clock.clone()),
            Arc::new(scheduler.clone()),
            Arc::new(CountedIds::new(1)),
        );
        let workflow = builder.workflow(chain(n_steps));
        let engine = take(&spawn(&scheduler, Box::pin(builder.start()))).expect("it answers");
        Self { clock, scheduler, watch, link, engine: engine.expect("it starts"), workflow }
    }

    /// Starts a run and lets it go on without any time passing.
    fn start(&self) -> RunKey {
        let start = self.engine.start(&self.workflow, 7).tenant("t");
        let run = take(&spawn(&self.scheduler, start)).expect("it answers").expect("it starts");
        run.key()
    }

    /// Lets a lease pass, in seconds.
    fn pass_a_lease(&self) {
        for _ in 0..LEASE.as_secs() {
            self.scheduler.run_until_idle();
            self.clock.advance(Duration::from_secs(1));
        }
        self.scheduler.run_until_idle();
    }

    /// Starts a run whose only task is claimed, with the reply still to come.
    fn start_and_hold_the_claim(&self) -> RunKey {
        self.link.refuse_offers();
        self.link.hold_claims();
        let run = self.start();
        let dump = at_once(self.watch.store.dump()).expect("a dump");
        assert_eq!(dump.claims.values().map(Vec::len).sum::<usize>(), 1, "it is claimed");
        run
    }

    /// Starts a run of two steps; the commit of the first hands the second over, with the reply
    /// still to come.
    fn start_and_hold_the_commit(&self) -> RunKey {
        self.link.hold_claims();
        let start = self.engine.start(&self.workflow, 7).tenant("t");
        let started = spawn(&self.scheduler, start);
        self.link.let_one_claim_go();
        self.scheduler.run_until_idle();
        take(&started).expect("it answers").expect("it starts").key()
    }

    /// Stops the engine and lets time pass until that is over; says how long it took.
    fn stop(&self, grace: Duration) -> (Duration, StopReport) {
        let (began, engine) = (self.clock.elapsed(), self.engine.clone());
        let stopped = spawn(&self.scheduler, Box::pin(async move { engine.stop(grace).await }));
        loop {
            if let Some(report) = take(&stopped) {
                return (self.clock.elapsed().saturating_sub(began), report);
            }
            self.clock.advance(self.clock.next_wake().expect("a stop ends by itself"));
            self.scheduler.run_until_idle();
        }
    }

    fn ended(&self, run: RunKey) -> (RunStatus, Vec<AttemptState>) {
        let log = at_once(self.watch.store.log(run)).expect("a log").expect("it is there");
        (log.run.status, log.attempts.iter().map(|attempt| attempt.state).collect())
    }
}

#[test]
fn a_stop_drains_what_a_claim_under_way_brings() {
    // R12, FA9, S10
    let bench = Bench::new(1);
    let run = bench.start_and_hold_the_claim();
    let stopping = bench.engine.clone();
    let stop = Box::pin(async move { stopping.stop_gracefully().await });
    let stopped = spawn(&bench.scheduler, stop);
    assert!(take(&stopped).is_none(), "it stopped before the claim's reply had come");

    bench.link.let_claims_go();
    bench.scheduler.run_until_idle();
    let report: StopReport = take(&stopped).expect("it stops");
    assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
    assert_eq!(bench.ended(run), (RunStatus::Completed, vec![AttemptState::Completed]));
}

#[test]
fn a_task_whose_claim_was_never_answered_is_handed_back_and_completes() {
    // FB1, T1: its worker lives on, so nobody would ever take it for dead.
    let bench = Bench::new(1);
    let run = bench.start_and_hold_the_claim();
    bench.link.lose_replies(1);
    bench.link.let_claims_go();
    bench.pass_a_lease();
    let attempts = vec![AttemptState::Released, AttemptState::Completed];
    assert_eq!(bench.ended(run), (RunStatus::Completed, attempts));
}

#[test]
fn a_chain_on_an_idle_worker_goes_from_hand_to_hand() {
    let bench = Bench::new(10);
    let run = bench.start();
    assert_eq!(bench.ended(run), (RunStatus::Completed, vec![AttemptState::Completed; 10]));
    assert_eq!(bench.link.counts(), (0, 10), "claimed and handed over");
}

#[test]
fn a_stop_drains_what_a_start_under_way_hands_over() {
    // R12, FA9: nothing is held yet when the stop begins, and the claim loop has nothing under way.
    let bench = Bench::new(1);
    bench.link.answer_empty_looks();
    bench.link.hold_claims();
    let start = bench.engine.start(&bench.workflow, 7).tenant("t");
    let started = spawn(&bench.scheduler, start);
    let stopping = bench.engine.clone();
    let stop = Box::pin(async move { stopping.stop_gracefully().await });
    let stopped = spawn(&bench.scheduler, stop);
    assert!(take(&stopped).is_none(), "it stopped before the start's reply had come");

    bench.link.let_claims_go();
    bench.scheduler.run_until_idle();
    let report: StopReport = take(&stopped).expect("it stops");
    assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
    let run = take(&started).expect("it answers").expect("it starts").key();
    assert_eq!(bench.ended(run), (RunStatus::Completed, vec![AttemptState::Completed]));
}

#[test]
fn a_stop_drains_what_a_commit_under_way_hands_over() {
    // R12, FA9, S10
    let bench = Bench::new(2);
    let run = bench.start_and_hold_the_commit();
    let stopping = bench.engine.clone();
    let stop = Box::pin(async move { stopping.stop_gracefully().await });
    let stopped = spawn(&bench.scheduler, stop);
    assert_eq!(bench.link.counts(), (0, 2), "claimed and handed over");
    assert!(take(&stopped).is_none(), "it stopped before the commit's reply had come");

    bench.link.let_claims_go();
    bench.scheduler.run_until_idle();
    let report: StopReport = take(&stopped).expect("it stops");
    assert_eq!((report.n_handed_back, report.n_still_running), (0, 0));
    assert_eq!(bench.ended(run), (RunStatus::Completed, vec![AttemptState::Completed; 2]));
}

#[test]
fn a_stop_takes_its_grace_and_its_overtime_at_most_and_a_slow_commit_is_not_charged() {
    // R12, S9: the store has committed, but does not say so.
    let bench = Bench::new(2);
    let run = bench.start_and_hold_the_commit();
    let grace = Duration::from_mins(1);
    let (span, report) = bench.stop(grace);
    assert!(span <= grace + Engine::STOP_OVERTIME_MAX, "it took {span:?}");
    assert_eq!(report, StopReport { n_uncommitted: 1, ..StopReport::default() });

    bench.link.let_claims_go();
    bench.pass_a_lease();
    let attempts = vec![AttemptState::Completed, AttemptState::Released];
    assert_eq!(bench.ended(run), (RunStatus::Running, attempts), "what was handed over goes back");
    assert_eq!(bench.stop(grace).1, report, "whoever asks later is told the same");
}

#[test]
fn what_was_claimed_by_a_reply_that_was_lost_is_handed_back_by_a_stop() {
    // R12, FB1: nobody executes it, and the end of its worker would charge it.
    let bench = Bench::new(1);
    let run = bench.start_and_hold_the_claim();
    bench.link.lose_replies(1);
    bench.link.let_claims_go();
    bench.scheduler.run_until_idle();
    assert_eq!(bench.stop(Duration::from_mins(1)), (Duration::ZERO, StopReport::default()));
    assert_eq!(bench.ended(run), (RunStatus::Running, vec![AttemptState::Released]));
}

#[test]
fn a_claim_that_is_answered_after_the_grace_is_handed_back_unexecuted() {
    // R12
    let bench = Bench::new(1);
    let run = bench.start_and_hold_the_claim();
    let (span, report) = bench.stop(Duration::ZERO);
    assert!(span <= Engine::STOP_OVERTIME_MAX, "it took {span:?}");
    assert_eq!(report, StopReport::default());
    bench.link.let_claims_go();
    bench.pass_a_lease();
    assert_eq!(bench.ended(run), (RunStatus::Running, vec![AttemptState::Released]));
}

#[test]
fn whoever_waits_is_told_of_a_stop_while_the_store_is_away() {
    // R12, R22: an outcome that cannot be committed keeps the engine open.
    let bench = Bench::new(2);
    let run = bench.start_and_hold_the_commit();
    let (engine, key) = (bench.engine.clone(), run.to_string());
    let result = spawn(
        &bench.scheduler,
        Box::pin(async move { engine.run_handle("t", &key).await?.result().await }),
    );
    bench.link.lose_replies(1);
    bench.link.cut();
    bench.link.let_claims_go();
    let grace = Duration::from_mins(1);
    let (span, report) = bench.stop(grace);
    assert!(span <= grace + Engine::STOP_OVERTIME_MAX, "it took {span:?}");
    assert_eq!(report.n_uncommitted, 1);
    let told = take(&result).expect("the waiting is over").expect_err("nobody knows the result");
    assert_eq!(told.code(), Code::Stopped, "{told}");

    bench.link.mend();
    bench.pass_a_lease();
    let attempts = vec![AttemptState::Completed, AttemptState::Released];
    assert_eq!(bench.ended(run), (RunStatus::Running, attempts), "it was tried again");
}

#[test]
fn whoever_waits_is_told_of_a_stop_while_the_store_does_not_answer() {
    // R12, R22
    let bench = Bench::new(1);
    let run = bench.start_and_hold_the_claim();
    let (engine, key) = (bench.engine.clone(), run.to_string());
    let result = spawn(
        &bench.scheduler,
        Box::pin(async move { engine.run_handle("t", &key).await?.result().await }),
    );
    bench.link.hold_reads();
    bench.stop(Duration::ZERO);
    bench.clock.advance(Duration::from_secs(5));
    bench.scheduler.run_until_idle();
    let told = take(&result).expect("the waiting is over").expect_err("nobody knows the result");
    assert_eq!(told.code(), Code::Stopped, "{told}");
}

#[test]
fn what_was_handed_over_by_a_start_that_was_never_answered_is_handed_back() {
    // FB1, T1
    let bench = Bench::new(1);
    bench.link.lose_replies(1);
    let start = bench.engine.start(&bench.workflow, 7).tenant("t");
    let started = spawn(&bench.scheduler, start);
    bench.pass_a_lease();
    let run = take(&started).expect("it answers").expect("it starts").key();
    let attempts = vec![AttemptState::Released, AttemptState::Completed];
    assert_eq!(bench.ended(run), (RunStatus::Completed, attempts));
}

#[test]
fn what_was_handed_over_by_a_commit_that_was_never_answered_is_handed_back() {
    // FB1, T1
    let bench = Bench::new(2);
    let run = bench.start_and_hold_the_commit();
    assert_eq!(bench.link.counts(), (0, 2), "claimed and handed over");
    bench.link.lose_replies(1);
    bench.link.let_claims_go();
    bench.pass_a_lease();
    let attempts = [AttemptState::Completed, AttemptState::Released, AttemptState::Completed];
    assert_eq!(bench.ended(run), (RunStatus::Completed, attempts.to_vec()));
}

#[test]
fn many_starts_wait_for_a_look_that_is_under_way_and_few_do_not() {
    let bench = Bench::with_slots(1, 200);
    bench.link.hold_claims();
    bench.clock.advance(POLL_INTERVAL);
    bench.scheduler.run_until_idle();
    // The look has all slots, so this one goes into line.
    let few = bench.start();
    let many = (0..100).map(|n| NewRun::new(n).tenant("t"));
    let (engine, workflow) = (bench.engine.clone(), bench.workflow.clone());
    let many: Vec<_> = many.collect();
    let start = Box::pin(async move { engine.start_many(&workflow, many).await });
    let started = spawn(&bench.scheduler, start);
    assert!(take(&started).is_none(), "they started while it was not known what waits");

    bench.link.let_claims_go();
    bench.scheduler.run_until_idle();
    let runs = take(&started).expect("it answers").expect("they start");
    for run in runs {
        let run = run.expect("it starts").key();
        assert_eq!(bench.ended(run), (RunStatus::Completed, vec![AttemptState::Completed]));
    }
    assert_eq!(bench.ended(few), (RunStatus::Completed, vec![AttemptState::Completed]));
    let (n_claimed, n_handed_over) = bench.link.counts();
    assert_eq!(n_claimed + n_handed_over, 101);
    assert!(n_handed_over > 0, "claimed {n_claimed}");
}

impl Bench {
    /// Starts runs of these inputs.
    fn start_all(&self, inputs: std::ops::Range<u32>) -> Vec<RunKey> {
        let runs: Vec<_> = inputs.map(|n| NewRun::new(n).tenant("t")).collect();
        let (engine, workflow) = (self.engine.clone(), self.workflow.clone());
        let start = Box::pin(async move { engine.start_many(&workflow, runs).await });
        let runs = take(&spawn(&self.scheduler, start)).expect("it answers").expect("they start");
        runs.into_iter().map(|run| run.expect("it starts").key()).collect()
    }
}

#[test]
fn an_outcome_that_the_store_refuses_fails_its_step_and_no_other() {
    let bench = Bench::with_slots(1, 200);
    bench.link.refuse_output(b"7", StoreError::Corrupt { what: "no place for it".into() });
    for (n, run) in bench.start_all(0..10).into_iter().enumerate() {
        let expected = match n {
            7 => (RunStatus::Failed, vec![AttemptState::Failed]),
            _ => (RunStatus::Completed, vec![AttemptState::Completed]),
        };
        assert_eq!(bench.ended(run), expected, "run {n}");
    }
    assert_eq!(bench.engine.n_running(), 0, "claims are still held");
}

#[test]
fn an_outcome_that_a_damaged_store_cannot_take_is_kept_and_holds_up_no_other() {
    let bench = Bench::with_slots(1, 200);
    bench.link.refuse_output(b"7", StoreError::Damaged { what: "a page".into() });
    let completed = (RunStatus::Completed, vec![AttemptState::Completed]);
    let mut runs = bench.start_all(0..10);
    let kept = runs.remove(7);
    // Those that come later are committed while it is tried again.
    for _ in 0..100 {
        bench.clock.advance(Duration::from_secs(1));
        bench.scheduler.run_until_idle();
    }
    runs.extend(bench.start_all(10..20));
    for run in runs {
        assert_eq!(bench.ended(run), completed);
    }
    assert_eq!(bench.ended(kept).0, RunStatus::Running);

    bench.link.mend();
    bench.clock.advance(Duration::from_secs(5));
    bench.scheduler.run_until_idle();
    assert_eq!(bench.ended(kept), completed, "executed once, and not failed");
    assert_eq!(bench.engine.n_running(), 0, "claims are still held");
}
