//! What workers say became of what they claimed.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::FailureKind;
use stepwell::core::failure::{Failure, RetryAdvice};
use stepwell::core::id::Node;
use stepwell::core::workflow::NodeKind;
use stepwell::ports::{Outcome, StoredDefinition};
use stepwell::testing::conformance::world::payload;

use super::command::End;
use super::functions::{Moment, continued, suspended};
use super::player::Held;
use super::shapes::awaited;

pub(super) fn kind(stored: &StoredDefinition, node: Node) -> NodeKind {
    if node == Node::ON_FAILURE {
        return NodeKind::Step;
    }
    stored.definition.graph.kind(node)
}

pub(super) fn outcome(held: Held, end: End, moment: Moment) -> Outcome {
    let notes = BTreeMap::from([("note".to_owned(), format!("{end:?}"))]);
    let failed = |kind: FailureKind, message: &str, advice: RetryAdvice| Outcome::Failed {
        failure: Failure::new(kind, "Error", message).with_retry(advice),
        notes: BTreeMap::new(),
        chance: 1 << 31,
        failures: held.failures,
        forgets: Vec::new(),
    };
    let waits = |what: u8| Outcome::Waits { wait_for: awaited(what), notes: notes.clone() };
    let is_handler = held.of.claim.node == Node::ON_FAILURE;
    match end {
        // A sleep with conditions sleeps or is skipped; a failure handler is neither.
        End::Completed { .. } | End::Passed if held.kind == NodeKind::ConditionalSleep => {
            Outcome::Slept
        }
        End::Completed { bytes } if held.kind == NodeKind::Wait => waits(bytes),
        End::Passed if held.kind == NodeKind::Wait => waits(0),
        End::Waits { what } if held.kind.may_wait() && !is_handler => waits(what),
        End::Suspends { waits } if held.kind == NodeKind::Step && !is_handler => {
            suspended(waits, moment)
        }
        End::Continues { value } if held.kind == NodeKind::Step && !is_handler => continued(value),
        End::Waits { .. } | End::Released | End::Suspends { .. } | End::Continues { .. } => {
            Outcome::Released
        }
        End::Completed { bytes } => {
            let output = payload(&vec![bytes; bytes.into()]);
            Outcome::Completed { output, notes }
        }
        End::Passed => Outcome::Completed { output: payload(b"passed"), notes },
        End::Skipped if is_handler => Outcome::Released,
        End::Skipped => Outcome::Skipped,
        End::Failed { message } => {
            let message = ["oops", "naïve \u{2603}"][usize::from(message % 2)];
            failed(FailureKind::Error, message, RetryAdvice::ByPolicy)
        }
        End::FailedForGood => failed(FailureKind::Panic, "never", RetryAdvice::Never),
        End::FailedUntil { secs } => {
            let delay = Duration::from_secs(secs.into());
            failed(FailureKind::Error, "later", RetryAdvice::After(delay))
        }
        End::TimedOut => failed(FailureKind::TimedOut, "slow", RetryAdvice::ByPolicy),
    }
}
