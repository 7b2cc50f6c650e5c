//! Random workflows with random outcomes on fleets whose workers die, stall and are cut off:
//! whatever comes, every run ends as a naive model says and the invariants hold after every
//! change (S3, S4, S6, S7, S8, S10, S16, S19).
#![cfg(feature = "testing")]

mod support_props;

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stepwell::core::decide::CancelRequest;
use stepwell::core::id::{RunId, RunKey, Tenant};
use stepwell::ports::{Commits, Runs};
use stepwell::testing::ManualClock;

use support_props::fleet::{Fleet, LEASE, settings};
use support_props::link::Link;
use support_props::model::Story;
use support_props::moves::moves;
use support_props::plan::{Plan, plans, plans_with_waits};
use support_props::steps::register;
use support_props::storm::Storm;
use support_props::watch::Watch;
use support_props::{at_once, cases};

const CRASH_LIMIT: u32 = 3;

/// Longer than any plan takes: two hundred steps of fifteen seconds in a row, with retries.
const PATIENCE: Duration = Duration::from_hours(6);

/// Who executes what.
#[derive(Clone, Debug)]
struct Scene {
    plans: Vec<Arc<Plan>>,
    /// The plan of every run.
    runs: Vec<usize>,
    n_seats: usize,
    slots: usize,
    /// Seats from here on know the first plan only, as in the middle of a deploy (FE3).
    first_old_seat: usize,
}

fn scenes() -> impl Strategy<Value = Scene> {
    let plans = vec(plans().prop_map(Arc::new), 1..=2);
    let runs = vec(0..2_usize, 1..=3);
    (plans, runs, 1..=3_usize, 1..=10_usize, 1..=3_usize).prop_map(
        |(plans, mut runs, n_seats, slots, first_old_seat)| {
            for plan in &mut runs {
                *plan %= plans.len();
            }
            Scene { plans, runs, n_seats, slots, first_old_seat }
        },
    )
}

/// Plans with waits, and runs of them, some with a deadline in seconds.
type StormScene = (Vec<Arc<Plan>>, Vec<(usize, Option<Duration>)>);

fn storm_scenes() -> impl Strategy<Value = StormScene> {
    let plans = vec(plans_with_waits().prop_map(Arc::new), 1..=2);
    let deadline = prop::option::weighted(0.3, (0..300_u64).prop_map(Duration::from_secs));
    (plans, vec((0..2_usize, deadline), 1..=3)).prop_map(|(plans, mut runs)| {
        for (plan, _) in &mut runs {
            *plan %= plans.len();
        }
        (plans, runs)
    })
}

impl Scene {
    fn fleet(&self) -> Fleet {
        let (plans, first_old_seat) = (self.plans.clone(), self.first_old_seat);
        let clock = ManualClock::new();
        let watch = Watch::strict(&clock);
        let equip = Box::new(move |seat, builder: &mut _| {
            let n_known = if seat < first_old_seat { plans.len() } else { 1 };
            for (ix, plan) in plans.iter().enumerate().take(n_known) {
                register(builder, &workflow(ix), plan);
            }
        });
        Fleet::new((clock, watch), self.n_seats, settings(self.slots, CRASH_LIMIT), equip)
    }

    /// Starts a run beside everything else. Its reply may get lost, so whether it took effect
    /// may be unknown.
    fn start(&self, fleet: &Fleet, seat: usize, run: usize) {
        let engine = fleet.engine(seat).clone();
        let (workflow, number) = (workflow(self.runs[run]), run as u64);
        fleet.spawn(async move {
            let start = engine.start_by_name(&workflow, &number);
            let _ = start.tenant(tenant(run).as_str()).id(run_id(run).as_str()).await;
        });
    }

    /// Starts all runs again: those that are there are found.
    fn start_all_again(&self, fleet: &Fleet) {
        for (run, plan) in self.runs.iter().enumerate() {
            let engine = fleet.engine(0).clone();
            let (workflow, number) = (workflow(*plan), run as u64);
            let started = fleet.drive(async move {
                let start = engine.start_by_name(&workflow, &number);
                start.tenant(tenant(run).as_str()).id(run_id(run).as_str()).await
            });
            assert!(started.is_ok(), "start of run {run}");
        }
    }

    /// Compares every run with its plan. `crash_limit` is `None` if nothing was disturbed.
    fn check(&self, fleet: &Fleet, crash_limit: Option<u32>) {
        let dump = fleet.watch.dump();
        assert_eq!(dump.runs.len(), self.runs.len(), "S1, S2: every start gave one run");
        // S16
        assert!(dump.places.is_empty() && dump.timers.is_empty(), "rows of ended runs are left");
        assert!(dump.claims.values().all(Vec::is_empty), "claims on ended runs are left");
        for (run, plan) in self.runs.iter().enumerate() {
            let key = key(&fleet.watch, run).expect("the run was started");
            let ledger = &fleet.ledger;
            let told = (ledger.of_run(run as u64), ledger.marks_of_run(run as u64));
            let source = (&*fleet.watch, &dump, key);
            let plan = (&*self.plans[*plan], run as u64);
            Story::new(plan, source, told, crash_limit).check();
        }
    }
}

fn workflow(ix: usize) -> String {
    format!("plan-{ix}")
}

fn tenant(run: usize) -> Tenant {
    Tenant::new(format!("tenant-{}", run % 2)).expect("a usable name")
}

