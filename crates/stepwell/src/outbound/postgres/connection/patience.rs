//! How long calls wait for the server. A connection can go dark without a word: a machine vanished,
//! or a proxy takes what is sent and passes nothing on. So no call waits for ever.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::role::Role;

/// Heartbeats, and a leader's looks at its term, workers and timers, end within this span as a
/// whole, the wait for a connection included. A third of the default lease has room for two.
pub(crate) const BRIEF: Duration = Duration::from_secs(5);

/// What a statement is given beyond the time after which the server itself gives it up.
const SLACK: Duration = Duration::from_secs(5);

/// What stands for no limit at all.
const NO_LIMIT: Duration = Duration::from_hours(24);

/// How long a transaction waits for answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Until then for all of it.
    Until(Instant),
    /// So long for each statement.
    Each(Duration),
}

impl Patience {
    /// For a transaction that ends soon or not at all.
    #[expect(clippy::disallowed_methods, reason = "answers of a server come in real time")]
    pub(crate) fn brief() -> Self {
        Self::Until(Instant::now() + BRIEF)
    }

    /// For statements that the server gives up after this span; zero for never.
    pub(crate) fn beyond(statement_timeout: Duration) -> Self {
        let is_limited = !statement_timeout.is_zero();
        Self::Each(if is_limited { statement_timeout.saturating_add(SLACK) } else { NO_LIMIT })
    }

    /// Waits for an answer; `None` if it does not come in time.
    #[expect(clippy::disallowed_methods, reason = "answers of a server come in real time")]
    pub(crate) async fn wait_for<T>(self, answer: impl Future<Output = T>) -> Option<T> {
        match self {
            Self::Until(deadline) => tokio::time::timeout_at(deadline, answer).await.ok(),
            Self::Each(span) => tokio::time::timeout(span, answer).await.ok(),
        }
    }

    /// In words.
    pub(crate) fn words(self) -> String {
        let span = if let Self::Each(span) = self { span } else { BRIEF };
        format!("no answer within {span:?}")
    }
}

impl Role {
    /// Longest wait for a connection of this role.
    pub(super) fn wait_max(self) -> Duration {
        match self {
            Self::Heartbeat | Self::Leader => BRIEF,
            Self::Work | Self::Listen => Duration::from_secs(30),
        }
    }
}
