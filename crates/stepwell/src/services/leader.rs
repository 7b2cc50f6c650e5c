//! The leader's loop: fires due timers and reaps dead workers. Engines that do not lead stand by,
//! and watch the workers all the same: whoever takes over knows who has been silent.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::Epoch;
use stepwell_core::lease::LastBeat;
use stepwell_core::silence::{Look, SilenceWatch};

use crate::engine::Parts;
use crate::ports::{Hint, Lead, ReapRequest, StoreError};

/// Most workers reaped in one transaction. The next ones come after a look whether this engine
/// still leads.
const REAP_BATCH_MAX: usize = 10;

/// The shortest pause between two looks at the workers, however short their leases.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(20);

/// Leads or stands by until the engine closes, then resigns so that another engine takes over at
/// once.
pub(crate) async fn lead_loop(parts: Arc<Parts>) {
    let mut hints = parts.store.hints();
    let mut candidate = Candidate::new(&parts);
    while !parts.closing.is_cancelled() {
        hints.look(Hint::Timers);
        let pause = candidate.round().await;
        tokio::select! {
            biased;
            () = parts.closing.cancelled() => {}
            () = hints.given(Hint::Timers), if candidate.epoch.is_some() => {}
            () = parts.clock.sleep(pause) => {}
        }
    }
    if let Some(epoch) = candidate.epoch
        && let Err(error) = parts.store.resign(epoch).await
    {
        tracing::warn!(%error, "resign");
    }
}

/// One who leads, or would. All moments are of this process's own clock.
struct Candidate<'p> {
    parts: &'p Parts,
    /// The epoch in which this engine leads, as far as it knows.
    epoch: Option<Epoch>,
    /// When to ask again who leads.
    renew_at: Duration,
    silence: SilenceWatch,
    /// The dead that are still to be reaped.
    dead: Vec<LastBeat>,
    /// When to look at the workers again.
    look_at: Duration,
}

impl<'p> Candidate<'p> {
    fn new(parts: &'p Parts) -> Self {
        let (epoch, silence, dead) = (None, SilenceWatch::default(), Vec::new());
        let (renew_at, look_at) = (Duration::ZERO, Duration::ZERO);
        Self { parts, epoch, renew_at, silence, dead, look_at }
    }

    /// Does what is due, each thing in one bounded piece: what is left comes in the next round,
    /// so that leadership is renewed in between. What goes wrong with one thing keeps no other
    /// from being done. Says how long to pause.
    async fn round(&mut self) -> Duration {
        let now = self.parts.clock.elapsed();
        if now >= self.renew_at
            && let Err(error) = self.renew(now).await
        {
            // Another engine may lead by now, or nobody; and nothing else could be asked either.
            tracing::warn!(%error, "lead");
            return self.renew_pause();
        }
        if now >= self.look_at {
            self.look_at = now + self.renew_pause();
            self.look().await.unwrap_or_else(|error| tracing::warn!(%error, "look at workers"));
        }
        let Some(epoch) = self.epoch else { return self.until_next(self.renew_pause()) };
        let fired = self.fire(epoch).await;
        let reaped = self.reap(epoch).await;
        let next_due = self.heard("fire timers", fired);
        if self.heard("reap dead workers", reaped) == Some(Left::Some) {
            return Duration::ZERO;
        }
        // A timer that another process set may give no hint.
        let timer_interval = self.parts.config.timer_interval;
        let next_due =
            next_due.map(|due| due.map_or(timer_interval, |due| due.min(timer_interval)));
        self.until_next(next_due.unwrap_or_else(|| self.renew_pause()))
    }

    /// Takes or keeps leadership, or finds that somebody else has it.
    async fn renew(&mut self, now: Duration) -> Result<(), StoreError> {
        let (worker, ttl) = (&self.parts.worker, self.parts.config.leader_ttl);
        let lead = self.parts.store.lead(worker, ttl).await?;
        self.renew_at = now + self.renew_pause();
        self.epoch = match lead {
            Lead::Leading(epoch) => Some(epoch),
            Lead::Following => None,
        };
        Ok(())
    }

    /// Looks at all workers.
    async fn look(&mut self) -> Result<(), StoreError> {
        let clock = &self.parts.clock;
        let asked_at = clock.elapsed();
        let lives = self.parts.store.lives().await?;
        let look = Look { asked_at, answered_at: clock.elapsed() };
        self.dead = self.silence.look(look, &lives);
        let pause = self.silence.pause_max().map_or(self.renew_pause(), |pause| {
            pause.clamp(LOOK_PAUSE_MIN.min(self.renew_pause()), self.renew_pause())
        });
        self.look_at = asked_at + pause;
        Ok(())
    }

    /// Reaps some of the dead, and says whether there are more.
    async fn reap(&mut self, epoch: Epoch) -> Result<Left, StoreError> {
        let n = self.dead.len().min(REAP_BATCH_MAX);
        if n == 0 {
            return Ok(Left::Nobody);
        }
        let dead: Vec<LastBeat> = self.dead.drain(..n).collect();
        let crash_limit = self.parts.config.crash_limit;
        let reaped = self.parts.store.reap(epoch, ReapRequest { crash_limit, dead }).await?;
        if reaped.n_workers > 0 {
            let (workers, tasks) = (reaped.n_workers, reaped.n_tasks);
            tracing::warn!(workers, tasks, "reaped dead workers");
        }
        Ok(if self.dead.is_empty() { Left::Nobody } else { Left::Some })
    }

    /// Fires some of the timers that are due and says when the next one is.
    async fn fire(&self, epoch: Epoch) -> Result<Option<Duration>, StoreError> {
        let n = self.parts.config.timer_batch_max;
        Ok(self.parts.store.fire_timers(epoch, n).await?.next_due)
    }

    /// The answer of a duty. One that is refused because another leads makes this engine ask who.
    fn heard<T>(&mut self, duty: &str, answer: Result<T, StoreError>) -> Option<T> {
        match answer {
            Ok(answer) => return Some(answer),
            Err(StoreError::NotLeader) => {
                self.epoch = None;
                self.renew_at = Duration::ZERO;
            }
            Err(error) => tracing::warn!(%error, "{duty}"),
        }
        None
    }

    /// How long until the next thing that is not about timers, `pause` at most.
    fn until_next(&self, pause: Duration) -> Duration {
        let now = self.parts.clock.elapsed();
        self.renew_at.min(self.look_at).saturating_sub(now).min(pause)
    }

    /// Leadership is renewed three times in the span that it lasts.
    fn renew_pause(&self) -> Duration {
        self.parts.config.leader_ttl / 3
    }
}

/// Whether dead workers are left to be reaped.
#[derive(PartialEq, Eq)]
enum Left {
    Nobody,
    Some,
}
