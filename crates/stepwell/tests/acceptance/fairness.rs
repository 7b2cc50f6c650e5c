//! Fairness between tenants: turns, weights and limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use stepwell::core::queue::BLOCK_LENGTH;
use stepwell::core::run::RunLog;
use stepwell::ports::TaskPlace;
use stepwell::testing::TestEngine;
use stepwell::{Code, NewRun, TenantSettings, TenantView, Workflow, WorkflowRef};

use crate::support::{World, builder, dump, refused, state};

/// A step that writes its tenant down and waits at the gate.
fn turns() -> Workflow<(), (), World> {
    let mut w = Workflow::define::<(), World>("turns");
    w.step("turn").run(async |ctx| {
        ctx.state().journal.write(ctx.tenant());
        ctx.state().gate.pass().await;
        Ok(())
    });
    w.no_output()
}

/// An engine whose only slot is taken, so that whatever is started waits in line.
struct Line {
    world: World,
    test: TestEngine,
    turns: WorkflowRef<(), ()>,
}

impl Line {
    fn new() -> Self {
        let world = World::default();
        let mut builder = builder().configure(|config| config.slots = 1).state(world.clone());
        let turns = builder.workflow(turns());
        let line = Self { world, test: builder.start().unwrap(), turns };
        line.enqueue("first", 1);
        line.test.run_until_idle();
        line
    }

    fn enqueue(&self, tenant: &str, n: usize) {
        let runs = std::iter::repeat_with(|| NewRun::new(()).tenant(tenant)).take(n);
        for run in self.test.start_many(&self.turns, runs).unwrap() {
            run.unwrap();
        }
    }

    fn set(&self, tenant: &str, weight: u32, tasks_max: Option<u32>) {
        self.test.set_tenant(tenant, TenantSettings { weight, tasks_max }).unwrap();
    }

    /// Lets `n` more tasks start, one at a time, and says whose they were.
    fn next(&self, n: usize) -> Vec<String> {
        let n_before = self.world.journal.lines().len();
        for _ in 0..n {
            self.world.gate.let_pass(1);
            self.test.run_until_idle();
        }
        self.world.journal.lines().split_off(n_before)
    }
}

