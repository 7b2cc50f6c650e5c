//! The engine: what every part shares, and the calls that starts and commits go through.

mod batch;
mod commit;
mod config;
mod contact;
mod error;
mod payloads;
mod registry;
mod start;

use std::sync::Arc;

use stepwell_core::id::WorkerId;
use tokio_util::sync::CancellationToken;

use crate::ports::{Clock, Codec, DynStore, Ids, Spawner};

pub(crate) use commit::{Committer, refused};
pub use config::Config;
pub(crate) use contact::Contact;
pub use error::Error;
pub(crate) use payloads::{decode, encode};
pub(crate) use registry::{Code, Registered, Registry, StepCode};
pub(crate) use start::{Starter, to_error};

/// What all parts of an engine share.
pub(crate) struct Parts {
    pub(crate) store: DynStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) config: Config,
    pub(crate) worker: WorkerId,
    pub(crate) contact: Arc<Contact>,
    /// Fires when the engine closes: every loop ends.
    pub(crate) closing: CancellationToken,
}

impl Parts {
    /// What spreads retries, handed to the rules with a failure.
    pub(crate) fn chance(&self) -> u32 {
        u32::try_from(self.ids.random() >> 32).unwrap_or_default()
    }
}
