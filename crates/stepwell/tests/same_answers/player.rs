//! One store, and what its callers know of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stepwell::core::decide::{CancelRequest, RunSeed};
use stepwell::core::id::{Epoch, Node, Queue, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::workflow::NodeKind;
use stepwell::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, CommitItem, Committed, DynStore, HandedOver, InputsOf,
    MarkedDefinition, StartRequest, Started, StoreError, StoredDefinition, Take, TenantSettings,
    WorkerRegistration,
};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::world::{self, Beats, payload};

use super::command::{Command, End, NewRun, Pick, Theme};
use super::outcomes::{kind, outcome};
use super::shapes::shape;
use super::words::{self, Words};

/// Losses at which a task ends.
pub(super) const CRASH_LIMIT: u32 = 3;

/// One store, and what its callers have got from it so far. The players of one stage know the
/// same things by the same numbers.
pub(crate) struct Player {
    pub(crate) name: &'static str,
    pub(crate) store: DynStore,
    pub(crate) theme: Theme,
    pub(crate) flows: Vec<Arc<StoredDefinition>>,
    pub(crate) requests: Vec<StartRequest>,
    pub(crate) claims: Vec<Held>,
    pub(super) epochs: Vec<Epoch>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) beats: Beats,
    n_claims: u64,
    pub(super) n_letters: u64,
    pub(super) n_memos: u64,
    /// Tasks whose code has done something durable, so that it was asked whether to skip them.
    pub(super) doers: BTreeSet<(RunKey, Node)>,
    pub(crate) words: Words,
}

/// A claim that was handed out.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(super) of: InputsOf,
    pub(super) kind: NodeKind,
    pub(super) failures: u32,
    is_settled: bool,
}

pub(crate) fn tenant(number: u8) -> Tenant {
    world::tenant(["zeta", "acme", "mole", "nobody"][usize::from(number) % 4])
}

pub(super) fn worker(number: u8) -> WorkerId {
    world::worker(["west", "east", "north"][usize::from(number) % 3])
}

/// The element that a number names, counted round.
pub(crate) fn nth<T>(items: &[T], number: u8) -> Option<&T> {
    items.get(usize::from(number).checked_rem(items.len())?)
}

impl Player {
    pub(crate) fn new(
        name: &'static str,
        store: DynStore,
        clock: Arc<ManualClock>,
        theme: Theme,
    ) -> Self {
        Self {
            name,
            store,
            theme,
            flows: Vec::new(),
            requests: Vec::new(),
            claims: Vec::new(),
            epochs: Vec::new(),
            clock,
            beats: Beats::default(),
            n_claims: 0,
            n_letters: 0,
            n_memos: 0,
            doers: BTreeSet::new(),
            words: Words::new(theme == Theme::Offers),
        }
    }

    /// Does what a command says and puts the answer into words that are the same for all stores.
    pub(crate) async fn play(&mut self, command: &Command) -> String {
        words::unmarked(&self.answer(command).await)
    }

    async fn answer(&mut self, command: &Command) -> String {
        match command {
            Command::Register { shape } => self.register(*shape).await,
            Command::Start { runs } => self.start(runs).await,
            Command::StartAgain { request } => self.start_again(*request).await,
            Command::Hire { worker, queues, flows, lease_secs } => {
                self.hire(*worker, *queues, *flows, *lease_secs).await
            }
            Command::Dismiss { worker: number } => {
                self.words.plain(self.store.deregister_worker(&worker(*number)).await)
            }
            Command::Claim { worker, tasks_max, suspect } => {
                self.claim(*worker, *tasks_max, *suspect).await
            }
            Command::Commit { items } => self.commit(items).await,
            Command::Beat { worker: number, claims } => {
                let claims: Vec<ClaimRef> =
                    self.pick_all(claims).into_iter().map(|of| of.claim).collect();
                let answer = self.store.heartbeat(&worker(*number), &claims).await;
                self.lives().await;
                self.words.beat(answer)
            }
            Command::Cancel { run, reason, force } => {
                let by = worker(*run).as_str().to_owned();
                let reason = reason.map(|number| format!("reason {number} \u{2603}"));
                let request = CancelRequest { by, reason, force: *force };
                self.words.plain(self.store.cancel(self.key(*run), request).await)
            }
            Command::Signal { letters } => self.signal(letters).await,
            Command::Memos { deeds } => self.store_memos(deeds).await,
            Command::Listen { claim, waits } => self.listen(*claim, *waits).await,
            Command::Lead { .. } | Command::Resign { .. } => self.elect(command).await,
            Command::Fire { .. } | Command::Reap { .. } => self.serve_time(command).await,
            Command::SetTenant { tenant: number, weight, tasks_max } => {
                let settings = TenantSettings { weight: *weight, tasks_max: *tasks_max };
                self.words.plain(self.store.set_tenant(&tenant(*number), settings).await)
            }
            Command::SetDefault { weight, tasks_max } => {
                let settings = TenantSettings { weight: *weight, tasks_max: *tasks_max };
                self.words.plain(self.store.set_default_tenant(settings).await)
            }
            // The stage moves the clock.
            Command::Pass { .. } => String::new(),
            Command::Look(look) => self.look(look).await,
        }
    }