/// How often each name stands in the list.
fn counts(names: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

#[test]
fn a_lone_task_starts_among_the_first_two_however_many_another_tenant_has() {
    // R2
    let line = Line::new();
    line.enqueue("many", 5);
    line.enqueue("lone", 1);
    let starts = line.next(6);
    assert!(starts[..2].contains(&"lone".to_owned()), "{starts:?}");
}

#[test]
fn a_newcomer_does_not_wait_for_a_backlog_that_is_half_done() {
    // R2
    let line = Line::new();
    line.enqueue("many", 300);
    line.next(150);
    line.enqueue("late", 100);
    let starts = line.next(20);
    assert!(starts[..2].contains(&"late".to_owned()), "{starts:?}");
    let n_late = counts(&starts)["late"];
    assert!((9..=11).contains(&n_late), "from then on they take turns: {starts:?}");
}

#[test]
fn ten_tenants_take_turns() {
    // R2
    let line = Line::new();
    for n in 0..10 {
        line.enqueue(&format!("tenant-{n}"), 20);
    }
    let starts = line.next(200);
    for turn in starts.chunks(10) {
        assert_eq!(counts(turn).len(), 10, "each once: {turn:?}");
    }
}

#[test]
fn weights_give_shares() {
    // R2
    let line = Line::new();
    for (tenant, weight) in [("one", 1), ("two", 2), ("five", 5)] {
        line.set(tenant, weight, None);
        line.enqueue(tenant, 200);
    }
    let starts = line.next(160);
    let counts = counts(&starts);
    for (tenant, share) in [("one", 20), ("two", 40), ("five", 100)] {
        assert!(counts[tenant].abs_diff(share) <= share / 10, "{tenant}: {counts:?}");
    }
}

#[test]
fn order_keys_follow_the_block_formula() {
    // R2
    let line = Line::new();
    for tenant in ["b", "c"] {
        line.enqueue(tenant, 3);
    }
    let dump = dump(&line.test);
    let mut keys: Vec<u64> = dump
        .places
        .values()
        .map(|place| match place {
            TaskPlace::Ready(_, key) => key.0,
            other => panic!("it is ready: {other:?}"),
        })
        .collect();
    keys.sort_unstable();
    let group = |tenant| u64::from(line.test.tenant(tenant).unwrap().unwrap().tenant_no.0);
    let (b, c) = (group("b"), group("c"));
    let expected: Vec<u64> =
        (0..3).flat_map(|block| [b + BLOCK_LENGTH * block, c + BLOCK_LENGTH * block]).collect();
    assert_eq!(keys, expected);
}

#[test]
fn a_cancelled_backlog_gives_its_turns_back() {
    // R2
    let line = Line::new();
    line.enqueue("steady", 50);
    let runs: Vec<_> = (0..50)
        .map(|_| line.test.start(&line.turns, ()).tenant("regretful").now().unwrap())
        .collect();
    for run in &runs {
        run.cancel().wait().unwrap();
    }
    line.enqueue("regretful", 10);
    let starts = line.next(20);
    // It stands where it stood before the backlog, one turn behind a newcomer.
    assert!(counts(&starts)["regretful"] >= 9, "{starts:?}");
}

/// How many steps run at once, per tenant: now and at most.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<BTreeMap<String, (usize, usize)>>>);

impl Tally {
    /// Counts until the guard is dropped, as it is with a step that is stopped.
    fn enter(&self, tenant: &str) -> Inside {
        let mut tally = self.0.lock().unwrap();
        let (now, most) = tally.entry(tenant.to_owned()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        Inside(self.clone(), tenant.to_owned())
    }

    fn now(&self, tenant: &str) -> usize {
        self.0.lock().unwrap().get(tenant).map_or(0, |(now, _)| *now)
    }

    fn most(&self, tenant: &str) -> usize {
        self.0.lock().unwrap().get(tenant).map_or(0, |(_, most)| *most)
    }
}

struct Inside(Tally, String);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().get_mut(&self.1).unwrap().0 -= 1;
    }
}

/// Ten slots, and steps that are counted while they wait at the gate.
fn counted(default: Option<TenantSettings>) -> (TestEngine, WorkflowRef<u32, ()>, Tally, World) {
    let (tally, world) = (Tally::default(), World::default());
    let mut w = Workflow::define::<u32, (Tally, World)>("counted");
    w.step("inside").run(async |ctx| {
        let (tally, world) = ctx.state();
        let _inside = tally.enter(ctx.tenant());
        world.gate.pass().await;
        Ok(())
    });
    let builder = builder().configure(|config| config.tenant_default = default);
    let mut builder = builder.state((tally.clone(), world.clone()));
    let handle = builder.workflow(w.no_output());
    (builder.start().unwrap(), handle, tally, world)
}

fn limit(tasks_max: u32) -> TenantSettings {
    TenantSettings { weight: 1, tasks_max: Some(tasks_max) }
}

fn view(test: &TestEngine, tenant: &str) -> TenantView {
    test.tenant(tenant).unwrap().expect("the store knows the tenant")
}

