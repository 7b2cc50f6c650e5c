//! Handing what becomes ready straight to the worker that offers to take it. Such a task is written
//! once, as running, and never stands in line.

use std::collections::BTreeSet;

use stepwell_core::id::{DefinitionId, Node, Queue, RunKey};

use super::claims::{Asking, Candidate, find_worker, hand_out_all, queues, take_in_turn};
use super::rows::count;
use super::statements;
use super::transaction::Transaction;
use crate::ports::{ClaimRequest, HandedOver, Hint, StoreError};

impl Transaction<'_, '_> {
    /// Does some work, and hands what becomes ready by it to the worker that offers to take it,
    /// unless something waits for that worker already.
    pub(super) fn hand_over<T>(
        &mut self,
        offer: Option<&ClaimRequest>,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<(T, HandedOver), StoreError> {
        let asking = offer.map(|offer| self.idle(offer)).transpose()?.flatten();
        let Some((offer, asking)) = offer.zip(asking) else {
            return Ok((work(self)?, HandedOver::default()));
        };
        self.book.joined = Some(Vec::new());
        let answer = work(self)?;
        let joined = self.book.joined.take().unwrap_or_default();
        if joined.is_empty() {
            return Ok((answer, HandedOver::default()));
        }
        let queues = queues(self, &asking)?;
        let served = self.all(statements::READ_SERVE, [asking.no], |row| count(row, 0))?;
        let served = served.into_iter().map(DefinitionId).collect();
        let mut lines: Vec<Vec<Candidate>> = queues.iter().map(|_| Vec::new()).collect();
        for (run, node) in &joined {
            if let Some((ix, task)) = self.candidate(*run, *node, &queues, &served)? {
                lines[ix].push(task);
            }
        }
        for line in &mut lines {
            line.sort_by_key(|task| task.slot);
        }
        let chosen = take_in_turn(self, &asking, lines, offer)?;
        let tasks = hand_out_all(self, &chosen, offer)?;
        if tasks.len() < joined.len() {
            self.earn(Hint::Ready);
        }
        Ok((answer, HandedOver { now: self.now, tasks }))
    }

    /// The worker that makes an offer, if it is alive and nothing waits in its queues.
    fn idle(&self, offer: &ClaimRequest) -> Result<Option<Asking>, StoreError> {
        let Some(asking) = find_worker(self, offer)? else { return Ok(None) };
        let any_ready = self.first(statements::ANY_READY, [asking.no], |_| Ok(()))?;
        Ok(any_ready.is_none().then_some(asking))
    }

    /// A task that just joined a queue, with the number of that queue, if it is one that the worker
    /// can take.
    fn candidate(
        &mut self,
        run: RunKey,
        node: Node,
        queues: &[Queue],
        served: &BTreeSet<DefinitionId>,
    ) -> Result<Option<(usize, Candidate)>, StoreError> {
        let Some(task) = self.held_task(run, node)? else { return Ok(None) };
        // It may have been taken off again.
        let place = task.place.as_ref().filter(|place| served.contains(&place.definition));
        Ok(place.and_then(|place| {
            let ix = queues.iter().position(|queue| *queue == place.queue)?;
            let slot = (place.order.0, place.number);
            Some((ix, Candidate { slot, losses: task.row.losses, run, node }))
        }))
    }
}
