//! What is kept of an error, and what it asks for.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::{ERROR_BYTES_MAX, ERROR_CAUSES_MAX};

/// Where a failure came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The step returned an error.
    Error,
    /// The step panicked.
    Panic,
    /// The step ran longer than its time-out, or went silent for too long.
    TimedOut,
    /// The workers that ran the step died until the crash limit was reached.
    Crashed,
    /// A stored payload does not fit the type the step expects, or cannot be written.
    Payload,
    /// The run's required output step was skipped.
    OutputSkipped,
    /// The run's deadline passed.
    Deadline,
}

/// Whether and when a failed step may be tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    /// By the step's retry policy.
    #[default]
    ByPolicy,
    /// After this delay instead of the policy's, as long as the policy has retries left.
    After(Duration),
    /// Never.
    Never,
}

/// What is kept of an error: readable, bounded, free of characters a store could refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Where it came from.
    pub kind: FailureKind,
    /// The error's type, as far as it is known.
    pub type_name: String,
    /// The error's own words.
    pub message: String,
    /// The words of its sources, outermost first.
    pub causes: Vec<String>,
    /// Whether it may be retried.
    pub retry: RetryAdvice,
    /// The step of a function that failed, by the key of its memo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Failure {
    /// A failure with a cleaned and capped message.
    #[must_use]
    pub fn new(kind: FailureKind, type_name: &str, message: &str) -> Self {
        Self {
            kind,
            type_name: clean_text(type_name, ERROR_BYTES_MAX),
            message: clean_text(message, ERROR_BYTES_MAX),
            causes: Vec::new(),
            retry: RetryAdvice::ByPolicy,
            key: None,
        }
    }

    /// The same failure with a cause appended, unless it already has as many as are kept.
    #[must_use]
    pub fn caused_by(mut self, cause: &str) -> Self {
        if self.causes.len() < ERROR_CAUSES_MAX {
            self.causes.push(clean_text(cause, ERROR_BYTES_MAX));
        }
        self
    }

    /// The same failure, as that of a step of a function.
    #[must_use]
    pub fn of_key(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.into());
        self
    }

    /// The same failure with other advice on retries.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryAdvice) -> Self {
        self.retry = retry;
        self
    }
}

/// Text of users as it is kept, cut to so many bytes. NUL cannot be stored as text by every
/// database, so it is shown instead; that takes more bytes, so the text is cut after the exchange.
#[must_use]
pub fn clean_text(text: &str, bytes_max: usize) -> String {
    let mut kept = String::new();
    for char in text.chars() {
        let char = if char == '\0' { '\u{2400}' } else { char };
        if kept.len() + char.len_utf8() > bytes_max {
            break;
        }
        kept.push(char);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_capped_on_a_character_boundary_and_hold_no_nul() {
        // FD2
        let long = "ä".repeat(ERROR_BYTES_MAX);
        let failure = Failure::new(FailureKind::Error, "E", &long);
        assert!(failure.message.len() <= ERROR_BYTES_MAX);
        let nul = "\0".repeat(ERROR_BYTES_MAX);
        assert!(Failure::new(FailureKind::Error, "E", &nul).message.len() <= ERROR_BYTES_MAX);
        assert_eq!(Failure::new(FailureKind::Error, "E", "a\0b").message, "a\u{2400}b");
    }

    #[test]
    fn only_so_many_causes_are_kept() {
        let mut failure = Failure::new(FailureKind::Error, "E", "m");
        for _ in 0..100 {
            failure = failure.caused_by("c");
        }
        assert_eq!(failure.causes.len(), ERROR_CAUSES_MAX);
    }
}
