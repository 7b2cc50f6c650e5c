//! The log as it is read: assembled from attempts, rows of irregular events and open tasks.
//!
//! An attempt row carries what three event rows would, at a third of the cost. What is promised
//! is the log as read: complete, in order, never rewritten.

use alloc::vec::Vec;

use super::{AttemptRow, AttemptState, Event, EventKind, EventRow, Phase, RunRow, TaskRow};
use crate::failure::{Failure, FailureKind};

/// What a store has of one run's log.
#[derive(Clone, Debug)]
pub struct RunLog {
    /// The run.
    pub run: RunRow,
    /// Its open tasks.
    pub open: Vec<TaskRow>,
    /// Its attempts.
    pub attempts: Vec<AttemptRow>,
    /// Its irregular events.
    pub events: Vec<EventRow>,
}

/// The log in order: numbered events first, then what is known of open tasks.
#[must_use]
pub fn read_log(log: &RunLog) -> Vec<Event> {
    let mut events = Vec::with_capacity(2 + log.events.len() + 3 * log.attempts.len());
    events.push(run_event(1, log.run.started_at, EventKind::RunStarted));
    events.extend(log.events.iter().map(stored));
    for attempt in &log.attempts {
        events.extend(of_attempt(attempt));
    }
    if let (Some(number), Some(at)) = (log.run.end_event, log.run.ended_at) {
        events.push(run_event(number, at, EventKind::RunEnded { status: log.run.status }));
    }
    events.sort_by_key(|event| event.number);
    let mut open: Vec<Event> = log.open.iter().flat_map(of_open_task).collect();
    open.sort_by_key(|event| (event.at, event.node));
    events.extend(open);
    events
}

fn run_event(number: u64, at: crate::time::Timestamp, kind: EventKind) -> Event {
    Event { number: Some(number), at, node: None, attempt: 0, kind }
}

fn stored(row: &EventRow) -> Event {
    Event {
        number: Some(row.number),
        at: row.at,
        node: row.node,
        attempt: row.attempt,
        kind: row.kind.clone(),
    }
}

fn of_attempt(row: &AttemptRow) -> Vec<Event> {
    let event = |offset: u64, at, kind| Event {
        number: Some(row.first_event + offset),
        at,
        node: Some(row.node),
        attempt: row.attempt,
        kind,
    };
    let mut events = Vec::with_capacity(3);
    let started = u64::from(row.with_queued);
    if row.with_queued {
        events.push(event(0, row.claim.queued_at, EventKind::Queued));
    }
    let worker = row.claim.worker.clone();
    events.push(event(started, row.claim.started_at, EventKind::Started { worker }));
    events.push(event(started + 1, row.ended_at, ending(row)));
    events
}

fn ending(row: &AttemptRow) -> EventKind {
    let failure = || {
        let unknown = || Failure::new(FailureKind::Error, "", "unknown");
        row.failure.clone().unwrap_or_else(unknown)
    };
    match (row.state, row.retry) {
        (AttemptState::Completed, _) => EventKind::Completed { notes: row.notes.clone() },
        (AttemptState::Failed | AttemptState::TimedOut, Some(plan)) => EventKind::Retrying {
            count: plan.count,
            delay: plan.delay,
            due: plan.due,
            failure: failure(),
        },
        (AttemptState::Failed | AttemptState::TimedOut, None) => {
            EventKind::Failed { failure: failure() }
        }
        (AttemptState::Cancelled, _) => EventKind::Cancelled,
        (AttemptState::Lost, _) => EventKind::LeaseLost,
        (AttemptState::Released, _) => EventKind::Released,
        (AttemptState::Suspended, _) => EventKind::Suspended,
    }
}

fn of_open_task(task: &TaskRow) -> Vec<Event> {
    let event =
        |at, attempt, kind| Event { number: None, at, node: Some(task.node), attempt, kind };
    let mut events = Vec::new();
    match &task.phase {
        Phase::Queued { since, .. } if !task.queued_logged => {
            events.push(event(*since, task.attempt + 1, EventKind::Queued));
        }
        Phase::Running(claim) => {
            if !task.queued_logged {
                events.push(event(claim.queued_at, task.attempt, EventKind::Queued));
            }
            let worker = claim.worker.clone();
            events.push(event(claim.started_at, task.attempt, EventKind::Started { worker }));
        }
        _ => {}
    }
    events
}
