//! How the runs ended, whether that is what should have happened, and one log in full.

use std::io;

use serde::Serialize;
use stepwell::cli::{Cell, Output, Tone, log_table, words};
use stepwell::{Error, RunStatus};

use super::Failure;
use super::live_log::FollowedRun;
use super::orders::ExpectedEnd;
use super::workflow::{Done, Shop};

/// How a run ended.
pub(super) struct RunEnd<'run> {
    followed: &'run FollowedRun,
    status: RunStatus,
    outcome: String,
    /// How it should have ended, if it ended otherwise.
    should_have: Option<&'static str>,
}

/// A run as JSON.
#[derive(Serialize)]
struct RunRecord<'run> {
    record: &'static str,
    run: &'run str,
    tenant: &'run str,
    status: &'static str,
    outcome: &'run str,
    as_expected: bool,
}

/// The end of the demo as JSON.
#[derive(Serialize)]
struct SummaryRecord {
    record: &'static str,
    n_runs: usize,
    n_completed: usize,
    n_failed: usize,
    as_expected: bool,
}

impl<'run> RunEnd<'run> {
    pub(super) async fn read(followed: &'run FollowedRun, shop: &Shop) -> Result<Self, Error> {
        let run = &followed.run;
        let status = run.status().await?;
        let tasks = run.tasks().await?;
        let n_charges = tasks.iter().find(|task| task.step == "charge").map_or(0, |t| t.attempt);
        let was_told = shop.was_told_about(&followed.incoming.order.id);
        let (mut outcome, is_as_expected) = match (run.result().await, followed.incoming.expected) {
            (Ok(Some(Done::Shipped { parcel })), expected) => {
                let is_due = match expected {
                    ExpectedEnd::Shipped => n_charges == 1,
                    ExpectedEnd::ShippedAfterRetries => n_charges == 3,
                    ExpectedEnd::Rejected | ExpectedEnd::Failed => false,
                };
                (format!("shipped as {parcel}"), is_due)
            }
            (Ok(Some(Done::Rejected { reason })), expected) => {
                (format!("rejected: {reason}"), expected == ExpectedEnd::Rejected)
            }
            (Ok(None), _) => ("ended without an output".to_owned(), false),
            (Err(Error::RunFailed { failure, .. }), expected) => {
                let message = &failure.failure.message;
                let told = if was_told { ", support was told" } else { "" };
                let is_due = expected == ExpectedEnd::Failed && was_told;
                (format!("{} failed: {message}{told}", failure.step), is_due)
            }
            (Err(error), _) => return Err(error),
        };
        if n_charges > 1 {
            outcome = format!("{outcome}, charged at attempt {n_charges}");
        }
        let should_have = (!is_as_expected).then(|| followed.incoming.expected.words());
        Ok(Self { followed, status, outcome, should_have })
    }

    fn write_record(&self, output: Output) -> io::Result<()> {
        output.record(&RunRecord {
            record: "run",
            run: self.followed.run.id(),
            tenant: self.followed.run.tenant(),
            status: self.status.as_str(),
            outcome: &self.outcome,
            as_expected: self.should_have.is_none(),
        })
    }

    fn row(&self) -> Vec<Cell> {
        vec![
            Cell::plain(self.followed.run.id()),
            Cell::plain(self.followed.run.tenant()),
            Cell::new(self.status.as_str(), words::status_tone(self.status)),
            Cell::plain(&self.outcome),
        ]
    }
}

impl ExpectedEnd {
    fn words(self) -> &'static str {
        match self {
            Self::Shipped => "shipped, with one charge",
            Self::ShippedAfterRetries => "shipped, with the third charge",
            Self::Rejected => "rejected",
            Self::Failed => "failed, and support told",
        }
    }
}

