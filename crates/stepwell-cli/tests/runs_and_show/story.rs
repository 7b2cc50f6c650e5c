//! A store with a run in every status and a task in every state, on virtual time: the same on every
//! store, to the last digit.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::core::id::Queue;
use stepwell::testing::{Gate, TestDatabase, TestEngine, TestEngineBuilder};
use stepwell::{Retry, RunStatus, Workflow};
use tempfile::TempDir;

/// What no output shows unless payloads are asked for.
pub(crate) const SECRET: &str = "card 4111";

/// A number that a float would round.
pub(crate) const CENTS: u128 = u128::MAX;

/// The runs of the story with how they stand, newest first.
pub(crate) const RUNS: [(&str, RunStatus); 5] = [
    ("florist/open", RunStatus::Running),
    ("bakery/called-off", RunStatus::Cancelled),
    ("bakery/stuck", RunStatus::Ending),
    ("bakery/declined", RunStatus::Failed),
    ("bakery/well", RunStatus::Completed),
];

/// Which store the story lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// An engine on a fresh store, with what `--store` takes, and the folder that must stay.
    pub(crate) fn engine(self) -> (String, Option<TempDir>, TestEngineBuilder<()>) {
        match self {
            Self::Sqlite => {
                let folder = TempDir::new().expect("there is room for a file");
                let path = folder.path().join("shop.db");
                let store = path.to_str().expect("a plain path").to_owned();
                (store, Some(folder), TestEngine::on_sqlite(path))
            }
            Self::Postgres => {
                let database = TestDatabase::create_blocking();
                (database.url(), None, TestEngine::on_postgres(database))
            }
        }
    }
}

/// A store with the runs of the story.
pub(crate) struct Story {
    /// What `--store` takes.
    pub(crate) store: String,
    worker: String,
    _folder: Option<TempDir>,
    _engine: TestEngine,
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    card: String,
    cents: u128,
    items: Vec<String>,
}

#[derive(Debug)]
struct Declined(std::io::Error);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A terminal must not do what the bank says.
        write!(f, "the bank said \u{1b}[31mno")
    }
}

impl std::error::Error for Declined {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Goes well, or fails for good; the handler of the run `stuck` hangs.
fn order() -> Workflow<Order, String, Gate> {
    let mut w = Workflow::define::<Order, Gate>("order");
    w.version(3);
    let check = w.step("check").run(async |ctx| {
        ctx.note("items", ctx.input().items.len());
        Ok(ctx.input().clone())
    });
    let charge = w.step("charge").after(check).retry(Retry::fixed(2, Duration::from_secs(10)));
    let charge = charge.run(async |ctx, order| {
        if ctx.attempt() == 1 {
            return Err(stepwell::StepError::new("the bank did not answer"));
        }
        if ctx.run_id() == "well" {
            return Ok(order.card.clone());
        }
        let error = Declined(std::io::Error::other("the account is closed"));
        Err(stepwell::StepError::from(error).into_permanent())
    });
    let ship = w.step("ship").after(charge).run(async |_, _| Ok("parcel-1".to_owned()));
    w.on_failure(async |ctx, _| {
        if ctx.run_id() == "stuck" {
            ctx.state().pass().await;
        }
        Ok(())
    });
    w.output(ship)
}

/// A step for each state that a task can be in.
fn parts() -> Workflow<(), (), Gate> {
    let mut w = Workflow::define::<(), Gate>("parts");
    let done = w.step("done").run(async |_| Ok(1));
    let held = w.step("held").run(async |ctx| {
        ctx.heartbeat_with("3 of 7 parts")?;
        ctx.state().pass().await;
        Ok(())
    });
    let flaky = w.step("flaky").retry(Retry::fixed(5, Duration::from_hours(1)));
    let flaky = flaky.run(async |_| Err::<(), _>(stepwell::StepError::new("not yet")));
    let nap = w.sleep("nap", Duration::from_hours(24)).from_start();
    w.step("apart").queue("gpu").run(async |_| Ok(()));
    w.step("left-out").after(done).skip_if(|_| true).run(async |_, _| Ok(()));
    w.step("last").after((held, flaky, nap)).run(async |_, _| Ok(()));
    w.no_output()
}

impl Story {
    pub(crate) fn tell(kind: Kind) -> Self {
        let (store, folder, builder) = kind.engine();
        let mut builder = builder
            .configure(|config| config.queues = vec![Queue::default_queue()])
            .state(Gate::new());
        let (order, parts) = (builder.workflow(order()), builder.workflow(parts()));
        let engine = builder.start().expect("it starts");
        let card = SECRET.to_owned();
        let input = Order { card, cents: CENTS, items: vec!["cake".into(), "bread".into()] };
        for id in ["well", "declined", "stuck"] {
            engine.start(&order, input.clone()).tenant("bakery").id(id).now().expect("it starts");
            engine.advance(Duration::from_secs(20));
        }
        let run = engine.start(&parts, ()).tenant("bakery").id("called-off").now();
        engine.advance(Duration::from_secs(1));
        run.and_then(|run| run.cancel().wait()).expect("it is cancelled");
        let open = engine.start(&parts, ()).tenant("florist").id("open");
        open.deadline(Duration::from_hours(48)).now().expect("it starts");
        engine.advance(Duration::from_secs(1));
        let worker = engine.as_async().worker_id().to_owned();
        Self { store, worker, _folder: folder, _engine: engine }
    }

    /// Text without the worker's id, which differs from machine to machine.
    pub(crate) fn masked(&self, text: &str) -> String {
        text.replace(&self.worker, "WORKER")
    }

    /// Tables without that, without ages, which differ from day to day, and without the widths of
    /// columns, which depend on both.
    pub(crate) fn masked_tables(&self, text: &str) -> String {
        let text = self.masked(text);
        text.lines().map(|line| narrow(&mask_age(line)) + "\n").collect()
    }
}

/// Masks the digits of an age such as `age 321d 4h`.
fn mask_age(line: &str) -> String {
    let is_age = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    for mark in ["age ", "age is "] {
        if let Some((before, _)) = line.split_once(mark).filter(|(_, rest)| is_age(rest)) {
            let end = if line.ends_with('│') { " │" } else { "" };
            return format!("{before}{mark}AGE{end}");
        }
    }
    line.to_owned()
}

/// Leaves one of each row of spaces and of lines of a table.
fn narrow(line: &str) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    chars.dedup_by(|next, last| next == last && matches!(next, ' ' | '─' | '═'));
    chars.into_iter().collect()
}
