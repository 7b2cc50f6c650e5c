//! A run starts: all its tasks are there from the beginning, and the roots are ready.

use alloc::vec::Vec;
use core::time::Duration;

use super::wait::wait_ready;
use crate::id::{DefinitionId, Node, RunId, RunKey, Tenant};
use crate::run::{Because, EventKind, Phase, RunImage, RunRow, RunStatus, RunTimer, TaskRow};
use crate::time::Timestamp;
use crate::workflow::{Definition, NodeKind};

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct RunSeed {
    /// The engine's key, made by the client.
    pub key: RunKey,
    /// Whose run it is.
    pub tenant: Tenant,
    /// The caller's id.
    pub id: RunId,
    /// The definition it runs on.
    pub definition: DefinitionId,
    /// How long it may take; the workflow's own deadline if not given.
    pub deadline: Option<Duration>,
}

/// The image of a fresh run. Event number 1 is `RUN_STARTED`, read from the run's row.
#[must_use]
pub fn start(definition: &Definition, now: Timestamp, seed: RunSeed) -> RunImage<'_> {
    let graph = &definition.graph;
    let deadline = seed.deadline.or(definition.policy.deadline);
    let run = RunRow {
        key: seed.key,
        tenant: seed.tenant,
        id: seed.id,
        definition: seed.definition,
        status: RunStatus::Running,
        n_open: 0,
        n_failed: 0,
        n_cancelled: 0,
        cancelled: false,
        n_signals: 0,
        n_unconsumed: 0,
        failure: None,
        next_event: 2,
        end_event: None,
        started_at: now,
        deadline: deadline.map(|span| now.after(span)),
        ended_at: None,
    };
    let tasks = graph.nodes().map(|node| {
        let n_parents = u32::try_from(graph.parents(node).len()).unwrap_or(u32::MAX);
        pending(node, n_parents)
    });
    let mut image = RunImage::fresh(definition, now, run, tasks);
    if let Some(span) = deadline {
        image.set_run_timer(RunTimer::Deadline, span);
    }
    for node in graph.nodes().filter(|node| graph.parents(*node).is_empty()) {
        make_ready(&mut image, node);
    }
    image
}

/// A task before anything happened to it.
pub(super) const fn pending(node: Node, n_unmet: u32) -> TaskRow {
    TaskRow {
        node,
        phase: Phase::Pending,
        n_unmet,
        n_skipped: 0,
        attempt: 0,
        failures: 0,
        losses: 0,
        queued_logged: false,
        resumed: None,
        next_memo: 0,
    }
}

/// A task whose parents are all resolved goes to a worker; if it needs none, to sleep or waiting.
pub(super) fn make_ready(image: &mut RunImage<'_>, node: Node) {
    let now = image.now;
    match image.definition.graph.kind(node) {
        NodeKind::Step | NodeKind::ConditionalSleep => {
            let phase = Phase::Queued { since: now, due: None };
            image.move_to(node, phase, Because::ParentsResolved);
        }
        NodeKind::Sleep => fall_asleep(image, node, Because::ParentsResolved),
        NodeKind::Wait => wait_ready(image, node),
        NodeKind::Gone => debug_assert!(false, "a step that is gone has no task"),
    }
}

/// Sets a sleep node's timer.
pub(super) fn fall_asleep(image: &mut RunImage<'_>, node: Node, because: Because) {
    let span = image.definition.step_policy(node).map(|policy| policy.sleep).unwrap_or_default();
    let until = image.now.after(span);
    image.move_to(node, Phase::Sleeping { until }, because);
    image.record(Some(node), 0, EventKind::Sleeping { until, keys: Vec::new() });
}
