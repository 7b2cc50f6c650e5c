//! What the driving thread is doing right now, so that others can tell when it hangs.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::outbound::tokio::SystemClock;
use crate::ports::Clock;

/// What the driving thread is doing. Clones share one answer.
#[derive(Clone)]
pub(super) struct Activity {
    clock: SystemClock,
    current: Arc<Mutex<Option<Doing>>>,
}

#[derive(Clone)]
struct Doing {
    what: Arc<str>,
    /// By the real clock.
    since: Duration,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { clock: SystemClock::new(), current: Arc::default() }
    }

    /// How much real time has passed.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Says what is being done until the answer is dropped.
    pub(super) fn begin(&self, what: &Arc<str>) -> Done {
        let doing = Doing { what: Arc::clone(what), since: self.elapsed() };
        Done { activity: self.clone(), before: self.current().replace(doing) }
    }

    /// What has been going on for longer than `span`.
    pub(super) fn longer_than(&self, span: Duration) -> Option<Arc<str>> {
        let doing = self.current().clone()?;
        (self.elapsed().saturating_sub(doing.since) >= span).then_some(doing.what)
    }

    fn current(&self) -> MutexGuard<'_, Option<Doing>> {
        self.current.lock().expect("no holder of the lock panics")
    }
}

/// Ends what was begun.
pub(super) struct Done {
    activity: Activity,
    before: Option<Doing>,
}

impl Drop for Done {
    fn drop(&mut self) {
        *self.activity.current() = self.before.take();
    }
}
