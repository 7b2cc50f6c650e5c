//! Real time: this crate is about real processes, so it lives on the machine's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Failure, Result};

/// How often a fact is looked at that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// The time of day in microseconds, as stores write it down.
#[expect(clippy::disallowed_methods, reason = "processes note when they did something")]
pub fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Lets time pass: for the length of a fault or of a load, never to make something likely.
#[expect(clippy::disallowed_methods, reason = "faults last for real time")]
pub async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// A moment until which something may last.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The moment after this span.
    #[expect(clippy::disallowed_methods, reason = "faults last for real time")]
    #[must_use]
    pub fn after(span: Duration) -> Self {
        Self(Instant::now() + span)
    }

    /// How long it is until then; zero once it has passed.
    #[expect(clippy::disallowed_methods, reason = "faults last for real time")]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        self.left().is_zero()
    }
}

/// Waits for a fact: looks until there is an answer.
///
/// # Errors
/// If there is none after `span`; `what` says what was waited for.
pub async fn until<T>(
    what: &str,
    span: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Deadline::after(span);
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if deadline.has_passed() {
            return Err(Failure::of(what, format!("did not happen within {span:?}")));
        }
        pause(POLL).await;
    }
}

/// What the future gives, if it gives it within `span`.
///
/// # Errors
/// If it does not; `what` says what was waited for.
pub async fn within<T>(what: &str, span: Duration, future: impl Future<Output = T>) -> Result<T> {
    tokio::select! {
        biased;
        given = future => Ok(given),
        () = pause(span) => Err(Failure::of(what, format!("did not happen within {span:?}"))),
    }
}
