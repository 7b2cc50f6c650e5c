//! Firing timers that are due.

use std::collections::BTreeSet;
use std::time::Duration;

use stepwell_core::decide::{Happening, Verdict};
use stepwell_core::id::{Epoch, Node, RunKey};
use stepwell_core::time::Timestamp;

use super::super::rows::{TaskKeys, int32, key, read_all, rows_max, timer};
use super::super::run::{Happened, Happenings, RunSet};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::term::check_epoch;
use crate::ports::{FiredTimers, HintSet};

const DUE_TIMERS: Sql = sql::TIMER.named("due_timers");
const DELETE_STALE_TIMERS: Sql = sql::TIMER.named("delete_stale_timers");
const LOCK_RUN_OF_TIMER: Sql = sql::TIMER.named("lock_run_of_timer");
const PUT_OFF_TIMER: Sql = sql::TIMER.named("put_off_timer");
const NEXT_TIMER: Sql = sql::TIMER.named("next_timer");

/// Fires timers that are due, earliest first. One whose task has moved on is deleted.
pub(crate) async fn fire(
    runs: &RunSet<'_>,
    epoch: Epoch,
    timers_max: usize,
) -> PgResult<(FiredTimers, HintSet)> {
    let session = runs.session;
    check_epoch(session, epoch).await?;
    let now = session.now();
    let rows = session.all(DUE_TIMERS, &[&now.as_micros(), &rows_max(timers_max)]).await?;
    let due: Vec<(RunKey, Node)> = read_all(&rows, |row| Ok(timer::read(row)?.0))?;
    let mut happenings = Happenings::new();
    for (run, node) in &due {
        let happened = Happened { token: None, happening: Happening::timer_fired(*node) };
        happenings.entry(*run).or_default().push(happened);
    }
    let (mut verdicts, hints) = runs.happen(happenings).await?;
    let n_due = due.len();
    let is_stale =
        |timer: &(RunKey, Node)| !verdicts.next(timer.0).is_some_and(Verdict::is_applied);
    let stale: BTreeSet<(RunKey, Node)> = due.into_iter().filter(is_stale).collect();
    let n_fired = n_due - stale.len();
    delete_stale(session, TaskKeys::of(stale), now).await?;
    let next = session.one(NEXT_TIMER, &[]).await?;
    let next = next.as_ref().map(timer::read_due).transpose()?;
    let next_due = next.map(|due| due.since(session.now()));
    Ok((FiredTimers { n_fired, next_due }, hints))
}

/// Makes the first timer that is due be due so much later, and says whose it is.
pub(crate) async fn put_off(
    session: &Session,
    epoch: Epoch,
    span: Duration,
) -> PgResult<Option<(RunKey, Node)>> {
    check_epoch(session, epoch).await?;
    let now = session.now();
    let first = session.one(DUE_TIMERS, &[&now.as_micros(), &rows_max(1)]).await?;
    let Some(first) = first else { return Ok(None) };
    let ((run, node), _) = timer::read(&first)?;
    session.all(LOCK_RUN_OF_TIMER, &[&key(run)]).await?;
    let later = now.after(span).as_micros();
    session.run(PUT_OFF_TIMER, &[&key(run), &int32(node.0), &later, &now.as_micros()]).await?;
    Ok(Some((run, node)))
}

async fn delete_stale(session: &Session, stale: TaskKeys, now: Timestamp) -> PgResult<()> {
    if stale.is_empty() {
        return Ok(());
    }
    let [runs, nodes] = stale.params();
    session.run(DELETE_STALE_TIMERS, &[runs, nodes, &now.as_micros()]).await
}
