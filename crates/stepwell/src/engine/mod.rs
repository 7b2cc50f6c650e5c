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

pub(crate) use commit::{Committer, HandedIn};
pub use config::Config;
pub(crate) use contact::Contact;
pub use error::Error;
pub(crate) use payloads::{decode, encode};
pub(crate) use registry::{Code, Registered, Registry, StepCode};
pub(crate) use start::{Starter, to_error};

/// What every part of an engine is handed when it is made.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) store: DynStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) config: Arc<Config>,
    pub(crate) worker: WorkerId,
    pub(crate) contact: Arc<Contact>,
    /// Fires when the engine closes: every loop ends.
    pub(crate) closing: CancellationToken,
}
