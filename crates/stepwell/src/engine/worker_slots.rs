//! The slots of a worker. Free ones are offered along with starts and commits: what becomes ready
//! by those is claimed in the same transaction, without a place in a queue and without a claim
//! call of its own.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::held_claims::{HeldClaims, Stop};
use super::open_claim_calls::OpenClaimCalls;
use crate::ports::{ClaimRef, ClaimRequest, ClaimedTask, HandedOver, Take};

/// A slot in use. Dropping it frees the slot.
pub(crate) type Slot = OwnedSemaphorePermit;

/// Tasks that were claimed together, each with its slot and the way to stop it.
pub(crate) struct ClaimedBatch {
    /// The store's time of the claim.
    pub(crate) now: Timestamp,
    pub(crate) tasks: Vec<(ClaimedTask, Stop, Slot)>,
}

/// The slots of a worker and the claims in them.
pub(crate) struct WorkerSlots {
    parts: Arc<Parts>,
    /// One permit per task that may be executed at once.
    free: Arc<Semaphore>,
    pub(crate) held: HeldClaims,
    pub(crate) calls: OpenClaimCalls,
    /// Fires when the engine begins to stop: nothing is claimed any more.
    pub(crate) stopping: CancellationToken,
    queue: watch::Sender<QueueState>,
    /// Where the worker takes up what starts and commits were answered with.
    handed_over: mpsc::UnboundedSender<ClaimedBatch>,
}

/// What the last claim call told about the queues of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueState {
    /// It took all there was: what becomes ready now has nobody to wait behind.
    Empty,
    /// It took all there was, and the next claim call is under way.
    Claiming,
    /// It left tasks waiting. They come first, so free slots are left to claim calls.
    Backlog,
}

/// Up to so many tasks are offered slots without waiting for a claim call that is under way: the
/// wait would take longer than what it saves.
const TASKS_WITHOUT_WAIT_MAX: usize = 64;

/// Slots that are kept free for a start or a commit, until the store has said what it hands over.
pub(crate) struct SlotOffer<'s> {
    worker: &'s WorkerSlots,
    salt: u64,
    slots: Vec<Slot>,
}

impl WorkerSlots {
    /// The slots of a worker, and the tasks that are handed over to it.
    pub(crate) fn new(parts: &Arc<Parts>) -> (Arc<Self>, mpsc::UnboundedReceiver<ClaimedBatch>) {
        let (handed_over, taken_up) = mpsc::unbounded_channel();
        let slots = Self {
            parts: Arc::clone(parts),
            free: Arc::new(Semaphore::new(parts.config.slots)),
            held: HeldClaims::default(),
            calls: OpenClaimCalls::default(),
            stopping: CancellationToken::new(),
            queue: watch::channel(QueueState::Empty).0,
            handed_over,
        };
        (Arc::new(slots), taken_up)
    }

    /// Offers free slots for up to so many tasks; `None` if there is none to spare.
    ///
    /// While a claim call is under way, a large batch waits for its answer. If the call takes all
    /// there is, neither this batch nor those after it need a place in a queue.
    pub(crate) async fn offer(&self, n_tasks: usize) -> Option<(ClaimRequest, SlotOffer<'_>)> {
        if n_tasks == 0 || self.stopping.is_cancelled() {
            return None;
        }
        if n_tasks > TASKS_WITHOUT_WAIT_MAX {
            let mut queue = self.queue.subscribe();
            tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return None,
                _ = queue.wait_for(|state| *state != QueueState::Claiming) => {}
            }
        }
        if *self.queue.borrow() == QueueState::Backlog {
            return None;
        }
        let slots = self.free_slots(n_tasks);
        if slots.is_empty() {
            return None;
        }
        let request = self.claim_request(slots.len(), Take::Plain);
        let salt = request.salt;
        self.calls.begin(salt);
        let offer = SlotOffer { worker: self, salt, slots };
        // A stop waits for the calls that have begun before it.
        (!self.stopping.is_cancelled()).then_some((request, offer))
    }

    /// A request for so many tasks of a kind.
    pub(crate) fn claim_request(&self, tasks_max: usize, take: Take) -> ClaimRequest {
        ClaimRequest {
            worker: self.parts.worker.clone(),
            tasks_max,
            take,
            crash_limit: self.parts.config.crash_limit,
            salt: self.parts.ids.random(),
        }
    }

    /// Waits for a free slot. The slots are never closed, so there is always one in the end.
    pub(crate) async fn free_slot(&self) -> Option<Slot> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Waits until half of the slots are free, and no longer than a claim call takes: with tasks
    /// that are soon done, a claim for each slot that comes free would cost a transaction each.
    pub(crate) async fn gather_free(&self, span: Duration) {
        let half = u32::try_from(self.parts.config.slots / 2).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            _ = self.free.acquire_many(half) => {}
            () = self.parts.clock.sleep(span) => {}
        }
    }

    /// Waits until all slots are free. Those that become free meanwhile are kept for this.
    pub(crate) async fn all_slots(&self) -> Option<Slot> {
        let n = u32::try_from(self.parts.config.slots).unwrap_or(u32::MAX);
        Arc::clone(&self.free).acquire_many_owned(n).await.ok()
    }

    /// Up to so many slots that are free right now.
    pub(crate) fn free_slots(&self, n_max: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        while slots.len() < n_max
            && let Ok(slot) = Arc::clone(&self.free).try_acquire_owned()
        {
            slots.push(slot);
        }
        slots
    }

    /// A claim call begins. After a backlog its answer does not matter to anybody else: offers are
    /// not made then, so nobody need wait for it.
    pub(crate) fn claim_begins(&self) {
        self.queue.send_if_modified(|state| {
            let was_empty = *state == QueueState::Empty;
            if was_empty {
                *state = QueueState::Claiming;
            }
            was_empty
        });
    }

    /// A claim call ended, and left tasks waiting or not.
    pub(crate) fn claim_ended(&self, has_backlog: bool) {
        self.queue.send_replace(if has_backlog { QueueState::Backlog } else { QueueState::Empty });
    }

    /// Takes up claims. From here on they count as held, and each has a slot.
    pub(crate) fn take_up(
        &self,
        now: Timestamp,
        tasks: Vec<ClaimedTask>,
        slots: Vec<Slot>,
    ) -> ClaimedBatch {
        let stops = self.held.add(tasks.iter().map(|task| (task.claim, task.is_suspect)));
        let tasks = tasks.into_iter().zip(stops).zip(slots);
        ClaimedBatch { now, tasks: tasks.map(|((task, stop), slot)| (task, stop, slot)).collect() }
    }

    /// The worker is done with these claims.
    pub(crate) fn drop_claims(&self, claims: &[ClaimRef]) {
        self.held.drop_claims(claims);
    }
}

impl SlotOffer<'_> {
    /// Takes up what the store handed over. The slots that are left become free.
    pub(crate) fn accept(mut self, HandedOver { now, tasks }: HandedOver) {
        if tasks.is_empty() {
            return;
        }
        let batch = self.worker.take_up(now, tasks, std::mem::take(&mut self.slots));
        // The worker's loop is gone only if the engine has closed, and then its lease runs out.
        let _ = self.worker.handed_over.send(batch);
    }
}

impl Drop for SlotOffer<'_> {
    fn drop(&mut self) {
        self.worker.calls.end(self.salt);
    }
}
