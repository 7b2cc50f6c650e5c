//! What leaders do, and what silence does to workers.

use std::time::Duration;

use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lease::LastBeat;

use super::{CRASH_LIMIT, LEASE, World, worker};
use crate::ports::{ClaimRef, Clock, FiredTimers, HeartbeatAnswer, Lead, ReapRequest, Reaped};

/// Longer than any case keeps its leader silent between two verbs.
const LEADER_TTL: Duration = Duration::from_hours(24);

/// More than any case has.
const MANY: usize = 100_000;

/// More rounds of timers than any case needs to come to its end.
const ROUNDS_MAX: usize = 1_000;

impl World {
    /// The epoch of this world's own leader, who leads unless a case made another do so.
    pub async fn lead(&self) -> Epoch {
        match self.store.lead(&worker("leader"), LEADER_TTL).await.expect("lead") {
            Lead::Leading(epoch) => epoch,
            Lead::Following => panic!("another candidate leads"),
        }
    }

    /// Fires every timer that is due.
    pub async fn fire(&self) -> FiredTimers {
        self.fire_up_to(MANY).await
    }

    /// Fires timers that are due, so many at most.
    pub async fn fire_up_to(&self, timers_max: usize) -> FiredTimers {
        let epoch = self.lead().await;
        let fired = self.store.fire_timers(epoch, timers_max).await.expect("fire timers");
        self.acted().await;
        fired
    }

    /// Fires timers until none is due, also those that are set as due at once meanwhile; gives how
    /// many fired. Whether one round reaches those is the store's business.
    pub async fn fire_all(&self) -> usize {
        let mut n_fired = 0;
        for _ in 0..ROUNDS_MAX {
            match self.fire().await.n_fired {
                0 => return n_fired,
                n => n_fired += n,
            }
        }
        panic!("timers do not come to an end")
    }

    /// Takes the tasks of silent workers from them.
    pub async fn reap(&self) -> Reaped {
        self.reap_up_to(MANY).await
    }

    /// Takes the tasks of silent workers from them, so many workers at most.
    pub async fn reap_up_to(&self, workers_max: usize) -> Reaped {
        let epoch = self.lead().await;
        let mut request = self.reap_request().await;
        request.dead.truncate(workers_max);
        let reaped = self.store.reap(epoch, request).await.expect("reap workers");
        self.acted().await;
        reaped
    }

    /// What names all workers that are dead by now.
    pub async fn reap_request(&self) -> ReapRequest {
        ReapRequest { crash_limit: CRASH_LIMIT, dead: self.dead().await }
    }

    /// The workers that are dead by now.
    pub async fn dead(&self) -> Vec<LastBeat> {
        let lives = self.store.lives().await.expect("look at workers");
        self.desk().beats.look(self.clock.elapsed(), &lives)
    }

    /// A worker's heartbeat with the claims it holds; gives those it lost.
    pub async fn beat(&self, worker: &WorkerId, claims: &[ClaimRef]) -> Vec<ClaimRef> {
        match self.try_beat(worker, claims).await {
            HeartbeatAnswer::Alive { lost, .. } => lost,
            HeartbeatAnswer::Dead => panic!("{worker} is dead"),
        }
    }

    /// A heartbeat, whatever the answer.
    pub async fn try_beat(&self, worker: &WorkerId, claims: &[ClaimRef]) -> HeartbeatAnswer {
        let answer = self.store.heartbeat(worker, claims).await.expect("heartbeat");
        self.dead().await;
        self.acted().await;
        answer
    }

    /// One worker goes silent for longer than its lease while all others live, and is reaped.
    pub async fn lose(&self, lost: &WorkerId) -> Reaped {
        self.pass(LEASE);
        let others: Vec<WorkerId> = {
            let mut desk = self.desk();
            desk.workers.remove(lost);
            desk.workers.iter().cloned().collect()
        };
        for other in &others {
            self.beat(other, &[]).await;
        }
        self.pass(Duration::from_millis(1));
        let reaped = self.reap().await;
        assert_eq!(reaped.n_workers, 1, "only {lost} was silent");
        reaped
    }
}
