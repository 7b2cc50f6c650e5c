//! The code of the functions. It writes down what its steps do and what it hears of.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use stepwell::{
    Ctx, EngineBuilder, First, Result, Retry, Signalled, StepError, StepErrorKind, Workflow,
    blocking,
};

use super::effect::{EffectMark, EffectRecorder, output_of};
use super::{BLOCKING, ERRORS, FAN, N_ROUNDS, ROUNDS, ROW, name};
use crate::chance::mix;
use crate::expected::input_of;
use crate::plan::StepPlan;
use crate::real_time::pause;
use crate::workflow::State;

/// Short enough to be waited for in place.
const SHORT: Duration = Duration::from_millis(150);
/// Long enough for a function to be suspended.
const LONG: Duration = Duration::from_millis(1_300);
/// Sometimes longer than it takes a signal to come.
const PATIENCE: Duration = Duration::from_millis(1_100);

/// Registers all functions.
pub fn register(builder: &mut EngineBuilder<State>) {
    builder.function(&name(ROW), in_a_row);
    builder.function(&name(FAN), side_by_side);
    builder.function(&name(ROUNDS), in_rounds);
    let errors = Workflow::function(&name(ERRORS), with_errors);
    builder.workflow(errors.retry(Retry::fixed(3, SHORT)));
    builder.function_blocking(&name(BLOCKING), without_async);
}

/// The input of the next round.
#[must_use]
pub fn next_input(input: u64) -> u64 {
    mix([input, 1])
}

/// An execution of a function, and what it has heard of.
struct Telling<'c> {
    ctx: &'c Ctx<u64, State>,
    round: u32,
    heard: Mutex<Vec<(String, u64)>>,
}

impl<'c> Telling<'c> {
    fn new(ctx: &'c Ctx<u64, State>) -> Result<Self> {
        let first = input_of(ctx.run_id()).ok_or_else(|| StepError::permanent("a strange id"))?;
        let inputs = std::iter::successors(Some(first), |input| Some(next_input(*input)));
        let mut rounds = (0..N_ROUNDS).zip(inputs);
        let round = rounds.find(|(_, input)| input == ctx.input()).map(|(round, _)| round);
        let round = round.ok_or_else(|| StepError::permanent("the input of no round"))?;
        let told = Self { ctx, round, heard: Mutex::default() };
        told.note("", EffectMark::Entered)?;
        Ok(told)
    }

    fn effects(&self) -> &EffectRecorder {
        self.ctx.state().effects()
    }

    fn note(&self, key: &str, mark: EffectMark) -> Result<()> {
        let of = (self.ctx.run_id(), self.ctx.attempt(), self.round);
        Ok(self.effects().note(of, key, mark)?)
    }

    /// Whether the code of a step fails now: the first so many times.
    fn fails(&self, key: &str, n_failures: u32) -> Result<()> {
        let what = format!("{}-{key}", self.round).replace('/', "_");
        if self.effects().is_among_first(self.ctx.run_id(), &what, n_failures)? {
            self.note(key, EffectMark::Failed)?;
            return Err(StepError::new("planned"));
        }
        Ok(())
    }

    /// The code of a step up to its end.
    fn give(&self, key: &str, n_failures: u32) -> Result<u64> {
        self.fails(key, n_failures)?;
        let value = self.effects().fresh();
        self.note(key, EffectMark::Gave(value))?;
        Ok(value)
    }

    /// The code of a step.
    async fn execute(&self, key: &str, span: Duration, n_failures: u32) -> Result<u64> {
        self.note(key, EffectMark::Began)?;
        pause(span).await;
        self.give(key, n_failures)
    }

    /// The function hears of a value.
    fn hear(&self, key: &str, value: Option<u64>) -> Result<()> {
        match value {
            Some(value) => {
                self.note(key, EffectMark::Heard(value))?;
                self.heard.lock().expect("no holder panics").push((key.to_owned(), value));
            }
            None => self.note(key, EffectMark::HeardOfNone)?,
        }
        Ok(())
    }

    /// A step in the scope of a context, which is part of its key.
    async fn step(
        &self,
        ctx: &Ctx<u64, State>,
        (scope, name): (&str, &str),
        span: Duration,
    ) -> Result<u64> {
        let key = format!("{scope}{name}");
        let value = ctx.step(name, async || self.execute(&key, span, 0).await).await?;
        self.hear(&key, Some(value))?;
        Ok(value)
    }

    async fn plain(&self, name: &str, millis: u64) -> Result<u64> {
        self.step(self.ctx, ("", name), Duration::from_millis(millis)).await
    }

    /// A step that fails at first.
    async fn flaky(&self, name: &str, n_failures: u32, delay: Duration) -> Result<u64> {
        let code = async || self.execute(name, Duration::ZERO, n_failures).await;
        let retry = Retry::fixed(n_failures + 1, delay);
        let value = self.ctx.step(name, code).retry(retry).await?;
        self.hear(name, Some(value))?;
        Ok(value)
    }

    async fn wait(&self, place: usize) -> Result<()> {
        let signal = StepPlan::signal_name(place);
        let name = StepPlan::wait_name(place);
        let value = self.ctx.wait::<u64>(&name, &signal).await?;
        self.hear(&name, Some(value))
    }

    async fn wait_a_while(&self, place: usize) -> Result<()> {
        let (signal, name) = (StepPlan::signal_name(place), StepPlan::wait_name(place));
        let waited = self.ctx.wait::<u64>(&name, &signal).timeout(PATIENCE).await?;
        self.hear(&name, waited.received())
    }

