//! Suspects: tasks that may have killed their workers are executed alone, and neither they nor the
//! others starve.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::ports::Clock;
use stepwell::testing::{Gate, ManualClock, TestEngine, TestEngineBuilder};
use stepwell::{NewRun, RunStatus, TaskState, Timestamp, Workflow, WorkflowRef};

use crate::support::{HOUR, SECOND, beside, builder, dump, state};

/// How long every piece of work takes.
const SPAN: Duration = Duration::from_millis(100);

/// What goes on in the seats of a fleet.
#[derive(Default)]
struct Watched {
    n_plain: Vec<usize>,
    n_suspects: Vec<usize>,
    n_alone_at_once_max: usize,
    n_done: usize,
    plain_done_at: Option<Timestamp>,
}

/// The seat of one engine in a fleet.
#[derive(Clone)]
struct Seat {
    number: usize,
    clock: ManualClock,
    gate: Gate,
    watched: Arc<Mutex<Watched>>,
}

impl Seat {
    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap()
    }

    /// Works for a while, and sees to it that a suspect shares its seat with nobody.
    async fn work(&self, is_suspect: bool) {
        {
            let mut watched = self.watched();
            let n_beside = watched.n_suspects[self.number];
            assert_eq!(n_beside, 0, "a suspect is executed alone");
            if is_suspect {
                assert_eq!(watched.n_plain[self.number], 0, "a suspect is executed alone");
                watched.n_suspects[self.number] += 1;
                let n_at_once = watched.n_suspects.iter().sum();
                watched.n_alone_at_once_max = watched.n_alone_at_once_max.max(n_at_once);
            } else {
                watched.n_plain[self.number] += 1;
            }
        }
        self.clock.sleep(SPAN).await;
        let mut watched = self.watched();
        watched.n_done += 1;
        if is_suspect {
            watched.n_suspects[self.number] -= 1;
        } else {
            watched.n_plain[self.number] -= 1;
            watched.plain_done_at = Some(self.clock.now());
        }
    }
}

/// Engines on one store, and what their workflows are called.
struct Fleet {
    engines: Vec<TestEngine>,
    plain: WorkflowRef<(), ()>,
    n_suspects: usize,
    watched: Arc<Mutex<Watched>>,
    began_at: Timestamp,
}

fn plain() -> Workflow<(), (), Seat> {
    let mut w = Workflow::define::<(), Seat>("plain");
    w.step("work").run(async |ctx| {
        ctx.state().work(false).await;
        Ok(())
    });
    w.no_output()
}

/// Its first execution never ends: its worker dies.
fn suspicious() -> Workflow<(), (), Seat> {
    let mut w = Workflow::define::<(), Seat>("suspicious");
    w.step("work").run(async |ctx| {
        if ctx.attempt() == 1 {
            ctx.state().gate.pass().await;
        }
        ctx.state().work(true).await;
        Ok(())
    });
    w.no_output()
}

fn sized(builder: TestEngineBuilder<()>, slots: usize) -> TestEngineBuilder<()> {
    builder.configure(|config| {
        (config.slots, config.crash_limit) = (slots, 2);
        (config.lease, config.heartbeat_interval) = (3 * SECOND, SECOND);
        (config.leader_ttl, config.timer_interval) = (2 * SECOND, SECOND);
        config.poll_interval = SECOND;
    })
}

impl Fleet {
    /// So many workers of ten slots each, beside one that has just died with so many tasks.
    fn new(n_workers: usize, n_suspects: usize) -> Self {
        let watched = Arc::<Mutex<Watched>>::default();
        let clock = ManualClock::new();
        let gate = Gate::new();
        let seat = |number: usize, clock: ManualClock| {
            let mut seats = watched.lock().unwrap();
            seats.n_plain.push(0);
            seats.n_suspects.push(0);
            Seat { number, clock, gate: gate.clone(), watched: Arc::clone(&watched) }
        };
        let mut builder = sized(builder(), n_suspects.max(1)).state(seat(0, clock));
        let handle = builder.workflow(suspicious());
        let dies = builder.start().unwrap();
        let clock = dies.clock().clone();
        start(&dies, &handle, n_suspects);
        dies.run_until_idle();
        assert_eq!(dies.as_async().n_running(), n_suspects, "all are held by the one that dies");
        dies.crash();
        let mut engines = Vec::new();
        let mut plain_handle = None;
        for number in 1..=n_workers {
            let mut builder = sized(beside(&dies), 10).state(seat(number, clock.clone()));
            builder.workflow(suspicious());
            plain_handle = Some(builder.workflow(plain()));
            engines.push(builder.start().unwrap());
        }
        let began_at = dies.now();
        let plain = plain_handle.unwrap();
        Self { engines, plain, n_suspects, watched, began_at }
    }

