//! What the engine needs from the outside, as narrow traits.
//!
//! Every method of a store is one transaction and its doc comment is the guarantee; the
//! conformance suite (feature `testing`) holds every store to it. Time, tasks, ids and codecs
//! are ports as well, so that a whole fleet can run in one thread on virtual time.

mod claims;
mod clock;
mod codec;
mod commits;
mod definitions;
mod error;
mod hint_set;
mod hints;
mod ids;
mod inspection;
mod leadership;
mod memos;
mod non_finite;
mod payload;
mod progress;
mod run_end;
mod runs;
mod signals;
mod spawner;
mod starts;
mod tenants;
mod timers;
mod traffic;
mod workers;

use std::sync::Arc;

pub use claims::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, HandedOver, InputsOf, ParentInput,
    Take, TaskInputs,
};
pub use clock::Clock;
pub use codec::{Codec, CodecError, JsonCodec};
pub use commits::{CommitAnswer, CommitItem, Commits, Committed, Outcome};
pub use definitions::{Definitions, MarkedDefinition, MarkedService, StoredDefinition};
pub use error::StoreError;
pub(crate) use hint_set::HintSet;
#[cfg(feature = "postgres")]
pub(crate) use hint_set::TakenFrom;
pub use hint_set::{EndedRun, EndedRuns};
pub use hints::{Hint, HintSender, Hints};
pub use ids::Ids;
pub use inspection::{Inspection, StoreDump, TaskPlace};
pub use leadership::{Lead, Leadership};
pub use memos::{
    Heard, History, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, Memos, StoredMemo,
};
pub use payload::{Payload, SignalTag};
pub use progress::{Progress, ProgressReport, ReportedProgress};
pub(crate) use run_end::TOLD_BYTES_MAX;
pub use run_end::{AwaitedRun, EndOutput, RunEnd};
pub use runs::{RunFilter, RunPage, RunSnapshot, RunView, Runs};
pub use signals::{SignalRequest, SignalTarget, Signals, StoredSignal, WaitingRuns};
pub use spawner::{BoxFuture, NoThread, Spawner};
pub(crate) use starts::ExistingRun;
pub use starts::{StartAnswer, StartRequest, Started, Starts};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use tenants::{SETTLED_TASKS_MAX, SETTLED_TENANTS_MAX};
pub use tenants::{TenantSettings, TenantView, Tenants};
pub use timers::{FiredTimers, Timers};
pub use traffic::Traffic;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use traffic::TrafficCounter;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use workers::SETTLED_SERVICES_MAX;
pub use workers::{HeartbeatAnswer, ReapRequest, Reaped, WorkerRegistration, Workers};

/// A store: everything durable that the engine needs, whichever database holds it.
pub trait Store:
    Definitions
    + Starts
    + Claims
    + Commits
    + Signals
    + Memos
    + Timers
    + Workers
    + Leadership
    + Progress
    + Runs
    + Tenants
    + Inspection
    + Send
    + Sync
    + 'static
{
    /// The hints this store gives: work became ready, a run ended, and so on. They only save
    /// waiting; a poll without them must find everything.
    fn hints(&self) -> Hints;
}

/// A shared store of any kind.
pub type DynStore = Arc<dyn Store>;
