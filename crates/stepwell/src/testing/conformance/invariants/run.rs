//! One run and its tasks: counters, fan-in, skips, attempts and the end.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::{Node, Token};
use stepwell_core::run::{
    AttemptRow, AttemptState, EventKind, EventRow, Phase, RunLog, RunRow, RunStatus, TaskRow,
    TaskState,
};
use stepwell_core::workflow::{Definition, NodeKind};

use super::Findings;

type States = BTreeMap<Node, TaskState>;

pub(super) fn check(
    definition: &Definition,
    log: &RunLog,
    tasks: &[TaskRow],
    findings: &mut Findings,
) {
    let states: States = tasks.iter().map(|task| (task.node, task.state())).collect();
    let n_steps = definition.graph.nodes().filter(|node| states.contains_key(node)).count();
    let has_all = n_steps == definition.graph.n_nodes();
    // L1: all tasks are there from the start; only the failure handler comes later.
    findings.expect(has_all, || format!("{n_steps} of its tasks are there"));
    let n_handlers = usize::from(states.contains_key(&Node::ON_FAILURE));
    findings.expect(states.len() == n_steps + n_handlers && states.len() == tasks.len(), || {
        "it has tasks that are not in its graph".to_owned()
    });
    counters(&log.run, tasks, findings);
    end(&log.run, &states, findings);
    let mut attempts: BTreeMap<Node, Vec<&AttemptRow>> = BTreeMap::new();
    for attempt in &log.attempts {
        attempts.entry(attempt.node).or_default().push(attempt);
    }
    for task in tasks {
        let mut of_task = Findings::default();
        fan_in(definition, task, &states, &mut of_task);
        let attempts = attempts.remove(&task.node).unwrap_or_default();
        let forgiven = forgiven_until(&log.events, task.node);
        check_attempts(definition, task, attempts, forgiven, &mut of_task);
        let name = definition.name(task.node);
        findings.0.extend(of_task.0.iter().map(|finding| format!("task {name:?}: {finding}")));
    }
}

/// The run's counters equal what is counted.
fn counters(run: &RunRow, tasks: &[TaskRow], findings: &mut Findings) {
    let count = |is: &dyn Fn(TaskState) -> bool| {
        u32::try_from(tasks.iter().filter(|task| is(task.state())).count()).unwrap_or(u32::MAX)
    };
    let counted = [
        ("n_open", run.n_open, count(&|state| !state.is_terminal())),
        ("n_failed", run.n_failed, count(&|state| state == TaskState::Failed)),
        ("n_cancelled", run.n_cancelled, count(&|state| state == TaskState::Cancelled)),
    ];
    for (name, kept, counted) in counted {
        findings.expect(kept == counted, || format!("{name} is {kept}, but {counted} are"));
    }
}

/// A run has ended exactly if none of its tasks is open, and as what happened in it says (R16).
fn end(run: &RunRow, states: &States, findings: &mut Findings) {
    let has_ended = run.status.is_terminal();
    findings.expect(has_ended == (run.n_open == 0), || {
        format!("it is {} with {} open tasks", run.status, run.n_open)
    });
    findings.expect(
        has_ended == run.ended_at.is_some() && has_ended == run.end_event.is_some(),
        || format!("it is {}, ended at {:?}", run.status, run.ended_at),
    );
    if has_ended {
        let expected = match (run.failure.is_some() || run.n_failed > 0, run.cancelled) {
            (true, _) => RunStatus::Failed,
            (false, true) => RunStatus::Cancelled,
            (false, false) => RunStatus::Completed,
        };
        findings.expect(run.status == expected, || {
            format!("it ended {} and should be {expected}", run.status)
        });
    }
    findings.expect(run.n_failed == 0 || run.failure.is_some(), || {
        "a task failed and the run does not say which".to_owned()
    });
    let handler = states.get(&Node::ON_FAILURE);
    let handler_runs = handler.is_some_and(|state| !state.is_terminal());
    findings.expect(handler_runs == (run.status == RunStatus::Ending), || {
        format!("it is {} and its failure handler {handler:?}", run.status)
    });
    // S12: after a cancellation nothing but clean-up is open.
    let n_open = states.iter().filter(|(_, state)| !state.is_terminal()).count();
    findings.expect(!run.cancelled || n_open == usize::from(handler_runs), || {
        "it was cancelled and has open steps".to_owned()
    });
}

