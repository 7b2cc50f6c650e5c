//! What functions have done so far: the results of their steps, the ends of their sleeps and waits.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Resumed;
use crate::failure::Failure;
use crate::id::Node;
use crate::time::Timestamp;

/// The key of the memo that tells a function's round and keeps its input. No step has it.
pub const ROUND_KEY: &str = "";

/// One thing that a function has done or begun, without its payload: rules never look into those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoRow {
    /// The task of the function.
    pub node: Node,
    /// What the function asks for it by: `name#k`, unique in its round.
    pub key: String,
    /// Its place in the order in which the function hears of what was done; 0 if it is not to be
    /// heard of yet.
    pub number: u64,
    /// What is known of it.
    pub outcome: MemoOutcome,
    /// How often it was tried.
    pub tries: u32,
    /// When it was begun.
    pub began_at: Timestamp,
    /// When this was stored.
    pub at: Timestamp,
}

impl MemoRow {
    /// Whether this memo is the one that is stored, sent once more after a lost reply, and not a
    /// later one under the same key and claim, as that of the next try of a step.
    #[must_use]
    pub fn is_repeat_of(&self, stored: &Self) -> bool {
        let told_by = |memo: &Self| (memo.number, memo.tries, memo.outcome.state());
        self.key == stored.key && told_by(self) == told_by(stored)
    }
}

/// What is known of something that a function has done or begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoOutcome {
    /// It was begun: a sleep or a wait with this end, or a step that is tried again then.
    Begun {
        /// When it ends or is tried again.
        due: Option<Timestamp>,
        /// Why the step has to be tried again.
        failure: Option<Failure>,
    },
    /// The step gave a value, which lies beside the row.
    Given,
    /// The step failed for good.
    Failed(Failure),
    /// The sleep is over.
    Slept,
    /// The wait is over.
    Ended(Resumed),
    /// The function goes on in this round, with an input that lies beside the row.
    Round(u32),
}

super::state::states! {
    /// What is known of something that a function has done or begun, as stores number it.
    MemoState {
        /// It was begun.
        Begun = 0 "BEGUN",
        /// The step gave a value.
        Given = 1 "GIVEN",
        /// The step failed for good.
        Failed = 2 "FAILED",
        /// The sleep is over.
        Slept = 3 "SLEPT",
        /// The wait got its signal.
        Signalled = 4 "SIGNALLED",
        /// The deadline of the wait passed.
        TimedOut = 5 "TIMED_OUT",
        /// The function goes on in another round.
        Round = 6 "ROUND",
    }
}

impl MemoOutcome {
    /// What stores keep in columns of its own, read back.
    ///
    /// # Errors
    /// With what is missing or not known.
    pub fn of_columns(
        state: MemoState,
        due: Option<Timestamp>,
        failure: Option<Failure>,
        refers_to: Option<u64>,
    ) -> Result<Self, &'static str> {
        let number = refers_to.ok_or("a memo does not say by what it ended");
        Ok(match state {
            MemoState::Begun => Self::Begun { due, failure },
            MemoState::Given => Self::Given,
            MemoState::Failed => Self::Failed(failure.ok_or("a failed memo has no failure")?),
            MemoState::Slept => Self::Slept,
            MemoState::Signalled => Self::Ended(Resumed::Signal(number?)),
            MemoState::TimedOut => Self::Ended(Resumed::TimedOut),
            MemoState::Round => Self::Round(u32::try_from(number?).unwrap_or(u32::MAX)),
        })
    }

    /// The outcome without its details.
    #[must_use]
    pub const fn state(&self) -> MemoState {
        match self {
            Self::Begun { .. } => MemoState::Begun,
            Self::Given => MemoState::Given,
            Self::Failed(_) => MemoState::Failed,
            Self::Slept => MemoState::Slept,
            Self::Ended(Resumed::Signal(_)) => MemoState::Signalled,
            Self::Ended(Resumed::TimedOut) => MemoState::TimedOut,
            Self::Round(_) => MemoState::Round,
        }
    }
}
