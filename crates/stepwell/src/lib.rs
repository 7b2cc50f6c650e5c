#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod api;
#[cfg(feature = "cli")]
pub mod cli;
mod engine;
mod error;
mod error_codes;
mod outbound;
pub mod ports;
mod services;
#[cfg(feature = "testing")]
pub mod testing;
mod wiring;
mod worker;

pub use api::{
    After, Always, Attempt, Bound, Bounded, Cancel, ChainBuilder, Ctx, Definer, Engine,
    EngineBuilder, First, Forever, Function, FunctionMap, FunctionSignal, FunctionSleep,
    FunctionStep, FunctionWait, IntoStepName, IntoWorkflow, Kind, Maybe, Memo, Needed, NewRun,
    OpenWait, Parent, Parents, Race, Racers, RawParents, Result, Resumed, Root, Run, RunEvent,
    RunOutcome, RunPage, RunSummary, SendSignal, Sent, SentSignal, Signal, Signalled, SleepBuilder,
    Start, StartAndWait, StepBuilder, StepError, StepErrorKind, StepName, StepRef, TaskProgress,
    TaskStatus, ToRun, ToWaiting, Unaddressed, Wait, WaitBuilder, Workflow, WorkflowRef, blocking,
};
pub use engine::Config;
pub use erased_serde;
pub use error::Error;
pub use error_codes::explain;
pub use outbound::memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use outbound::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use outbound::sqlite::{SqliteOptions, SqliteStore};
pub use outbound::tokio::shutdown_signal;
pub use ports::{RunFilter, TenantSettings, TenantView, Traffic};
pub use stepwell_core as core;
pub use stepwell_core::code::Code;
pub use stepwell_core::decide::CancelAnswer;
pub use stepwell_core::failure::{Failure, FailureKind};
pub use stepwell_core::retry::Retry;
pub use stepwell_core::run::{
    AttemptState, EventKind, MemoState, RunFailure, RunStatus, TaskState,
};
pub use stepwell_core::time::Timestamp;
pub use worker::StopReport;

/// Runs the examples in the documents.
#[cfg(doctest)]
mod documents {
    #[cfg(feature = "cli")]
    #[doc = include_str!("../../../docs/cli.md")]
    struct Cli;
    #[doc = include_str!("../../../docs/concepts.md")]
    struct Concepts;
    #[doc = include_str!("../../../docs/configuration.md")]
    struct Configuration;
    #[cfg(all(feature = "sqlite", feature = "postgres"))]
    #[doc = include_str!("../../../docs/operating.md")]
    struct Operating;
    #[doc = include_str!("../../../docs/functions.md")]
    struct Functions;
    #[cfg(feature = "testing")]
    #[doc = include_str!("../../../docs/recipes/durable-loop.md")]
    struct DurableLoop;
    #[doc = include_str!("../../../docs/recipes/human-approval.md")]
    struct HumanApproval;
    #[doc = include_str!("../../../docs/recipes/linear-workflows.md")]
    struct LinearWorkflows;
    #[doc = include_str!("../../../docs/recipes/webhook-to-signal.md")]
    struct WebhookToSignal;
    #[doc = include_str!("../../../docs/stores.md")]
    struct Stores;
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/writing-workflows.md")]
    struct WritingWorkflows;
}
