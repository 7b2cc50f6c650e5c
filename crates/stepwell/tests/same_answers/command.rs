//! What can be asked of a store, as data. Numbers name what earlier commands made, counted
//! round, so that a list without some of its commands still makes sense.

use proptest::collection::vec;
use proptest::prelude::*;

use super::functions::{self, Deed, Waits};
use super::shapes::{N_AWAITED, N_SHAPES, N_SIGNALS};

/// What a sequence is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Outcomes,
    Tenants,
    Workers,
    Batches,
    /// Starts and commits carry offers of free slots.
    Offers,
    /// Signals go to many runs at once.
    Signals,
    /// Steps do durable things, wait while they run, and suspend.
    Functions,
}

impl Theme {
    /// Whether steps do durable things. With workers that come and go they need not: those
    /// sequences are about who serves what.
    pub(crate) fn has_functions(self) -> bool {
        self != Self::Workers
    }

    /// Whether the order within queues is left open: what becomes ready in one transaction over
    /// many runs has none, and a store need not count a hand-over as a turn of its tenant.
    pub(crate) fn leaves_order_open(self) -> bool {
        matches!(self, Self::Batches | Self::Offers | Self::Signals)
    }
}

/// One call of a store.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Register {
        shape: u8,
    },
    Start {
        runs: Vec<NewRun>,
    },
    /// The same request again, as after a lost reply.
    StartAgain {
        request: u8,
    },
    /// `flows` and `queues` are sets of bits.
    Hire {
        worker: u8,
        queues: u8,
        flows: u8,
        lease_secs: u8,
    },
    Dismiss {
        worker: u8,
    },
    Claim {
        worker: u8,
        tasks_max: u8,
        suspect: bool,
    },
    Commit {
        items: Vec<(Pick, End)>,
    },
    Beat {
        worker: u8,
        claims: Vec<Pick>,
    },
    Cancel {
        run: u8,
        reason: Option<u8>,
        force: bool,
    },
    Signal {
        letters: Vec<Letter>,
    },
    Lead {
        candidate: u8,
        ttl_secs: u8,
    },
    Resign {
        epoch: u8,
    },
    Fire {
        epoch: u8,
        timers_max: u8,
    },
    Reap {
        epoch: u8,
        workers_max: u8,
    },
    SetTenant {
        tenant: u8,
        weight: u32,
        tasks_max: Option<u32>,
    },
    SetDefault {
        weight: u32,
        tasks_max: Option<u32>,
    },
    Pass {
        millis: u32,
    },
    Memos {
        deeds: Vec<(Pick, Deed)>,
    },
    Listen {
        claim: Pick,
        waits: Waits,
    },
    Look(Look),
}

/// A read.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    Inputs { claims: Vec<Pick> },
    Run { run: u8 },
    Find { tenant: u8, id: u8 },
    Ended { runs: Vec<u8> },
    List { tenant: Option<u8>, shape: Option<u8>, status: Option<u8>, before: Option<u8>, n: u8 },
    Waiting { tenant: u8, shape: u8, signal: u8, after: Option<u8>, n: u8 },
    Tenant { tenant: u8 },
    Definition { flow: u8 },
    Latest { shape: u8 },
    Everything,
}

/// A run to start. Few ids, so that some are used twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRun {
    pub(crate) tenant: u8,
    pub(crate) flow: u8,
    /// 0 for an id of its own.
    pub(crate) id: u8,
    pub(crate) input: u8,
    /// Under a key that sorts before those of earlier runs.
    pub(crate) early: bool,
    pub(crate) deadline_secs: Option<u8>,
}

/// A signal to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) to: Address,
    pub(crate) run: u8,
    pub(crate) name: u8,
    /// 0 for a key of its own. Few others, so that some are used twice.
    pub(crate) key: u8,
    pub(crate) content: u8,
    pub(crate) has_attribute: bool,
    pub(crate) only_if_awaited: bool,
}

/// How a signal names its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Key,
    Id,
    /// There is no such run.
    Nowhere,
}

/// One of the claims made so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    /// One that was not committed yet, counted from the oldest.
    Open(u8),
    /// Any.
    Any(u8),
}

/// What becomes of a claimed task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Completed {
        bytes: u8,
    },
    Failed {
        message: u8,
    },
    FailedForGood,
    FailedUntil {
        secs: u8,
    },
    TimedOut,
    /// Or slept or waits, for a sleep or a wait with conditions.
    Passed,
    Waits {
        what: u8,
    },
    Skipped,
    Released,
    /// Its function goes on when one of these is over.
    Suspends {
        waits: Waits,
    },
    /// Its function begins another round.
    Continues {
        value: u8,
    },
}

