//! Whether anything can still happen to the runs of a test.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use stepwell_core::run::{RunStatus, TaskRow, TaskState};
use stepwell_core::time::Timestamp;

use super::runtime::World;
use super::stuck::Stuck;
use crate::ports::{ClaimRef, Clock, Inspection, RunFilter, Runs, StoreDump, StoreError};

/// How often time may move without any change before hope without a date is given up: more often
/// than any lease needs to end.
const JUMPS_MAX: usize = 1_000;

/// What is known of a store while time is moved on.
#[derive(Default)]
pub(super) struct Hope {
    /// Looking at a whole store takes its time, so it is done once per change.
    n_changes: Option<u64>,
    n_open: usize,
    due: BTreeSet<Timestamp>,
    claims: BTreeSet<ClaimRef>,
    /// Whether a task is ready that has lost workers: if it is a suspect, workers take it when they
    /// have served others.
    has_lost: bool,
    n_jumps: usize,
}

impl Hope {
    /// How long until the next timer is due, by virtual time.
    pub(super) fn next_due(world: &World) -> Result<Option<Duration>, Stuck> {
        let due = dump(world)?.timers.into_values().min();
        Ok(due.map(|due| due.since(world.clock.now())))
    }

    /// Whether all runs have ended.
    pub(super) fn is_fulfilled(&mut self, world: &World) -> Result<bool, Stuck> {
        let n_changes = world.store.n_changes();
        if self.n_changes == Some(n_changes) {
            self.n_jumps += 1;
            return Ok(false);
        }
        if all_ended(world)? {
            return Ok(true);
        }
        let StoreDump { runs, tasks, timers, claims, .. } = dump(world)?;
        let is_lost = |task: &TaskRow| task.losses > 0 && task.state() == TaskState::Queued;
        self.has_lost = tasks.values().flatten().any(is_lost);
        self.n_open = runs.values().filter(|log| !log.run.status.is_terminal()).count();
        self.due = timers.into_values().collect();
        self.claims = claims.into_values().flatten().collect();
        self.n_jumps = 0;
        self.n_changes = Some(n_changes);
        Ok(false)
    }

    /// Whether a run can still move on: by a timer, by a step that waits for time, by the end of a
    /// dead worker's lease, or by a trial of suspects.
    pub(super) fn is_left(&self, world: &World) -> bool {
        let now = world.clock.now();
        let steps = world.executions.all();
        let has_date = self.due.iter().any(|due| *due > now)
            || steps.iter().any(|step| step.sleeps(&world.clock));
        let executed: BTreeSet<ClaimRef> = steps.iter().filter_map(|step| step.claim()).collect();
        let is_abandoned = |claim: &ClaimRef| !executed.contains(claim);
        let has_reason = !self.due.is_empty()
            || self.claims.iter().any(is_abandoned)
            || self.has_lost
            || steps.iter().any(|step| step.has_timeout);
        has_date || has_reason && self.n_jumps < JUMPS_MAX
    }

    /// How many runs are open, in words.
    pub(super) fn n_open(&self) -> String {
        if self.n_open == 1 { "1 run".to_owned() } else { format!("{} runs", self.n_open) }
    }
}

fn all_ended(world: &World) -> Result<bool, Stuck> {
    for status in [RunStatus::Running, RunStatus::Ending] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let mut before = None;
        loop {
            let page = answer(world.store.list(&filter, before, 1).now_or_never())?;
            if !page.runs.is_empty() {
                return Ok(false);
            }
            // A page looks at so many runs only.
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(true)
}

fn dump(world: &World) -> Result<StoreDump, Stuck> {
    answer(world.store.dump().now_or_never())
}

fn answer<T>(answer: Option<Result<T, StoreError>>) -> Result<T, Stuck> {
    let answer = answer.expect("a call is waited for where it is made");
    answer.map_err(|error| Stuck(format!("look at the store: {error}")))
}
