//! The one table of what may become of a task, and why.
//!
//! Nothing else in the engine may change a task's state. The diagram in the docs is generated
//! from this table.

use alloc::string::String;
use core::fmt::Write;

use super::TaskState::{
    self, Cancelled, Completed, Failed, Pending, Queued, Running, Skipped, Sleeping, Waiting,
};

/// Why a task changes its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Because {
    /// Its last parent was resolved, or it never had one.
    ParentsResolved,
    /// The skip rule holds for its parents, or its own condition said so.
    Skip,
    /// A parent failed or was cancelled, or the run was cancelled.
    Cancel,
    /// A worker claimed it.
    Claim,
    /// The execution gave an output.
    Output,
    /// The execution failed for good.
    FinalFailure,
    /// The execution failed and will be tried again.
    Retry,
    /// Its worker died.
    Loss,
    /// Its worker handed it back, or found that it need not be executed.
    HandBack,
    /// It sleeps: its conditions let it, or its function does.
    Sleep,
    /// Its timer fired.
    Wake,
    /// It waits for a signal: a wait node that is ready, or a step whose execution said so.
    Wait,
    /// A signal came that it waits for.
    Signal,
    /// The deadline of its wait passed.
    TimeOut,
    /// Its function begins another round.
    Continue,
}

/// One line of the table.
pub type Transition = (TaskState, TaskState, Because);

/// Everything that may become of a task.
pub const TRANSITIONS: &[Transition] = &[
    (Pending, Queued, Because::ParentsResolved),
    (Pending, Sleeping, Because::ParentsResolved),
    (Pending, Waiting, Because::ParentsResolved),
    (Pending, Skipped, Because::Skip),
    (Pending, Cancelled, Because::Cancel),
    (Queued, Running, Because::Claim),
    (Queued, Skipped, Because::Skip),
    (Queued, Cancelled, Because::Cancel),
    (Running, Completed, Because::Output),
    (Running, Failed, Because::FinalFailure),
    (Running, Failed, Because::Loss),
    (Running, Queued, Because::Retry),
    (Running, Queued, Because::Loss),
    (Running, Queued, Because::HandBack),
    (Running, Queued, Because::Continue),
    (Running, Sleeping, Because::Sleep),
    (Running, Waiting, Because::Wait),
    (Running, Cancelled, Because::Cancel),
    (Sleeping, Completed, Because::Wake),
    (Sleeping, Queued, Because::Wake),
    (Sleeping, Cancelled, Because::Cancel),
    (Waiting, Completed, Because::Signal),
    (Waiting, Queued, Because::Signal),
    (Waiting, Queued, Because::Wake),
    (Waiting, Completed, Because::TimeOut),
    (Waiting, Queued, Because::TimeOut),
    (Waiting, Cancelled, Because::Cancel),
];

/// Whether the table has this line.
#[must_use]
pub fn is_allowed(from: TaskState, to: TaskState, because: Because) -> bool {
    TRANSITIONS.contains(&(from, to, because))
}

/// The table as a state diagram for the docs.
#[must_use]
pub fn mermaid() -> String {
    let mut text = String::from("stateDiagram-v2\n    [*] --> PENDING\n");
    for (from, to, because) in TRANSITIONS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {from} --> {to}: {}", label(*because));
    }
    for state in TaskState::ALL.iter().filter(|state| state.is_terminal()) {
        let _ = writeln!(text, "    {state} --> [*]");
    }
    text
}

const fn label(because: Because) -> &'static str {
    match because {
        Because::ParentsResolved => "last parent resolved",
        Because::Skip => "skip rule or condition",
        Because::Cancel => "parent failed or run cancelled",
        Because::Claim => "claim",
        Because::Output => "output",
        Because::FinalFailure => "final failure",
        Because::Retry => "retry",
        Because::Loss => "worker lost",
        Because::HandBack => "handed back",
        Because::Sleep => "sleeps",
        Because::Wake => "timer",
        Because::Wait => "waits for a signal",
        Because::Signal => "signal",
        Because::TimeOut => "time-out of the wait",
        Because::Continue => "next round",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_states_absorb() {
        // S8
        assert!(TRANSITIONS.iter().all(|(from, _, _)| !from.is_terminal()));
    }

    #[test]
    fn every_open_state_can_be_cancelled_and_left() {
        for state in TaskState::ALL.iter().filter(|state| !state.is_terminal()) {
            assert!(is_allowed(*state, Cancelled, Because::Cancel), "{state}");
        }
    }
}
