//! The checks of the conformance suite see what is wrong: every lie about a sound store is found.
#![cfg(feature = "testing")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell::MemoryStore;
use stepwell::ports::{StoreDump, TaskPlace};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::invariants::{DefinitionsById, regressions, violations};
use stepwell::testing::conformance::world::{Run, World};
use stepwell_core::id::{Queue, Token};
use stepwell_core::queue::OrderKey;
use stepwell_core::run::{Phase, RunLog, RunStatus, TaskRow};
use stepwell_core::time::Timestamp;

/// A store with a task in every state, and one run that has ended.
struct Scene {
    dump: StoreDump,
    definitions: DefinitionsById,
    open: Run,
    ended: Run,
}

type Lie = fn(&Scene, &mut StoreDump);

impl Scene {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let world = World::new(store, clock);
        let short = world.define("a; x").await;
        let ended = world.start(&short).await;
        let batch = world.claim_all().await;
        world.complete(batch.of("a")).await;
        world.skip(batch.of("x")).await;
        let flow = world.define("a; x; r * 1/1h; s ~ 1h; q; b < a, s; c < x; d").await;
        let open = world.start(&flow).await;
        let batch = world.claim_all().await;
        world.complete(batch.of("a")).await;
        world.skip(batch.of("x")).await;
        world.fail(batch.of("r")).await;
        world.release(batch.of("q")).await;
        world.pass(Duration::from_secs(1));
        let definitions = [short, flow].map(|flow| (flow.0.id, flow.0));
        Self { dump: world.dump().await, definitions: definitions.into(), open, ended }
    }

    fn check(&self, what: &str, lie: Lie) {
        let mut dump = self.dump.clone();
        lie(self, &mut dump);
        assert!(!violations(&dump, &self.definitions).is_empty(), "not found: {what}");
    }
}

fn task<'dump>(scene: &Scene, dump: &'dump mut StoreDump, step: &str) -> &'dump mut TaskRow {
    let node = scene.open.node(step);
    let tasks = dump.tasks.get_mut(&scene.open.key).into_iter().flatten();
    tasks.into_iter().find(|task| task.node == node).expect("the open run has the step")
}

fn log<'dump>(dump: &'dump mut StoreDump, run: &Run) -> &'dump mut RunLog {
    dump.runs.get_mut(&run.key).expect("the dump has both runs")
}

/// What could be wrong with tasks and runs.
const LIES_ABOUT_RUNS: &[(&str, Lie)] = &[
    ("a parent counted twice", |s, d| task(s, d, "b").n_unmet = 0),
    ("a skip not counted", |s, d| task(s, d, "c").n_skipped = 0),
    ("a task completed too early", |s, d| task(s, d, "b").phase = Phase::Completed),
    ("a task undone", |s, d| task(s, d, "a").phase = Phase::Pending),
    ("an attempt not counted", |s, d| task(s, d, "d").attempt = 0),
    ("a failure not charged", |s, d| task(s, d, "r").failures = 0),
    ("a loss that never was", |s, d| task(s, d, "q").losses = 1),
    ("a missing task", |s, d| {
        d.tasks.get_mut(&s.open.key).map(Vec::pop);
    }),
    ("a missing run", |s, d| {
        d.runs.remove(&s.open.key);
    }),
    ("a counter off by one", |s, d| log(d, &s.open).run.n_open += 1),
    ("a run that ended early", |s, d| {
        log(d, &s.open).run.status = RunStatus::Completed;
    }),
    ("a run that ended otherwise", |s, d| {
        log(d, &s.ended).run.status = RunStatus::Cancelled;
    }),
    ("a run that does not end", |s, d| {
        log(d, &s.ended).run.status = RunStatus::Running;
    }),
    ("a gap in the log", |s, d| {
        log(d, &s.open).attempts.remove(0);
    }),
    ("an event lost", |s, d| {
        log(d, &s.open).events.remove(0);
    }),
    ("an event number skipped", |s, d| log(d, &s.open).run.next_event += 1),
    ("two runs of one id", |s, d| {
        let (tenant, id) = (s.ended.tenant.clone(), s.ended.id.clone());
        let row = &mut log(d, &s.open).run;
        (row.tenant, row.id) = (tenant, id);
    }),
];

/// What could be wrong with places, timers and claims.
const LIES_ABOUT_LINES: &[(&str, Lie)] = &[
    ("a queued task that waits nowhere", |s, d| {
        d.places.remove(&(s.open.key, s.open.node("q")));
    }),
    ("a running task in a queue", |s, d| {
        let place = TaskPlace::Ready(Queue::default_queue(), OrderKey(1));
        d.places.insert((s.open.key, s.open.node("d")), place);
    }),
    ("a place of an ended run", |s, d| {
        d.places.insert((s.ended.key, s.ended.node("a")), TaskPlace::Parked);
    }),
    ("a sleep without a timer", |s, d| {
        d.timers.remove(&(s.open.key, s.open.node("s")));
    }),
    ("a retry without a timer", |s, d| {
        d.timers.remove(&(s.open.key, s.open.node("r")));
    }),
    ("a timer at another time", |s, d| {
        let due = d.timers.get_mut(&(s.open.key, s.open.node("s"))).expect("it sleeps");
        *due = due.after(Duration::from_secs(1));
    }),
    ("a timer of an ended run", |s, d| {
        d.timers.insert((s.ended.key, s.ended.node("a")), Timestamp::MAX);
    }),
    ("a running task nobody holds", |_, d| d.claims = BTreeMap::new()),
    ("a claim under another token", |_, d| {
        d.claims.values_mut().flatten().for_each(|claim| claim.token = Token(1));
    }),
    ("a slot that was not given back", |_, d| {
        d.admitted.values_mut().for_each(|n| *n += 1);
    }),
    ("a slot that was not taken", |_, d| d.admitted = BTreeMap::new()),
];

#[tokio::test]
async fn a_sound_store_has_no_violations() {
    let scene = Scene::new().await;
    assert_eq!(violations(&scene.dump, &scene.definitions), Vec::<String>::new());
    assert_eq!(regressions(&scene.dump, &scene.dump), Vec::<String>::new());
}

#[tokio::test]
async fn every_lie_about_a_store_is_found() {
    // S2, S4, S16, S19
    let scene = Scene::new().await;
    for (what, lie) in LIES_ABOUT_RUNS.iter().chain(LIES_ABOUT_LINES) {
        scene.check(what, *lie);
    }
}

#[tokio::test]
async fn what_had_ended_may_not_change() {
    // S1, S8, S19
    let scene = Scene::new().await;
    let lies: &[(&str, Lie)] = &[
        ("a run vanished", |s, d| {
            d.runs.remove(&s.ended.key);
        }),
        ("an ended run goes on", |s, d| {
            log(d, &s.ended).run.status = RunStatus::Running;
        }),
        ("a completed task runs again", |s, d| task(s, d, "a").phase = Phase::Pending),
        ("the log was rewritten", |s, d| {
            log(d, &s.open).attempts[0].ended_at =
                s.dump.runs[&s.open.key].run.started_at.after(Duration::from_hours(1));
        }),
    ];
    for (what, lie) in lies {
        let mut later = scene.dump.clone();
        lie(&scene, &mut later);
        assert!(!regressions(&scene.dump, &later).is_empty(), "not found: {what}");
    }
}