/// A sequence begins with some workflows, a worker for all of them and some runs.
pub(crate) fn sequences(theme: Theme) -> impl Strategy<Value = Vec<Command>> {
    let flows = vec(registers(), 1..4);
    let hire = Just(Command::Hire { worker: 0, queues: 3, flows: 255, lease_secs: 30 });
    let lead = Just(Command::Lead { candidate: 0, ttl_secs: 250 });
    let starts = vec(starts(theme), 1..4);
    let rest = vec(commands(theme), 0..90);
    (flows, hire, lead, starts, rest).prop_map(|(flows, hire, lead, starts, rest)| {
        let opening = flows.into_iter().chain([hire, lead]).chain(starts);
        opening.chain(rest).collect()
    })
}

fn commands(theme: Theme) -> BoxedStrategy<Command> {
    use Theme::{Functions, Outcomes, Signals, Tenants, Workers};
    let weight = |common: u32, lift: Theme, more: u32| if theme == lift { more } else { common };
    // Limits make the order count, which large batches leave open.
    let settings = weight(2, Tenants, 8);
    let tenants = if theme.leaves_order_open() {
        Just(Command::Pass { millis: 1 }).boxed()
    } else {
        tenants().boxed()
    };
    prop_oneof![
        2 => registers(),
        weight(6, Tenants, 10) => starts(theme),
        1 => any::<u8>().prop_map(|request| Command::StartAgain { request }),
        weight(3, Workers, 8) => hires(),
        weight(1, Workers, 5) => (0..3_u8).prop_map(|worker| Command::Dismiss { worker }),
        18 => claims(theme),
        weight(18, Outcomes, 24) => commits(theme),
        weight(2, Workers, 6) => beats(),
        3 => cancels(),
        weight(6, Signals, 24) => signals(theme),
        weight(1, Workers, 4) => leads(),
        1 => any::<u8>().prop_map(|epoch| Command::Resign { epoch }),
        weight(5, Outcomes, 8) => fires(theme),
        weight(3, Workers, 8) => reaps(theme),
        settings => tenants,
        8 => prop_oneof![0..1_500_u32, 4_000..70_000_u32]
            .prop_map(|millis| Command::Pass { millis }),
        weight(weight(3, Workers, 1), Functions, 12) => functions::deeds(theme),
        weight(weight(2, Workers, 1), Functions, 8) => functions::listens(theme),
        8 => looks().prop_map(Command::Look),
    ]
    .boxed()
}

fn registers() -> impl Strategy<Value = Command> {
    (0..N_SHAPES).prop_map(|shape| Command::Register { shape })
}

fn starts(theme: Theme) -> impl Strategy<Value = Command> {
    let id = prop_oneof![4 => Just(0_u8), 1 => 1..4_u8];
    let deadline = prop::option::weighted(0.15, 0..90_u8);
    let run = (0..3_u8, any::<u8>(), id, 0..2_u8, prop::bool::weighted(0.1), deadline);
    let run = run.prop_map(|(tenant, flow, id, input, early, deadline_secs)| NewRun {
        tenant,
        flow,
        id,
        input,
        early,
        deadline_secs,
    });
    let n_max = if theme.leaves_order_open() { 12 } else { 4 };
    vec(run, 1..=n_max).prop_map(|runs| Command::Start { runs })
}

fn cancels() -> impl Strategy<Value = Command> {
    (any::<u8>(), prop::option::of(0..3_u8), prop::bool::weighted(0.3))
        .prop_map(|(run, reason, force)| Command::Cancel { run, reason, force })
}

fn signals(theme: Theme) -> impl Strategy<Value = Command> {
    let to =
        prop_oneof![8 => Just(Address::Key), 4 => Just(Address::Id), 1 => Just(Address::Nowhere)];
    let key = prop_oneof![4 => Just(0_u8), 1 => 1..4_u8];
    let flags = (any::<bool>(), prop::bool::weighted(0.1));
    let letter = (to, any::<u8>(), 0..N_SIGNALS, key, 0..2_u8, flags).prop_map(
        |(to, run, name, key, content, (has_attribute, only_if_awaited))| Letter {
            to,
            run,
            name,
            key,
            content,
            has_attribute,
            only_if_awaited,
        },
    );
    let n_max = if theme.leaves_order_open() { 12 } else { 3 };
    vec(letter, 1..=n_max).prop_map(|letters| Command::Signal { letters })
}

fn hires() -> impl Strategy<Value = Command> {
    let some = |all: u8| prop_oneof![1 => Just(all), 1 => 0..=all];
    (0..3_u8, some(3), some(255), prop_oneof![Just(10_u8), Just(60)]).prop_map(
        |(worker, queues, flows, lease_secs)| Command::Hire { worker, queues, flows, lease_secs },
    )
}

