//! A step that takes its process down, among random bystanders on fleets of random size: it ends
//! FAILED at the crash limit, and everything claimed beside it completes (FA10, R14, S9).
#![cfg(feature = "testing")]

mod support_props;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stepwell::core::id::RunKey;
use stepwell::core::run::TaskRow;
use stepwell::ports::{Clock, StoreDump};
use stepwell::testing::ManualClock;
use stepwell::{
    AttemptState, Ctx, EngineBuilder, FailureKind, Result, Retry, RunStatus, TaskState, Workflow,
};

use support_props::cases;
use support_props::fleet::{Fleet, settings};
use support_props::steps::Seat;
use support_props::watch::Watch;

/// Longer than all the dying takes.
const PATIENCE: Duration = Duration::from_hours(1);

/// The node of the poison step in its workflow.
const POISON: usize = 1;

/// Who works beside whom.
#[derive(Clone, Debug)]
struct Scene {
    n_seats: usize,
    slots: usize,
    crash_limit: u32,
    /// How long the poison takes to work.
    poison_millis: u64,
    /// How long the steps of a bystander take, and how long after the one before it starts.
    bystanders: Vec<(u64, u64)>,
}

fn scenes() -> impl Strategy<Value = Scene> {
    let span = || prop_oneof![1 => Just(0), 2 => 1..3_000_u64];
    let pause = prop_oneof![2 => Just(0), 1 => 1..20_000_u64];
    let bystanders = vec((span(), pause), 0..25);
    (1..=4_usize, 1..=6_usize, 2..=4_u32, span(), bystanders).prop_map(
        |(n_seats, slots, crash_limit, poison_millis, bystanders)| Scene {
            n_seats,
            slots,
            crash_limit,
            poison_millis,
            bystanders,
        },
    )
}

/// Registers both workflows. Their input is how long their steps take, in milliseconds.
fn equip(builder: &mut EngineBuilder<Seat>) {
    let mut w = Workflow::define::<u64, Seat>("bystander");
    let first = w.step("first").run(work);
    let left = w.step("left").after(first).run(|ctx, ()| work(ctx));
    let right = w.step("right").after(first).run(|ctx, ()| work(ctx));
    w.step("last").after((left, right)).run(|ctx, _| work(ctx));
    builder.workflow(w.no_output());

    let mut w = Workflow::define::<u64, Seat>("poisoned");
    let before = w.step("before").run(work);
    // Retries are for failures: they neither prolong nor shorten the dying.
    let retry = Retry::fixed(1, Duration::ZERO);
    let poison = w.step("poison").after(before).retry(retry).run(async |ctx, ()| {
        work(ctx.clone()).await?;
        ctx.state().die();
        std::future::pending::<Result<()>>().await
    });
    w.step("after").after(poison).run(|ctx, ()| work(ctx));
    w.step("beside").after(before).run(|ctx, ()| work(ctx));
    builder.workflow(w.no_output());
}

async fn work(ctx: Ctx<u64, Seat>) -> Result<()> {
    ctx.state().clock.sleep(Duration::from_millis(*ctx.input())).await;
    Ok(())
}

impl Scene {
    fn fleet(&self) -> Fleet {
        let clock = ManualClock::new();
        let watch = Watch::strict(&clock);
        let config = settings(self.slots, self.crash_limit);
        Fleet::new((clock, watch), self.n_seats, config, Box::new(|_, builder| equip(builder)))
    }

    /// Runs everything to its end; says how many processes died.
    fn play(&self, fleet: &mut Fleet) -> usize {
        let mut n_dead = 0;
        start(fleet, "poisoned", self.poison_millis);
        for (millis, pause) in &self.bystanders {
            n_dead += pass(fleet, Duration::from_millis(*pause), false);
            start(fleet, "bystander", *millis);
        }
        n_dead += pass(fleet, PATIENCE, true);
        fleet.to_end(Duration::ZERO);
        n_dead
    }
}

fn start(fleet: &Fleet, workflow: &'static str, millis: u64) {
    let start = fleet.engine(0).start_by_name(workflow, &millis).tenant("acme");
    fleet.drive(start.into_future()).expect("start a run");
}

/// Lets time pass, to the end of all runs if asked, while a supervisor replaces the dead; says how
/// many there were.
fn pass(fleet: &mut Fleet, span: Duration, to_end: bool) -> usize {
    let (mut n_dead, until) = (0, fleet.clock.elapsed() + span);
    loop {
        let left = until.saturating_sub(fleet.clock.elapsed());
        let is_done = || fleet.has_dead() || (to_end && fleet.watch.store.n_open_runs() == 0);
        fleet.until(left, is_done);
        match fleet.replace_dead() {
            0 => return n_dead,
            n => n_dead += n,
        }
    }
}

/// How many attempts of a task were lost with their worker.
fn n_lost(dump: &StoreDump, run: RunKey, node: usize) -> usize {
    let attempts = dump.runs[&run].attempts.iter();
    attempts.filter(|row| row.node.index() == node && row.state == AttemptState::Lost).count()
}

fn check_poisoned(dump: &StoreDump, run: RunKey, crash_limit: u32) {
    let row = &dump.runs[&run].run;
    assert_eq!(row.status, RunStatus::Failed);
    let failure = row.failure.as_ref().expect("a failed run says why");
    assert_eq!((failure.step.as_str(), failure.failure.kind), ("poison", FailureKind::Crashed));
    let states: Vec<TaskState> = dump.tasks[&run].iter().map(TaskRow::state).collect();
    let (done, failed, cancelled) = (TaskState::Completed, TaskState::Failed, TaskState::Cancelled);
    assert_eq!(states, [done, failed, cancelled, done], "before, poison, after, beside");
    assert_eq!(dump.tasks[&run][POISON].losses, crash_limit);
    assert_eq!(n_lost(dump, run, POISON), crash_limit as usize, "S9");
}

fn check_bystander(dump: &StoreDump, run: RunKey, crash_limit: u32) {
    assert_eq!(dump.runs[&run].run.status, RunStatus::Completed, "{:?}", dump.runs[&run].run);
    for task in &dump.tasks[&run] {
        assert!(task.losses < crash_limit, "{task:?}");
        assert!(n_lost(dump, run, task.node.index()) <= crash_limit as usize, "S9: {task:?}");
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_poison_task_fails_at_the_crash_limit_and_bystanders_complete(scene in scenes()) {
        // FA10, R14, S9
        let mut fleet = scene.fleet();
        let n_dead = scene.play(&mut fleet);
        prop_assert_eq!(n_dead, scene.crash_limit as usize);
        let dump = fleet.watch.dump();
        for (run, log) in &dump.runs {
            let n_tasks = dump.tasks[run].len();
            prop_assert_eq!(n_tasks, 4);
            // The first run that was started is the poisoned one.
            if log.run.key == RunKey(1) {
                check_poisoned(&dump, *run, scene.crash_limit);
            } else {
                check_bystander(&dump, *run, scene.crash_limit);
            }
        }
    }
}
