//! The leader's loop: fires due timers and reaps dead workers. Others stand by.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::Epoch;

use crate::engine::Parts;
use crate::ports::{Hint, Lead, ReapRequest, StoreError};

/// Most workers reaped in one transaction.
const REAP_BATCH_MAX: usize = 100;

/// Leads or stands by until the engine closes, then resigns so that another takes over at once.
pub(crate) async fn lead_loop(parts: Parts) {
    let mut hints = parts.store.hints();
    let mut led = None;
    while !parts.closing.is_cancelled() {
        hints.look(Hint::Timers);
        let pause = match lead_once(&parts).await {
            Ok((epoch, pause)) => {
                led = epoch;
                pause
            }
            Err(StoreError::NotLeader) => parts.config.leader_ttl / 3,
            Err(error) => {
                parts.contact.broke();
                tracing::warn!(%error, "lead");
                parts.config.leader_ttl / 3
            }
        };
        tokio::select! {
            biased;
            () = parts.closing.cancelled() => {}
            () = hints.given(Hint::Timers), if led.is_some() => {}
            () = parts.clock.sleep(pause) => {}
        }
    }
    if let Some(epoch) = led
        && let Err(error) = parts.store.resign(epoch).await
    {
        tracing::warn!(%error, "resign");
    }
}

/// Takes or keeps leadership and does what is due. Says how long to pause.
async fn lead_once(parts: &Parts) -> Result<(Option<Epoch>, Duration), StoreError> {
    let config = &parts.config;
    let renew = config.leader_ttl / 3;
    let lead = parts.store.lead(&parts.worker, config.leader_ttl).await?;
    parts.contact.answered();
    let Lead::Leading(epoch) = lead else {
        return Ok((None, renew));
    };
    // Dead workers are found also while timers cannot be fired.
    let fired = fire_due(parts, epoch).await;
    reap_dead(parts, epoch).await?;
    let next_due = fired?;
    // A timer set by another process may give no hint, so the pause has an end of its own.
    let pause = next_due.unwrap_or(renew).min(renew).min(config.timer_interval);
    Ok((Some(epoch), pause))
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
