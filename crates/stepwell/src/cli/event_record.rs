//! Events and failures as JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::run::EventKind;

use super::words::moment;
use crate::api::RunEvent;

/// An event of a run's log as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct EventRecord<'event> {
    number: Option<u64>,
    at: String,
    step: Option<&'event str>,
    attempt: u32,
    event: &'static str,
    /// What belongs to events of this name, such as the worker of STARTED.
    #[serde(skip_serializing_if = "Map::is_empty")]
    data: Map<String, Value>,
}

/// A failure as JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FailureRecord<'failure> {
    kind: FailureKind,
    #[serde(rename = "type")]
    type_name: &'failure str,
    message: &'failure str,
    causes: &'failure [String],
}

impl<'event> EventRecord<'event> {
    /// The record of an event.
    #[must_use]
    pub fn new(event: &'event RunEvent) -> Self {
        Self {
            number: event.number,
            at: moment(event.at),
            step: event.step.as_deref(),
            attempt: event.attempt,
            event: event.kind.name(),
            data: data(&event.kind),
        }
    }
}

impl<'failure> FailureRecord<'failure> {
    pub(super) fn new(failure: &'failure Failure) -> Self {
        Self {
            kind: failure.kind,
            type_name: &failure.type_name,
            message: &failure.message,
            causes: &failure.causes,
        }
    }
}

/// What an event tells besides its name. Moments and spans are written as in all records; what
/// has none of them is written as it is stored.
fn data(kind: &EventKind) -> Map<String, Value> {
    let data = match kind {
        EventKind::Completed { notes } if notes.is_empty() => Value::Null,
        EventKind::Failed { failure } => json!({ "failure": FailureRecord::new(failure) }),
        EventKind::Retrying { count, delay, due, failure } => json!({
            "count": count,
            "delay_secs": delay.as_secs_f64(),
            "due_at": moment(*due),
            "failure": FailureRecord::new(failure),
        }),
        EventKind::Sleeping { until, keys } => {
            let mut data = json!({ "until": moment(*until) });
            add_keys(&mut data, keys);
            data
        }
        EventKind::Waiting { signals, matching, until, keys } => {
            let until = until.map(moment);
            let mut data = json!({ "signals": signals, "matching": matching, "until": until });
            add_keys(&mut data, keys);
            data
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    };
    let Value::Object(mut data) = data else { return Map::new() };
    // The name stands beside the data.
    data.remove("event");
    data
}

/// What of a function is open, if it is one.
fn add_keys(data: &mut Value, keys: &[String]) {
    if !keys.is_empty() {
        data["keys"] = json!(keys);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stepwell_core::run::RunStatus;
    use stepwell_core::time::Timestamp;

    use super::*;

    fn record(kind: EventKind) -> Value {
        let at = Timestamp::EPOCH;
        let step = Some("charge".to_owned());
        let event = RunEvent { number: Some(7), at, step, attempt: 1, kind };
        serde_json::to_value(EventRecord::new(&event)).expect("it is plain data")
    }

    #[test]
    fn an_event_tells_its_data_beside_its_name() {
        let ended = record(EventKind::RunEnded { status: RunStatus::Failed });
        assert_eq!(ended["event"], "RUN_ENDED");
        assert_eq!(ended["data"], json!({ "status": "FAILED" }));
        assert_eq!(record(EventKind::Queued).get("data"), None);
        assert_eq!(record(EventKind::Completed { notes: [].into() }).get("data"), None);
    }

    #[test]
    fn moments_and_spans_in_data_read_as_elsewhere() {
        let failure = Failure::new(FailureKind::TimedOut, "T", "slow").caused_by("the bank");
        let delay = Duration::from_millis(1_500);
        let due = Timestamp::EPOCH.after(delay);
        let retrying = record(EventKind::Retrying { count: 1, delay, due, failure });
        let expected = json!({
            "count": 1,
            "delay_secs": 1.5,
            "due_at": "1970-01-01T00:00:01.5Z",
            "failure": {
                "kind": "timed_out", "type": "T", "message": "slow", "causes": ["the bank"],
            },
        });
        assert_eq!(retrying["data"], expected);
        let sleeping = record(EventKind::Sleeping { until: Timestamp::EPOCH, keys: Vec::new() });
        assert_eq!(sleeping["data"], json!({ "until": "1970-01-01T00:00:00Z" }));
    }
}
