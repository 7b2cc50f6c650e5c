//! Writing what the rules decided: all runs of a call together, in as few round trips as can be.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{AttemptState, Changes, RunImage, RunRow, TaskRow, Tasks};
use uuid::Uuid;

use super::hand_over::{Hands, Holder, Marked, handed_over, mark};
use super::join::{Placed, Unlimited};
use super::line::Queued;
use super::rows::token;
use super::statements;
use super::transaction::{Transaction, first_error};
use crate::ports::{ClaimRef, HandedOver, Hint, Payload, StoreError, StoredDefinition};

/// A decided run, ready to be written.
pub(super) struct Written {
    pub(super) run: RunRow,
    pub(super) tasks: Tasks,
    pub(super) changes: Changes,
    pub(super) stored: Arc<StoredDefinition>,
    group: u32,
}

impl Written {
    pub(super) fn new(image: RunImage<'_>, stored: &Arc<StoredDefinition>, group: u32) -> Self {
        let (run, tasks, changes) = image.into_parts();
        Self { run, tasks, changes, stored: Arc::clone(stored), group }
    }

    pub(super) fn touched(&self) -> impl Iterator<Item = (RunKey, &TaskRow)> {
        let tasks = self.changes.touched.iter().filter_map(|node| self.tasks.get(*node));
        tasks.map(|task| (self.run.key, task))
    }

    /// The claims whose attempts ended, and how.
    pub(super) fn ended_claims(&self) -> impl Iterator<Item = (ClaimRef, AttemptState)> {
        self.changes.attempts.iter().map(|attempt| {
            let (run, node, token) = (self.run.key, attempt.node, attempt.claim.token);
            (ClaimRef { run, node, token }, attempt.state)
        })
    }

    /// Whether a task may have joined a queue: one that became ready, or one that was held back.
    fn may_let_in(&self) -> bool {
        !self.changes.enqueued.is_empty() || !self.changes.claims_ended.is_empty()
    }

    fn queued(&self) -> impl Iterator<Item = Queued> {
        self.changes.enqueued.iter().map(|node| Queued {
            // Given when it is put into line.
            number: 0,
            run: self.run.key,
            node: *node,
            group: self.group,
            queue: self.stored.definition.queue(*node),
            definition: self.stored.id,
            losses: self.tasks.get(*node).map_or(0, |task| task.losses),
        })
    }
}

/// How plain changes are written.
struct Write<'p> {
    payloads: Payloads<'p>,
    /// The numbers of workers whose attempts ended.
    workers: HashMap<WorkerId, i64>,
    closes: bool,
    /// Tasks that go into line.
    left: Vec<Queued>,
    tenants: Unlimited,
}

/// Payloads that are written together with rows.
#[derive(Clone, Copy)]
pub(super) enum Payloads<'p> {
    None,
    /// Inputs of runs that were just inserted.
    Inputs(&'p [(RunKey, &'p Payload)]),
    /// Outputs of tasks that completed.
    Outputs(&'p [(RunKey, Node, &'p Payload)]),
}

impl Transaction {
    /// Writes what was decided: rows first, then slots that came free, then what became ready, so
    /// that a freed slot goes to those who waited longest. Commits if it `closes` the transaction,
    /// in the same round trip as the last writes.
    pub(super) async fn write(
        &mut self,
        written: Vec<Written>,
        tenants: Option<Unlimited>,
        payloads: Payloads<'_>,
        closes: bool,
    ) -> Result<(), StoreError> {
        self.write_and_hand_over(written, tenants, payloads, closes, None).await.map(drop)
    }

    /// As [`write`](Self::write), and hands what became ready to an idle worker that offers to take
    /// it.
    pub(super) async fn write_and_hand_over(
        &mut self,
        written: Vec<Written>,
        tenants: Option<Unlimited>,
        payloads: Payloads<'_>,
        closes: bool,
        hands: Option<Hands<'_>>,
    ) -> Result<HandedOver, StoreError> {
        self.earn_all(&written);
        let tasks: Vec<Queued> = written.iter().flat_map(Written::queued).collect();
        let is_withdrawn = written.iter().any(|written| !written.changes.dequeued.is_empty());
        let tenants = tenants.filter(|_| !is_withdrawn);
        let attempts = written.iter().flat_map(|written| &written.changes.attempts);
        let workers: BTreeSet<&WorkerId> = attempts.map(|attempt| &attempt.claim.worker).collect();
        let workers = self.worker_numbers(&workers).await?;
        if let Some(tenants) = tenants {
            let (taken, left) = match &hands {
                Some(hands) => hands.take(tasks),
                None => (Vec::new(), tasks),
            };
            let write = Write { payloads, workers, closes, left, tenants };
            return self.write_plain(written, write, hands.map(|hands| (hands, taken))).await;
        }
        if written.iter().any(Written::may_let_in) {
            self.earn(Hint::Ready);
        }
        self.write_rows(&written, payloads, &workers, Holder::default()).await?;
        self.take_away(&written).await?;
        self.enqueue(tasks).await?;
        let answers = tokio::join!(biased; self.end_claims(&written), self.close_if(closes));
        first_error(answers.into()).map(|()| HandedOver::default())
    }