    fn end(&self) -> Result<u64> {
        let mut heard = self.heard.lock().expect("no holder panics").clone();
        heard.sort();
        let output = output_of(*self.ctx.input(), &heard);
        self.note("", EffectMark::Ended { heard, output })?;
        Ok(output)
    }
}

async fn in_a_row(ctx: Ctx<u64, State>) -> Result<u64> {
    let told = Telling::new(&ctx)?;
    for n in 0..4 {
        told.plain(&format!("row[{n}]"), 15 * n).await?;
        told.flaky(&format!("flaky[{n}]"), u32::from(n % 2 == 1), SHORT / 3).await?;
    }
    ctx.sleep("short", SHORT).await?;
    told.plain("after-short", 30).await?;
    ctx.sleep("long", LONG).await?;
    // It is suspended between two tries.
    told.flaky("slow", 1, LONG).await?;
    told.plain("last", 5).await?;
    told.end()
}

async fn side_by_side(ctx: Ctx<u64, State>) -> Result<u64> {
    let told = Telling::new(&ctx)?;
    let names: Vec<String> = (0..6).map(|n| format!("fan[{n}]")).collect();
    let steps = names.iter().zip(0..).map(|(name, n)| told.plain(name, 20 * (n % 3)));
    for outcome in join_all(steps).await {
        outcome?;
    }
    let branch = async {
        told.plain("branch", 10).await?;
        ctx.sleep("in-branch", LONG).await?;
        told.plain("branch-end", 10).await
    };
    let (waited, branched) = futures_util::join!(told.wait(0), branch);
    waited?;
    branched?;
    let slow = ctx.step("racer", async || told.execute("racer", SHORT, 0).await);
    match ctx.race((slow, ctx.sleep("patience", SHORT))).await? {
        First::A(value) => told.hear("racer", Some(value))?,
        First::B(()) => told.hear("racer-late", None)?,
    }
    let map = ctx.map("map").over(0..6_u64).concurrency(3).run(async |ctx, item| {
        let scope = format!("map[{item}]/");
        told.step(&ctx, (&scope, "one"), Duration::from_millis(7 * item)).await?;
        told.step(&ctx, (&scope, "two"), Duration::ZERO).await
    });
    map.await?;
    let both = futures_util::join!(told.wait_a_while(1), told.plain("beside", 60));
    both.0?;
    both.1?;
    told.wait_a_while(2).await?;
    told.end()
}

async fn in_rounds(ctx: Ctx<u64, State>) -> Result<u64> {
    let told = Telling::new(&ctx)?;
    told.plain("first", 20).await?;
    if told.round == 0 {
        told.wait(0).await?;
    }
    let both = futures_util::join!(told.plain("left", 25), told.flaky("right", 1, SHORT));
    both.0?;
    both.1?;
    ctx.sleep("pause", if told.round == 1 { LONG } else { SHORT }).await?;
    told.plain("second", 0).await?;
    if told.round + 1 < N_ROUNDS {
        return ctx.continue_with(next_input(*ctx.input()));
    }
    told.end()
}

async fn with_errors(ctx: Ctx<u64, State>) -> Result<u64> {
    let told = Telling::new(&ctx)?;
    told.plain("before", 10).await?;
    let fails = async || {
        told.note("fails", EffectMark::Began)?;
        told.note("fails", EffectMark::Failed)?;
        Err::<u64, _>(StepError::permanent("planned"))
    };
    match ctx.step("fails", fails).await {
        Err(error) if error.kind() == StepErrorKind::StepFailed => told.hear("fails", None)?,
        other => drop(other?),
    }
    told.plain("between", 10).await?;
    // The first time it fails for good, and its function with it; both are tried again.
    let once = ctx.step("once", async || told.execute("once", Duration::ZERO, 1).await).await;
    match once {
        Ok(value) => told.hear("once", Some(value))?,
        Err(error) => {
            told.note("", EffectMark::GaveUp)?;
            return Err(error);
        }
    }
    ctx.sleep("long", LONG).await?;
    told.plain("after", 10).await?;
    told.end()
}

#[expect(clippy::disallowed_methods, reason = "a blocking step takes real time")]
fn without_async(ctx: blocking::Ctx<u64, State>) -> Result<u64> {
    let told = Telling::new(&ctx)?;
    let execute = |key: &str, span: Duration, n_failures: u32| {
        told.note(key, EffectMark::Began)?;
        std::thread::sleep(span);
        told.give(key, n_failures)
    };
    let step = |ctx: &blocking::Ctx<u64, State>, scope: &str, name: &str| -> Result<u64> {
        let key = format!("{scope}{name}");
        let value = ctx.step(name, || execute(&key, Duration::from_millis(10), 0)).wait()?;
        told.hear(&key, Some(value))?;
        Ok(value)
    };
    step(&ctx, "", "first")?;
    ctx.join((
        ctx.branch("left", |ctx| {
            step(&ctx, "left/", "one")?;
            ctx.sleep("nap", SHORT).wait()?;
            step(&ctx, "left/", "two")
        }),
        ctx.branch("right", |ctx| {
            step(&ctx, "right/", "one")?;
            ctx.sleep("nap", LONG).wait()?;
            step(&ctx, "right/", "two")
        }),
    ))?;
    let flaky = ctx.step("flaky", || execute("flaky", Duration::ZERO, 1));
    let value = flaky.retry(Retry::fixed(2, SHORT)).wait()?;
    told.hear("flaky", Some(value))?;
    let (wait, signal) = (StepPlan::wait_name(0), StepPlan::signal_name(0));
    let waited = ctx.wait::<u64>(&wait, &signal).timeout(LONG).wait()?;
    told.hear(&wait, Signalled::received(waited))?;
    step(&ctx, "", "last")?;
    told.end()
}
