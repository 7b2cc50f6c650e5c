//! What all parts of an engine share: settings, code, payloads, the slots of its worker, and the
//! batches that starts and commits go through. It knows neither the worker nor the services: those
//! call it.

mod awaited_runs;
mod batch;
mod commit;
mod config;
mod function;
mod held_claims;
mod memo;
mod misfit;
mod open_claim_calls;
mod panic;
mod payloads;
mod received;
mod registry;
mod signal;
mod start;
mod store_retry;
mod task_context;
mod worker_slots;

use std::sync::{Arc, OnceLock};

use stepwell_core::id::WorkerId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ports::{Clock, Codec, DynStore, Ids, Spawner};

pub(crate) use awaited_runs::{AwaitedRuns, EndWaiter};
pub(crate) use batch::is_about_data;
pub(crate) use commit::{Committer, refused_outcome};
pub use config::Config;
pub(crate) use function::{Doing, FunctionWaker, doing, step_waker, while_doing};
pub(crate) use held_claims::Stop;
pub(crate) use memo::{MemoWriter, listen};
pub(crate) use panic::{drop_quietly, guarded, guarded_async, panicked};
pub(crate) use payloads::{as_declared, decode, encode};
pub(crate) use received::SIGNALLED;
pub(crate) use registry::{
    Condition, MatchingFn, NoOutput, RegisteredWorkflow, Registry, StepBody, StepFn,
};
pub(crate) use signal::{Signaller, send_signal, waiting_runs};
pub(crate) use start::{Starter, already_started};
pub(crate) use task_context::{TaskArgs, TaskContext, TaskNames};
pub(crate) use worker_slots::{ClaimedBatch, Slot, WorkerSlots};

/// What all parts of an engine share.
pub(crate) struct Parts {
    pub(crate) store: DynStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) config: Config,
    pub(crate) worker: WorkerId,
    /// What functions need, in an engine that executes any.
    pub(crate) functions: OnceLock<FunctionParts>,
    /// Tells the heartbeat that a step has told its progress.
    pub(crate) progress_told: Notify,
    /// Fires when the engine closes: every loop ends.
    pub(crate) closing: CancellationToken,
}

/// What functions need of the engine that executes them.
pub(crate) struct FunctionParts {
    pub(crate) memos: MemoWriter,
    /// Fires when the engine begins to stop: no step begins any more.
    pub(crate) stopping: CancellationToken,
}

impl Parts {
    /// What functions need; there are none before the worker has started.
    pub(crate) fn functions(&self) -> &FunctionParts {
        self.functions.get().expect("a worker that executes tasks has started")
    }

    /// A random number that spreads retries; the rules get it with a failure.
    pub(crate) fn chance(&self) -> u32 {
        u32::try_from(self.ids.random() >> 32).unwrap_or_default()
    }
}
