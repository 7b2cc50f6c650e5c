//! The invariants that hold after everything that happens to a run.

use std::collections::{BTreeMap, BTreeSet};

use stepwell_core::id::Node;
use stepwell_core::run::{
    AttemptRow, AttemptState, EventKind, EventRow, MemoRow, Phase, RunStatus, TaskRow, TaskState,
    fold, read_log,
};

use super::{CRASH_LIMIT, Story, check_inbox};

/// What must still stand after a change.
pub(super) struct Before {
    pub(super) status: RunStatus,
    pub(super) is_start: bool,
    ended: BTreeMap<Node, TaskRow>,
    next_event: u64,
    n_events: usize,
    n_memos: usize,
    waits: BTreeSet<(Node, String)>,
}

impl Before {
    pub(super) fn of(story: &Story) -> Self {
        let ended = story.tasks.iter().filter(|(_, t)| t.state().is_terminal());
        Self {
            status: story.run.status,
            is_start: story.tasks.is_empty(),
            ended: ended.map(|(node, task)| (*node, task.clone())).collect(),
            next_event: story.run.next_event,
            n_events: story.events.len(),
            n_memos: story.all_memos.len(),
            waits: story.waits.keys().cloned().collect(),
        }
    }

    /// What ended waits just now was for them, in time and in turn. If others were cancelled or
    /// given up in the same batch, what they would have got cannot be told any more.
    pub(super) fn looked_rightly(&self, story: &Story) {
        let events = &story.events[self.n_events..];
        if events.iter().any(|event| event.kind == EventKind::Cancelled) {
            return;
        }
        let memos = &story.all_memos[self.n_memos..];
        let has_ended = |(node, key): &&(Node, String)| {
            let is_memo = |memo: &MemoRow| memo.node == *node && memo.key == *key;
            let is_resumed = |event: &EventRow| match &event.kind {
                EventKind::Signalled { key: of, .. } | EventKind::TimedOut { key: of, .. } => {
                    event.node == Some(*node) && of == key
                }
                _ => false,
            };
            memos.iter().any(is_memo) || events.iter().any(is_resumed)
        };
        let mut gone = self.waits.iter().filter(|wait| !story.waits.contains_key(*wait));
        if !gone.all(|wait| has_ended(&wait)) {
            return;
        }
        for event in events {
            check_inbox::resumed_rightly(story, event);
        }
    }

    /// Terminal states absorb; only the counters of parents may still move below them.
    pub(super) fn absorbed_by(&self, story: &Story) {
        for (node, before) in &self.ended {
            let now = &story.tasks[node];
            // S8
            assert_eq!(now.phase, before.phase, "S8: {node:?} left a terminal state");
            assert_eq!(now.attempt, before.attempt, "S8: {node:?} was attempted again");
            assert_eq!(now.resumed, before.resumed, "S8: {node:?} was resumed again");
        }
        if self.status.is_terminal() {
            // S8
            assert_eq!(story.run.status, self.status, "S8: the run left its end");
            assert_eq!(story.run.next_event, self.next_event, "S8: the log went on");
            assert_eq!(story.events.len(), self.n_events, "S8: the log went on");
        }
    }
}

/// Checks all invariants of a run.
pub(super) fn invariants(story: &Story) {
    for task in story.tasks.values() {
        fan_in(story, task);
        skip_rule(story, task);
        cancel_rule(story, task);
        charges(story, task);
    }
    lines(story);
    counters(story);
    end(story);
    log(story);
    check_inbox::invariants(story);
}

fn state(story: &Story, node: Node) -> TaskState {
    story.tasks[&node].state()
}

/// S4: the counters equal the edges, and a task is blocked exactly as long as they say so.
fn fan_in(story: &Story, task: &TaskRow) {
    let node = task.node;
    let parents = story.definition.graph.parents(node);
    let in_state = |wanted: &[TaskState]| {
        let met = parents.iter().filter(|e| wanted.contains(&state(story, e.node)));
        u32::try_from(met.count()).expect("few parents")
    };
    let n_skipped = in_state(&[TaskState::Skipped]);
    let n_met = in_state(&[TaskState::Skipped, TaskState::Completed]);
    let n_parents = u32::try_from(parents.len()).expect("few parents");
    // S4
    assert_eq!(task.n_unmet, n_parents - n_met, "S4: n_unmet of {node:?}");
    assert_eq!(task.n_skipped, n_skipped, "S4: n_skipped of {node:?}");
    match task.state() {
        TaskState::Pending => assert!(task.n_unmet > 0, "S4: {node:?} waits for nothing"),
        TaskState::Cancelled | TaskState::Skipped => {}
        // S3
        _ => assert_eq!(task.n_unmet, 0, "S3: {node:?} did not wait for its parents"),
    }
}

