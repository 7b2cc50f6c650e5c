//! One engine's connection to the watched store, which can be cut and can lose replies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use stepwell::core::decide::{CancelAnswer, CancelRequest, SignalAnswer};
use stepwell::core::id::{Epoch, Node, RunKey, WorkerId};
use stepwell::core::lease::Life;
use stepwell::core::run::WaitRow;
use stepwell::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, Claims, Clock, CommitItem, Commits, Committed,
    FiredTimers, HandedOver, HeartbeatAnswer, Hints, InputsOf, Lead, Leadership, ListenAnswer,
    ListenRequest, MemoAnswer, MemoRequest, Memos, Outcome, ReapRequest, Reaped, SignalRequest,
    Signals, StartRequest, Started, Starts, Store, StoreError, StoredMemo, StoredSignal,
    TaskInputs, Timers, WaitingRuns, WorkerRegistration, Workers,
};
use tokio::sync::Semaphore;

use super::watch::Watch;

/// More replies than any test waits for.
const MANY: usize = 1 << 30;

pub(super) type Answer<T> = Result<T, StoreError>;

/// A connection to the watched store. Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) watch: Arc<Watch>,
    fault: Arc<Mutex<Fault>>,
    /// A permit for every reply that may bring claims and comes through.
    claims_flow: Arc<Semaphore>,
    /// A permit for every look at a run that is answered.
    reads_flow: Arc<Semaphore>,
    counts: Arc<Counts>,
}

/// How many tasks came in which way.
#[derive(Default)]
struct Counts {
    claimed: AtomicUsize,
    handed_over: AtomicUsize,
    /// Heartbeats, not tasks.
    beats: AtomicUsize,
}

