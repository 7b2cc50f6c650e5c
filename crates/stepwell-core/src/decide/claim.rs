//! A worker claims a queued task.

use crate::id::{Token, WorkerId};
use crate::run::{Claim, Phase, TaskRow};
use crate::time::Timestamp;

/// Whether a task may be the reason why its workers died: one more loss would end it. A worker
/// holds one suspect at a time, so that a further crash tells which task it was.
#[must_use]
pub const fn is_suspect(losses: u32, crash_limit: u32) -> bool {
    losses + 1 >= crash_limit
}

/// Marks a queued task as claimed and counts the attempt. The count rises here and not when the
/// attempt ends, so that an execution which takes its process down was counted.
///
/// Returns `false`, and changes nothing, if the task is not ready.
pub fn claim(task: &mut TaskRow, worker: &WorkerId, token: Token, now: Timestamp) -> bool {
    let Phase::Queued { since, due: None } = task.phase else {
        return false;
    };
    task.attempt += 1;
    task.phase =
        Phase::Running(Claim { worker: worker.clone(), token, queued_at: since, started_at: now });
    true
}
