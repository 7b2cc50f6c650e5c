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
use stepwell_core::id::{Node, Queue, RunKey, Token};
use stepwell_core::queue::OrderKey;
use stepwell_core::run::{
    Attributes, EventKind, Phase, Resumed, RunLog, RunStatus, SignalRow, TaskRow, TaskState,
    WaitRow,
};
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
        let text =
            "a; x; r * 1/1h; s ~ 1h; q; b < a, s; c < x; d; u; w ? paid/2h; v ? paid; g ? go";
        let flow = world.define(text).await;
        let open = world.start_within(&flow, Duration::from_hours(9)).await;
        let batch = world.claim_all().await;
        world.complete(batch.of("a")).await;
        world.skip(batch.of("x")).await;
        world.fail(batch.of("r")).await;
        world.release(batch.of("q")).await;
        world.waits_for(batch.of("u"), "done/1h").await;
        for signal in ["done", "done", "go", "other"] {
            world.signal(&open, signal).await;
        }
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

fn waits<'dump>(scene: &Scene, dump: &'dump mut StoreDump) -> &'dump mut Vec<WaitRow> {
    dump.waits.get_mut(&scene.open.key).expect("the open run waits")
}

fn signal<'dump>(scene: &Scene, dump: &'dump mut StoreDump, number: usize) -> &'dump mut SignalRow {
    &mut dump.signals.get_mut(&scene.open.key).expect("signals were sent")[number - 1]
}

