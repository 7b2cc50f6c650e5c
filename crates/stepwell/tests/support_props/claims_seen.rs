//! What of a snapshot is asked about claims.

use std::collections::BTreeMap;

use stepwell::core::decide::is_suspect;
use stepwell::core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell::core::id::{Node, RunKey, WorkerId};
use stepwell::core::run::{AttemptState, Attributes, Phase, TaskRow, WaitFor};
use stepwell::ports::{ClaimRef, ClaimedTask, Outcome, Payload, StoreDump, TaskPlace};

use super::watch::{CHANGES_PER_REPLAY, Notes};

pub(crate) fn task(dump: &StoreDump, run: RunKey, node: Node) -> Option<&TaskRow> {
    dump.tasks.get(&run)?.iter().find(|task| task.node == node)
}

pub(super) fn is_held(dump: &StoreDump, claim: ClaimRef) -> bool {
    task(dump, claim.run, claim.node).is_some_and(|task| task.is_held_by(claim.token))
}

/// Whether a claim's own outcome is what ended its attempt.
pub(super) fn was_committed(dump: &StoreDump, claim: ClaimRef) -> bool {
    let attempts = dump.runs.get(&claim.run).into_iter().flat_map(|log| &log.attempts);
    attempts
        .filter(|attempt| attempt.node == claim.node && attempt.claim.token == claim.token)
        .any(|attempt| !matches!(attempt.state, AttemptState::Lost | AttemptState::Cancelled))
}

/// FE3: the task was ready, and the worker serves its queue and its definition.
pub(super) fn may_take(notes: &Notes, worker: &WorkerId, taken: &ClaimedTask) -> bool {
    let (run, node) = (taken.claim.run, taken.claim.node);
    let Some(served) = notes.served.get(worker) else { return false };
    let Some(TaskPlace::Ready(queue, _)) = notes.last.places.get(&(run, node)) else {
        return false;
    };
    let row = task(&notes.last, run, node);
    row.is_some_and(|row| matches!(row.phase, Phase::Queued { due: None, .. }))
        && served.queues.contains(queue)
        && served.services.contains(&taken.definition.marked_service())
}

/// How many tasks of a worker one more loss would end.
pub(super) fn suspects(dump: &StoreDump, worker: &WorkerId, crash_limit: u32) -> usize {
    let claims = dump.claims.get(worker).into_iter().flatten();
    let tasks = claims.filter_map(|claim| task(dump, claim.run, claim.node));
    tasks.filter(|task| is_suspect(task.losses, crash_limit)).count()
}

/// Whether one suspect was charged for a death, or a task that was alone; or else all that were
/// there, as long as that ends none of them.
pub(super) fn is_charged(before: &[u32], after: &[u32], crash_limit: u32) -> bool {
    let charged: Vec<u32> =
        before.iter().zip(after).filter(|(b, a)| *b + 1 == **a).map(|(b, _)| *b).collect();
    let n_kept = before.iter().zip(after).filter(|(b, a)| b == a).count();
    let has_suspect = before.iter().any(|losses| is_suspect(*losses, crash_limit));
    if has_suspect || before.len() == 1 {
        let is_right = |losses: &u32| !has_suspect || is_suspect(*losses, crash_limit);
        return charged.len() == 1 && is_right(&charged[0]) && n_kept == before.len() - 1;
    }
    charged.len() == before.len()
}

/// Some claim that no longer holds its task, and something it might still say.
pub(super) fn spent_claim(notes: &Notes, dump: &StoreDump) -> Option<(ClaimRef, Outcome)> {
    let spent = |claim: &&ClaimRef| !is_held(dump, **claim);
    let n = notes.claims.len().max(1);
    // A number without a common divisor with most sizes visits all claims in turn.
    let from = (notes.n_changes * 7_919) % n;
    let claim = notes.claims.iter().cycle().skip(from).take(n).find(spent)?;
    let stale = || Payload::new("json".into(), *b"4711");
    let failure = Failure::new(FailureKind::Error, "", "late").with_retry(RetryAdvice::Never);
    let none = BTreeMap::new;
    let wait_for =
        WaitFor { signals: vec!["late".into()], matching: Attributes::new(), timeout: None };
    let outcome = match (notes.n_changes / CHANGES_PER_REPLAY) % 6 {
        0 | 1 => Outcome::Completed { output: stale(), notes: none() },
        2 => {
            Outcome::Failed { failure, notes: none(), chance: 0, failures: 0, forgets: Vec::new() }
        }
        3 => Outcome::Released,
        4 => Outcome::Waits { wait_for, notes: none() },
        _ => Outcome::Skipped,
    };
    Some((*claim, outcome))
}

/// Whether two snapshots show the same rows.
pub(super) fn is_same(before: &StoreDump, after: &StoreDump) -> bool {
    let is_same_log = |(run, log): (&RunKey, &stepwell::core::run::RunLog)| {
        after.runs.get(run).is_some_and(|later| {
            log.run == later.run && log.attempts == later.attempts && log.events == later.events
        })
    };
    before.runs.len() == after.runs.len()
        && before.runs.iter().all(is_same_log)
        && before.tasks == after.tasks
        && before.places == after.places
        && before.timers == after.timers
        && before.waits == after.waits
        && before.signals == after.signals
        && before.claims == after.claims
        && before.admitted == after.admitted
}
