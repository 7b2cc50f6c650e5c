//! Workflows as data: a few fixed ones that tests steer, and random graphs that are the same in
//! every process.

use std::time::Duration;

use crate::chance::{Chance, mix};

/// A workflow as data.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workflow's name.
    pub name: String,
    /// Its steps; parents stand before their children.
    pub steps: Vec<StepPlan>,
    /// Whether a failure handler follows when a run fails.
    pub has_handler: bool,
}

/// A wait for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPlan {
    /// Whether the step waits in its own code. Otherwise a wait stands between its only parent and
    /// itself.
    pub is_own: bool,
    /// How long it waits at most.
    pub timeout: Option<Duration>,
    /// Whether the signal is ever sent; a wait for one that is not has a time-out.
    pub is_sent: bool,
}

/// One step.
#[derive(Clone, Debug, Default)]
pub struct StepPlan {
    /// Places of its parents in the plan.
    pub parents: Vec<usize>,
    /// Whether it is skipped as soon as one parent was; otherwise only if all were.
    pub needs_all: bool,
    /// A durable sleep between its only parent and itself.
    pub nap: Option<Duration>,
    /// A wait for a signal.
    pub wait: Option<WaitPlan>,
    /// It is skipped for one in so many values of its parents; 0 for never.
    pub skipped_one_in: u64,
    /// So many attempts fail on purpose.
    pub n_failures: u32,
    /// How long it waits before it is tried again.
    pub backoff: Duration,
    /// How long one execution takes.
    pub span: Duration,
    /// Whether it runs as ordinary code on a thread of its own.
    pub is_blocking: bool,
    /// Whether each execution waits until its gate is opened.
    pub has_gate: bool,
}

impl StepPlan {
    /// The step's name.
    #[must_use]
    pub fn name(place: usize) -> String {
        format!("s{place}")
    }

    /// The name of the sleep before it.
    #[must_use]
    pub fn nap_name(place: usize) -> String {
        format!("nap{place}")
    }

    /// The name of the wait before it.
    #[must_use]
    pub fn wait_name(place: usize) -> String {
        format!("wait{place}")
    }

    /// The name of the signal that the wait before it is for.
    #[must_use]
    pub fn signal_name(place: usize) -> String {
        format!("go{place}")
    }

    /// The wait between its only parent and itself.
    #[must_use]
    pub fn wait_before(&self) -> Option<WaitPlan> {
        self.wait.filter(|wait| !wait.is_own)
    }

    /// The wait in its own code.
    #[must_use]
    pub fn own_wait(&self) -> Option<WaitPlan> {
        self.wait.filter(|wait| wait.is_own)
    }

    /// The task that waits: the step itself, or the wait before it.
    #[must_use]
    pub fn waiter(&self, place: usize) -> Option<String> {
        let wait = self.wait?;
        Some(if wait.is_own { Self::name(place) } else { Self::wait_name(place) })
    }

    /// The last attempt that fails on purpose, unless others were lost or handed back. The first
    /// attempt of a step that waits only waits.
    #[must_use]
    pub fn last_failure(&self) -> u32 {
        match self.n_failures {
            0 => 0,
            n => n + u32::from(self.own_wait().is_some()),
        }
    }

    /// Whether its own condition skips it, given what its parents left.
    #[must_use]
    pub fn is_skipped(&self, parents: &[Option<u64>]) -> bool {
        self.skipped_one_in > 0 && digest(parents).is_multiple_of(self.skipped_one_in)
    }
}

/// The output of a step: it depends on the run's input and on what its parents left.
#[must_use]
pub fn output(input: u64, place: usize, parents: &[Option<u64>]) -> u64 {
    mix([input, place as u64, digest(parents)])
}

/// The payload of the signal that a step of a run waits for.
#[must_use]
pub fn signal(input: u64, place: usize) -> u64 {
    mix([input, place as u64, u64::MAX])
}

fn digest(parents: &[Option<u64>]) -> u64 {
    mix(parents.iter().map(|parent| parent.map_or(0, |value| mix([value]))))
}

/// One step.
pub const SINGLE: &str = "single";
/// A hundred steps: one, 98 beside each other, one.
pub const WIDE: &str = "wide";
/// One async step that waits for its gate.
pub const GATE: &str = "gate";
/// One blocking step that waits for its gate.
pub const BLOCKING_GATE: &str = "blocking-gate";
/// A step, a sleep of [`LONG`], and a step.
pub const NAP: &str = "nap";
/// A step whose first attempt fails; the second is due after [`LONG`].
pub const FLAKY: &str = "flaky";

/// Long enough for a test to see a task sleep, and to replace its worker meanwhile.
pub const LONG: Duration = Duration::from_secs(3);

/// How many random graphs there are.
pub const N_RANDOM: usize = 8;

/// The name of a random graph.
#[must_use]
pub fn random_name(number: usize) -> String {
    format!("random-{number}")
}

