//! Random workflows, with what will happen to every step written down beforehand.

use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stepwell::core::id::Node;
use stepwell::core::retry::Retry;
use stepwell::core::run::WaitFor;
use stepwell::core::workflow::{
    Definition, Draft, DraftStep, NodeKind, OutputRule, ParentRef, Placement, StepPolicy,
    WaitPolicy, workflow_hash,
};

/// The largest workflow.
pub(crate) const NODES_MAX: usize = 200;

/// How long a step may take; one that hangs is told by it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// What signals are called.
pub(crate) const SIGNALS: &[&str] = &["paid", "sent", "done"];

/// The attribute that some waits ask for and some signals carry.
pub(crate) fn attribute() -> (String, String) {
    ("order".to_owned(), "4711".to_owned())
}

/// A workflow, and what will happen in it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) fail_fast: bool,
    pub(crate) on_failure: bool,
    /// The step that gives the output, and whether the run fails without it.
    pub(crate) output: Option<(usize, bool)>,
}

/// A step, and what will happen to it.
#[derive(Clone)]
pub(crate) struct NodePlan {
    pub(crate) kind: NodeKind,
    /// Earlier nodes, and whether they are needed.
    pub(crate) parents: Vec<(usize, bool)>,
    /// What its own condition says.
    pub(crate) is_skipped: bool,
    /// What becomes of its attempts; further ones complete.
    pub(crate) fates: Vec<Fate>,
    pub(crate) retry: Retry,
    /// How long it sleeps or waits at most, or how long an attempt takes.
    pub(crate) span: Duration,
    /// What it waits for, if it is a wait or one of its attempts comes to wait.
    pub(crate) awaits: WaitFor,
    /// Whether a worker is asked before it waits.
    pub(crate) asks_worker: bool,
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Completes,
    Fails,
    FailsForGood,
    Panics,
    Hangs,
    /// It waits for a signal and goes on in the next attempt.
    Waits,
    /// It sleeps by its own code, holds no slot meanwhile, and goes on in the next attempt.
    Suspends,
}

/// One line per step, so that a failing plan can be read.
impl fmt::Debug for NodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {:?} after", self.kind, self.span)?;
        for (parent, needed) in &self.parents {
            write!(f, " {parent}{}", if *needed { "!" } else { "" })?;
        }
        if self.is_skipped {
            write!(f, ", is skipped")?;
        }
        if self.kind == NodeKind::Wait || self.fates.contains(&Fate::Waits) {
            write!(f, ", awaits {:?} (asks: {})", self.awaits, self.asks_worker)?;
        }
        let (n, delay) = (self.retry.retries_max, self.retry.initial);
        write!(f, ", {:?} with {n} retries after {delay:?}", self.fates)
    }
}

impl NodePlan {
    /// What becomes of an attempt, counted from 1.
    pub(crate) fn fate(&self, attempt: u32) -> Fate {
        let index = attempt.saturating_sub(1) as usize;
        self.fates.get(index).copied().unwrap_or(Fate::Completes)
    }

    fn wait_policy(&self) -> WaitPolicy {
        let asks_worker = self.asks_worker || self.is_skipped;
        WaitPolicy { wait_for: self.awaits.clone(), asks_worker, is_any: false }
    }
}

impl Plan {
    /// The workflow without code, for workers that act out the plan themselves.
    pub(crate) fn definition(&self, name: &str) -> Definition {
        let handle = |(index, needed): &(usize, bool)| ParentRef::Handle {
            index: u32::try_from(*index).expect("a plan is small"),
            workflow: workflow_hash(name),
            needed: *needed,
        };
        let step = |(ix, node): (usize, &NodePlan)| DraftStep {
            name: step_name(ix),
            kind: node.kind,
            placement: Placement::Explicit(node.parents.iter().map(handle).collect()),
            policy: StepPolicy {
                retry: node.retry,
                sleep: node.span,
                wait: (node.kind == NodeKind::Wait).then(|| node.wait_policy()),
                ..StepPolicy::default()
            },
        };
        let output = self.output.map(|(ix, required)| OutputRule { node: node(ix), required });
        let draft = Draft {
            workflow: name.to_owned(),
            version: None,
            steps: self.nodes.iter().enumerate().map(step).collect(),
            fail_fast: self.fail_fast,
            on_failure: self.on_failure,
            output,
            ..Draft::default()
        };
        draft.resolve().expect("parents come before their children")
    }
}

pub(crate) fn step_name(ix: usize) -> String {
    format!("s{ix}")
}

pub(crate) fn node(ix: usize) -> Node {
    Node(u32::try_from(ix).expect("a plan is small"))
}

/// What an attempt gives if it completes: unlike what any other attempt gives.
pub(crate) fn output_of(run: u64, node: Node, attempt: u32) -> u64 {
    run * 1_000_000_000 + u64::from(node.0) * 1_000 + u64::from(attempt)
}

/// Any plan in which nothing waits for a signal: mostly small ones, since they say more when they
/// fail.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    plans_of(false)
}

/// Any plan, with nodes and steps that wait for signals.
pub(crate) fn plans_with_waits() -> impl Strategy<Value = Plan> {
    plans_of(true)
}