fn claims(theme: Theme) -> impl Strategy<Value = Command> {
    let tasks_max = if theme.leaves_order_open() { 255..=255_u8 } else { 0..=6 };
    (0..3_u8, tasks_max, prop::bool::weighted(0.3)).prop_map(|(worker, tasks_max, suspect)| {
        // The first worker is the one that is there in most sequences.
        Command::Claim { worker: worker.saturating_sub(1), tasks_max, suspect }
    })
}

pub(crate) fn picks() -> impl Strategy<Value = Pick> {
    prop_oneof![9 => any::<u8>().prop_map(Pick::Open), 1 => any::<u8>().prop_map(Pick::Any)]
}

fn commits(theme: Theme) -> impl Strategy<Value = Command> {
    let n_suspends = match theme {
        Theme::Functions => 8,
        Theme::Workers => 1,
        _ => 3,
    };
    let end = prop_oneof![
        8 => (0..3_u8).prop_map(|bytes| End::Completed { bytes }),
        3 => (0..2_u8).prop_map(|message| End::Failed { message }),
        1 => Just(End::FailedForGood),
        1 => (0..9_u8).prop_map(|secs| End::FailedUntil { secs }),
        1 => Just(End::TimedOut),
        2 => Just(End::Passed),
        3 => (0..N_AWAITED).prop_map(|what| End::Waits { what }),
        1 => Just(End::Skipped),
        1 => Just(End::Released),
        n_suspends => functions::suspensions(theme),
        1 => functions::rounds(theme),
    ];
    let n_max = if theme.leaves_order_open() { 12 } else { 3 };
    vec((picks(), end), 1..=n_max).prop_map(|items| Command::Commit { items })
}

fn beats() -> impl Strategy<Value = Command> {
    let worker = 0..3_u8;
    (worker, vec(picks(), 0..4)).prop_map(|(worker, claims)| Command::Beat { worker, claims })
}

fn leads() -> impl Strategy<Value = Command> {
    let ttl = prop_oneof![Just(10_u8), Just(200)];
    (0..2_u8, ttl).prop_map(|(candidate, ttl_secs)| Command::Lead { candidate, ttl_secs })
}

fn fires(theme: Theme) -> impl Strategy<Value = Command> {
    let timers_max = if theme.leaves_order_open() { 255..=255_u8 } else { 0..=1 };
    (0..3_u8, timers_max).prop_map(|(epoch, timers_max)| Command::Fire { epoch, timers_max })
}

fn reaps(theme: Theme) -> impl Strategy<Value = Command> {
    let workers_max = if theme.leaves_order_open() { 255..=255_u8 } else { 0..=2 };
    (0..3_u8, workers_max).prop_map(|(epoch, workers_max)| Command::Reap { epoch, workers_max })
}

fn weights() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 1..5_u32, 1 => Just(1_000_u32), 1 => Just(0_u32), 1 => Just(1_001_u32)]
}

fn limits() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![2 => Just(None), 6 => (1..5_u32).prop_map(Some), 1 => Just(Some(0))]
}

fn tenants() -> impl Strategy<Value = Command> {
    // The fourth is what holds for tenants without settings of their own.
    (0..4_u8, weights(), limits()).prop_map(|(tenant, weight, tasks_max)| match tenant {
        3 => Command::SetDefault { weight, tasks_max },
        tenant => Command::SetTenant { tenant, weight, tasks_max },
    })
}

fn looks() -> impl Strategy<Value = Look> {
    let of = prop::option::of::<std::ops::Range<u8>>;
    prop_oneof![
        3 => vec(picks(), 0..4).prop_map(|claims| Look::Inputs { claims }),
        3 => any::<u8>().prop_map(|run| Look::Run { run }),
        1 => (0..4_u8, 0..4_u8).prop_map(|(tenant, id)| Look::Find { tenant, id }),
        1 => vec(any::<u8>(), 0..4).prop_map(|runs| Look::Ended { runs }),
        2 => (of(0..4), of(0..4), of(0..5), of(0..20), 0..5_u8).prop_map(
            |(tenant, shape, status, before, n)| Look::List {
                tenant, shape, status, before, n,
            }
        ),
        2 => (0..4_u8, 0..N_SHAPES, 0..N_SIGNALS, of(0..20), 0..5_u8).prop_map(
            |(tenant, shape, signal, after, n)| Look::Waiting { tenant, shape, signal, after, n }
        ),
        2 => (0..4_u8).prop_map(|tenant| Look::Tenant { tenant }),
        1 => any::<u8>().prop_map(|flow| Look::Definition { flow }),
        1 => (0..N_SHAPES).prop_map(|shape| Look::Latest { shape }),
        2 => Just(Look::Everything),
    ]
}
