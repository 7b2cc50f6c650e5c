//! Trials: a worker that has met a suspect lets what it executes end, and then executes suspects
//! alone, one after the other. Who may and for how long is told by the rules; the store sees to it
//! that nothing else comes to this worker meanwhile.

use std::future::Future;
use std::sync::Arc;

use stepwell_core::trial::{EMPTYING_MAX, Trial, TrialTimes};

use super::Worker;
use super::claim::{Found, Told};
use crate::engine::Slot;
use crate::ports::{ClaimAnswer, Take};

impl Worker {
    /// Holds a trial if a claim call told of a suspect and it is time for one. Says whether it did.
    pub(super) async fn meets_suspect(
        self: &Arc<Self>,
        told: &Told,
        times: &mut TrialTimes,
    ) -> bool {
        let clock = &self.parts.clock;
        if told.found == Found::Nothing && self.slots.held.len() == 0 {
            times.others_are_served();
        }
        if !told.suspect_waits || !times.may_ask(clock.elapsed()) {
            return false;
        }
        if !self.asks_for_trial().await {
            times.refused(clock.elapsed());
            return false;
        }
        let mut trial = Trial::begin(clock.elapsed());
        // Free slots are not offered: nothing may be handed over to this worker.
        self.slots.claim_ended(true);
        self.hold_trial(&mut trial).await;
        times.ended(&trial, clock.elapsed());
        true
    }

    /// Asks the store whether this worker may hold a trial. From then on nothing but suspects comes
    /// to it until it asks for other tasks.
    async fn asks_for_trial(&self) -> bool {
        match self.parts.store.claim(self.slots.claim_request(0, Take::Suspect)).await {
            Ok(ClaimAnswer::Claimed { suspect_waits, .. }) => suspect_waits,
            Ok(ClaimAnswer::NoTrial | ClaimAnswer::NotRegistered) => false,
            Err(error) => {
                tracing::warn!(%error, "ask for a trial of suspects");
                false
            }
        }
    }

    async fn hold_trial(self: &Arc<Self>, trial: &mut Trial) {
        let Some(mut slots) = self.empty_hands().await else { return };
        trial.emptied(self.parts.clock.elapsed());
        // The others are kept, so that nobody else uses them.
        drop(slots.split(1));
        while trial.goes_on(self.parts.clock.elapsed()) {
            let Some(Some(slot)) = self.unless_stopping(self.slots.free_slot()).await else {
                return;
            };
            let request = self.slots.claim_request(1, Take::Suspect);
            match self.claim_into(vec![slot], request).await {
                Ok(Told { found: Found::PerhapsMore, .. }) => trial.took(),
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "claim a suspect");
                    return;
                }
            }
            let held = &self.slots.held;
            let done = self.unless_stopping(held.suspects_done()).await;
            if done.is_none() || held.len() > 0 {
                // What is held came further than its losses, and goes on beside others.
                return;
            }
        }
    }

    /// Waits until nothing is executed or committed. `None` if that takes too long: another worker
    /// may have its hands free sooner.
    async fn empty_hands(&self) -> Option<Slot> {
        let emptied = async {
            let slots = self.slots.all_slots().await;
            self.slots.held.emptied().await;
            slots
        };
        tokio::select! {
            biased;
            slots = self.unless_stopping(emptied) => slots.flatten(),
            () = self.parts.clock.sleep(EMPTYING_MAX) => None,
        }
    }

    /// Waits for something that is no call of the store, `None` if the engine begins to stop.
    async fn unless_stopping<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.slots.stopping.cancelled() => None,
            end = wait => Some(end),
        }
    }
}
