//! A worker claims a queued task.

use crate::id::{Token, WorkerId};
use crate::run::{Claim, Phase, TaskRow};
use crate::time::Timestamp;

/// Whether a task may be the reason why its workers died: one more loss would end it. A suspect is
/// executed alone, in a [trial](crate::trial), so that a further crash tells that it was this task.
#[must_use]
pub const fn is_suspect(losses: u32, crash_limit: u32) -> bool {
    losses >= suspects_from(crash_limit)
}

/// The losses from which on a task is a suspect, for queries that filter by them.
#[must_use]
pub const fn suspects_from(crash_limit: u32) -> u32 {
    crash_limit.saturating_sub(1)
}

/// Whether a task of a run with this [standing deadline](crate::run::RunRow::standing_deadline) may
/// still start: once it has passed, the run is only to be ended.
#[must_use]
pub fn may_start(deadline: Option<Timestamp>, now: Timestamp) -> bool {
    deadline.is_none_or(|deadline| now < deadline)
}

/// What a claim writes besides who claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedAttempt {
    /// The number of the attempt that begins.
    pub attempt: u32,
    /// When it begins.
    pub started_at: Timestamp,
}

/// What a claim at `now` writes into a task that was queued at `queued_at` after so many attempts.
///
/// The count rises here and not when the attempt ends, so that an execution which takes its
/// process down was counted. A task may have been queued by a transaction that began later than
/// the claim's; it never starts before it was queued.
#[must_use]
pub fn start_attempt(n_attempts: u32, queued_at: Timestamp, now: Timestamp) -> StartedAttempt {
    StartedAttempt { attempt: n_attempts + 1, started_at: now.max(queued_at) }
}

/// Marks a queued task as claimed.
///
/// Returns `false`, and changes nothing, if the task is not ready.
pub fn claim(task: &mut TaskRow, worker: &WorkerId, token: Token, now: Timestamp) -> bool {
    let Phase::Queued { since: queued_at, due: None } = task.phase else {
        return false;
    };
    let StartedAttempt { attempt, started_at } = start_attempt(task.attempt, queued_at, now);
    task.attempt = attempt;
    task.phase = Phase::Running(Claim { worker: worker.clone(), token, queued_at, started_at });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn an_attempt_never_starts_before_its_task_was_queued() {
        let queued_at = Timestamp::EPOCH.after(Duration::from_secs(5));
        let earlier = start_attempt(2, queued_at, Timestamp::EPOCH);
        assert_eq!(earlier, StartedAttempt { attempt: 3, started_at: queued_at });
        let now = queued_at.after(Duration::from_secs(1));
        assert_eq!(start_attempt(0, queued_at, now).started_at, now);
    }
}
