//! Engines of commands: one that executes nothing, for commands that change runs, and one that the
//! command goes on to build.

use crate::api::{Engine, EngineBuilder, Run};
use crate::cli::{Failure, StoreArgs};
use crate::ports::{DynStore, RunView};

impl StoreArgs {
    /// Opens the store to work on it, and begins to build an engine. What is not there is made, and
    /// tables are brought up to date, as by programs that open their store themselves.
    ///
    /// # Errors
    /// When the user names none, or it cannot be opened.
    pub async fn engine_builder(&self) -> Result<EngineBuilder<()>, Failure> {
        Ok(EngineBuilder::new(self.open_to_work().await?))
    }
}

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