    /// Plays all to its end; says how long the plain tasks took.
    fn play(&self, n_plain: usize) -> Duration {
        let engine = &self.engines[0];
        start(engine, &self.plain, n_plain);
        // Not `run_to_end`, which looks at all runs whenever one of them has changed.
        while self.watched.lock().unwrap().n_done < self.n_suspects + n_plain {
            assert!(engine.now().since(self.began_at) < HOUR, "all end");
            engine.advance(10 * SECOND);
        }
        for log in dump(engine).runs.into_values() {
            assert_eq!(log.run.status, RunStatus::Completed, "{:?}", log.run.failure);
        }
        self.watched.lock().unwrap().plain_done_at.unwrap().since(self.began_at)
    }
}

fn start(engine: &TestEngine, handle: &WorkflowRef<(), ()>, n: usize) {
    for run in engine.start_many(handle, (0..n).map(|_| NewRun::new(()))).unwrap() {
        run.unwrap();
    }
}

/// Suspects and plain tasks all end, suspects alone, and the plain ones take at most twice as long
/// as without.
fn all_end(n_workers: usize, n_suspects: usize, n_plain: usize) {
    let without = Fleet::new(n_workers, 0).play(n_plain);
    let fleet = Fleet::new(n_workers, n_suspects);
    let beside = fleet.play(n_plain);
    assert!(beside <= 2 * without, "{beside:?} beside suspects, {without:?} without");
    let watched = fleet.watched.lock().unwrap();
    assert_eq!(watched.n_done, n_suspects + n_plain, "each is executed once more, and once");
    assert_eq!(watched.n_alone_at_once_max, 1, "one worker in four at a time, but one");
}

#[test]
fn five_hundred_suspects_and_ten_thousand_others_all_end_and_the_others_keep_half_their_speed() {
    // R14
    all_end(2, 500, 10_000);
}

#[test]
fn neither_suspects_nor_others_starve() {
    // R14
    all_end(2, 20, 400);
}

#[test]
fn neither_suspects_nor_others_starve_on_a_single_worker() {
    // R14
    all_end(1, 20, 200);
}

/// An engine that knows an innocent, a poison and something quick, with a crash limit of 2.
struct Scene {
    gate: Gate,
    test: TestEngine,
    handles: [WorkflowRef<(), ()>; 3],
}

/// A step that waits at the gate, one that never ends, and one that ends at once.
fn cast() -> [Workflow<(), (), Gate>; 3] {
    let mut gated = Workflow::define::<(), Gate>("gated");
    gated.step("work").run(async |ctx| {
        ctx.state().pass().await;
        Ok(())
    });
    let mut poison = Workflow::define::<(), Gate>("poison");
    poison.step("work").run(async |_| {
        std::future::pending::<()>().await;
        Ok(())
    });
    let mut quick = Workflow::define::<(), Gate>("quick");
    quick.step("work").run(async |_| Ok(()));
    [gated.no_output(), poison.no_output(), quick.no_output()]
}

impl Scene {
    fn new() -> Self {
        let gate = Gate::new();
        Self::on(builder(), gate)
    }

    fn on(builder: TestEngineBuilder<()>, gate: Gate) -> Self {
        let builder = builder.configure(|config| config.crash_limit = 2);
        let mut builder = builder.state(gate.clone());
        let handles = cast().map(|workflow| builder.workflow(workflow));
        Self { gate, test: builder.start().unwrap(), handles }
    }

    /// The engine dies, and another one takes its place, which finds that after a while.
    fn crash(&mut self) {
        self.test.crash();
        *self = Self::on(beside(&self.test), self.gate.clone());
    }

    fn start(&self, handle: usize, id: &str) {
        self.test.start(&self.handles[handle], ()).id(id).now().unwrap();
        self.test.run_until_idle();
    }

    fn state(&self, id: &str) -> TaskState {
        state(&self.test.run_handle("test", id).unwrap(), "work")
    }

    fn losses(&self, id: &str) -> u32 {
        self.test.run_handle("test", id).unwrap().tasks().unwrap()[0].losses
    }
}

const GATED: usize = 0;
const POISON: usize = 1;
const QUICK: usize = 2;