    async fn register(&mut self, number: u8) -> String {
        let answer = self.store.register(&shape(number)).await;
        if let Ok(stored) = &answer {
            match self.flows.iter_mut().find(|flow| flow.id == stored.id) {
                Some(flow) => *flow = Arc::clone(stored),
                None => self.flows.push(Arc::clone(stored)),
            }
        }
        self.words.definition(answer)
    }

    async fn start(&mut self, runs: &[NewRun]) -> String {
        let mut requests = Vec::new();
        for run in runs {
            let Some(flow) = nth(&self.flows, run.flow).map(|flow| flow.marked()) else { continue };
            let request = self.request(*run, flow);
            self.requests.push(request.clone());
            requests.push(request);
        }
        self.start_all(requests).await
    }

    async fn start_all(&mut self, requests: Vec<StartRequest>) -> String {
        let offer = self.offer();
        let offered = offer.is_some();
        match self.store.start_and_claim(requests, offer).await {
            Ok(Started { answers, handed_over }) => {
                let handed_over = self.handed_over(offered, handed_over).await;
                format!("{answers:?} {handed_over}")
            }
            Err(error) => format!("{error:?}"),
        }
    }

    async fn start_again(&mut self, number: u8) -> String {
        let Some(request) = nth(&self.requests, number).cloned() else { return String::new() };
        self.start_all(vec![request]).await
    }

    fn request(&self, run: NewRun, flow: MarkedDefinition) -> StartRequest {
        let number = self.requests.len() as u128;
        // Even numbers grow, odd ones fall: all differ.
        let key = if run.early { 2_000_001 - 2 * number } else { 2_000_000 + 2 * number };
        let id = if run.id == 0 { format!("own-{number}") } else { format!("id-{}", run.id) };
        let seed = RunSeed {
            key: RunKey((key << 80) | 0xfeed),
            tenant: tenant(run.tenant),
            id: RunId::new(id).expect("a good name"),
            definition: flow.id,
            deadline: run.deadline_secs.map(|secs| Duration::from_secs(secs.into())),
        };
        let input = payload(&[run.input; 3]);
        StartRequest { seed, mark: flow.mark, input, input_digest: [run.input; 32] }
    }

    async fn hire(&mut self, number: u8, queues: u8, flows: u8, lease_secs: u8) -> String {
        let is_in = |set: u8, ix: usize| set & (1 << (ix % 8)) != 0;
        let all = [world::queue("slow"), Queue::default_queue()];
        let queues = (0..2).filter(|ix| is_in(queues, *ix)).map(|ix| all[ix].clone());
        let known = self.flows.iter().enumerate();
        let flows =
            known.filter(|(ix, _)| is_in(flows, *ix)).map(|(_, flow)| flow.marked_service());
        let registration = WorkerRegistration {
            worker: worker(number),
            queues: queues.collect(),
            services: flows.collect(),
            lease: Duration::from_secs(lease_secs.into()),
        };
        let registered = self.store.register_worker(registration).await;
        self.lives().await;
        self.words.plain(registered)
    }

    async fn claim(&mut self, number: u8, tasks_max: u8, suspect: bool) -> String {
        let request = self.claim_request(number, tasks_max, suspect);
        let answer = self.store.claim(request).await;
        self.claimed(answer)
    }

    fn claim_request(&mut self, number: u8, tasks_max: u8, suspect: bool) -> ClaimRequest {
        self.n_claims += 1;
        // One suspect is handed out at a time, so where the order is open there must be none.
        let crash_limit = if self.theme.leaves_order_open() { 1_000 } else { CRASH_LIMIT };
        ClaimRequest {
            worker: worker(number),
            tasks_max: tasks_max.into(),
            take: if suspect { Take::Suspect } else { Take::Plain },
            crash_limit,
            salt: self.n_claims,
        }
    }

