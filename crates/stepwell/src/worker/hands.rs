//! Free hands: slots that are offered along with starts and commits, so that what becomes ready by
//! them comes straight back, without a place in line and without a claim.

use std::sync::Arc;

use stepwell_core::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::calls::ClaimCalls;
use super::held::{Held, Stop};
use crate::engine::Parts;
use crate::ports::{ClaimRef, ClaimRequest, ClaimedTask, HandedOver};

/// Claimed tasks, each with its slot and the way to stop it.
pub(crate) struct Handful {
    pub(super) now: Timestamp,
    pub(super) tasks: Vec<(ClaimedTask, Stop, OwnedSemaphorePermit)>,
}

/// The slots of a worker and what they hold.
pub(crate) struct Hands {
    parts: Arc<Parts>,
    /// One permit per task that may be executed at once.
    pub(super) slots: Arc<Semaphore>,
    pub(super) held: Arc<Held>,
    pub(super) calls: ClaimCalls,
    /// Fires when the engine begins to stop: nothing is claimed any more.
    pub(super) stopping: CancellationToken,
    /// How the last look for work went, and whether there is one to come.
    line: watch::Sender<LineState>,
    handfuls: mpsc::UnboundedSender<Handful>,
}

/// What is known of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// The last look found all there was: what becomes ready need not wait.
    Empty,
    /// The last look found all there was, and another is under way.
    Looking,
    /// The last look left something in line. Slots are better left to the claims.
    Full,
}

/// Up to so many tasks nobody waits for a look that is under way: it would take longer than what
/// it saves.
const FEW: usize = 64;

/// Slots that are kept free until it is known what comes.
pub(crate) struct Offer<'h> {
    hands: &'h Hands,
    salt: u64,
    slots: Vec<OwnedSemaphorePermit>,
}

impl Hands {
    /// The hands of a worker, and where to find what they are given.
    pub(crate) fn new(parts: &Arc<Parts>) -> (Arc<Self>, mpsc::UnboundedReceiver<Handful>) {
        let (handfuls, given) = mpsc::unbounded_channel();
        let hands = Self {
            parts: Arc::clone(parts),
            slots: Arc::new(Semaphore::new(parts.config.slots)),
            held: Arc::default(),
            calls: ClaimCalls::default(),
            stopping: CancellationToken::new(),
            line: watch::channel(LineState::Empty).0,
            handfuls,
        };
        (Arc::new(hands), given)
    }

    /// Offers free slots for up to so many tasks; `None` if there is none to spare. While a look
    /// for work is under way, many tasks wait for it: if it takes all there is, they need not stand
    /// in line behind that, and neither need those after them.
    pub(crate) async fn offer(&self, n_tasks: usize) -> Option<(ClaimRequest, Offer<'_>)> {
        if n_tasks == 0 || self.stopping.is_cancelled() {
            return None;
        }
        if n_tasks > FEW {
            let looked = |state: &LineState| *state != LineState::Looking;
            let mut line = self.line.subscribe();
            tokio::select! {
                biased;
                () = self.parts.closing.cancelled() => return None,
                _ = line.wait_for(looked) => {}
            }
        }
        if *self.line.borrow() == LineState::Full {
            return None;
        }
        let slots = self.free_slots(n_tasks);
        if slots.is_empty() {
            return None;
        }
        // A suspect is claimed: the claim loop knows whether this worker holds another.
        let request = self.request(slots.len(), false);
        let salt = request.salt;
        self.calls.begin(salt);
        let offer = Offer { hands: self, salt, slots };
        // A stop waits for the calls that have begun before it.
        (!self.stopping.is_cancelled()).then_some((request, offer))
    }

    /// A request for so many tasks.
    pub(super) fn request(&self, tasks_max: usize, suspect: bool) -> ClaimRequest {
        ClaimRequest {
            worker: self.parts.worker.clone(),
            tasks_max,
            suspect,
            crash_limit: self.parts.config.crash_limit,
            salt: self.parts.ids.random(),
        }
    }

    /// Up to so many slots that are free right now.
    pub(super) fn free_slots(&self, n_max: usize) -> Vec<OwnedSemaphorePermit> {
        let mut slots = Vec::new();
        while slots.len() < n_max
            && let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
        {
            slots.push(slot);
        }
        slots
    }

    /// A look for work begins. While there is more than enough, nobody need wait for how it ends.
    pub(super) fn looks(&self) {
        self.line.send_if_modified(|state| {
            let was_empty = *state == LineState::Empty;
            if was_empty {
                *state = LineState::Looking;
            }
            was_empty
        });
    }

    /// A look for work ended, and left something in line or not.
    pub(super) fn looked(&self, is_full: bool) {
        self.line.send_replace(if is_full { LineState::Full } else { LineState::Empty });
    }

    /// Takes up claims. From here on they count as held, and a slot each is theirs.
    pub(super) fn take_up(
        &self,
        now: Timestamp,
        tasks: Vec<ClaimedTask>,
        slots: Vec<OwnedSemaphorePermit>,
    ) -> Handful {
        let stops = self.held.take(tasks.iter().map(|task| (task.claim, task.is_suspect)));
        let tasks = tasks.into_iter().zip(stops).zip(slots);
        Handful { now, tasks: tasks.map(|((task, stop), slot)| (task, stop, slot)).collect() }
    }

    /// These claims are done with.
    pub(crate) fn drop_claims(&self, claims: &[ClaimRef]) {
        self.held.drop_claims(claims);
    }
}

impl Offer<'_> {
    /// Takes up what was handed over. The slots that are left come free.
    pub(crate) fn accept(mut self, HandedOver { now, tasks }: HandedOver) {
        if tasks.is_empty() {
            return;
        }
        let handful = self.hands.take_up(now, tasks, std::mem::take(&mut self.slots));
        // Nobody takes them only if the engine has closed, and then its lease runs out.
        let _ = self.hands.handfuls.send(handful);
    }
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.hands.calls.end(self.salt);
    }
}