/// S3, S4, S16: the counters equal the edges, and the state is one they allow.
fn fan_in(definition: &Definition, task: &TaskRow, states: &States, findings: &mut Findings) {
    let edges = definition.graph.parents(task.node);
    let is = |node: &Node, state: TaskState| states.get(node) == Some(&state);
    let is_skipped = |node: &Node| is(node, TaskState::Skipped);
    let n_skipped = edges.iter().filter(|edge| is_skipped(&edge.node)).count();
    let n_completed = edges.iter().filter(|edge| is(&edge.node, TaskState::Completed)).count();
    let n_unmet = edges.len() - n_skipped - n_completed;
    findings.expect(task.n_unmet as usize == n_unmet, || {
        format!("n_unmet is {}, but {n_unmet} edges are unresolved", task.n_unmet)
    });
    findings.expect(task.n_skipped as usize == n_skipped, || {
        format!("n_skipped is {}, but {n_skipped} parents are", task.n_skipped)
    });
    let needs_skipped = edges.iter().any(|edge| edge.needed && is_skipped(&edge.node));
    let goes_along = needs_skipped || (!edges.is_empty() && n_skipped == edges.len());
    let is_doomed = edges
        .iter()
        .any(|edge| is(&edge.node, TaskState::Failed) || is(&edge.node, TaskState::Cancelled));
    let state = task.state();
    let fits = match state {
        TaskState::Pending => n_unmet > 0 && !goes_along && !is_doomed,
        // By the rule without having been queued, or by its own condition out of the queue.
        TaskState::Skipped => goes_along || (n_unmet == 0 && task.queued_logged),
        TaskState::Cancelled => true,
        _ => n_unmet == 0 && !goes_along,
    };
    findings.expect(fits, || {
        format!("it is {state} with {n_unmet} of {} edges unresolved, {edges:?}", edges.len())
    });
    findings.expect(n_unmet == 0 || task.attempt == 0, || {
        "it was executed before its parents were done".to_owned()
    });
}

/// The attempt with which a function last began another round: what failed before is forgiven.
fn forgiven_until(events: &[EventRow], node: Node) -> u32 {
    let is_round = |event: &&EventRow| {
        event.node == Some(node) && matches!(event.kind, EventKind::Continued { .. })
    };
    events.iter().filter(is_round).map(|event| event.attempt).max().unwrap_or(0)
}

/// S5, S9, S10: attempts are numbered without gaps, each under a token of its own, and add up to
/// the task's numbers.
fn check_attempts(
    definition: &Definition,
    task: &TaskRow,
    mut attempts: Vec<&AttemptRow>,
    forgiven: u32,
    findings: &mut Findings,
) {
    attempts.sort_by_key(|attempt| attempt.attempt);
    let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.attempt).collect();
    let is_dense = numbers.iter().zip(1..).all(|(number, expected)| *number == expected);
    findings.expect(is_dense, || format!("its attempts are numbered {numbers:?}"));
    let n_claims = attempts.len() + usize::from(task.claim().is_some());
    findings.expect(task.attempt as usize == n_claims, || {
        format!("attempt is {}, but {n_claims} are known", task.attempt)
    });
    let held = task.claim().map(|claim| claim.token);
    let tokens: BTreeSet<Token> =
        attempts.iter().map(|attempt| attempt.claim.token).chain(held).collect();
    findings.expect(tokens.len() == n_claims, || "a token was used twice".to_owned());
    let count = |state| attempts.iter().filter(|attempt| attempt.state == state).count();
    let is_failed = |attempt: &&&AttemptRow| {
        matches!(attempt.state, AttemptState::Failed | AttemptState::TimedOut)
    };
    let charged = attempts.iter().filter(|attempt| attempt.attempt > forgiven);
    let n_failed = charged.filter(is_failed).count();
    findings.expect(task.failures as usize == n_failed, || {
        format!("failures is {}, but {n_failed} attempts failed", task.failures)
    });
    let n_lost = count(AttemptState::Lost);
    findings.expect(task.losses as usize <= n_lost, || {
        format!("losses is {}, but {n_lost} attempts were lost", task.losses)
    });
    let by_worker = definition.graph.kind(task.node) == NodeKind::Step;
    let n_outputs = usize::from(by_worker && matches!(task.phase, Phase::Completed));
    findings.expect(count(AttemptState::Completed) == n_outputs, || {
        format!(
            "it is {} after {} completed attempts",
            task.state(),
            count(AttemptState::Completed)
        )
    });
    let in_order = |attempt: &&AttemptRow| {
        attempt.claim.queued_at <= attempt.claim.started_at
            && attempt.claim.started_at <= attempt.ended_at
    };
    findings
        .expect(attempts.iter().all(in_order), || "an attempt ended before it started".to_owned());
}
