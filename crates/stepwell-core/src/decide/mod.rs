//! What follows when something happens to a run. One file per thing that can happen.
//!
//! A store asks [`affected`] which rows a happening needs, loads them into a
//! [`RunImage`] under the run's lock, and calls [`decide`]. Several happenings of one run may be
//! decided on one image, one after the other.

mod cancel;
mod claim;
mod complete;
mod deadline;
mod end;
mod fail;
mod function;
mod lose;
mod release;
mod signal;
mod skip;
mod sleep;
mod start;
mod wait;
mod wake;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

pub use cancel::{CancelAnswer, CancelRequest};
pub use claim::{StartedAttempt, claim, is_suspect, may_start, start_attempt, suspects_from};
pub use function::{HeardWait, Listening, Suspension};
pub use signal::{NewSignal, SignalAnswer};
pub use start::{RunSeed, start};

use crate::failure::Failure;
use crate::id::Node;
use crate::run::{Phase, RunImage, RunStatus, RunTimer, WaitFor, WaitRow};
use crate::workflow::{Definition, NodeKind};

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
        /// Memos of its function that go if it is tried again: the failures that ended it.
        forgets: Vec<String>,
    },
    /// Its own condition says that it is not executed.
    Skipped,
    /// It is a sleep node whose conditions let it sleep.
    Slept,
    /// It waits for a signal.
    Waits {
        /// What for.
        wait_for: WaitFor,
        /// What the step noted.
        notes: Notes,
    },
    /// Its function goes on when something that it waits for has ended.
    Suspended {
        /// What it waits for.
        suspension: Box<Suspension>,
        /// What the step noted.
        notes: Notes,
    },
    /// Its function, which is running, waits for signals as well.
    Listens(Box<Listening>),
    /// Its function begins another round. The input of that comes along, as outputs do.
    Continued {
        /// The number of the round.
        round: u32,
        /// What the step noted.
        notes: Notes,
    },
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
#[derive(Clone, Debug)]
pub enum RunHappening {
    /// Somebody cancelled it.
    Cancelled(CancelRequest),
    /// Somebody sent it a signal.
    Signalled(NewSignal),
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
    /// What of the run's waits and signals must be loaded as well, before the tasks: see
    /// [`Affected::add_waits`].
    pub inbox: Option<InboxNeeds>,
}

/// What must be loaded of the waits and signals of a run. Its open waits always are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxNeeds {
    /// The signals that were stored under these keys.
    pub keys: BTreeSet<String>,
    /// Every signal that nobody got, if the run has any.
    pub unconsumed: bool,
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
            Happening::Run(
                RunHappening::Cancelled(_) | RunHappening::TimerFired(RunTimer::Deadline),
            ) => {
                affected.all_open = true;
                affected.may_touch_queued = true;
            }
            Happening::Run(RunHappening::Signalled(signal)) => {
                affected.inbox.get_or_insert_default().keys.insert(signal.key.clone());
            }
            Happening::Run(RunHappening::TimerFired(RunTimer::LookAgain)) => {
                affected.inbox.get_or_insert_default().unconsumed = true;
            }
        }
    }
    affected
}

impl Affected {
    /// Adds the tasks that signals may move on, once the run's open waits are loaded: those sent
    /// now, and those that nobody got where they may be for others than they were left to.
    pub fn add_waits<'a>(
        &mut self,
        definition: &Definition,
        waits: &[WaitRow],
        happenings: impl IntoIterator<Item = &'a Happening>,
    ) {
        for happening in happenings {
            if matches!(happening, Happening::Run(RunHappening::TimerFired(RunTimer::LookAgain))) {
                self.tasks.extend(waits.iter().map(|wait| wait.node));
            }
            let Happening::Run(RunHappening::Signalled(signal)) = happening else { continue };
            for node in signal::receivers(waits, signal) {
                self.tasks.insert(node);
                if definition.graph.kind(node) == NodeKind::Wait {
                    self.add_children(definition, node);
                }
            }
        }
    }

    fn add_children(&mut self, definition: &Definition, node: Node) {
        self.tasks.extend(definition.graph.children(node).iter().map(|edge| edge.node));
    }

    fn add(&mut self, definition: &Definition, node: Node, happening: &TaskHappening) {
        self.tasks.insert(node);
        let is_final = match happening {
            TaskHappening::Completed { .. } => return self.add_children(definition, node),
            TaskHappening::TimerFired => {
                if definition.graph.kind(node).may_wait() {
                    self.inbox.get_or_insert_default().unconsumed = true;
                }
                return self.add_children(definition, node);
            }
            TaskHappening::Slept
            | TaskHappening::Released
            | TaskHappening::Waits { .. }
            | TaskHappening::Continued { .. } => return,
            TaskHappening::Suspended { suspension, .. } => {
                if suspension.had_waits {
                    self.inbox.get_or_insert_default();
                }
                return;
            }
            TaskHappening::Listens(_) => {
                self.inbox.get_or_insert_default().unconsumed = true;
                return;
            }
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
    /// A signal to the run was answered.
    Signal(SignalAnswer),
    /// A running function listens, and hears of this.
    Listening(Option<HeardWait>),
}

impl Verdict {
    /// Whether the happening took effect.
    #[must_use]
    pub const fn is_applied(self) -> bool {
        use CancelAnswer::{Cancelled, ForcedToEnd};
        match self {
            Self::Applied | Self::Cancel(Cancelled | ForcedToEnd(_)) | Self::Listening(_) => true,
            Self::Signal(answer) => matches!(answer, SignalAnswer::Stored { .. }),
            Self::NotCurrent | Self::WrongGuess | Self::Cancel(_) => false,
        }
    }
}

/// Decides what follows from a happening. The store has checked that the happening is current:
/// that the claim's token still holds the task, or that the timer still stands.
pub fn decide(image: &mut RunImage<'_>, happening: Happening) -> Verdict {
    match happening {
        Happening::Task(node, happening) => decide_task(image, node, happening),
        Happening::Run(RunHappening::Cancelled(request)) => {
            Verdict::Cancel(cancel::cancel(image, request))
        }
        Happening::Run(RunHappening::Signalled(signal)) => {
            Verdict::Signal(signal::signal(image, signal))
        }
        Happening::Run(RunHappening::TimerFired(timer)) => {
            if timer == RunTimer::Deadline && deadline::pass(image) {
                return Verdict::Applied;
            }
            image.clear_run_timer(timer);
            if timer == RunTimer::LookAgain && image.run.status == RunStatus::Running {
                signal::look_again(image);
                return Verdict::Applied;
            }
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
        TaskHappening::Failed { failure, notes, chance, forgets, .. } => {
            fail::fail(image, node, failure, notes, chance, forgets);
        }
        TaskHappening::Skipped => skip::skip_claimed(image, node),
        TaskHappening::Slept => sleep::sleep_claimed(image, node),
        TaskHappening::Waits { wait_for, notes } => {
            wait::wait_claimed(image, node, wait_for, notes);
        }
        TaskHappening::Suspended { suspension, notes } => {
            function::suspend(image, node, *suspension, notes);
        }
        TaskHappening::Listens(listening) => {
            return Verdict::Listening(function::listen(image, node, *listening));
        }
        TaskHappening::Continued { round, notes } => {
            function::continue_round(image, node, round, notes);
        }
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