/// Prints how all runs ended, and fails if one did not end as it should.
pub(super) async fn print(ends: &[RunEnd<'_>], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        print_records(ends, output)?;
    } else {
        output.line("")?;
        output.line(&output.paint(Tone::Strong, "How the runs ended"))?;
        let rows: Vec<_> = ends.iter().map(RunEnd::row).collect();
        output.table(&["order", "tenant", "status", "outcome"], &rows)?;
        print_log(most_eventful(ends), output).await?;
        print_farewell(ends, output)?;
    }
    match ends.iter().find_map(|end| Some((end, end.should_have?))) {
        None => Ok(()),
        Some((end, should_have)) => {
            let (id, outcome) = (end.followed.run.id(), &end.outcome);
            let message = format!("{id} should have been {should_have}, but: {outcome}");
            Err(Failure::Unexpected(message))
        }
    }
}

fn print_records(ends: &[RunEnd<'_>], output: Output) -> io::Result<()> {
    ends.iter().try_for_each(|end| end.write_record(output))?;
    let count = |status| ends.iter().filter(|end| end.status == status).count();
    output.record(&SummaryRecord {
        record: "summary",
        n_runs: ends.len(),
        n_completed: count(RunStatus::Completed),
        n_failed: count(RunStatus::Failed),
        as_expected: ends.iter().all(|end| end.should_have.is_none()),
    })
}

/// The first run whose charge had to be retried, or else the first one.
fn most_eventful<'run>(ends: &[RunEnd<'run>]) -> Option<&'run FollowedRun> {
    let followed = || ends.iter().map(|end| end.followed);
    let flaky = followed().find(|one| one.incoming.expected == ExpectedEnd::ShippedAfterRetries);
    flaky.or_else(|| followed().next())
}

async fn print_log(followed: Option<&FollowedRun>, output: Output) -> Result<(), Failure> {
    let Some(followed) = followed else { return Ok(()) };
    let events = followed.run.events().await?;
    let began_at = events.first().map_or_else(Default::default, |event| event.at);
    output.line("")?;
    let heading = format!("The log of {}", followed.run.id());
    output.line(&output.paint(Tone::Strong, &heading))?;
    Ok(log_table(output, &events, |at| words::elapsed(began_at, at))?)
}

/// Two sentences: what was shown, and what to try next.
fn print_farewell(ends: &[RunEnd<'_>], output: Output) -> io::Result<()> {
    let orders = if ends.len() == 1 { "order" } else { "orders" };
    let (n_orders, shown) = (ends.len(), enumerated(&shown(ends)));
    output.line("")?;
    output.paragraph(
        "What you saw:",
        &format!("{n_orders} {orders} went through one typed workflow, in which {shown}."),
    )?;
    output.paragraph(
        "Try next:",
        "`stepwell demo --orders 50 --fraud-window 500ms` for a crowd, `stepwell demo --json` for \
         a program that reads along, and `stepwell explain` for what an error means.",
    )
}

/// What these orders can have shown.
fn shown(ends: &[RunEnd<'_>]) -> Vec<&'static str> {
    let has = |expected| ends.iter().any(|end| end.followed.incoming.expected == expected);
    let ships = has(ExpectedEnd::Shipped) || has(ExpectedEnd::ShippedAfterRetries);
    let claims = [
        (true, "each step ran as soon as its parents were done"),
        (ships && has(ExpectedEnd::Rejected), "conditions chose between shipping and rejecting"),
        (has(ExpectedEnd::ShippedAfterRetries), "a charge that failed was tried again"),
        (has(ExpectedEnd::Failed), "a run that failed told support before it ended"),
        (ships, "no thread waited for the fraud window"),
    ];
    claims.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, claim)| claim).collect()
}

/// The claims as one phrase: commas, and an "and" before the last.
fn enumerated(claims: &[&str]) -> String {
    match claims {
        [rest @ .., last] if !rest.is_empty() => format!("{}, and {last}", rest.join(", ")),
        claims => claims.concat(),
    }
}
