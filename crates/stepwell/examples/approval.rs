//! An expense waits for a person: `cargo run -p stepwell --example approval`.
//!
//! A run asks by mail and waits three days for `approved` or `rejected`. Whoever got the mail
//! answers by a signal, elsewhere: from a client that has none of the workflow's code. If nobody
//! answers in time, the run asks the director.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stepwell::{
    Ctx, Engine, Error, Result as StepResult, Run, Sent, Signalled, SqliteStore, StepError,
    Workflow, WorkflowRef,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const THREE_DAYS: Duration = Duration::from_hours(3 * 24);
const TENANT: &str = "office";

#[derive(Serialize, Deserialize)]
struct Expense {
    item: String,
    euros: u32,
}

/// What a run waits for. The variants are the signals, `approved` and `rejected`, and their
/// contents the payloads.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Approved { by: String },
    Rejected { by: String, why: String },
}

/// A question to somebody, with the run that waits for the answer.
struct Mail {
    to: &'static str,
    question: String,
    run_id: String,
}

/// What the steps share: here a stand-in for a mail server.
type Post = UnboundedSender<Mail>;

fn ask(ctx: &Ctx<Expense, Post>, to: &'static str) -> StepResult<()> {
    let Expense { item, euros } = ctx.input();
    let question = format!("may we spend {euros} euros on a {item}?");
    Ok(ctx.state().send(Mail { to, question, run_id: ctx.run_id().to_owned() })?)
}

fn expense(patience: Duration) -> Workflow<Expense, String, Post> {
    let mut w = Workflow::define::<Expense, Post>("expense");
    let asked = w.step("ask").run(async |ctx| ask(&ctx, "the manager"));
    let decision = w.wait_any::<Decision>("decision").timeout(patience).after(asked);
    let escalated = w
        .step("escalate")
        .after(decision)
        .when(Signalled::is_timed_out)
        .run(async |ctx, _| ask(&ctx, "the director"));
    // Skipped with `escalate`. It has no time-out: the director answers sooner or later.
    let ruling = w.wait_any::<Decision>("ruling").after(escalated);
    let settled = w
        .step("settle")
        .after((decision, ruling))
        .run(async |_, (decision, ruling)| settle(decision.received().or(ruling)));
    w.output(settled)
}

fn settle(decision: Option<Decision>) -> StepResult<String> {
    match decision {
        Some(Decision::Approved { by }) => Ok(format!("paid, since {by} approved")),
        Some(Decision::Rejected { by, why }) => Ok(format!("not paid, {by} says: {why}")),
        None => Err(StepError::permanent("nobody decided")),
    }
}

/// An engine that executes, a client for people who answer, and what was mailed to them.
struct Office {
    engine: Engine,
    expenses: WorkflowRef<Expense, String>,
    desk: Engine,
    mails: UnboundedReceiver<Mail>,
}

impl Office {
    async fn open(file: &Path, patience: Duration) -> Result<Self, Error> {
        let (post, mails) = unbounded_channel();
        let mut builder = Engine::builder(SqliteStore::open(file).await?).state(post);
        let expenses = builder.workflow(expense(patience));
        let engine = builder.start().await?;
        let desk = Engine::builder(SqliteStore::open(file).await?).client_only().start().await?;
        Ok(Self { engine, expenses, desk, mails })
    }

    async fn start(&self, item: &str, euros: u32) -> Result<Run<String>, Error> {
        let input = Expense { item: item.to_owned(), euros };
        self.engine.start(&self.expenses, input).tenant(TENANT).id(item).await
    }

    async fn next_mail(&mut self) -> Mail {
        let mail = self.mails.recv().await.expect("the engine holds the other end");
        eprintln!("{}: mail to {}: {}", mail.run_id, mail.to, mail.question);
        mail
    }

    /// Answers a mail. A click may be repeated, so the key says what it answers.
    async fn answer(
        &self,
        mail: &Mail,
        signal: &str,
        payload: serde_json::Value,
    ) -> Result<Sent, Error> {
        eprintln!("{}: {} answers {signal} {payload}", mail.run_id, mail.to);
        self.desk.signal(signal, &payload).to(TENANT, &mail.run_id).key(mail.to).await
    }

    async fn close(self) {
        self.engine.stop(Duration::from_secs(30)).await;
        self.desk.stop(Duration::ZERO).await;
    }
}

/// Somebody answers in time: one run is approved, the other one rejected.
async fn answered(file: &Path) -> Result<(), Error> {
    let mut office = Office::open(file, THREE_DAYS).await?;
    let approved = ("approved", json!({"by": "Grace"}));
    let rejected = ("rejected", json!({"by": "Grace", "why": "too loud"}));
    for (item, euros, (signal, payload)) in [("lamp", 49, approved), ("piano", 9_000, rejected)] {
        let run = office.start(item, euros).await?;
        let mail = office.next_mail().await;
        let first = office.answer(&mail, signal, payload.clone()).await?;
        let again = office.answer(&mail, signal, payload).await?;
        assert_eq!(first, again);
        eprintln!("{item}: the second click changes nothing");
        eprintln!("{item}: {}", run.result().await?);
    }
    office.close().await;
    Ok(())
}

/// Nobody answers in time. So that this ends today, the program is deployed anew with less
/// patience: how long a wait takes is fixed when it opens, and not by the structure.
async fn unanswered(file: &Path) -> Result<(), Error> {
    let mut office = Office::open(file, Duration::from_millis(200)).await?;
    let run = office.start("chair", 120).await?;
    let to_manager = office.next_mail().await;
    eprintln!("chair: nobody answers");
    let to_director = office.next_mail().await;
    office.answer(&to_director, "approved", json!({"by": "Barbara"})).await?;
    let result = run.result().await?;
    eprintln!("chair: {result}");
    assert_eq!(result, "paid, since Barbara approved");
    let late = json!({"by": "Grace", "why": "we have chairs"});
    match office.answer(&to_manager, "rejected", late).await? {
        Sent::AlreadyEnded(status) => eprintln!("chair: too late, the run is {status}"),
        sent => panic!("a run that has ended takes no signal: {sent:?}"),
    }
    office.close().await;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("expenses.db");
    answered(&file).await?;
    unanswered(&file).await
}
