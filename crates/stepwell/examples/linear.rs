//! A linear workflow in a file, carried on by one process after the other:
//! `cargo run -p stepwell --example linear`.
//!
//! All steps are stored when a run starts. A worker claims a step, then executes it; the step is
//! done, waits for a signal, asks to be tried again later, or is dead. What comes next is read
//! from the file, so a process without the workflow's code moves the run on as well when a signal
//! or a timer comes.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::{
    Ctx, Engine, EngineBuilder, Error, Result as StepResult, Resumed, Retry, Run, RunStatus,
    SqliteStore, StepError, TaskState, Wait, Workflow,
};

const FORTNIGHT: Duration = Duration::from_hours(14 * 24);
const TENANT: &str = "shop";

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
}

#[derive(Serialize, Deserialize)]
struct Payment {
    cents: u64,
}

/// What the steps share: the name of the process they are executed in.
type Process = &'static str;

fn reserve(ctx: &Ctx<Order, Process>) -> StepResult<()> {
    match (ctx.input().item.as_str(), ctx.attempt()) {
        ("unicorn", _) => Err(StepError::permanent("there are no unicorns")),
        (_, 1) => {
            eprintln!("{}: reserve asks to be tried again in 50 ms", ctx.state());
            Err(StepError::retry_after(Duration::from_millis(50), "the warehouse is busy"))
        }
        _ => {
            eprintln!("{}: reserve is done", ctx.state());
            Ok(())
        }
    }
}

/// The payment, or the wait for it. The step hands either up by `?`.
fn payment(ctx: &Ctx<Order, Process>) -> StepResult<Payment> {
    match ctx.resumed()? {
        Resumed::Not => {
            eprintln!("{}: invoice waits for `paid`, a fortnight at most", ctx.state());
            Err(Wait::on("paid").timeout(FORTNIGHT).into())
        }
        Resumed::Signal(payment) => Ok(payment),
        Resumed::TimedOut => Err(StepError::permanent("nobody paid")),
    }
}

fn order() -> Workflow<Order, String, Process> {
    let mut w = Workflow::define::<Order, Process>("order");
    w.chain("reserve").retry(Retry::exponential(3)).run(async |ctx| reserve(&ctx));
    let invoice = w.chain("invoice").run(async |ctx| {
        let Payment { cents } = payment(&ctx)?;
        eprintln!("{}: invoice is executed again and gets {cents} cents", ctx.state());
        Ok(cents)
    });
    let collected = w.wait::<String>("collected", "collected").after(invoice);
    let trial = w.sleep("trial", Duration::from_millis(100)).after(collected);
    let close = w.chain("close").after(trial).run(async move |ctx| {
        let (cents, by) = (ctx.output(&invoice).await?, ctx.output(&collected).await?);
        let (cents, by) = (cents.unwrap_or_default(), by.unwrap_or_default());
        eprintln!("{}: close is executed", ctx.state());
        Ok(format!("a {} for {cents} cents, collected by {by}", ctx.input().item))
    });
    w.output_required(close)
}

/// An engine of its own on the file, as another process would have.
async fn process(file: &Path, name: Process) -> Result<EngineBuilder<Process>, Error> {
    Ok(Engine::builder(SqliteStore::open(file).await?).worker_id(name).state(name))
}

/// Every step with its state.
async fn states<O>(run: &Run<O>) -> Result<String, Error> {
    let tasks = run.tasks().await?;
    let words: Vec<_> = tasks.iter().map(|task| format!("{} {}", task.step, task.state)).collect();
    Ok(words.join(", "))
}

/// Waits until a step has come this far.
async fn until<O>(run: &Run<O>, step: &str, state: TaskState) -> Result<(), Error> {
    let wanted = format!("{step} {state}");
    while !states(run).await?.contains(&wanted) {
        match run.result_within(Duration::from_millis(10)).await {
            Ok(_) | Err(Error::WaitTimedOut { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Starts two orders. It has the code and executes nothing.
async fn front(file: &Path) -> Result<(), Error> {
    let mut builder = process(file, "front").await?.client_only();
    let orders = builder.workflow(order());
    let engine = builder.start().await?;
    for item in ["unicorn", "lamp"] {
        let input = Order { item: item.to_owned() };
        let run = engine.start(&orders, input).tenant(TENANT).id(item).await?;
        eprintln!("front: {item} is stored: {}", states(&run).await?);
    }
    engine.stop(Duration::ZERO).await;
    Ok(())
}

/// Executes the first half: what is dead, what is retried, what waits.
async fn first(file: &Path) -> Result<(), Error> {
    let mut builder = process(file, "first").await?;
    let orders = builder.workflow(order());
    let engine = builder.start().await?;
    let dead = engine.run_handle_of(&orders, TENANT, "unicorn").await?;
    assert_eq!(dead.ended().await?, RunStatus::Failed);
    let run = engine.run_handle_of(&orders, TENANT, "lamp").await?;
    until(&run, "invoice", TaskState::Waiting).await?;
    eprintln!("first: unicorn is dead: {}", states(&dead).await?);
    eprintln!("first: lamp waits: {}", states(&run).await?);
    eprintln!("first: the bank tells of a payment, by the signal `paid`");
    run.signal("paid", &Payment { cents: 2_500 }).key("bank-17").await?;
    until(&run, "collected", TaskState::Waiting).await?;
    engine.stop(Duration::from_secs(30)).await;
    eprintln!("first: has stopped");
    Ok(())
}

/// Has no code, but leads: it fires timers, and signals can be sent from anywhere.
async fn second(file: &Path) -> Result<(), Error> {
    let engine = process(file, "second").await?.start().await?;
    let run = engine.run_handle(TENANT, "lamp").await?;
    eprintln!("second: lamp waits again: {}", states(&run).await?);
    eprintln!("second: somebody collects it, and the signal `collected` is sent from here");
    engine.signal("collected", &"Ada").to(TENANT, "lamp").await?;
    until(&run, "close", TaskState::Queued).await?;
    eprintln!("second: lamp has come this far without code: {}", states(&run).await?);
    engine.stop(Duration::from_secs(30)).await;
    Ok(())
}

/// Has the code again, and finishes.
async fn third(file: &Path) -> Result<(), Error> {
    let mut builder = process(file, "third").await?;
    let orders = builder.workflow(order());
    let engine = builder.start().await?;
    let run = engine.run_handle_of(&orders, TENANT, "lamp").await?;
    let result = run.result().await?;
    eprintln!("third: lamp is done: {result}");
    assert_eq!(result, "a lamp for 2500 cents, collected by Ada");
    for (step, attempt) in run.attempts().await? {
        eprintln!("log: {step} #{} {} in {}", attempt.attempt, attempt.state, attempt.worker);
    }
    engine.stop(Duration::from_secs(30)).await;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("orders.db");
    front(&file).await?;
    first(&file).await?;
    second(&file).await?;
    third(&file).await
}
