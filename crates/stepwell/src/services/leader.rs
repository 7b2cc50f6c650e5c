//! The leader's loop: fires due timers, reaps dead workers, and moves tasks to where they are
//! served. Engines that do not lead stand by, and watch the workers all the same: whoever takes
//! over knows who has been silent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::Epoch;
use stepwell_core::lease::LastBeat;
use stepwell_core::silence::{Look, SilenceWatch};

use crate::engine::Parts;
use crate::ports::{Hint, Lead, ReapRequest, Reaped, StoreError};

/// Most workers reaped in one transaction. The next ones come after a look whether this engine
/// still leads.
const REAP_BATCH_MAX: usize = 10;

/// For how long a timer or a dead worker is left alone of which something stored makes no sense.
const PUT_OFF: Duration = Duration::from_mins(1);

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
    /// Those that could not be, and until when they are left alone.
    put_off: BTreeMap<LastBeat, Duration>,
    /// How many workers to reap, and how many timers to fire, in one transaction.
    workers_max: usize,
    timers_max: usize,
    /// When to look at the workers again.
    look_at: Duration,
    /// When to look again whether tasks have to move because workers came or went.
    settle_at: Duration,
}

impl<'p> Candidate<'p> {
    fn new(parts: &'p Parts) -> Self {
        Self {
            parts,
            epoch: None,
            renew_at: Duration::ZERO,
            silence: SilenceWatch::default(),
            dead: Vec::new(),
            put_off: BTreeMap::new(),
            workers_max: REAP_BATCH_MAX,
            timers_max: parts.config.timer_batch_max,
            look_at: Duration::ZERO,
            settle_at: Duration::ZERO,
        }
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
        let settled = self.settle(now).await;
        let next_due = self.heard("fire timers", fired);
        let left = [
            self.heard("reap dead workers", reaped),
            self.heard("move tasks to where they are served", settled),
        ];
        if left.contains(&Some(Left::Some)) {
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
        self.put_off.retain(|_, until| *until > asked_at);
        self.dead = self.silence.look(look, &lives);
        self.dead.retain(|worker| !self.put_off.contains_key(worker));
        let pause = self.silence.pause_max().map_or(self.renew_pause(), |pause| {
            pause.clamp(LOOK_PAUSE_MIN.min(self.renew_pause()), self.renew_pause())
        });
        self.look_at = asked_at + pause;
        Ok(())
    }

    /// Reaps some of the dead, and says whether there are more. If what is stored keeps them from
    /// being reaped together, fewer are tried in the next round, until the one is alone that
    /// cannot be: it is put off.
    async fn reap(&mut self, epoch: Epoch) -> Result<Left, StoreError> {
        let n = self.dead.len().min(self.workers_max);
        if n == 0 {
            return Ok(Left::Nobody);
        }
        let dead = self.dead[..n].to_vec();
        let crash_limit = self.parts.config.crash_limit;
        match self.parts.store.reap(epoch, ReapRequest { crash_limit, dead }).await {
            Ok(reaped) => {
                self.dead.drain(..n);
                self.workers_max = (self.workers_max * 2).min(REAP_BATCH_MAX);
                tell_reaped(reaped);
            }
            Err(error) if error.is_about_rows() && n > 1 => self.workers_max = n / 2,
            Err(error) if error.is_about_rows() => {
                let worker = self.dead.remove(0);
                tracing::error!(worker = %worker.worker, %error, "reap a dead worker: put off");
                self.put_off.insert(worker, self.parts.clock.elapsed() + PUT_OFF);
            }
            Err(error) => {
                // It may have been too much for the time that it is given.
                self.workers_max = (n / 2).max(1);
                return Err(error);
            }
        }
        Ok(if self.dead.is_empty() { Left::Nobody } else { Left::Some })
    }

    /// Moves some of the tasks that have to, since workers came or went, and says whether there are
    /// more. Whoever comes or goes has moved the first of them.
    async fn settle(&mut self, now: Duration) -> Result<Left, StoreError> {
        if now < self.settle_at {
            return Ok(Left::Nobody);
        }
        self.settle_at = now + self.renew_pause();
        if self.parts.store.settle_services().await? {
            self.settle_at = Duration::ZERO;
            return Ok(Left::Some);
        }
        Ok(Left::Nobody)
    }

    /// Fires some of the timers that are due and says when the next one is. If what is stored keeps
    /// them from being fired together, fewer are tried in the next round, until the one is alone
    /// that cannot be: it is put off.
    async fn fire(&mut self, epoch: Epoch) -> Result<Option<Duration>, StoreError> {
        let store = &self.parts.store;
        match store.fire_timers(epoch, self.timers_max).await {
            Ok(fired) => {
                let timers_max = self.parts.config.timer_batch_max;
                self.timers_max = (self.timers_max * 2).min(timers_max);
                return Ok(fired.next_due);
            }
            Err(error) if error.is_about_rows() && self.timers_max > 1 => self.timers_max /= 2,
            Err(error) if error.is_about_rows() => {
                let Some((run, node)) = store.put_off_timer(epoch, PUT_OFF).await? else {
                    return Err(error);
                };
                tracing::error!(%run, node = node.0, %error, "fire a timer: put off");
            }
            Err(error) => {
                // It may have been too much for the time that it is given.
                self.timers_max = (self.timers_max / 2).max(1);
                return Err(error);
            }
        }
        Ok(Some(Duration::ZERO))
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
        let next = self.renew_at.min(self.look_at);
        let next = if self.epoch.is_some() { next.min(self.settle_at) } else { next };
        next.saturating_sub(now).min(pause)
    }

    /// Leadership is renewed three times in the span that it lasts.
    fn renew_pause(&self) -> Duration {
        self.parts.config.leader_ttl / 3
    }
}

fn tell_reaped(Reaped { n_workers, n_tasks }: Reaped) {
    if n_workers > 0 {
        tracing::warn!(workers = n_workers, tasks = n_tasks, "reaped dead workers");
    }
}

/// Whether something is left to be done.
#[derive(PartialEq, Eq)]
enum Left {
    Nobody,
    Some,
}