/// Every plan there is.
#[must_use]
pub fn all() -> Vec<Plan> {
    let step = StepPlan::default;
    let gate = |is_blocking| StepPlan { has_gate: true, is_blocking, ..step() };
    let flaky = StepPlan { n_failures: 1, backoff: LONG, ..step() };
    let after_nap = StepPlan { parents: vec![0], nap: Some(LONG), ..step() };
    let mut wide = vec![step()];
    wide.extend((1..99).map(|_| StepPlan { parents: vec![0], ..step() }));
    wide.push(StepPlan { parents: (1..99).collect(), ..step() });
    let fixed = [
        (SINGLE, vec![step()]),
        (WIDE, wide),
        (GATE, vec![gate(false)]),
        (BLOCKING_GATE, vec![gate(true)]),
        (NAP, vec![step(), after_nap]),
        (FLAKY, vec![flaky]),
    ];
    let plan = |(name, steps): (&str, _)| Plan { name: name.to_owned(), steps, has_handler: false };
    let fixed = fixed.into_iter().map(plan);
    fixed.chain((0..N_RANDOM).map(random)).collect()
}

/// A random graph: chains, fans and diamonds, one after the other.
fn random(number: usize) -> Plan {
    let mut chance = Chance::new(number as u64 + 1);
    let mut steps = vec![StepPlan::default()];
    let n_max = 6 + chance.below(20);
    while steps.len() < n_max {
        let from = chance.below(steps.len());
        match chance.below(3) {
            0 => chain(&mut steps, from, &mut chance),
            1 => fan(&mut steps, from, &mut chance),
            _ => diamond(&mut steps, from, &mut chance),
        }
    }
    // All loose ends meet, so that the last step depends on everything.
    let is_parent = |place: &usize| steps.iter().any(|step| step.parents.contains(place));
    let ends = (0..steps.len()).filter(|place| !is_parent(place)).collect();
    steps.push(StepPlan { parents: ends, ..StepPlan::default() });
    Plan { name: random_name(number), steps, has_handler: chance.one_in(2) }
}

fn chain(steps: &mut Vec<StepPlan>, from: usize, chance: &mut Chance) {
    let mut parent = from;
    for _ in 0..=chance.below(4) {
        steps.push(any_step(vec![parent], chance));
        parent = steps.len() - 1;
    }
}

fn fan(steps: &mut Vec<StepPlan>, from: usize, chance: &mut Chance) {
    for _ in 0..2 + chance.below(4) {
        steps.push(any_step(vec![from], chance));
    }
}

fn diamond(steps: &mut Vec<StepPlan>, from: usize, chance: &mut Chance) {
    let first = steps.len();
    fan(steps, from, chance);
    let sides = (first..steps.len()).collect();
    steps.push(any_step(sides, chance));
}

/// A step after these parents with policies by chance.
fn any_step(parents: Vec<usize>, chance: &mut Chance) -> StepPlan {
    let millis = |n: usize| Duration::from_millis(n as u64);
    let may_nap = parents.len() == 1 && chance.one_in(6);
    let may_wait = !may_nap && chance.one_in(3);
    StepPlan {
        needs_all: chance.one_in(3),
        nap: may_nap.then(|| millis(50 + chance.below(400))),
        wait: may_wait.then(|| any_wait(parents.len() == 1, chance)),
        skipped_one_in: if chance.one_in(4) { 3 } else { 0 },
        n_failures: if chance.one_in(5) { 1 + u32::from(chance.one_in(3)) } else { 0 },
        backoff: millis(20 + chance.below(200)),
        span: millis(if chance.one_in(3) { chance.below(150) } else { 0 }),
        is_blocking: chance.one_in(5),
        has_gate: false,
        parents,
    }
}

/// A wait by chance: for ever, for a while in which the signal may come, or for a signal that never
/// comes.
fn any_wait(may_stand_before: bool, chance: &mut Chance) -> WaitPlan {
    let is_own = !may_stand_before || chance.one_in(2);
    let millis = |n: usize| Duration::from_millis(n as u64);
    let (timeout, is_sent) = match chance.below(4) {
        0 | 1 => (None, true),
        2 => (Some(millis(50 + chance.below(600))), true),
        _ => (Some(millis(chance.below(300))), false),
    };
    WaitPlan { is_own, timeout, is_sent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_graphs_have_every_shape_and_policy_among_them() {
        let plans: Vec<Plan> = (0..N_RANDOM).map(random).collect();
        assert!(plans.iter().all(|plan| (7..=32).contains(&plan.steps.len())));
        let any = |is: fn(&StepPlan) -> bool| plans.iter().any(|plan| plan.steps.iter().any(is));
        assert!(any(|step| step.nap.is_some()));
        for is_own in [false, true] {
            for (has_timeout, is_sent) in [(false, true), (true, true), (true, false)] {
                let is_so = |step: &StepPlan| {
                    let wait = |wait: WaitPlan| (wait.is_own, wait.timeout.is_some(), wait.is_sent);
                    step.wait.map(wait) == Some((is_own, has_timeout, is_sent))
                };
                let steps = plans.iter().flat_map(|plan| &plan.steps);
                assert!(steps.into_iter().any(is_so), "{is_own} {has_timeout} {is_sent}");
            }
        }
        assert!(any(|step| step.own_wait().is_some() && step.n_failures > 0));
        assert!(any(|step| step.own_wait().is_some() && step.is_blocking));
        assert!(plans.iter().any(|plan| plan.has_handler));
        assert!(plans.iter().any(|plan| !plan.has_handler));
        assert!(any(|step| step.skipped_one_in > 0));
        assert!(any(|step| step.n_failures > 1));
        assert!(any(|step| step.is_blocking));
        assert!(any(|step| step.needs_all && step.parents.len() > 1));
        assert!(any(|step| step.parents.len() > 3));
    }

    #[test]
    fn the_same_number_gives_the_same_graph() {
        assert_eq!(format!("{:?}", random(3)), format!("{:?}", random(3)));
    }
}
