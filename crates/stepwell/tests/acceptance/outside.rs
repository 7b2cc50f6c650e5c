//! Real timers, sockets and threads under virtual time, in plain tests and in async ones.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use stepwell::blocking::Engine;
use stepwell::ports::BoxFuture;
use stepwell::testing::{Gate, TestEngine};
use stepwell::{Code, Retry, RunStatus, StepError, Workflow, WorkflowRef};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;
use tokio::sync::Notify;

use crate::support::{
    DAY, HOUR, MINUTE, World, beside, builder, engine_with, refused, starts_secs, states, trail,
};

const MOMENT: Duration = Duration::from_millis(20);

/// Longer than a busy machine takes for what it should do at once.
const REAL_TIME_MAX: Duration = Duration::from_millis(500);

/// Runs a test as a plain one, and inside runtimes of one thread and of several.
fn everywhere(test: fn()) {
    test();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { test() });
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { test() });
}

/// A moment of real time.
#[expect(clippy::disallowed_methods, reason = "a step may use the timers of tokio")]
async fn real_moment() {
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(MOMENT, never).await.is_err());
}

/// Async, blocking and sleeping steps, one of which needs a second attempt.
fn mixed() -> Workflow<u64, u64> {
    let mut w = Workflow::define::<u64, ()>("mixed");
    let a = w.step("a").run(async |ctx| {
        tokio::task::yield_now().await;
        Ok(*ctx.input())
    });
    let b = w.step("b").after(a).run_blocking(|_, n| Ok(n * 2));
    let c = w.step("c").after(a).retry(Retry::fixed(1, MINUTE)).run(async |ctx, n| {
        if ctx.attempt() == 1 && n % 5 == 0 { Err(StepError::new("again")) } else { Ok(n * 3) }
    });
    let nap = w.sleep("nap", HOUR).after(a);
    let sum = w.step("sum").after((b, c, nap)).run(async |_, (b, c, ())| Ok(b + c));
    w.output(sum)
}

#[test]
fn a_hundred_runs_end_in_tests_of_every_kind() {
    // R6
    everywhere(|| {
        let (test, mixed) = engine_with((), mixed());
        let runs: Vec<_> = (0..100).map(|n| test.start(&mixed, n).now().unwrap()).collect();
        let begin = test.now();
        test.run_to_end();
        assert_eq!(test.now(), begin.after(HOUR));
        for (n, run) in (0..).zip(&runs) {
            assert_eq!(run.result().unwrap(), n * 5);
        }
    });
}

#[test]
fn a_hundred_runs_are_started_and_awaited_by_async_code() {
    // R6
    everywhere(|| {
        let (test, mixed) = engine_with((), mixed());
        let engine = test.as_async().clone();
        let runs = test.drive(async move {
            let start = |n| engine.start(&mixed, n).id(format!("run-{n}")).into_future();
            join_all((0..100).map(start)).await
        });
        test.advance(HOUR);
        let results = test.drive(join_all(
            runs.into_iter().map(|run| async move { run.unwrap().result().await.unwrap() }),
        ));
        assert_eq!(results.iter().sum::<u64>(), 5 * (0..100).sum::<u64>());
    });
}

#[test]
fn virtual_time_stands_still_while_a_step_waits_for_a_real_timer() {
    // R6
    everywhere(|| {
        let mut w = Workflow::define::<(), ()>("timer");
        let slow = w.step("slow").timeout(MINUTE).run(async |_| {
            real_moment().await;
            Ok(())
        });
        let nap = w.sleep("nap", HOUR).after(slow);
        w.step("last").after(nap).run(async |_, ()| Ok(()));
        let (test, timer) = engine_with((), w.no_output());
        for move_on in [(|test| test.run_to_end()) as fn(&TestEngine), |test| test.advance(DAY)] {
            let run = test.start(&timer, ()).now().unwrap();
            move_on(&test);
            assert_eq!(run.status().unwrap(), RunStatus::Completed);
            assert_eq!(starts_secs(&run, "last"), [HOUR.as_secs()], "not a moment was lost");
            assert_eq!(trail(&run, "slow"), "QUEUED STARTED COMPLETED", "and no time-out fired");
        }
        let run = test.start(&timer, ()).now().unwrap();
        test.run_until_idle();
        assert_eq!(states(&run), "slow COMPLETED, nap SLEEPING, last PENDING");
    });
}

/// A service of the outside world that takes its time, and says how long its caller's name is.
fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut name = [0_u8; 3];
            connection.read_exact(&mut name).unwrap();
            connection.write_all(&[3]).unwrap();
        }
    };
    #[expect(clippy::disallowed_methods, reason = "it stands for another program")]
    drop(std::thread::spawn(serve));
    address
}