/// What the log says that a task got.
fn received<'dump>(scene: &Scene, dump: &'dump mut StoreDump, step: &str) -> &'dump mut EventKind {
    let node = Some(scene.open.node(step));
    let events = log(dump, &scene.open).events.iter_mut();
    let is_received = |kind: &EventKind| matches!(kind, EventKind::Signalled { .. });
    let mut found = events.filter(|event| event.node == node && is_received(&event.kind));
    &mut found.next().expect("the step got a signal").kind
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
    ("time that goes back in the log", |s, d| {
        log(d, &s.ended).run.ended_at = Some(Timestamp::EPOCH);
    }),
    ("a task that started after the deadline", |s, d| {
        log(d, &s.open).attempts[0].claim.started_at = Timestamp::MAX;
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

/// What could be wrong with waits and deadlines.
const LIES_ABOUT_WAITS: &[(&str, Lie)] = &[
    ("a waiting task without a wait", |s, d| {
        waits(s, d).remove(0);
    }),
    ("a wait of a task that does not wait", |s, d| {
        let wait = WaitRow { node: s.open.node("q"), ..waits(s, d)[0].clone() };
        waits(s, d).insert(0, wait);
    }),
    ("a wait that stands twice", |s, d| {
        let wait = waits(s, d)[0].clone();
        waits(s, d).insert(0, wait);
    }),
    ("waits in another order", |s, d| waits(s, d).reverse()),
    ("a wait for something else", |s, d| waits(s, d)[0].signals = vec!["x".to_owned()]),
    ("a wait for a signal with attributes", |s, d| {
        waits(s, d)[0].matching = Attributes::from([("a".to_owned(), "b".to_owned())]);
    }),
    ("a wait that is over earlier", |s, d| {
        waits(s, d)[0].deadline = Some(waits(s, d)[0].opened_at);
    }),
    ("a wait that opened later", |s, d| {
        waits(s, d)[0].opened_at = waits(s, d)[0].opened_at.after(Duration::from_secs(1));
    }),
    ("a wait that was opened by nothing", |s, d| waits(s, d)[1].number += 40),
    ("waits of a run that is not there", |s, d| {
        let wait = waits(s, d).remove(0);
        d.waits.insert(RunKey(99), vec![wait]);
    }),
    ("a wait without its timer", |s, d| {
        d.timers.remove(&(s.open.key, s.open.node("w")));
    }),
    ("a timer of a wait for ever", |s, d| {
        d.timers.insert((s.open.key, s.open.node("v")), Timestamp::MAX);
    }),
    ("a task that waits longer than its wait", |s, d| {
        d.timers.insert((s.open.key, s.open.node("w")), Timestamp::MAX);
        task(s, d, "w").phase = Phase::Waiting { due: Some(Timestamp::MAX) };
    }),
    ("a deadline without its timer", |s, d| {
        d.timers.remove(&(s.open.key, Node::DEADLINE));
    }),
    ("a deadline at another time", |s, d| log(d, &s.open).run.deadline = Some(Timestamp::MAX)),
    ("a deadline that nobody set", |s, d| log(d, &s.open).run.deadline = None),
    ("a deadline of an ended run", |s, d| {
        log(d, &s.ended).run.deadline = Some(Timestamp::MAX);
        d.timers.insert((s.ended.key, Node::DEADLINE), Timestamp::MAX);
    }),
];

/// What could be wrong with signals.
const LIES_ABOUT_SIGNALS: &[(&str, Lie)] = &[
    ("a signal not counted", |s, d| log(d, &s.open).run.n_signals += 1),
    ("a kept signal not counted", |s, d| log(d, &s.open).run.n_unconsumed = 0),
    ("a signal lost", |s, d| {
        d.signals.get_mut(&s.open.key).map(Vec::pop);
        log(d, &s.open).run.n_signals -= 1;
    }),
    ("a key that stands twice", |s, d| {
        let key = signal(s, d, 2).key.clone();
        signal(s, d, 1).key = key;
    }),
    ("a signal sent before the one before it", |s, d| {
        signal(s, d, 1).sent_at = signal(s, d, 1).sent_at.after(Duration::from_secs(1));
    }),
    ("a signal consumed by another", |s, d| signal(s, d, 1).consumed_by = Some(s.open.node("w"))),
    ("a signal consumed by nobody", |s, d| {
        signal(s, d, 1).consumed_by = None;
        log(d, &s.open).run.n_unconsumed += 1;
    }),
    ("a signal consumed without a word", |s, d| {
        signal(s, d, 2).consumed_by = Some(s.open.node("u"));
        log(d, &s.open).run.n_unconsumed -= 1;
    }),
    ("a signal of another name", |s, d| signal(s, d, 1).name = "x".into()),
    ("a signal that came too late", |s, d| {
        for number in 1..=4 {
            signal(s, d, number).sent_at = Timestamp::MAX;
        }
    }),
    ("a signal that a wait was not given", |s, d| signal(s, d, 4).name = "paid".into()),
    ("a signal that overtook another", |s, d| {
        let (node, kind) = (Some(s.open.node("u")), received(s, d, "u"));
        let EventKind::Signalled { number, .. } = kind else { panic!("it got a signal") };
        *number = 2;
        (signal(s, d, 1).consumed_by, signal(s, d, 2).consumed_by) = (None, node);
        task(s, d, "u").resumed = Some(Resumed::Signal(2));
    }),
    ("a task resumed with another signal", |s, d| {
        task(s, d, "u").resumed = Some(Resumed::Signal(2));
    }),
    ("a task that forgot what it was resumed with", |s, d| task(s, d, "u").resumed = None),
    ("a task resumed without a wait", |s, d| task(s, d, "q").resumed = Some(Resumed::TimedOut)),
    ("a time-out of a wait for ever", |s, d| {
        *received(s, d, "g") =
            EventKind::TimedOut { into: TaskState::Completed, key: String::new() };
        task(s, d, "g").resumed = Some(Resumed::TimedOut);
        signal(s, d, 3).consumed_by = None;
        log(d, &s.open).run.n_unconsumed += 1;
    }),
];

#[tokio::test]
async fn a_sound_store_has_no_violations() {
    let scene = Scene::new().await;
    assert_eq!(violations(&scene.dump, &scene.definitions), Vec::<String>::new());
    assert_eq!(regressions(&scene.dump, &scene.dump), Vec::<String>::new());
}

#[tokio::test]
async fn every_lie_about_a_store_is_found() {
    // S2, S4, S16, S19, L9
    let scene = Scene::new().await;
    let lies = [LIES_ABOUT_RUNS, LIES_ABOUT_LINES, LIES_ABOUT_WAITS, LIES_ABOUT_SIGNALS];
    for (what, lie) in lies.into_iter().flatten() {
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
        ("a signal vanished", |s, d| {
            d.signals.remove(&s.open.key);
        }),
        ("a signal became another", |s, d| signal(s, d, 4).digest = [7; 32]),
        ("a signal was taken back", |s, d| signal(s, d, 1).consumed_by = None),
        ("a wait got something else", |s, d| task(s, d, "g").resumed = Some(Resumed::TimedOut)),
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
