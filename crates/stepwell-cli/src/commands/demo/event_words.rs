//! Events in words, for lines, tables and JSON alike.

use std::time::Duration;

use jiff::SignedDuration;
use serde::Serialize;
use stepwell::{EventKind, Run, RunEvent, RunStatus, Timestamp};

use crate::output::Tone;

/// An event of a run as JSON.
#[derive(Serialize)]
pub(super) struct EventRecord<'event> {
    record: &'static str,
    run: &'event str,
    tenant: &'event str,
    number: Option<u64>,
    at: String,
    step: Option<&'event str>,
    attempt: u32,
    event: &'static str,
    detail: String,
}

impl<'event> EventRecord<'event> {
    pub(super) fn new<O>(run: &'event Run<O>, event: &'event RunEvent) -> Self {
        Self {
            record: "event",
            run: run.id(),
            tenant: run.tenant(),
            number: event.number,
            at: moment(event.at),
            step: event.step.as_deref(),
            attempt: event.attempt,
            event: event.kind.name(),
            detail: detail(event),
        }
    }
}

/// What there is to say about an event besides its name; nothing for most.
pub(super) fn detail(event: &RunEvent) -> String {
    match &event.kind {
        EventKind::RunEnding { ends_as } => format!("as {ends_as}, on_failure comes first"),
        EventKind::RunEnded { status } => format!("as {status}"),
        EventKind::Completed { notes } => {
            let notes: Vec<String> =
                notes.iter().map(|(name, text)| format!("{name} {text}")).collect();
            notes.join(", ")
        }
        EventKind::Failed { failure } => failure.message.clone(),
        EventKind::Retrying { count, delay, failure, .. } => {
            format!("{}, retry {count} in {}", failure.message, span(*delay))
        }
        EventKind::Sleeping { until } => format!("for {}", span(until.since(event.at))),
        _ => String::new(),
    }
}

pub(super) fn tone(kind: &EventKind) -> Tone {
    match kind {
        EventKind::Completed { .. } => Tone::Good,
        EventKind::RunEnded { status } => status_tone(*status),
        EventKind::Failed { .. } | EventKind::RunEnding { .. } => Tone::Bad,
        EventKind::Retrying { .. } | EventKind::LeaseLost => Tone::Warning,
        EventKind::Sleeping { .. } | EventKind::Woken { .. } => Tone::Waiting,
        EventKind::Skipped | EventKind::Cancelled => Tone::Faint,
        _ => Tone::Plain,
    }
}

pub(super) fn status_tone(status: RunStatus) -> Tone {
    match status {
        RunStatus::Completed => Tone::Good,
        RunStatus::Failed => Tone::Bad,
        _ => Tone::Warning,
    }
}

/// How long after `began_at` something happened, in seconds with three decimals.
pub(super) fn elapsed(began_at: Timestamp, at: Timestamp) -> String {
    let millis = at.since(began_at).as_millis();
    format!("{}.{:03}s", millis / 1_000, millis % 1_000)
}

/// A span as people write it, such as `1m 30s`.
pub(super) fn span(span: Duration) -> String {
    SignedDuration::try_from(span).map_or_else(|_| format!("{span:?}"), |span| format!("{span:#}"))
}

fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_microsecond(at.as_micros());
    moment.map_or_else(|_| at.to_string(), |moment| moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_moments_read_as_people_write_them() {
        assert_eq!(span(Duration::from_secs(90)), "1m 30s");
        assert_eq!(span(Duration::from_millis(200)), "200ms");
        assert_eq!(moment(Timestamp::EPOCH), "1970-01-01T00:00:00Z");
        let later = Timestamp::EPOCH.after(Duration::from_millis(2_061));
        assert_eq!(elapsed(Timestamp::EPOCH, later), "2.061s");
    }
}