#[derive(Default)]
struct Fault {
    /// Nothing goes through.
    is_cut: bool,
    /// So many starts, claims, commits and signals take effect, but their replies are lost (FB1).
    n_replies_lost: u32,
    /// Nothing is handed over; everything waits to be claimed.
    refuses_offers: bool,
    /// Looks that find nothing are answered even while claims are held.
    answers_empty_looks: bool,
    /// Commits with this output fail.
    output_refused: Option<(&'static [u8], StoreError)>,
    /// Calls of this name fail, all others go through.
    failing: Option<(&'static str, StoreError)>,
    /// Calls that fire timers take so long.
    firing_takes: Duration,
}

impl Link {
    pub(crate) fn new(watch: &Arc<Watch>) -> Self {
        let [claims_flow, reads_flow] = [(); 2].map(|()| Arc::new(Semaphore::new(MANY)));
        let (fault, counts) = (Arc::default(), Arc::default());
        Self { watch: Arc::clone(watch), fault, claims_flow, reads_flow, counts }
    }

    /// How many tasks were claimed, and how many were handed over.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let Counts { claimed, handed_over, .. } = &*self.counts;
        (claimed.load(Ordering::Relaxed), handed_over.load(Ordering::Relaxed))
    }

    /// How many heartbeats there were.
    pub(crate) fn n_beats(&self) -> usize {
        self.counts.beats.load(Ordering::Relaxed)
    }

    /// From now on nothing is handed over.
    pub(crate) fn refuse_offers(&self) {
        self.fault.lock().expect("no holder of the lock panics").refuses_offers = true;
    }

    /// From now on looks that find nothing are answered even while claims are held.
    pub(crate) fn answer_empty_looks(&self) {
        self.fault.lock().expect("no holder of the lock panics").answers_empty_looks = true;
    }

    fn answers_empty_looks(&self) -> bool {
        self.fault.lock().expect("no holder of the lock panics").answers_empty_looks
    }

    /// From now on commits with this output fail.
    pub(crate) fn refuse_output(&self, bytes: &'static [u8], error: StoreError) {
        let refused = Some((bytes, error));
        self.fault.lock().expect("no holder of the lock panics").output_refused = refused;
    }

    fn check_outputs(&self, items: &[CommitItem]) -> Answer<()> {
        let fault = self.fault.lock().expect("no holder of the lock panics");
        let Some((bytes, error)) = &fault.output_refused else { return Ok(()) };
        let is_refused = |item: &CommitItem| match &item.outcome {
            Outcome::Completed { output, .. } => **bytes == *output.bytes,
            _ => false,
        };
        if items.iter().any(is_refused) { Err(error.clone()) } else { Ok(()) }
    }

    /// From now on calls of this name fail, unless it is `None`.
    pub(crate) fn fail(&self, failing: Option<(&'static str, StoreError)>) {
        self.fault.lock().expect("no holder of the lock panics").failing = failing;
    }

    /// From now on calls that fire timers take so long.
    pub(crate) fn let_firing_take(&self, span: Duration) {
        self.fault.lock().expect("no holder of the lock panics").firing_takes = span;
    }

    pub(crate) fn cut(&self) {
        self.fault.lock().expect("no holder of the lock panics").is_cut = true;
    }

    pub(crate) fn mend(&self) {
        *self.fault.lock().expect("no holder of the lock panics") = Fault::default();
    }

    pub(crate) fn lose_replies(&self, n: u32) {
        self.fault.lock().expect("no holder of the lock panics").n_replies_lost = n;
    }

    /// From now on claims and hand-overs take effect, but their replies are still to come.
    pub(crate) fn hold_claims(&self) {
        self.claims_flow.forget_permits(MANY);
    }

    /// From now on looks at a run are never answered.
    pub(crate) fn hold_reads(&self) {
        self.reads_flow.forget_permits(MANY);
    }

    /// Waits until looks at a run are answered.
    pub(super) async fn read_flow(&self) {
        self.reads_flow.acquire().await.expect("it is never closed").forget();
    }

    pub(crate) fn let_claims_go(&self) {
        self.claims_flow.add_permits(MANY - self.claims_flow.available_permits());
    }

    /// Lets the first reply through that was held.
    pub(crate) fn let_one_claim_go(&self) {
        self.claims_flow.add_permits(1);
    }

    pub(super) fn reach(&self, operation: &'static str) -> Answer<&stepwell::MemoryStore> {
        let fault = self.fault.lock().expect("no holder of the lock panics");
        if fault.is_cut {
            return Err(StoreError::Unavailable { operation, why: "cut off".into() });
        }
        match &fault.failing {
            Some((name, error)) if *name == operation => Err(error.clone()),
            _ => Ok(&self.watch.store),
        }
    }

    /// The answer of a call that took effect, unless it gets lost on its way.
    fn reply<T>(&self, operation: &'static str, answer: T) -> Answer<T> {
        let mut fault = self.fault.lock().expect("no holder of the lock panics");
        if fault.n_replies_lost > 0 {
            fault.n_replies_lost -= 1;
            return Err(StoreError::Unavailable { operation, why: "the reply was lost".into() });
        }
        Ok(answer)
    }

    /// An offer, if nothing waits for the worker that makes it.
    fn idle(&self, offer: Option<ClaimRequest>) -> Option<ClaimRequest> {
        let refuses = self.fault.lock().expect("no holder of the lock panics").refuses_offers;
        offer.filter(|offer| !refuses && !self.watch.anything_waits(&offer.worker))
    }

    /// Hands over what became ready, by a claim of its own: so the watch sees where it stood.
    async fn hand_over(&self, offer: Option<ClaimRequest>) -> Answer<HandedOver> {
        let Some(offer) = offer else { return Ok(HandedOver::default()) };
        let ClaimAnswer::Claimed { now, tasks, .. } = self.watch.store.claim(offer.clone()).await?
        else {
            return Ok(HandedOver::default());
        };
        self.watch.claimed(&offer, &tasks);
        self.counts.handed_over.fetch_add(tasks.len(), Ordering::Relaxed);
        if !tasks.is_empty() {
            self.flow().await;
        }
        Ok(HandedOver { now, tasks })
    }

    /// Waits until replies that bring claims come through.
    async fn flow(&self) {
        self.claims_flow.acquire().await.expect("it is never closed").forget();
    }

    pub(super) fn changed<T>(&self, answer: T) -> T {
        self.watch.changed();
        answer
    }
}

#[async_trait]
impl Memos for Link {
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Answer<Vec<MemoAnswer>> {
        let answers = self.reach("store memos")?.store_memos(requests).await?;
        self.reply("store memos", self.changed(answers))
    }

    async fn listen(&self, requests: Vec<ListenRequest>) -> Answer<Vec<ListenAnswer>> {
        let answers = self.reach("listen")?.listen(requests).await?;
        self.reply("listen", self.changed(answers))
    }

    async fn memos(&self, run: RunKey) -> Answer<Vec<StoredMemo>> {
        self.reach("memos")?.memos(run).await
    }
}

impl Store for Link {
    fn hints(&self) -> Hints {
        self.watch.store.hints()
    }
}

#[async_trait]
impl Starts for Link {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Answer<Started> {
        let offer = self.idle(offer);
        let answers = self.reach("start")?.start(requests).await?;
        self.watch.changed();
        let started = Started { answers, handed_over: self.hand_over(offer).await? };
        self.reply("start", started)
    }
}

#[async_trait]
impl Claims for Link {
    async fn claim(&self, request: ClaimRequest) -> Answer<ClaimAnswer> {
        let answer = self.reach("claim")?.claim(request.clone()).await?;
        if let ClaimAnswer::Claimed { tasks, .. } = &answer {
            self.watch.claimed(&request, tasks);
            self.counts.claimed.fetch_add(tasks.len(), Ordering::Relaxed);
        }
        // It took no effect.
        let is_empty = matches!(&answer, ClaimAnswer::Claimed { tasks, .. } if tasks.is_empty());
        if !(is_empty && self.answers_empty_looks()) {
            self.flow().await;
        }
        if is_empty { Ok(answer) } else { self.reply("claim", answer) }
    }

    async fn inputs(&self, tasks: &[InputsOf]) -> Answer<Vec<TaskInputs>> {
        let inputs = self.reach("inputs")?.inputs(tasks).await?;
        for (task, inputs) in tasks.iter().zip(&inputs) {
            self.watch.handed_inputs(*task, inputs);
        }
        Ok(inputs)
    }
}

#[async_trait]
impl Commits for Link {
    async fn commit_and_claim(
        &self,
        items: Vec<CommitItem>,
        offer: Option<ClaimRequest>,
    ) -> Answer<Committed> {
        let offer = self.idle(offer);
        self.check_outputs(&items)?;
        let answers = self.reach("commit")?.commit(items.clone()).await?;
        self.watch.committed(&items, &answers);
        let committed = Committed { answers, handed_over: self.hand_over(offer).await? };
        self.reply("commit", committed)
    }

    async fn cancel(&self, run: RunKey, request: CancelRequest) -> Answer<Option<CancelAnswer>> {
        let force = request.force;
        let answer = self.reach("cancel")?.cancel(run, request).await?;
        self.watch.cancelled(run, force, answer);
        Ok(answer)
    }
}

#[async_trait]
impl Signals for Link {
    async fn signal(&self, requests: Vec<SignalRequest>) -> Answer<Vec<Option<SignalAnswer>>> {
        let answers = self.reach("signal")?.signal(requests.clone()).await?;
        self.watch.signalled(&requests, &answers);
        self.reply("signal", answers)
    }

    async fn signals(&self, run: RunKey) -> Answer<Vec<StoredSignal>> {
        self.reach("signals")?.signals(run).await
    }

    async fn waits(&self, run: RunKey) -> Answer<Vec<WaitRow>> {
        self.reach("waits")?.waits(run).await
    }

    async fn waiting_runs(
        &self,
        asked: &WaitingRuns,
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Answer<Vec<RunKey>> {
        self.reach("waiting runs")?.waiting_runs(asked, after, rows_max).await
    }
}

#[async_trait]
impl Timers for Link {
    async fn fire_timers(&self, epoch: Epoch, timers_max: usize) -> Answer<FiredTimers> {
        let span = self.fault.lock().expect("no holder of the lock panics").firing_takes;
        if !span.is_zero() {
            self.watch.clock.sleep(span).await;
        }
        let fired = self.reach("fire timers")?.fire_timers(epoch, timers_max).await?;
        if fired.n_fired > 0 {
            self.watch.changed();
        }
        Ok(fired)
    }

    async fn put_off_timer(&self, epoch: Epoch, span: Duration) -> Answer<Option<(RunKey, Node)>> {
        self.reach("put off a timer")?.put_off_timer(epoch, span).await
    }
}

#[async_trait]
impl Workers for Link {
    async fn register_worker(&self, registration: WorkerRegistration) -> Answer<()> {
        self.reach("register")?.register_worker(registration.clone()).await?;
        self.watch.registered(registration);
        Ok(())
    }

    async fn heartbeat(&self, worker: &WorkerId, claims: &[ClaimRef]) -> Answer<HeartbeatAnswer> {
        self.counts.beats.fetch_add(1, Ordering::Relaxed);
        let answer = self.reach("heartbeat")?.heartbeat(worker, claims).await?;
        self.watch.beaten(claims, &answer);
        Ok(answer)
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Answer<()> {
        self.reach("deregister")?.deregister_worker(worker).await.map(|()| self.changed(()))
    }

    async fn settle_services(&self) -> Answer<bool> {
        self.reach("settle")?.settle_services().await.map(|is_left| self.changed(is_left))
    }

    async fn lives(&self) -> Answer<Vec<Life>> {
        self.reach("lives")?.lives().await
    }

    async fn reap(&self, epoch: Epoch, request: ReapRequest) -> Answer<Reaped> {
        let crash_limit = request.crash_limit;
        let reaped = self.reach("reap")?.reap(epoch, request).await?;
        if reaped.n_workers > 0 {
            self.watch.reaped(crash_limit);
        }
        Ok(reaped)
    }
}

#[async_trait]
impl Leadership for Link {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Answer<Lead> {
        self.reach("lead")?.lead(candidate, ttl).await
    }

    async fn resign(&self, epoch: Epoch) -> Answer<()> {
        self.reach("resign")?.resign(epoch).await
    }
}