/// S16: a task is skipped if its condition says so, if it needs a skipped parent, or if all its
/// parents were skipped, and in no other case.
fn skip_rule(story: &Story, task: &TaskRow) {
    let parents = story.definition.graph.parents(task.node);
    let skipped = |node: Node| state(story, node) == TaskState::Skipped;
    let needs = parents.iter().any(|e| e.needed && skipped(e.node));
    let all = !parents.is_empty() && parents.iter().all(|e| skipped(e.node));
    let condition = story.conditions.contains(&task.node);
    let node = task.node;
    match task.state() {
        TaskState::Skipped => assert!(needs || all || condition, "S16: why is {node:?} skipped?"),
        // A failed parent came first.
        TaskState::Cancelled => {}
        state => assert!(!needs && !all && !condition, "S16: {node:?} is {state}, not skipped"),
    }
}

/// Below a failed or cancelled parent nothing is open or done, and nothing else is cancelled.
fn cancel_rule(story: &Story, task: &TaskRow) {
    let parents = story.definition.graph.parents(task.node);
    let broken =
        |node: Node| matches!(state(story, node), TaskState::Failed | TaskState::Cancelled);
    let fail_fast = story.definition.policy.fail_fast && story.run.n_failed > 0;
    let below = parents.iter().any(|edge| broken(edge.node));
    let is_over = |kind: &EventKind| {
        matches!(kind, EventKind::RunCancelled { .. } | EventKind::DeadlinePassed)
    };
    let over = story.events.iter().any(|event| is_over(&event.kind));
    let node = task.node;
    match task.state() {
        TaskState::Skipped => {}
        TaskState::Cancelled if node == Node::ON_FAILURE => {
            assert!(was_forced(story), "only force cancels the handler");
        }
        TaskState::Cancelled => {
            assert!(below || fail_fast || over, "why is {node:?} cancelled?");
        }
        state => {
            assert!(!below, "{node:?} is {state} below a failed parent");
            let is_open = !state.is_terminal() && node != Node::ON_FAILURE;
            assert!(!(is_open && fail_fast), "{node:?} is {state} after a failure");
            assert!(!(is_open && over), "{node:?} is {state} in a run that is over");
        }
    }
}

fn was_forced(story: &Story) -> bool {
    let is_forced = |kind: &EventKind| matches!(kind, EventKind::RunCancelled { forced: true, .. });
    story.events.iter().any(|event| is_forced(&event.kind))
}

/// S9: failures and losses are counted apart, within their limits, and nothing else is charged.
fn charges(story: &Story, task: &TaskRow) {
    let node = task.node;
    let attempts: Vec<&AttemptRow> = story.attempts.iter().filter(|a| a.node == node).collect();
    let is_failed =
        |a: &&&AttemptRow| matches!(a.state, AttemptState::Failed | AttemptState::TimedOut);
    // A function that begins another round is forgiven what went before.
    let continued = story.events.iter().rfind(|event| {
        event.node == Some(node) && matches!(event.kind, EventKind::Continued { .. })
    });
    let since = continued.map_or(0, |event| event.attempt);
    let is_charged = |a: &&&AttemptRow| is_failed(a) && a.attempt > since;
    let n_failed = u32::try_from(attempts.iter().filter(is_charged).count()).expect("few attempts");
    // S9
    assert_eq!(task.failures, n_failed, "S9: failures of {node:?}");
    assert!(n_failed <= 1 + story.definition.retry(node).retries_max);
    // R14, S9
    let is_over = task.losses == CRASH_LIMIT && task.state() == TaskState::Failed;
    assert!(task.losses < CRASH_LIMIT || is_over, "S9: losses of {node:?}");
    let last = task.attempt - u32::from(task.claim().is_some());
    let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "attempts of {node:?}");
}

