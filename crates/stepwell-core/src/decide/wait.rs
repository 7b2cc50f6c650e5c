//! A task waits for a signal: a wait node that became ready, or a step whose execution said so.

use alloc::string::String;
use alloc::vec::Vec;

use super::Notes;
use super::signal::let_others_look;
use crate::id::Node;
use crate::run::{
    AttemptState, Because, EndedAttempt, EventKind, Phase, RunImage, WaitFor, WaitKind, WaitRow,
};
use crate::workflow::NodeKind;

/// A wait node is ready. It opens its wait, or goes to a worker first if code has to say what it
/// waits for, and whether at all.
pub(super) fn wait_ready(image: &mut RunImage<'_>, node: Node) {
    let policy = image.definition.step_policy(node).and_then(|policy| policy.wait.as_ref());
    debug_assert!(policy.is_some(), "a wait node says what it waits for");
    match policy {
        Some(policy) if !policy.asks_worker => {
            let wait_for = policy.wait_for.clone();
            open(image, node, wait_for, Because::ParentsResolved);
        }
        _ => {
            let phase = Phase::Queued { since: image.now, due: None };
            image.move_to(node, phase, Because::ParentsResolved);
        }
    }
}

/// A claimed task waits. A wait node's claim executed nothing, so it leaves no attempt. A step's
/// attempt is charged nothing, and neither are the workers it lost before it came this far.
pub(super) fn wait_claimed(image: &mut RunImage<'_>, node: Node, wait_for: WaitFor, notes: Notes) {
    let Some(since) = image.task(node).and_then(|task| task.claim()).map(|c| c.queued_at) else {
        return;
    };
    if image.definition.graph.kind(node) == NodeKind::Wait {
        if let Some(task) = image.touch(node) {
            task.attempt = task.attempt.saturating_sub(1);
        }
        image.record_queued_since(node, since);
    } else {
        let ended = EndedAttempt { notes, ..EndedAttempt::plain(AttemptState::Suspended) };
        image.end_attempt(node, ended);
        if let Some(task) = image.touch(node) {
            task.losses = 0;
        }
    }
    open(image, node, wait_for, Because::Wait);
}

/// Opens a wait. Signals that nobody got yet are not looked at here, so that one commit never
/// runs through many waits: a timer that is due now does it.
fn open(image: &mut RunImage<'_>, node: Node, wait_for: WaitFor, because: Because) {
    let now = image.now;
    let WaitFor { signals, matching, timeout } = wait_for;
    let deadline = timeout.map(|timeout| now.after(timeout));
    let due = if image.run.n_unconsumed > 0 { Some(now) } else { deadline };
    let (attempt, may_have_waits) = image.touch(node).map_or((0, false), |task| {
        task.resumed = None;
        (task.attempt, task.may_have_waits())
    });
    if may_have_waits {
        // What its function waited for was given up when the step answered otherwise.
        image.close_waits(node);
        let_others_look(image);
    }
    let wait = WaitRow {
        node,
        key: String::new(),
        number: image.run.next_event,
        place: 0,
        kind: WaitKind::Signal,
        signals: signals.clone(),
        matching: matching.clone(),
        n_signals_before: image.run.n_signals,
        opened_at: now,
        deadline,
    };
    image.move_to(node, Phase::Waiting { due }, because);
    let event = EventKind::Waiting { signals, matching, until: deadline, keys: Vec::new() };
    image.record(Some(node), attempt, event);
    image.open_wait(wait);
}
