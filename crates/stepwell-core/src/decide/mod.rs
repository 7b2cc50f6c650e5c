//! What follows when something happens to a run. One file per thing that can happen.
//!
//! A store asks [`affected`] which rows a happening needs, loads them into a
//! [`RunImage`] under the run's lock, and calls [`decide`]. Several happenings of one run may be
//! decided on one image, one after the other.

mod cancel;
mod claim;
mod complete;
mod end;
mod fail;
mod lose;
mod release;
mod skip;
mod sleep;
mod start;
mod wake;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

pub use cancel::CancelAnswer;
pub use claim::{StartedAttempt, claim, is_suspect, start_attempt, suspects_from};
pub use start::{RunSeed, start};

use crate::failure::Failure;
use crate::id::Node;
use crate::run::{Phase, RunImage, RunTimer};
use crate::workflow::Definition;

/// Notes a step made about itself.
pub type Notes = BTreeMap<String, String>;

/// Something that happened to a run.
#[derive(Clone, Debug)]
pub enum Happening {
    /// To one of its tasks.
    Task(Node, TaskHappening),
    /// To the run as a whole.
    Run(RunHappening),
}

/// Something that happened to a task.
#[derive(Clone, Debug)]
pub enum TaskHappening {
    /// Its execution gave an output.
    Completed {
        /// What the step noted.
        notes: Notes,
    },
    /// Its execution failed.
    Failed {
        /// Why.
        failure: Failure,
        /// What the step noted.
        notes: Notes,
        /// A uniformly random number, for the jitter of a retry.
        chance: u32,
        /// How many of its attempts had failed when it was claimed, so that [`affected`] can
        /// tell a retry, which touches nothing else, from a failure for good.
        failures: u32,
    },
    /// Its own condition says that it is not executed.
    Skipped,
    /// It is a sleep node whose conditions let it sleep.
    Slept,
    /// Its worker hands it back, uncharged.
    Released,
    /// Its worker died.
    Lost {
        /// Its losses from now on, by [`losses_after`](crate::lease::losses_after).
        losses: u32,
        /// The number of losses that ends it.
        crash_limit: u32,
    },
    /// Its timer fired.
    TimerFired,
}

/// Something that happened to a run as a whole.
#[derive(Clone, Copy, Debug)]
pub enum RunHappening {
    /// Somebody cancelled it.
    Cancelled,
    /// One of its own timers fired.
    TimerFired(RunTimer),
}

impl Happening {
    /// The timer of this node fired: a task's, or one of the run's own.
    #[must_use]
    pub fn timer_fired(node: Node) -> Self {
        match RunTimer::at(node) {
            Some(timer) => Self::Run(RunHappening::TimerFired(timer)),
            None => Self::Task(node, TaskHappening::TimerFired),
        }
    }
}

/// The rows a decision may look at or change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affected {
    /// These tasks, whatever their state. A completion or a skip counts down in children that
    /// are done already, too.
    pub tasks: BTreeSet<Node>,
    /// Every open task of the run as well.
    pub all_open: bool,
    /// Whether a task may be touched that stands in a queue, where a claim could take it
    /// meanwhile. Otherwise the lock on the run keeps everybody away.
    pub may_touch_queued: bool,
}

/// Which tasks of a run must be loaded before these happenings are decided. Completions cost
/// their out-degree, a failure for good or a skip its descendants, a retry nothing else.
pub fn affected<'a>(
    definition: &Definition,
    happenings: impl IntoIterator<Item = &'a Happening>,
) -> Affected {
    let mut affected = Affected::default();
    for happening in happenings {
        match happening {
            Happening::Task(node, happening) => affected.add(definition, *node, happening),
            Happening::Run(RunHappening::Cancelled) => {
                affected.all_open = true;
                affected.may_touch_queued = true;
            }
            Happening::Run(RunHappening::TimerFired(_)) => {}
        }
    }
    affected
}

