//! An engine that executes nothing, for commands that change runs.

use crate::api::{Engine, EngineBuilder, Run};
use crate::cli::{Failure, StoreArgs};
use crate::ports::{DynStore, RunView};

/// An engine without slots on the user's store.
pub(super) struct Client {
    pub(super) store: DynStore,
    engine: Engine,
}

impl Client {
    /// Opens the store as it is: it is not made and not migrated.
    ///
    /// # Errors
    /// When the user names none, or it is not there as this program knows it.
    pub(super) async fn connect(args: &StoreArgs) -> Result<Self, Failure> {
        let store = args.open_to_write().await?;
        let builder = EngineBuilder::new(DynStore::clone(&store));
        let engine = builder.app("stepwell-cli").client_only().start().await?;
        Ok(Self { store, engine })
    }

    /// A handle of a run that was found.
    pub(super) async fn run(&self, found: &RunView) -> Result<Run, Failure> {
        let row = &found.row;
        Ok(self.engine.run_handle(row.tenant.as_str(), row.id.as_str()).await?)
    }

    pub(super) async fn close(&self) {
        self.engine.stop_gracefully().await;
    }
}