    fn claimed(&mut self, mut answer: Result<ClaimAnswer, StoreError>) -> String {
        if let Ok(ClaimAnswer::Claimed { tasks, .. }) = &mut answer {
            if self.theme.leaves_order_open() {
                tasks.sort_by_key(|task| (task.claim.run, task.claim.node));
            }
            let held = tasks.iter().map(|task| {
                let kind = kind(&task.definition, task.claim.node);
                Held { of: task.inputs_of(), kind, failures: task.failures, is_settled: false }
            });
            self.claims.extend(held);
        }
        self.words.claimed(answer)
    }

    /// The slots that the first worker offers with a call, now few, now many.
    fn offer(&mut self) -> Option<ClaimRequest> {
        let tasks_max = [1, 3, 200][usize::try_from(self.n_claims % 3).unwrap_or(0)];
        (self.theme == Theme::Offers).then(|| self.claim_request(0, tasks_max, false))
    }

    /// What went straight to the worker that made an offer, together with what it claims next: a
    /// store may leave tasks in their queue instead of handing them over, and nothing else may
    /// differ.
    async fn handed_over(&mut self, offered: bool, handed_over: HandedOver) -> String {
        if !offered {
            return String::new();
        }
        let request = self.claim_request(0, 200, false);
        let mut answer = self.store.claim(request).await;
        match &mut answer {
            Ok(ClaimAnswer::Claimed { tasks, .. }) => tasks.extend(handed_over.tasks),
            _ => assert!(handed_over.tasks.is_empty(), "whoever is not registered gets nothing"),
        }
        self.claimed(answer)
    }

    fn pick(&self, pick: Pick) -> Option<usize> {
        let open = |ix: &usize| !self.claims[*ix].is_settled;
        let (among, number): (Vec<usize>, u8) = match pick {
            Pick::Open(number) => ((0..self.claims.len()).filter(open).collect(), number),
            Pick::Any(number) => ((0..self.claims.len()).collect(), number),
        };
        nth(&among, number).copied()
    }

    /// A claim of a step, whose code may do something durable.
    pub(super) fn pick_doer(&mut self, pick: Pick) -> Option<ClaimRef> {
        let held = self.claims[self.pick(pick)?];
        let claim = held.of.claim;
        let is_step = held.kind == NodeKind::Step && claim.node != Node::ON_FAILURE;
        if !is_step {
            return None;
        }
        self.doers.insert((claim.run, claim.node));
        Some(claim)
    }

    pub(crate) fn pick_all(&self, picks: &[Pick]) -> Vec<InputsOf> {
        let picked = picks.iter().filter_map(|pick| self.pick(*pick));
        picked.map(|ix| self.claims[ix].of).collect()
    }

    /// The key of a run, or one that no run has.
    pub(crate) fn key(&self, run: u8) -> RunKey {
        nth(&self.requests, run).map_or(RunKey(1), |request| request.seed.key)
    }

    async fn commit(&mut self, picks: &[(Pick, End)]) -> String {
        let mut items: Vec<CommitItem> = Vec::new();
        let mut settled = Vec::new();
        for (pick, end) in picks {
            let Some(ix) = self.pick(*pick) else { continue };
            let held = self.claims[ix];
            let claim = held.of.claim;
            let first = items.first().map_or(claim.run, |item| item.claim.run);
            // Only large batches change several runs at once.
            if !self.theme.leaves_order_open() && claim.run != first {
                continue;
            }
            let is_doer = self.doers.contains(&(claim.run, claim.node));
            let end = match end {
                End::Skipped if is_doer => End::Released,
                end => *end,
            };
            if matches!(end, End::Suspends { .. } | End::Continues { .. }) {
                self.doers.insert((claim.run, claim.node));
            }
            let moment = self.moment(claim).await;
            items.push(CommitItem { claim, outcome: outcome(held, end, moment) });
            settled.push(ix);
        }
        for ix in settled {
            self.claims[ix].is_settled = true;
        }
        let offer = self.offer();
        let offered = offer.is_some();
        match self.store.commit_and_claim(items, offer).await {
            Ok(Committed { answers, handed_over }) => {
                let handed_over = self.handed_over(offered, handed_over).await;
                format!("{answers:?} {handed_over}")
            }
            Err(error) => format!("{error:?}"),
        }
    }
}