impl Affected {
    fn add(&mut self, definition: &Definition, node: Node, happening: &TaskHappening) {
        self.tasks.insert(node);
        let is_final = match happening {
            TaskHappening::Completed { .. } | TaskHappening::TimerFired => {
                let children = definition.graph.children(node).iter();
                return self.tasks.extend(children.map(|edge| edge.node));
            }
            TaskHappening::Slept | TaskHappening::Released => return,
            TaskHappening::Failed { failure, chance, failures, .. } => {
                fail::retry_delay(definition, node, failure, *failures, *chance).is_none()
            }
            TaskHappening::Lost { losses, crash_limit } => losses >= crash_limit,
            TaskHappening::Skipped => {
                self.may_touch_queued = true;
                return self.tasks.extend(definition.graph.descendants([node]));
            }
        };
        if is_final {
            self.may_touch_queued = true;
            self.all_open |= definition.policy.fail_fast;
            if !definition.policy.fail_fast {
                self.tasks.extend(definition.graph.descendants([node]));
            }
        }
    }
}

/// What became of a happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was decided; what follows is among the changes.
    Applied,
    /// It is current no longer: an earlier happening on the same image may have cancelled the
    /// task. Nothing was changed.
    NotCurrent,
    /// It says something of the task that the row does not, so that too little may have been
    /// loaded. Nothing was changed; it must be put right by the row and decided anew.
    WrongGuess,
    /// A request to cancel the run was answered.
    Cancel(CancelAnswer),
}

impl Verdict {
    /// Whether the happening took effect.
    #[must_use]
    pub const fn is_applied(self) -> bool {
        matches!(self, Self::Applied | Self::Cancel(CancelAnswer::Cancelled))
    }
}

/// Decides what follows from a happening. The store has checked that the happening is current:
/// that the claim's token still holds the task, or that the timer still stands.
pub fn decide(image: &mut RunImage<'_>, happening: Happening) -> Verdict {
    match happening {
        Happening::Task(node, happening) => decide_task(image, node, happening),
        Happening::Run(RunHappening::Cancelled) => Verdict::Cancel(cancel::cancel(image)),
        // No rule sets a timer of the run yet, so one that fires has lost its meaning.
        Happening::Run(RunHappening::TimerFired(timer)) => {
            image.clear_run_timer(timer);
            Verdict::NotCurrent
        }
    }
}

fn decide_task(image: &mut RunImage<'_>, node: Node, happening: TaskHappening) -> Verdict {
    let verdict = check(image, node, &happening);
    if verdict != Verdict::Applied {
        return verdict;
    }
    match happening {
        TaskHappening::Completed { notes } => complete::complete(image, node, notes),
        TaskHappening::Failed { failure, notes, chance, .. } => {
            fail::fail(image, node, failure, notes, chance);
        }
        TaskHappening::Skipped => skip::skip_claimed(image, node),
        TaskHappening::Slept => sleep::sleep_claimed(image, node),
        TaskHappening::Released => release::release(image, node),
        TaskHappening::Lost { losses, crash_limit } => lose::lose(image, node, losses, crash_limit),
        TaskHappening::TimerFired => wake::wake(image, node),
    }
    end::settle(image);
    Verdict::Applied
}

/// Whether a task is in a state that a happening can meet: held by a claim, or with a timer set.
fn check(image: &RunImage<'_>, node: Node, happening: &TaskHappening) -> Verdict {
    let Some(task) = image.task(node) else { return Verdict::NotCurrent };
    let is_current = match happening {
        TaskHappening::TimerFired => task.phase.due().is_some(),
        _ => task.claim().is_some(),
    };
    match happening {
        _ if !is_current => Verdict::NotCurrent,
        TaskHappening::Failed { failures, .. } if *failures != task.failures => Verdict::WrongGuess,
        _ => Verdict::Applied,
    }
}

/// Undoes a claim that executed nothing: the task is as it was before, and no attempt is counted.
fn unclaim(image: &mut RunImage<'_>, node: Node) {
    let Some(since) = image.task(node).and_then(|task| task.claim()).map(|claim| claim.queued_at)
    else {
        return;
    };
    if let Some(task) = image.touch(node) {
        task.attempt = task.attempt.saturating_sub(1);
    }
    let phase = Phase::Queued { since, due: None };
    image.move_to(node, phase, crate::run::Because::HandBack);
}
