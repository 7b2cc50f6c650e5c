use std::time::{Duration, Instant, SystemTime};

use stepwell_core::store_time::JUMP_MIN;
use stepwell_core::time::Timestamp;

use crate::ports::{BoxFuture, Clock};

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    started: Instant,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the leaf that reads the clock")]
    pub(crate) fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the leaf that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Timestamp::EPOCH.after(since_epoch.unwrap_or_default())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the leaf that waits")]
    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn jumped(&self) -> BoxFuture<()> {
        let clock = *self;
        Box::pin(async move {
            let mut last = clock.read();
            loop {
                clock.sleep(JUMP_MIN).await;
                let next = clock.read();
                if last.has_jumped_to(next) {
                    return;
                }
                last = next;
            }
        })
    }
}