#[test]
fn steps_talk_to_sockets_tasks_and_threads_while_virtual_time_stands_still() {
    // R6
    everywhere(|| {
        let mut w = Workflow::define::<SocketAddr, ()>("sockets");
        let asked = w.step("async").run(async |ctx| {
            let stream = std::net::TcpStream::connect(ctx.input())?;
            stream.set_nonblocking(true)?;
            let mut stream = tokio::net::TcpStream::from_std(stream)?;
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"Ada").await?;
            Ok(stream.read_u8().await?)
        });
        let spawned = w.step("spawned").after(asked).run(async |_, n| {
            #[expect(clippy::disallowed_methods, reason = "a step may use tasks of tokio")]
            let task = tokio::spawn(async move {
                real_moment().await;
                n + 1
            });
            Ok(task.await?)
        });
        let blocking = w.step("blocking").after(spawned).run_blocking(|ctx, n| {
            let mut stream = std::net::TcpStream::connect(ctx.input())?;
            stream.write_all(b"Bob")?;
            let mut answer = [0_u8];
            stream.read_exact(&mut answer)?;
            Ok(n + answer[0])
        });
        let (test, sockets) = engine_with((), w.output(blocking));
        let begin = test.now();
        let run = test.start(&sockets, service()).now().unwrap();
        assert_eq!(run.result().unwrap(), 7);
        assert_eq!(test.now(), begin);
    });
}

/// The engine itself, for steps that start other runs. A step gets it from the test, which takes
/// it back when all is done.
type Shared = Arc<Mutex<Option<Engine>>>;

#[test]
fn a_blocking_step_may_wait_for_another_run_and_an_async_one_may_not() {
    // R6, R7
    let shared = Shared::default();
    let mut child = Workflow::define::<u32, Shared>("child");
    let a = child.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = child.step("b").after(a).run_blocking(move |ctx, n| Ok(n + ctx.output(&a)?));
    let mut builder = builder().state(Arc::clone(&shared));
    let child: WorkflowRef<u32, u32> = builder.workflow(child.output(b));
    let mut w = Workflow::define::<u32, Shared>("parent");
    let handle = child.clone();
    let blocking = w.step("blocking").run_blocking(move |ctx| {
        let engine = ctx.state().lock().unwrap().clone().expect("it is set before the start");
        Ok(engine.run(&handle, *ctx.input()).wait()?)
    });
    w.step("async").after(blocking).run(move |ctx, n| {
        let handle = child.clone();
        async move {
            let engine = ctx.state().lock().unwrap().clone().expect("it is set before the start");
            Ok(engine.run(&handle, n).wait()?)
        }
    });
    let parent = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    *shared.lock().unwrap() = Some(Engine::clone(&test));
    let runs = [1, 2, 3].map(|n| test.start(&parent, n).now().unwrap());
    for (n, run) in (1..).zip(&runs) {
        refused(run.result(), Code::RunFailed, &["\"async\"", "SW0024"]);
        assert_eq!(run.output(&blocking).unwrap(), 2 * n);
    }
    *shared.lock().unwrap() = None;
}

#[test]
fn a_blocking_step_that_waits_when_its_engine_crashes_goes_no_further() {
    // R5, R14
    let workflows = || {
        let mut child = Workflow::define::<(), (World, Shared)>("child");
        child.step("child").run(async |ctx| {
            ctx.state().0.gate.pass().await;
            Ok(())
        });
        let mut w = Workflow::define::<(), (World, Shared)>("parent");
        w.step("parent").run_blocking(|ctx| {
            let (world, engine) = ctx.state();
            world.journal.write(format!("begun {}", ctx.attempt()));
            if ctx.attempt() == 1 {
                let _dropped = world.journal.write_on_drop("unwound");
                let engine = engine.lock().unwrap().clone().expect("it is set before the start");
                engine.start_by_name("child", &()).now()?.result()?;
                world.journal.write("never");
            }
            Ok(())
        });
        (child.no_output(), w.no_output())
    };
    let (world, shared) = (World::default(), Shared::default());
    let mut builder = builder().state((world.clone(), Arc::clone(&shared)));
    let (child, parent) = workflows();
    builder.workflow(child);
    let handle = builder.workflow(parent);
    let first = builder.start().unwrap();
    *shared.lock().unwrap() = Some(Engine::clone(&first));
    first.start(&handle, ()).id("p").now().unwrap();
    first.run_until_idle();
    *shared.lock().unwrap() = None;
    first.crash();
    let mut builder = beside(&first).state((world.clone(), shared));
    let (child, parent) = workflows();
    builder.workflow(child);
    builder.workflow(parent);
    let second = builder.start().unwrap();
    world.gate.let_pass(1);
    second.run_to_end();
    let run = second.run_handle("test", "p").unwrap();
    assert_eq!(trail(&run, "parent"), "QUEUED STARTED LEASE_LOST STARTED COMPLETED");
    assert_eq!(world.journal.count("never"), 0);
}

