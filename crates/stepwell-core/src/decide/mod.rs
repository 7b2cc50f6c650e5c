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

pub use cancel::{CancelAnswer, cancel};
pub use claim::{claim, is_suspect};
pub use lose::losses_after;
pub use start::{RunSeed, start};

use crate::failure::Failure;
use crate::id::Node;
use crate::run::{Phase, RunImage};
use crate::workflow::Definition;

/// Notes a step made about itself.
pub type Notes = BTreeMap<String, String>;

/// Something that happened to a task.
#[derive(Clone, Debug)]
pub enum Happening {
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
    },
    /// Its own condition says that it is not executed.
    Skipped,
    /// It is a sleep node whose conditions let it sleep.
    Slept,
    /// Its worker hands it back, uncharged.
    Released,
    /// Its worker died.
    Lost {
        /// Its losses from now on, by [`losses_after`].
        losses: u32,
        /// The number of losses that ends it.
        crash_limit: u32,
    },
    /// Its timer fired.
    TimerFired,
}

/// The rows a decision may look at or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affected {
    /// These tasks, whatever their state.
    Nodes(BTreeSet<Node>),
    /// Every open task of the run, and these whatever their state: a completion or a skip in the
    /// same batch counts down in children that are done already, too.
    AllOpenAnd(BTreeSet<Node>),
}

/// Which tasks of a run must be loaded before these happenings are decided. Completions cost
/// their out-degree; a failure or a skip costs its descendants.
pub fn affected<'a>(
    definition: &Definition,
    happenings: impl IntoIterator<Item = (Node, &'a Happening)>,
) -> Affected {
    let graph = &definition.graph;
    let mut nodes = BTreeSet::new();
    let mut all_open = false;
    for (node, happening) in happenings {
        nodes.insert(node);
        match happening {
            Happening::Completed { .. } | Happening::TimerFired => {
                nodes.extend(graph.children(node).iter().map(|edge| edge.node));
            }
            Happening::Failed { .. } | Happening::Lost { .. } if definition.policy.fail_fast => {
                all_open = true;
            }
            Happening::Failed { .. } | Happening::Lost { .. } | Happening::Skipped => {
                nodes.extend(graph.descendants([node]));
            }
            Happening::Slept | Happening::Released => {}
        }
    }
    if all_open {
        return Affected::AllOpenAnd(nodes);
    }
    Affected::Nodes(nodes)
}

/// Decides what follows from a happening. The store has checked that the happening is current:
/// that the claim's token still holds the task, or that the timer still stands.
///
/// Returns `false`, and changes nothing, if it is current no longer: an earlier happening on the
/// same image may have cancelled the task.
pub fn decide(image: &mut RunImage<'_>, node: Node, happening: Happening) -> bool {
    if !is_current(image, node, &happening) {
        return false;
    }
    match happening {
        Happening::Completed { notes } => complete::complete(image, node, notes),
        Happening::Failed { failure, notes, chance } => {
            fail::fail(image, node, failure, notes, chance);
        }
        Happening::Skipped => skip::skip_claimed(image, node),
        Happening::Slept => sleep::sleep_claimed(image, node),
        Happening::Released => release::release(image, node),
        Happening::Lost { losses, crash_limit } => lose::lose(image, node, losses, crash_limit),
        Happening::TimerFired => wake::wake(image, node),
    }
    end::settle(image);
    true
}

/// Whether a task is in a state that a happening can meet: held by a claim, or with a timer set.
fn is_current(image: &RunImage<'_>, node: Node, happening: &Happening) -> bool {
    match (image.task(node).map(|task| &task.phase), happening) {
        (
            Some(Phase::Sleeping { .. } | Phase::Queued { due: Some(_), .. }),
            Happening::TimerFired,
        ) => true,
        (_, Happening::TimerFired) => false,
        (phase, _) => matches!(phase, Some(Phase::Running(_))),
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