fn plans_of(has_waits: bool) -> impl Strategy<Value = Plan> {
    let seeds = prop_oneof![
        6 => vec(seed(has_waits), 1..=12),
        3 => vec(seed(has_waits), 13..=50),
        1 => vec(seed(has_waits), 51..=NODES_MAX),
    ];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.4));
    let output = prop::option::weighted(0.4, (0..NODES_MAX, any::<bool>()));
    (seeds, flags, output).prop_map(|(seeds, (fail_fast, on_failure), output)| {
        let nodes: Vec<NodePlan> =
            seeds.into_iter().enumerate().map(|(ix, seed)| seed.plant(ix)).collect();
        let output = output.map(|(pick, required)| (pick % nodes.len(), required));
        let output = output.filter(|(ix, _)| nodes[*ix].kind == NodeKind::Step);
        Plan { nodes, fail_fast, on_failure, output }
    })
}

/// A node before it is known how many stand before it.
#[derive(Clone, Debug)]
struct Seed {
    node: NodePlan,
    /// How far back each parent stands.
    distances: Vec<(usize, bool)>,
}

impl Seed {
    fn plant(self, ix: usize) -> NodePlan {
        let Self { mut node, distances } = self;
        if ix > 0 {
            let parent = |(distance, needed)| (ix - 1 - distance % ix, needed);
            node.parents = distances.into_iter().map(parent).collect();
        }
        node
    }
}

fn seed(has_waits: bool) -> impl Strategy<Value = Seed> {
    let kind = prop_oneof![
        8 => Just(NodeKind::Step),
        1 => Just(NodeKind::Sleep),
        1 => Just(NodeKind::ConditionalSleep),
        3 => Just(if has_waits { NodeKind::Wait } else { NodeKind::Step }),
    ];
    let distance = prop_oneof![3 => 0..4_usize, 2 => 0..NODES_MAX];
    let parent = (distance, prop::bool::weighted(0.2));
    let distances = prop_oneof![
        1 => Just(Vec::new()),
        9 => vec(parent.clone(), 1..=4),
        1 => vec(parent, 5..=20),
    ];
    let millis = prop_oneof![3 => Just(0), 3 => 1..3_000_u64, 1 => 3_000..15_000_u64];
    let (is_skipped, temper) = (prop::bool::weighted(0.06), temper(has_waits));
    let waits = (awaits(), prop::bool::weighted(0.2));
    (kind, distances, is_skipped, temper, millis, waits).prop_map(
        |(kind, distances, is_skipped, (fates, retry), millis, (awaits, asks_worker))| {
            let span = Duration::from_millis(millis);
            let parents = Vec::new();
            // Sleeps have no code that could fail, and a plain one no condition either.
            let is_step = kind == NodeKind::Step;
            let fates = if is_step { fates } else { Vec::new() };
            let is_skipped = is_skipped && kind != NodeKind::Sleep;
            let node =
                NodePlan { kind, parents, is_skipped, fates, retry, span, awaits, asks_worker };
            Seed { node, distances }
        },
    )
}

/// One or two of few signals, some with an attribute, some only for a while.
fn awaits() -> impl Strategy<Value = WaitFor> {
    let names = prop::sample::subsequence(SIGNALS.to_vec(), 1..=2);
    let timeout =
        prop_oneof![2 => Just(None), 1 => Just(Some(0)), 3 => (1..60_000_u64).prop_map(Some)];
    (names, prop::bool::weighted(0.3), timeout).prop_map(|(names, is_matching, timeout)| WaitFor {
        signals: names.into_iter().map(str::to_owned).collect(),
        matching: is_matching.then(attribute).into_iter().collect(),
        timeout: timeout.map(Duration::from_millis),
    })
}

/// What a step goes through before everything else: it waits, perhaps several times; or where an
/// engine executes it, it sleeps.
fn first_waits(has_waits: bool) -> impl Strategy<Value = Vec<Fate>> {
    let n_waits = prop_oneof![4 => Just(0), 1 => 1..=3_usize];
    let fate = if has_waits { Fate::Waits } else { Fate::Suspends };
    n_waits.prop_map(move |n_waits| vec![fate; n_waits])
}

/// What becomes of a step's attempts: nearly always it completes sooner or later.
fn temper(has_waits: bool) -> impl Strategy<Value = (Vec<Fate>, Retry)> {
    let mishap =
        || prop_oneof![4 => Just(Fate::Fails), 1 => Just(Fate::Panics), 1 => Just(Fate::Hangs)];
    let delay = || prop_oneof![Just(0), Just(700), Just(4_000_u64)].prop_map(Duration::from_millis);
    let flaky = (vec(mishap(), 1..=3), delay()).prop_map(|(fates, delay)| {
        let n = u32::try_from(fates.len()).expect("few");
        (fates, Retry::fixed(n, delay))
    });
    let doomed =
        (vec(mishap(), 1..=3), any::<bool>(), delay()).prop_map(|(fates, at_once, delay)| {
            let n = u32::try_from(fates.len()).expect("few");
            let (mut fates, retry) = (fates, Retry::fixed(n - 1, delay));
            if at_once {
                fates[0] = Fate::FailsForGood;
            }
            (fates, retry)
        });
    let tempers = prop_oneof![
        24 => Just((Vec::new(), Retry::never())),
        6 => flaky,
        1 => doomed,
    ];
    (first_waits(has_waits), tempers).prop_map(|(mut fates, (rest, retry))| {
        fates.extend(rest);
        (fates, retry)
    })
}