    /// Writes what needs no care: none of the tenants has a limit, so there are no slots to be
    /// freed. Where tenants stand is locked behind everything that takes long.
    async fn write_plain(
        &mut self,
        mut written: Vec<Written>,
        write: Write<'_>,
        handed: Option<(Hands<'_>, Vec<Queued>)>,
    ) -> Result<HandedOver, StoreError> {
        let now = self.now;
        let handed = handed.filter(|(_, taken)| !taken.is_empty());
        if let Some((hands, taken)) = &handed {
            mark(&mut written, taken, hands, now);
        }
        let holder = handed.as_ref().map_or_else(Holder::default, |(hands, _)| hands.holder(self));
        let by_key: Marked<'_> = written.iter().map(|written| (written.run.key, written)).collect();
        let held = async {
            match &handed {
                Some((hands, taken)) => self.hold(hands, taken).await,
                None => Ok(()),
            }
        };
        let taken = handed.as_ref().map(|(_, taken)| taken.as_slice()).unwrap_or_default();
        let Write { payloads, workers, closes, left, tenants } = write;
        let is_joined = !left.is_empty();
        let rows = async {
            let (rows, held, placed) = tokio::join!(
                biased;
                self.write_rows(&written, payloads, &workers, holder),
                held,
                self.find_places(left, tenants),
            );
            first_error([rows, held])?;
            placed
        };
        let rest = async |placed: &Placed| {
            let (joined, ended, inputs, closed) = tokio::join!(
                biased;
                self.join_line(placed),
                self.end_claims(&written),
                self.inputs_of(taken, &by_key, payloads),
                self.close_if(closes),
            );
            first_error([joined, ended])?;
            closed.and(inputs)
        };
        let (placed, inputs) = if is_joined {
            let placed = rows.await?;
            let inputs = rest(&placed).await?;
            (placed, inputs)
        } else {
            let nowhere = Placed::default();
            let (placed, inputs) = tokio::join!(biased; rows, rest(&nowhere));
            (placed?, inputs?)
        };
        if placed.leaves_any() {
            self.earn(Hint::Ready);
        }
        let Some((hands, taken)) = handed else { return Ok(HandedOver::default()) };
        self.known().remember_runs(taken.iter().map(|task| (task.run, task.facts())));
        Ok(handed_over(&taken, &by_key, inputs, &hands, now))
    }

    /// Counts down what workers hold. Last of all, so that whoever holds these rows waits for
    /// nobody.
    async fn end_claims(&self, written: &[Written]) -> Result<(), StoreError> {
        let mut ended: BTreeMap<Uuid, i32> = BTreeMap::new();
        for (_, claim) in written.iter().flat_map(|written| &written.changes.claims_ended) {
            *ended.entry(token(claim.token)).or_default() += 1;
        }
        if ended.is_empty() {
            return Ok(());
        }
        let (tokens, counts): (Vec<Uuid>, Vec<i32>) = ended.into_iter().unzip();
        self.run(statements::END_CLAIMS, &[&tokens, &counts]).await
    }

    async fn close_if(&self, closes: bool) -> Result<(), StoreError> {
        if closes { self.close().await } else { Ok(()) }
    }

    async fn write_rows(
        &self,
        written: &[Written],
        payloads: Payloads<'_>,
        workers: &HashMap<WorkerId, i64>,
        holder: Holder,
    ) -> Result<(), StoreError> {
        let runs = async {
            match payloads {
                Payloads::Inputs(_) => Ok(()),
                _ => self.update_runs(written).await,
            }
        };
        let answers = tokio::join!(
            biased;
            runs,
            self.write_payloads(payloads),
            self.write_all_tasks(written, matches!(payloads, Payloads::Inputs(_)), holder),
            self.write_attempts(written, workers),
            self.write_events(written),
            self.clear_timers(written),
            self.set_timers(written),
        );
        first_error(answers.into())
    }

    fn earn_all(&mut self, written: &[Written]) {
        for changes in written.iter().map(|written| &written.changes) {
            if !changes.timers.is_empty() {
                self.earn(Hint::Timers);
            }
            if changes.run_ended {
                self.earn(Hint::Ended);
            }
        }
    }

    /// Removes queue rows and slots of tasks that moved on.
    async fn take_away(&mut self, written: &[Written]) -> Result<(), StoreError> {
        let (mut dequeued, mut freed) = (Vec::new(), Vec::new());
        let moves =
            |w: &&Written| !w.changes.dequeued.is_empty() || !w.changes.claims_ended.is_empty();
        // Tenants before anything that waits or counts in their name: whoever holds a tenant
        // moves on its held-back tasks and counts its slots, and must not wait for us meanwhile.
        // Held also without a limit, or one that is set now would count claims that end here.
        let groups: Vec<u32> = written.iter().filter(moves).map(|w| w.group).collect();
        if groups.is_empty() {
            return Ok(());
        }
        self.room(groups.into_iter()).await?;
        for written in written {
            let run = written.run.key;
            dequeued.extend(written.changes.dequeued.iter().map(|node| (run, *node)));
            freed.extend(written.changes.claims_ended.iter().map(|(node, _)| (run, *node)));
        }
        self.cancel_queued(&dequeued).await?;
        freed.extend(dequeued);
        self.free_slots(&freed).await
    }
}
