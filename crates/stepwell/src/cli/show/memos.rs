//! What the functions of a run have done so far.

use serde::Serialize;
use stepwell_core::failure::Failure as StepFailure;
use stepwell_core::run::{MemoOutcome, MemoState, ROUND_KEY};

use super::inbox::{print_table, step};
use super::payload::PayloadRecord;
use super::picture::RunPicture;
use crate::cli::words::{later_clock_millis, moment, printable};
use crate::cli::{Cell, Failure, Output, Tone};
use crate::ports::StoredMemo;

/// A memo as JSON. Names are those of the view in the databases.
#[derive(Serialize)]
pub(super) struct MemoRecord<'picture> {
    step: &'picture str,
    key: &'picture str,
    number: Option<u64>,
    state: MemoState,
    tries: u32,
    began_at: String,
    at: String,
    duration_ms: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'picture str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadRecord<'picture>>,
}

impl<'picture> MemoRecord<'picture> {
    fn new(picture: &'picture RunPicture, memo: &'picture StoredMemo) -> Self {
        let row = &memo.row;
        let due = match &row.outcome {
            MemoOutcome::Begun { due, .. } => *due,
            _ => None,
        };
        let payload = memo.payload.as_ref().filter(|_| picture.has_payloads);
        Self {
            step: step(picture, row.node),
            key: &row.key,
            number: Some(row.number).filter(|number| *number > 0),
            state: row.outcome.state(),
            tries: row.tries,
            began_at: moment(row.began_at),
            at: moment(row.at),
            duration_ms: row.at.since(row.began_at).as_millis(),
            due_at: due.map(moment),
            error: failure(&row.outcome).map(|failure| failure.message.as_str()),
            payload: payload.map(PayloadRecord::new),
        }
    }

    /// All memos.
    pub(super) fn all(picture: &'picture RunPicture) -> Vec<Self> {
        picture.memos.iter().map(|memo| Self::new(picture, memo)).collect()
    }
}

fn failure(outcome: &MemoOutcome) -> Option<&StepFailure> {
    match outcome {
        MemoOutcome::Failed(failure) => Some(failure),
        MemoOutcome::Begun { failure, .. } => failure.as_ref(),
        _ => None,
    }
}

/// The table, if there is something in it.
pub(super) fn print(picture: &RunPicture, lines_max: usize, output: Output) -> Result<(), Failure> {
    let rows = picture.memos.iter().map(|memo| row(picture, memo)).collect();
    let header = ["step", "key", "number", "state", "tries", "took", "at (UTC)", "error"];
    print_table(("Memos", "memos"), &header, rows, lines_max, output)
}

fn row(picture: &RunPicture, memo: &StoredMemo) -> Vec<Cell> {
    let row = &memo.row;
    let state = row.outcome.state();
    let tone = match state {
        MemoState::Failed => Tone::Bad,
        MemoState::Begun => Tone::Faint,
        _ => Tone::Good,
    };
    let key = match &row.outcome {
        MemoOutcome::Round(round) if row.key == ROUND_KEY => format!("(round {round})"),
        _ => printable(&row.key),
    };
    let number = if row.number > 0 { row.number.to_string() } else { String::new() };
    let tries = if row.tries > 0 { row.tries.to_string() } else { String::new() };
    let took = row.at.since(row.began_at);
    let error = failure(&row.outcome).map(|failure| printable(&failure.message));
    vec![
        Cell::plain(printable(step(picture, row.node))),
        Cell::plain(key),
        Cell::plain(number),
        Cell::new(state.as_str(), tone),
        Cell::plain(tries),
        Cell::plain(format!("{took:.1?}")),
        Cell::plain(later_clock_millis(picture.row.started_at, row.at)),
        Cell::plain(error.unwrap_or_default()),
    ]
}