/// What a test is told, and in which file.
fn told(test: impl FnOnce()) -> (String, String) {
    static PLACES: Mutex<Vec<(std::thread::ThreadId, String)>> = Mutex::new(Vec::new());
    std::panic::set_hook(Box::new(|info| {
        let file = info.location().map_or(String::new(), |place| place.file().to_owned());
        PLACES.lock().unwrap().push((std::thread::current().id(), file));
    }));
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("it must fail");
    let message = panic.downcast_ref::<String>().expect("it says why").clone();
    let here = std::thread::current().id();
    let place = PLACES.lock().unwrap().iter().rfind(|(thread, _)| *thread == here).cloned();
    (message, place.map_or(String::new(), |(_, file)| file))
}

/// A workflow whose only step hangs in some way.
fn hanging(hang: fn() -> BoxFuture<()>) -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>("hanging");
    w.step("hangs").run(move |_| hang().map(Ok));
    w.no_output()
}

/// Playing to the end and waiting for the end of the run both tell of a step that never ends.
fn tells_of_the_step(hang: fn() -> BoxFuture<()>, words: &[&str]) {
    for plays in [true, false] {
        let mut builder = builder().real_time_max(REAL_TIME_MAX);
        let handle = builder.workflow(hanging(hang));
        let test = builder.start().unwrap();
        let (message, file) = told(|| {
            let run = test.start(&handle, ()).id("h").now().unwrap();
            if plays {
                test.run_to_end();
            }
            run.result().unwrap();
        });
        assert!(file.ends_with("outside.rs"), "the line of the test, not one of ours: {file}");
        for word in [&["step \"hangs\" of run \"h\" (workflow \"hanging\")"], words].concat() {
            assert!(message.contains(word), "{word:?} is missing in: {message}");
        }
    }
}

#[test]
fn a_step_that_never_ends_fails_the_test_by_its_name() {
    // R6
    let words = ["has not ended after 500 ms of real time", "real_time_max", "Gate"];
    let waits_outside = || async { Notify::new().notified().await }.boxed();
    tells_of_the_step(waits_outside, &words);
    let asks_again_and_again = || {
        let ask = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        ask.boxed()
    };
    tells_of_the_step(asks_again_and_again, &words);
    let waits_for_nothing = || std::future::pending().boxed();
    tells_of_the_step(waits_for_nothing, &["is being executed"]);
    let waits_for_the_test = || async { Gate::new().pass().await }.boxed();
    tells_of_the_step(waits_for_the_test, &["is being executed"]);
    let blocks_the_thread_of_all = || {
        let block = async {
            loop {
                std::thread::park();
            }
        };
        block.boxed()
    };
    tells_of_the_step(blocks_the_thread_of_all, &["has not returned for 500 ms of real time"]);
}

#[test]
fn a_blocking_step_that_never_ends_fails_the_test_by_its_name() {
    // R6
    let mut w = Workflow::define::<(), ()>("hanging");
    w.step("hangs").run_blocking(|_| {
        loop {
            std::thread::park();
        }
        #[expect(unreachable_code, reason = "it says what the step would give")]
        Ok(())
    });
    let mut builder = builder().real_time_max(REAL_TIME_MAX);
    let hanging = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    test.start(&hanging, ()).id("h").now().unwrap();
    test.advance(HOUR);
    let (message, file) = told(|| test.run_to_end());
    assert!(message.contains("step \"hangs\" of run \"h\""), "{message}");
    assert!(file.ends_with("outside.rs"), "{file}");
}

#[test]
fn a_step_that_waits_outside_for_too_long_is_left_to_its_time_out() {
    // R6, R11
    let mut w = Workflow::define::<(), ()>("late");
    w.step("late").timeout(HOUR).run(async |_| {
        Notify::new().notified().await;
        Ok(())
    });
    let mut builder = builder().real_time_max(REAL_TIME_MAX);
    let late = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    let begin = test.now();
    let run = test.start(&late, ()).now().unwrap();
    test.run_to_end();
    refused(run.result(), Code::RunFailed, &["time-out", "3600s"]);
    assert_eq!(test.now(), begin.after(HOUR));
}

#[test]
fn a_panic_in_driven_code_is_the_tests_own() {
    // R6
    let (test, _) = engine_with((), mixed());
    let (message, _) = told(|| test.drive(async { assert_eq!(1 + 1, 3, "arithmetic") }));
    assert!(message.contains("arithmetic"), "{message}");
    test.run_until_idle();
}

on_every_store![
    a_hundred_runs_end_in_tests_of_every_kind,
    a_hundred_runs_are_started_and_awaited_by_async_code,
    virtual_time_stands_still_while_a_step_waits_for_a_real_timer,
    steps_talk_to_sockets_tasks_and_threads_while_virtual_time_stands_still,
    a_blocking_step_may_wait_for_another_run_and_an_async_one_may_not,
    a_blocking_step_that_waits_when_its_engine_crashes_goes_no_further,
    a_step_that_waits_outside_for_too_long_is_left_to_its_time_out,
];

in_memory_only!("what is told does not depend on the store":
    a_step_that_never_ends_fails_the_test_by_its_name,
    a_blocking_step_that_never_ends_fails_the_test_by_its_name,
    a_panic_in_driven_code_is_the_tests_own,
);