#[test]
fn a_tenants_limit_holds_and_others_use_the_slots() {
    // R26
    let (test, counted, tally, world) = counted(None);
    test.set_tenant("limited", limit(3)).unwrap();
    for n in 0..20 {
        test.start(&counted, n).tenant("limited").now().unwrap();
        test.start(&counted, n).tenant("free").now().unwrap();
    }
    test.run_until_idle();
    assert_eq!((tally.now("limited"), tally.now("free")), (3, 7));
    let limited = view(&test, "limited");
    assert_eq!((limited.n_running, limited.n_ready, limited.n_throttled), (3, 0, 17));
    for _ in 0..40 {
        world.gate.let_pass(1);
        test.run_until_idle();
    }
    let is_open = |log: &&RunLog| !log.run.status.is_terminal();
    assert_eq!(dump(&test).runs.values().filter(is_open).count(), 0, "held back is not forgotten");
    assert_eq!(tally.most("limited"), 3);
    // Which of them a slot goes to first, when one of each is ready, differs between stores.
    assert!(tally.most("free") >= 7, "{}", tally.most("free"));
}

#[test]
fn a_limit_changes_live() {
    // R26
    let (test, counted, tally, world) = counted(None);
    test.set_tenant("t", limit(2)).unwrap();
    for n in 0..20 {
        test.start(&counted, n).tenant("t").now().unwrap();
    }
    test.run_until_idle();
    assert_eq!(tally.now("t"), 2);
    test.set_tenant("t", limit(5)).unwrap();
    test.run_until_idle();
    assert_eq!(tally.now("t"), 5, "raised at once");
    test.set_tenant("t", limit(1)).unwrap();
    world.gate.let_pass(4);
    test.run_until_idle();
    assert_eq!(tally.now("t"), 1, "what ran went on, and nothing new came in");
    test.set_tenant("t", TenantSettings::default()).unwrap();
    test.run_until_idle();
    assert_eq!(tally.now("t"), 10, "all slots");
    assert_eq!(view(&test, "t").settings, TenantSettings::default());
}

#[test]
fn a_default_limit_holds_for_tenants_without_settings_of_their_own() {
    // R25, R26
    let (test, counted, tally, _) = counted(Some(limit(2)));
    test.set_tenant("own", limit(4)).unwrap();
    for n in 0..10 {
        test.start(&counted, n).tenant("plain").now().unwrap();
        test.start(&counted, n).tenant("own").now().unwrap();
    }
    test.run_until_idle();
    assert_eq!((tally.now("plain"), tally.now("own")), (2, 4));
}

#[test]
fn a_cancelled_run_makes_room_under_the_limit() {
    // R26, L12
    let (test, counted, tally, _) = counted(None);
    test.set_tenant("t", limit(1)).unwrap();
    let runs: Vec<_> = (0..3).map(|n| test.start(&counted, n).tenant("t").now().unwrap()).collect();
    test.run_until_idle();
    runs[0].cancel().wait().unwrap();
    runs[1].cancel().wait().unwrap();
    test.run_until_idle();
    assert_eq!(state(&runs[2], "inside"), stepwell::TaskState::Running);
    assert_eq!(tally.now("t"), 1);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    // R26
    let (test, ..) = counted(None);
    for (settings, word) in [
        (TenantSettings { weight: 0, tasks_max: None }, "weight"),
        (TenantSettings { weight: 1_001, tasks_max: None }, "1000"),
        (limit(0), "tasks_max"),
        (limit(1 << 31), "2147483647"),
    ] {
        refused(test.set_tenant("t", settings), Code::BadConfig, &[word]);
    }
    refused(test.set_tenant("", limit(1)), Code::BadName, &["tenant"]);
    assert_eq!(test.tenant("t").unwrap(), None, "nothing was stored");
}

on_every_store![
    a_lone_task_starts_among_the_first_two_however_many_another_tenant_has,
    a_newcomer_does_not_wait_for_a_backlog_that_is_half_done,
    ten_tenants_take_turns,
    weights_give_shares,
    order_keys_follow_the_block_formula,
    a_cancelled_backlog_gives_its_turns_back,
    a_tenants_limit_holds_and_others_use_the_slots,
    a_limit_changes_live,
    a_default_limit_holds_for_tenants_without_settings_of_their_own,
    a_cancelled_run_makes_room_under_the_limit,
    settings_that_make_no_sense_are_refused,
];
