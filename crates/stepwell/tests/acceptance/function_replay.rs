//! Replays of functions: whatever a function is made of and wherever it is cut off, it hears of the
//! same things in the same order when it runs again.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use stepwell::testing::{Gate, TestEngine};
use stepwell::{Ctx, IntoWorkflow, Result, Retry, RunStatus, Signalled, StepError, Workflow};

use crate::support::{HOUR, World, beside, builder};

/// What a function of these tests does.
#[derive(Clone, Debug)]
enum Program {
    Step(u64),
    Flaky(u64),
    Fails,
    /// Sleeps for so many tenths of a second.
    Sleep(u64),
    Wait,
    Sequence(Vec<Program>),
    /// Polls all parts whenever one was woken, or only that one.
    Join(Vec<(u64, Program)>, bool),
    Race(Vec<(u64, Program)>),
    Map(Vec<Program>),
}

/// Makes up programs.
struct Chance(u64);

impl Chance {
    fn pick(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }

    fn program(&mut self, depth: u32) -> Program {
        match self.pick(if depth == 0 { 7 } else { 13 }) {
            0 | 1 => Program::Step(self.pick(1_000_000)),
            2 => Program::Flaky(self.pick(1_000_000)),
            3 => Program::Fails,
            4 | 5 => Program::Sleep(self.pick(40)),
            6 => Program::Wait,
            7 | 8 => Program::Sequence(self.parts(depth)),
            9 | 10 => {
                let parts = self.parts(depth);
                Program::Join(self.named(parts), self.pick(2) == 0)
            }
            11 => {
                let parts = self.parts(depth);
                Program::Race(self.named(parts))
            }
            _ => Program::Map(self.parts(depth)),
        }
    }

    fn parts(&mut self, depth: u32) -> Vec<Program> {
        (0..2 + self.pick(2)).map(|_| self.program(depth - 1)).collect()
    }

    fn named(&mut self, parts: Vec<Program>) -> Vec<(u64, Program)> {
        parts.into_iter().map(|part| (self.pick(u64::MAX), part)).collect()
    }
}

/// What executions of a function have heard, and how often flaky steps were tried.
#[derive(Default)]
struct Heard {
    executions: Mutex<Vec<Vec<String>>>,
    tries: Mutex<BTreeMap<u64, u32>>,
    n_values: Mutex<u64>,
}

impl Heard {
    fn hear(&self, execution: usize, what: &str) {
        self.executions.lock().unwrap()[execution].push(what.to_owned());
    }

    /// A value that no other execution of any step gives.
    fn fresh(&self) -> u64 {
        let mut n_values = self.n_values.lock().unwrap();
        *n_values += 1;
        *n_values
    }
}

type Made = Arc<(Program, Heard, Gate)>;
type Boxed = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

fn interpret(ctx: Ctx<(), Made>, execution: usize, program: Program) -> Boxed {
    Box::pin(async move {
        let heard = &ctx.state().1;
        let value = match program {
            Program::Step(n) => {
                ctx.step("step", async || Ok(format!("{n}@{}", heard.fresh()))).await?
            }
            Program::Flaky(n) => {
                let flaky = ctx.step("flaky", async || {
                    let mut tries = heard.tries.lock().unwrap();
                    let tried = tries.entry(n).or_default();
                    *tried += 1;
                    match *tried % 3 {
                        0 => Ok(format!("f{n}@{}", heard.fresh())),
                        _ => Err(StepError::new("again")),
                    }
                });
                flaky.retry(Retry::exponential(9).initial(Duration::from_millis(700))).await?
            }
            Program::Fails => {
                let fails = ctx.step("fails", async || Err::<u32, _>(StepError::permanent("no")));
                fails.await.map_or_else(|error| format!("!{error}"), |n| n.to_string())
            }
            Program::Sleep(tenths) => {
                ctx.sleep("sleep", Duration::from_millis(100 * tenths)).await?;
                format!("z{}", ctx.now())
            }
            Program::Wait => {
                let wait = ctx.wait::<u64>("wait", "signal").timeout(Duration::from_secs(20));
                match wait.await? {
                    Signalled::Received(n) => format!("s{n}"),
                    Signalled::TimedOut => "timed out".to_owned(),
                }
            }
            Program::Sequence(parts) => {
                for part in parts {
                    interpret(ctx.clone(), execution, part).await?;
                }
                return Ok("in a row".to_owned());
            }
            Program::Join(parts, is_all) => join(&ctx, execution, parts, is_all).await?,
            Program::Race(parts) => ctx.race(enter(&ctx, execution, parts)).await?,
            Program::Map(parts) => {
                let work = async |ctx, part| interpret(ctx, execution, part).await;
                let parts = ctx.map("map").over(parts).concurrency(2).run(work);
                parts.await?.join("|")
            }
        };
        ctx.state().1.hear(execution, &value);
        Ok(value)
    })
}

async fn join(
    ctx: &Ctx<(), Made>,
    execution: usize,
    parts: Vec<(u64, Program)>,
    is_all: bool,
) -> Result<String> {
    let parts = enter(ctx, execution, parts);
    if is_all {
        let all: Result<Vec<String>> = join_all(parts).await.into_iter().collect();
        return Ok(all?.join("|"));
    }
    let mut all: FuturesUnordered<Boxed> = parts.into_iter().collect();
    let mut given = Vec::new();
    while let Some(value) = all.next().await {
        given.push(value?);
    }
    Ok(given.join("|"))
}