/// Queue, timers and claims hold exactly what the rows say.
fn lines(story: &Story) {
    let mut queue = BTreeSet::new();
    let (mut timers, mut claims) = (BTreeMap::new(), BTreeMap::new());
    for (node, task) in &story.tasks {
        match &task.phase {
            Phase::Queued { due: None, .. } => drop(queue.insert(*node)),
            Phase::Running(claim) => drop(claims.insert(*node, claim.token)),
            phase => timers.extend(phase.due().map(|due| (*node, due))),
        }
    }
    let deadline = story.run.deadline.filter(|_| story.run.status == RunStatus::Running);
    timers.extend(deadline.map(|due| (Node::DEADLINE, due)));
    // Set by what gives up a wait, and gone when it fired.
    let look_again = story.timers.get(&Node::LOOK_AGAIN).filter(|_| !story.has_ended());
    timers.extend(look_again.map(|due| (Node::LOOK_AGAIN, *due)));
    let queued: BTreeSet<Node> = story.queue.iter().copied().collect();
    // R15
    assert_eq!(queued.len(), story.queue.len(), "R15: a task is queued twice");
    assert_eq!(queued, queue, "the queue holds what is ready");
    assert_eq!(story.timers, timers, "a timer stands where something is due");
    assert_eq!(story.claims, claims, "a claim stands for each running task");
}

fn counters(story: &Story) {
    let count = |wanted: &dyn Fn(TaskState) -> bool| {
        let found = story.tasks.values().filter(|task| wanted(task.state()));
        u32::try_from(found.count()).expect("few tasks")
    };
    let run = &story.run;
    assert_eq!(run.n_open, count(&|state| !state.is_terminal()), "open tasks");
    assert_eq!(run.n_failed, count(&|state| state == TaskState::Failed), "failed tasks");
    let n_cancelled = count(&|state| state == TaskState::Cancelled);
    assert_eq!(run.n_cancelled, n_cancelled, "cancelled tasks");
}

/// A run has ended exactly when nothing of it is open, and ends as its tasks did.
fn end(story: &Story) {
    let run = &story.run;
    // R16
    assert_eq!(story.has_ended(), run.n_open == 0, "R16: a run ends with its last task");
    assert_eq!(run.ended_at.is_some(), story.has_ended());
    if !story.has_ended() {
        return;
    }
    // S16
    let is_idle = story.queue.is_empty() && story.timers.is_empty() && story.claims.is_empty();
    assert!(is_idle && story.waits.is_empty(), "S16: something of an ended run is left");
    let expected = match (&run.failure, run.cancelled) {
        (Some(_), _) => RunStatus::Failed,
        (None, true) => RunStatus::Cancelled,
        (None, false) => RunStatus::Completed,
    };
    assert_eq!(run.status, expected);
    assert!(run.failure.is_some() || run.n_failed == 0, "a failed task fails its run");
    let handled = story.tasks.contains_key(&Node::ON_FAILURE);
    let is_ending = |kind: &EventKind| matches!(kind, EventKind::RunEnding { .. });
    let was_ending = story.events.iter().any(|event| is_ending(&event.kind));
    assert_eq!(handled, was_ending, "a run is ENDING while its handler is at work");
    let failed = run.status == RunStatus::Failed;
    let is_due = failed && story.definition.policy.on_failure;
    // R20
    assert!(handled == is_due || (was_forced(story) && !handled), "R20: the handler ran");
}

/// S19: the numbers have no gaps, and folding the log gives the rows.
fn log(story: &Story) {
    let events = read_log(&story.log());
    let numbered = events.iter().filter_map(|event| event.number);
    let last = numbered.max().expect("a log begins with the start of the run");
    // S19
    assert_eq!(last + 1, story.run.next_event, "S19: a number was reserved and not used");
    let (status, mut tasks) = fold(&events).expect("S19: the log folds");
    assert_eq!(status, story.run.status, "S19: the log and the run differ");
    for (node, task) in &story.tasks {
        let folded = tasks.remove(node).unwrap_or(TaskState::Pending);
        assert_eq!(folded, task.state(), "S19: the log and the row of {node:?} differ");
    }
    assert!(tasks.is_empty(), "S19: the log speaks of tasks that are not there");
}
