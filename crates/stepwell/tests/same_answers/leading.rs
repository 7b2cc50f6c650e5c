//! Terms of leaders, and what they do in them.

use std::time::Duration;

use stepwell::core::id::Epoch;
use stepwell::core::lease::{LastBeat, Life};
use stepwell::ports::{Clock, FiredTimers, Lead, ReapRequest, StoreError};

use super::command::Command;
use super::player::{CRASH_LIMIT, Player, nth, worker};

impl Player {
    pub(super) async fn elect(&mut self, command: &Command) -> String {
        match command {
            Command::Lead { candidate, ttl_secs } => {
                let ttl = Duration::from_secs((*ttl_secs).into());
                let answer = self.store.lead(&worker(*candidate), ttl).await;
                if let Ok(Lead::Leading(epoch)) = &answer
                    && !self.epochs.contains(epoch)
                {
                    assert!(self.epochs.iter().all(|old| old < epoch), "epochs only grow");
                    self.epochs.push(*epoch);
                }
                let term = |lead| match lead {
                    Lead::Leading(epoch) => self.epochs.iter().position(|known| *known == epoch),
                    Lead::Following => None,
                };
                self.words.plain(answer.map(term))
            }
            Command::Resign { epoch } => {
                let Some(epoch) = nth(&self.epochs, *epoch) else { return String::new() };
                self.words.plain(self.store.resign(*epoch).await)
            }
            _ => unreachable!("{command:?} is no matter of leadership"),
        }
    }

    /// The latest epoch for 0, the one before it for 1, and so on.
    fn epoch(&self, back: u8) -> Option<Epoch> {
        self.epochs.iter().rev().nth(back.into()).or(self.epochs.last()).copied()
    }

    pub(super) async fn serve_time(&mut self, command: &Command) -> String {
        match command {
            Command::Fire { epoch, timers_max } => {
                let Some(epoch) = self.epoch(*epoch) else { return String::new() };
                let fired = self.fire(epoch, (*timers_max).into()).await;
                self.words.plain(fired)
            }
            Command::Reap { epoch, workers_max } => {
                let Some(epoch) = self.epoch(*epoch) else { return String::new() };
                let (lives, mut dead) = self.lives().await;
                dead.truncate((*workers_max).into());
                let request = ReapRequest { crash_limit: CRASH_LIMIT, dead };
                let reaped = self.store.reap(epoch, request).await;
                // Beats are counted by each store as it likes.
                let known = lives.into_iter();
                let lives = known.map(|life| (life.last_beat.worker, life.lease, life.has_left));
                self.words.plain(reaped.map(|reaped| (lives.collect::<Vec<_>>(), reaped)))
            }
            _ => unreachable!("{command:?} is no matter of time"),
        }
    }

    /// The workers there are, and those that are dead.
    pub(super) async fn lives(&mut self) -> (Vec<Life>, Vec<LastBeat>) {
        let lives = self.store.lives().await.expect("look at workers");
        let dead = self.beats.look(self.clock.elapsed(), &lives);
        (lives, dead)
    }

    /// A timer that fires may set another that is due at once, which the same round may reach or
    /// not. So where many fire, they do until none is left.
    async fn fire(&self, epoch: Epoch, timers_max: usize) -> Result<FiredTimers, StoreError> {
        let mut fired = self.store.fire_timers(epoch, timers_max).await?;
        let mut n_fired = fired.n_fired;
        while self.theme.leaves_order_open() && fired.n_fired > 0 {
            fired = self.store.fire_timers(epoch, timers_max).await?;
            n_fired += fired.n_fired;
        }
        Ok(FiredTimers { n_fired, ..fired })
    }
}
