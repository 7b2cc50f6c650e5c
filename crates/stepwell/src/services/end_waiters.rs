//! Tells callers that the runs they wait for have ended. Runs that this process ended tell it
//! themselves; for the rest, all callers of one engine share one query per wake-up, about the runs
//! that a hint names, or about all of them when it is time.

use std::sync::Arc;

use crate::engine::{AwaitedRuns, Parts};
use crate::ports::{EndedRuns, Hint};

/// Most runs that one query asks for.
const RUNS_PER_QUERY: usize = 1_000;

/// Starts the loop that wakes callers.
pub(crate) fn start_waking(parts: &Arc<Parts>, awaited: &AwaitedRuns) {
    let closes = ClosesOnDrop(Arc::clone(parts));
    let wake_loop = wake_loop(Arc::clone(parts), awaited.clone());
    parts.spawner.spawn(Box::pin(async move {
        wake_loop.await;
        drop(closes);
    }));
}

async fn wake_loop(parts: Arc<Parts>, awaited: AwaitedRuns) {
    let mut hints = parts.store.hints();
    let interval = parts.config.poll_interval;
    let mut poll_at = parts.clock.elapsed() + interval;
    loop {
        let (now, mut ended) = (parts.clock.elapsed(), hints.look_at_ended());
        if now >= poll_at {
            ended = EndedRuns::Any;
            poll_at = now + interval;
        }
        let runs = awaited.hear(ended);
        for page in runs.chunks(RUNS_PER_QUERY) {
            match parts.store.ended(page).await {
                Ok(ended) => awaited.wake(ended),
                Err(error) => tracing::warn!(%error, "look for ended runs"),
            }
        }
        let is_idle = awaited.is_empty();
        let poll = async {
            if is_idle {
                return std::future::pending().await;
            }
            parts.clock.sleep(poll_at.saturating_sub(parts.clock.elapsed())).await;
        };
        tokio::select! {
            biased;
            () = parts.closing.cancelled() => break,
            () = awaited.added() => {}
            () = hints.given(Hint::Ended) => {}
            () = poll => {}
        }
        if is_idle {
            // Nobody waited, so nothing was missed.
            poll_at = parts.clock.elapsed() + interval;
        }
    }
    awaited.close();
}

/// Closes the engine when its runtime ends, which drops the loop half-way. Else the heartbeat and
/// the leader, which have threads of their own, would go on for a worker that can do nothing, and
/// callers would wait for ever.
struct ClosesOnDrop(Arc<Parts>);

impl Drop for ClosesOnDrop {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}