/// Branches that go at their own pace and use the same names.
fn enter(ctx: &Ctx<(), Made>, execution: usize, parts: Vec<(u64, Program)>) -> Vec<Boxed> {
    let branch = |(id, part)| -> Boxed {
        let ctx = ctx.clone();
        Box::pin(async move {
            ctx.step(("enter", id), async || Ok(())).await?;
            interpret(ctx, execution, part).await
        })
    };
    parts.into_iter().map(branch).collect()
}

async fn by_chance(ctx: Ctx<(), Made>) -> Result<String> {
    let execution = {
        let mut executions = ctx.state().1.executions.lock().unwrap();
        executions.push(Vec::new());
        executions.len() - 1
    };
    begin(&ctx, &ctx.state().2).await?;
    let program = ctx.state().0.clone();
    interpret(ctx, execution, program).await
}

/// Lets a test hold each execution at its beginning, and go on turn by turn from there.
pub(crate) async fn begin<S>(ctx: &Ctx<(), S>, gate: &Gate) -> Result<()> {
    gate.pass().await;
    // The gate woke the function from outside, so what is called now is called by no other name.
    ctx.step("begin", async || Ok(())).await
}

fn workflow() -> Workflow<(), String, Made> {
    Workflow::function("by-chance", by_chance).into_workflow()
}

/// Runs a program, crashing after so many cycles, over and over until it gets through.
fn check(seed: u64, n_cycles: u64, crashes_max: u32) {
    let program = Chance(seed * 77 + 5).program(4);
    let made: Made = Arc::new((program, Heard::default(), Gate::new()));
    let mut first = builder().state(Arc::clone(&made));
    let handle = first.workflow(workflow());
    let mut test = first.start().unwrap();
    test.start(&handle, ()).id("r").now().unwrap();
    for n in 0..2_u64 {
        test.run_handle("test", "r").unwrap().signal("signal", &n).wait().unwrap();
    }
    for n_crash in 0..crashes_max {
        made.2.let_pass(1);
        for _ in 0..n_cycles + 13 * u64::from(n_crash) {
            test.run_cycle();
        }
        test = crashed(&test, &made);
    }
    made.2.let_pass(10_000);
    test.run_to_end();
    let run = test.run_handle("test", "r").unwrap();
    let status = run.status().unwrap();
    let heard = made.1.executions.lock().unwrap().clone();
    assert_eq!(status, RunStatus::Completed, "seed {seed}: {:?} {heard:?}", made.0);
    // One that was cut off early may not have come as far as the one before it.
    let mut most: &[String] = &[];
    for then in &heard {
        let n = most.len().min(then.len());
        assert_eq!(
            most[..n],
            then[..n],
            "seed {seed}, crash after {n_cycles} cycles: {:?}",
            made.0
        );
        most = if then.len() > most.len() { then } else { most };
    }
}

/// The engine crashes, and another goes on once its lease is over.
fn crashed(test: &TestEngine, made: &Made) -> TestEngine {
    let mut next = beside(test).state(Arc::clone(made));
    next.workflow(workflow());
    let next = next.start().unwrap();
    test.crash();
    next.advance(3 * HOUR);
    next
}

#[test]
fn a_replay_equals_the_original_whatever_the_program_and_wherever_it_was_cut_off() {
    // D2, D3
    for seed in 0..250 {
        check(seed, 0, 0);
        check(seed, 5 + seed % 60, 2);
    }
}

#[test]
fn a_replay_equals_the_original_on_this_store() {
    // D2, D3
    for seed in 1_000..1_010 {
        check(seed, 10 + seed % 40, 1);
    }
}

#[test]
fn a_loser_does_not_begin_again_when_the_function_is_replayed() {
    let world = World::default();
    let function = Workflow::function("race", async |ctx: Ctx<(), World>| {
        let slow = ctx.step("slow", async || {
            ctx.state().journal.write("slow");
            std::future::pending::<Result<u32>>().await
        });
        let quick = ctx.step("quick", async || Ok(1));
        let won = ctx.race(vec![slow, quick]).await?;
        ctx.sleep("pause", HOUR).await?;
        Ok(won)
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 1);
    assert_eq!(world.journal.lines(), ["slow"]);
}

#[test]
fn branches_that_talk_to_each_other_come_to_rest_before_the_next_thing_is_heard() {
    let world = World::default();
    let function = Workflow::function("talk", async |ctx: Ctx<(), World>| {
        let (tell, told) = tokio::sync::oneshot::channel();
        let next = async |who: &'static str| {
            ctx.step("next", async || {
                ctx.state().journal.write(who);
                Ok(who.to_owned())
            })
            .await
        };
        let listener = async {
            told.await?;
            next("listener").await
        };
        let teller = async {
            ctx.step("a", async || Ok(())).await?;
            let _ = tell.send(());
            Ok::<_, StepError>(())
        };
        let other = async {
            ctx.step("c", async || Ok(())).await?;
            next("other").await
        };
        let (listener, teller, other) = futures_util::future::join3(listener, teller, other).await;
        teller?;
        ctx.sleep("pause", HOUR).await?;
        Ok((listener?, other?))
    });
    let (test, handle) = world.engine(function.into_workflow());
    let run = test.start(&handle, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), ("listener".to_owned(), "other".to_owned()));
    assert_eq!(world.journal.lines(), ["listener", "other"]);
}

on_every_store! {
    a_loser_does_not_begin_again_when_the_function_is_replayed,
    branches_that_talk_to_each_other_come_to_rest_before_the_next_thing_is_heard,
    a_replay_equals_the_original_on_this_store,
}

in_memory_only! {
    "hundreds of programs are enough in memory":
    a_replay_equals_the_original_whatever_the_program_and_wherever_it_was_cut_off,
}