fn run_id(run: usize) -> RunId {
    RunId::new(format!("run-{run}")).expect("a usable name")
}

fn key(watch: &Watch, run: usize) -> Option<RunKey> {
    let found = at_once(watch.store.find(&tenant(run), &run_id(run))).expect("find a run");
    found.map(|view| view.row.key)
}

/// What happens to a fleet. Numbers pick among the seats and runs there are.
#[derive(Clone, Debug)]
enum Deed {
    Start {
        seat: usize,
        run: usize,
    },
    /// Everything that is ready takes so many turns.
    Turns(usize),
    Pass {
        millis: u64,
    },
    /// A process dies.
    Crash {
        seat: usize,
    },
    /// A worker is cut off from the store for a while, perhaps longer than its lease.
    CutOff {
        seat: usize,
        millis: u64,
    },
    /// Starts and commits take effect, but their replies are lost (FB1).
    LoseReplies {
        seat: usize,
        n: u32,
    },
    /// A worker stops in good order.
    Stop {
        seat: usize,
        grace_millis: u64,
    },
    Cancel {
        run: usize,
    },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let pick = || 0..6_usize;
    let millis = || prop_oneof![2 => 0..2_000_u64, 1 => 2_000..20_000_u64];
    let one = prop_oneof![
        3 => (pick(), pick()).prop_map(|(seat, run)| Deed::Start { seat, run }),
        8 => (1..=12_usize).prop_map(Deed::Turns),
        4 => millis().prop_map(|millis| Deed::Pass { millis }),
        3 => pick().prop_map(|seat| Deed::Crash { seat }),
        2 => (pick(), prop_oneof![1 => millis(), 2 => Just(75_000)])
            .prop_map(|(seat, millis)| Deed::CutOff { seat, millis }),
        2 => (pick(), 1..=3_u32).prop_map(|(seat, n)| Deed::LoseReplies { seat, n }),
        2 => (pick(), millis())
            .prop_map(|(seat, grace_millis)| Deed::Stop { seat, grace_millis }),
        1 => (0..8_usize).prop_map(|run| Deed::Cancel { run }),
    ];
    vec(one, 1..40)
}

impl Scene {
    fn suffer(&self, fleet: &mut Fleet, deed: &Deed) {
        match *deed {
            Deed::Start { seat, run } => {
                self.start(fleet, fleet.seat(seat), run % self.runs.len());
            }
            Deed::Turns(n) => fleet.cycles(n),
            Deed::Pass { millis } => fleet.advance(Duration::from_millis(millis)),
            Deed::Crash { seat } => fleet.crash(fleet.seat(seat)),
            Deed::CutOff { seat, millis } => {
                let link = fleet.link(fleet.seat(seat)).clone();
                link.cut();
                fleet.advance(Duration::from_millis(millis));
                link.mend();
            }
            Deed::LoseReplies { seat, n } => fleet.link(fleet.seat(seat)).lose_replies(n),
            Deed::Stop { seat, grace_millis } => {
                fleet.stop(fleet.seat(seat), Duration::from_millis(grace_millis));
            }
            Deed::Cancel { run } => {
                if let Some(key) = key(&fleet.watch, run) {
                    at_once(Link::new(&fleet.watch).cancel(key, CancelRequest::by("a test")))
                        .expect("cancel a run");
                }
            }
        }
    }

    /// Nothing happens to the fleet any more. Every run ends, and stays as it is however long
    /// those who lost their claims go on talking, and whoever cancels it.
    fn heal(&self, fleet: &mut Fleet) {
        (0..fleet.n_seats()).for_each(|seat| fleet.link(seat).mend());
        fleet.advance(Duration::from_secs(10));
        self.start_all_again(fleet);
        fleet.to_end(PATIENCE);
        fleet.advance(LEASE * 2);
        for run in 0..self.runs.len() {
            self.suffer(fleet, &Deed::Cancel { run });
        }
    }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn undisturbed_fleets_end_every_run_as_the_model_says(scene in scenes()) {
        // S3, S4, S7, S10, S16, S19, R15, R16
        let fleet = scene.fleet();
        for run in 0..scene.runs.len() {
            scene.start(&fleet, fleet.seat(run), run);
        }
        fleet.to_end(PATIENCE);
        scene.check(&fleet, None);
    }

    #[test]
    fn fleets_that_crash_stall_and_lose_replies_keep_every_promise(
        scene in scenes(), deeds in deeds(),
    ) {
        // S1, S2, S3, S4, S6, S7, S8, S9, S10, S16, S19, T1, FA1, FA2, FB1, FE3
        let mut fleet = scene.fleet();
        scene.start(&fleet, 0, 0);
        for deed in &deeds {
            scene.suffer(&mut fleet, deed);
        }
        scene.heal(&mut fleet);
        scene.check(&fleet, Some(CRASH_LIMIT));
    }

    #[test]
    fn any_order_of_store_calls_keeps_every_promise(
        (plans, runs) in storm_scenes(), moves in moves(),
    ) {
        // S3, S4, S5, S6, S7, S8, S9, S11, S12, S16, S19, L7, L8, L9, L10, FB1, FB6
        let mut storm = Storm::new(&plans, &runs);
        for next in &moves {
            storm.make(next);
        }
        storm.calm_down();
        storm.check();
    }
}