#[test]
fn a_fresh_poison_costs_an_innocent_suspect_nothing() {
    // R14, FA10
    let mut scene = Scene::new();
    for id in ["innocent", "other"] {
        scene.start(GATED, id);
    }
    scene.crash();
    // It is claimed before the others come back, and keeps its worker.
    scene.start(POISON, "poison");
    scene.test.advance(3 * HOUR);
    assert_eq!(scene.losses("innocent"), 1, "a suspect");
    assert_eq!(
        (scene.state("poison"), scene.state("innocent")),
        (TaskState::Running, TaskState::Queued)
    );
    scene.crash();
    scene.gate.let_pass(2);
    scene.test.advance(3 * HOUR);
    // The poison was alone, so it is a suspect as well by now, and takes another worker down.
    assert_eq!(scene.losses("poison"), 1);
    scene.test.advance(3 * HOUR);
    assert_eq!(scene.state("poison"), TaskState::Running);
    scene.crash();
    scene.test.advance(3 * HOUR);
    assert_eq!(scene.state("poison"), TaskState::Failed);
    for id in ["innocent", "other"] {
        assert_eq!((scene.state(id), scene.losses(id)), (TaskState::Completed, 1));
    }
}

#[test]
fn a_worker_whose_hands_do_not_empty_goes_on_and_another_takes_the_suspect() {
    // R14
    let mut scene = Scene::new();
    for id in ["innocent", "other"] {
        scene.start(GATED, id);
    }
    scene.crash();
    scene.start(GATED, "long");
    scene.test.advance(3 * HOUR);
    assert_eq!(
        (scene.state("long"), scene.state("innocent")),
        (TaskState::Running, TaskState::Queued)
    );
    // Within ten seconds at most it serves others again, and it does not stop trying.
    scene.start(QUICK, "quick");
    scene.test.advance(10 * SECOND);
    assert_eq!(scene.state("quick"), TaskState::Completed);
    assert_eq!(scene.state("innocent"), TaskState::Queued);
    let second = Scene::on(beside(&scene.test), scene.gate.clone());
    second.test.advance(30 * SECOND);
    assert_eq!(scene.test.as_async().n_running() + second.test.as_async().n_running(), 2);
    let states = [scene.state("innocent"), scene.state("other")];
    assert!(states.contains(&TaskState::Running) && states.contains(&TaskState::Queued));
    scene.gate.let_pass(3);
    scene.test.run_to_end();
    for id in ["innocent", "other", "long"] {
        assert_eq!(scene.state(id), TaskState::Completed);
    }
}

#[test]
fn a_function_that_came_further_shares_its_worker_again() {
    // R14
    let gate = Gate::new();
    let with = |builder: TestEngineBuilder<()>| {
        let builder = builder.configure(|config| config.crash_limit = 2);
        let mut builder = builder.state(gate.clone());
        let long = builder.function("long", async |ctx: stepwell::Ctx<(), Gate>| {
            ctx.state().pass().await;
            ctx.step("first", async || Ok(())).await?;
            ctx.state().pass().await;
            Ok(())
        });
        let [.., quick] = cast();
        let quick = builder.workflow(quick);
        (builder.start().unwrap(), long, quick)
    };
    let (dies, long, _) = with(builder());
    for id in ["one", "two"] {
        dies.start(&long, ()).id(id).now().unwrap();
    }
    dies.run_until_idle();
    dies.crash();
    let (test, _, quick) = with(beside(&dies));
    test.advance(3 * HOUR);
    assert_eq!(test.as_async().n_running(), 1, "one suspect at a time");
    let beside = test.start(&quick, ()).id("quick").now().unwrap();
    test.advance(HOUR);
    assert_eq!(beside.status().unwrap(), RunStatus::Running, "nothing beside it");
    gate.let_pass(1);
    test.advance(SECOND);
    assert_eq!(beside.status().unwrap(), RunStatus::Completed);
    assert_eq!(test.as_async().n_running(), 1, "it goes on");
    gate.let_pass(3);
    test.run_to_end();
    for id in ["one", "two"] {
        let run = test.run_handle("test", id).unwrap();
        assert_eq!(run.status().unwrap(), RunStatus::Completed);
    }
}

on_every_store![
    neither_suspects_nor_others_starve,
    neither_suspects_nor_others_starve_on_a_single_worker,
    a_fresh_poison_costs_an_innocent_suspect_nothing,
    a_worker_whose_hands_do_not_empty_goes_on_and_another_takes_the_suspect,
    a_function_that_came_further_shares_its_worker_again,
];

in_memory_only![
    "ten thousand runs take minutes on the others, which play the same with fewer":
    five_hundred_suspects_and_ten_thousand_others_all_end_and_the_others_keep_half_their_speed,
];
