//! What users write: workflows, engines, runs, and what a step is handed.

pub mod blocking;
mod bound;
mod builder;
mod cancel;
mod chain;
mod ctx;
mod engine;
mod function;
mod parents;
mod run;
mod run_output;
mod signal;
mod signalled;
mod sleep;
mod start;
mod step;
mod step_error;
mod step_ref;
mod stop;
mod tenants;
mod views;
mod wait;
mod workflow;

pub use builder::EngineBuilder;
pub use cancel::Cancel;
pub use chain::ChainBuilder;
pub use ctx::Ctx;
pub use engine::Engine;
pub use function::{
    First, Function, FunctionMap, FunctionSignal, FunctionSleep, FunctionStep, FunctionWait,
    IntoStepName, IntoWorkflow, Race, Racers, SendSignal, StepName,
};
pub use parents::{Parent, Parents, RawParents};
pub use run::Run;
pub use signal::{Sent, Signal, ToRun, ToWaiting, Unaddressed};
pub use signalled::{Resumed, Signalled, Wait};
pub use sleep::SleepBuilder;
pub use start::{NewRun, Start, StartAndWait};
pub use step::{After, Root, StepBuilder};
pub use step_error::{Result, StepError, StepErrorKind};
pub use step_ref::{Always, Kind, Maybe, Needed, StepRef};
pub use views::{
    Attempt, Memo, OpenWait, RunEvent, RunOutcome, RunPage, RunSummary, SentSignal, TaskProgress,
    TaskStatus,
};
pub use wait::{Bound, Bounded, Forever, WaitBuilder};
pub use workflow::{Definer, Workflow, WorkflowRef};
