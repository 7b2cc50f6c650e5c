//! Wiring: the one place where an engine meets real time, threads and ids.
//!
//! The api names this module instead of `outbound`, so that nothing but the lines here decides what
//! an engine runs on when its builder was not told.

use std::sync::Arc;

use stepwell_core::code::Code;

use crate::error::Error;
#[cfg(feature = "cli")]
pub(crate) use crate::outbound::tokio::shutdown_signal;
use crate::outbound::tokio::{SystemClock, SystemIds, TokioSpawner};
pub(crate) use crate::outbound::tokio::{host_name, is_polled};
use crate::ports::{Clock, Ids, Spawner};

/// The machine's time, for those who look at a store from outside.
#[cfg(feature = "cli")]
pub(crate) fn system_now() -> stepwell_core::time::Timestamp {
    SystemClock::new().now()
}

/// The time, tasks and ids that an engine runs on.
pub(crate) struct EngineRuntime {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl EngineRuntime {
    /// The machine's clock and ids and the caller's tokio runtime, with threads for so many
    /// blocking steps at once.
    ///
    /// # Errors
    /// `SW0024` if the caller is on no tokio runtime.
    pub(crate) fn real(blocking_max: usize) -> Result<Self, Error> {
        let spawner = TokioSpawner::new(blocking_max).map_err(|error| {
            let message = format!(
                "an engine needs a tokio runtime: {error}; call this inside one, or use \
                 `stepwell::blocking`"
            );
            Error::refused(Code::BlockingInAsync, message)
        })?;
        Ok(Self {
            clock: Arc::new(SystemClock::new()),
            spawner: Arc::new(spawner),
            ids: Arc::new(SystemIds),
        })
    }
}
