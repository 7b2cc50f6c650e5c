//! The leader's loop: fires due timers and reaps dead workers. Engines that do not lead stand by.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::Epoch;

use crate::engine::Parts;
use crate::ports::{Hint, Lead, ReapRequest, StoreError};

/// Most workers reaped in one transaction.
const REAP_BATCH_MAX: usize = 100;

/// Leads or stands by until the engine closes, then resigns so that another engine takes over at
/// once.
pub(crate) async fn lead_loop(parts: Arc<Parts>) {
    let mut hints = parts.store.hints();
    let mut term: Option<LeaderTerm> = None;
    while !parts.closing.is_cancelled() {
        hints.look(Hint::Timers);
        let pause = match lead_once(&parts, term).await {
            Ok((next_term, pause)) => {
                term = next_term;
                pause
            }
            Err(error) => {
                // Another engine may lead by now; the next round asks the store.
                term = term.map(|term| LeaderTerm { renewed_at: None, ..term });
                if !matches!(error, StoreError::NotLeader) {
                    parts.contact.broke();
                    tracing::warn!(%error, "lead");
                }
                parts.config.leader_ttl / 3
            }
        };
        tokio::select! {
            biased;
            () = parts.closing.cancelled() => {}
            () = hints.given(Hint::Timers), if term.is_some() => {}
            () = parts.clock.sleep(pause) => {}
        }
    }
    if let Some(term) = term
        && let Err(error) = parts.store.resign(term.epoch).await
    {
        tracing::warn!(%error, "resign");
    }
}

/// A term in which this engine leads.
#[derive(Clone, Copy)]
struct LeaderTerm {
    epoch: Epoch,
    /// When it was renewed, by this process's clock; `None` if it must be renewed now.
    renewed_at: Option<Duration>,
}

/// Takes or keeps leadership and does what is due. Says how long to pause.
async fn lead_once(
    parts: &Parts,
    term: Option<LeaderTerm>,
) -> Result<(Option<LeaderTerm>, Duration), StoreError> {
    let config = &parts.config;
    let renew = config.leader_ttl / 3;
    let now = parts.clock.elapsed();
    let is_fresh = |term: &LeaderTerm| term.renewed_at.is_some_and(|at| now < at + renew);
    if let Some(term) = term.filter(is_fresh) {
        // Every write of a leader is fenced by its epoch, so there is no need to ask each time.
        let pause = pause(parts, fire_due(parts, term.epoch).await?);
        return Ok((Some(term), pause));
    }
    let lead = parts.store.lead(&parts.worker, config.leader_ttl).await?;
    parts.contact.answered();
    let Lead::Leading(epoch) = lead else {
        return Ok((None, renew));
    };
    // Dead workers are found also while timers cannot be fired.
    let fired = fire_due(parts, epoch).await;
    reap_dead(parts, epoch).await?;
    Ok((Some(LeaderTerm { epoch, renewed_at: Some(now) }), pause(parts, fired?)))
}

/// Until the next timer is due. A timer that another process set may give no hint, so the pause has
/// an end of its own.
fn pause(parts: &Parts, next_due: Option<Duration>) -> Duration {
    let renew = parts.config.leader_ttl / 3;
    next_due.unwrap_or(renew).min(renew).min(parts.config.timer_interval)
}

/// Fires what is due in bounded batches and says when the next timer is.
async fn fire_due(parts: &Parts, epoch: Epoch) -> Result<Option<Duration>, StoreError> {
    loop {
        let fired = parts.store.fire_timers(epoch, parts.config.timer_batch_max).await?;
        match fired.next_due {
            Some(due) if due.is_zero() => {}
            next_due => return Ok(next_due),
        }
    }
}

/// Reaps workers that are gone, and silent ones if this process has had answers for long enough
/// to judge silence.
async fn reap_dead(parts: &Parts, epoch: Epoch) -> Result<(), StoreError> {
    let request = ReapRequest {
        crash_limit: parts.config.crash_limit,
        workers_max: REAP_BATCH_MAX,
        judges_silence: parts.contact.has_held_for(parts.config.lease),
    };
    let reaped = Arc::clone(&parts.store).reap(epoch, request).await?;
    if reaped.n_workers > 0 {
        tracing::warn!(workers = reaped.n_workers, tasks = reaped.n_tasks, "reaped dead workers");
    }
    Ok(())
}
