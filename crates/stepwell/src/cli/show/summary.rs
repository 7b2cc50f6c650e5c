//! How a run stands, in a few lines.

use stepwell_core::run::{EventKind, RunFailure, RunRow};

use super::picture::RunPicture;
use crate::api::RunEvent;
use crate::cli::words::{clock_millis, detail, printable, rough_span, span, status_tone};
use crate::cli::{Failure, Output, Tone};
use crate::wiring::system_now;

/// Where the values begin.
const LABEL_CHARS: usize = 10;

pub(super) fn print(picture: &RunPicture, output: Output) -> Result<(), Failure> {
    let row = &picture.row;
    let name = printable(&format!("{}/{}", row.tenant, row.id));
    let title = output.paint(Tone::Strong, &format!("Run {name}"));
    let status = output.paint(status_tone(row.status), row.status.as_str());
    output.line(&format!("{title}  {status}"))?;
    let definition = &picture.definition;
    let workflow =
        format!("{} v{}", printable(&definition.definition.workflow), definition.version);
    let mut lines = vec![
        ("workflow", workflow),
        ("key", row.key.to_string()),
        ("started", format!("{} UTC", clock_millis(row.started_at))),
        ("ended", ended(row)),
        ("tasks", counts(picture)),
    ];
    if let Some(deadline) = row.deadline {
        lines.push(("deadline", format!("{} UTC", clock_millis(deadline))));
    }
    lines.extend(picture.log.iter().filter_map(cancelled));
    lines.extend(row.failure.as_deref().into_iter().flat_map(failure));
    for (label, text) in lines {
        let label = output.paint(Tone::Faint, &format!("{label:<LABEL_CHARS$}"));
        // An error may have several lines; they stand below each other.
        let text = text.replace('\n', &format!("\n{:indent$}", "", indent = LABEL_CHARS + 2));
        output.line(&format!("  {label}{text}"))?;
    }
    Ok(())
}

/// Who cancelled it, and why.
fn cancelled(event: &RunEvent) -> Option<(&'static str, String)> {
    let is_it = matches!(event.kind, EventKind::RunCancelled { .. });
    is_it.then(|| ("cancelled", printable(&detail(event))))
}

fn ended(row: &RunRow) -> String {
    match row.ended_at {
        Some(at) => {
            format!("{} UTC, after {}", clock_millis(at), span(at.since(row.started_at)))
        }
        None => format!("not yet; its age is {}", rough_span(system_now().since(row.started_at))),
    }
}

fn counts(picture: &RunPicture) -> String {
    let row = &picture.row;
    let all = [format!("{}", picture.tasks.len()), format!("{} open", row.n_open)];
    let ended = [(row.n_failed, "failed"), (row.n_cancelled, "cancelled")];
    let ended = ended.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    all.into_iter().chain(ended).collect::<Vec<_>>().join(", ")
}

/// What decided the run's end: the step and its words, then what caused them.
fn failure(failure: &RunFailure) -> Vec<(&'static str, String)> {
    let RunFailure { step, attempt, failure, .. } = failure;
    let step = printable(step);
    let place = match (step.as_str(), attempt) {
        // A deadline passes in no step.
        ("", _) => String::new(),
        (step, 0) => format!("step {step}: "),
        (step, attempt) => format!("step {step}, attempt {attempt}: "),
    };
    let mut lines = vec![("failure", format!("{place}{}", printable(&failure.message)))];
    lines.extend(failure.causes.iter().map(|cause| ("caused by", printable(cause))));
    lines
}
