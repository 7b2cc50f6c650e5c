//! What is known about a run: states, rows, events, and the image that decisions work on.

mod event;
mod fold;
mod image;
mod log;
mod memo;
mod row;
mod signal;
mod state;
mod tasks;
mod timer;
mod transition;
mod wait;

pub use event::{Event, EventKind, EventRow};
pub use fold::{FoldError, fold};
pub(crate) use image::EndedAttempt;
pub use image::{Changes, Extras, RunImage, Timer};
pub use log::{RunLog, read_log};
pub use memo::{MemoOutcome, MemoRow, MemoState, ROUND_KEY};
pub use row::{AttemptRow, Claim, Phase, RetryPlan, RunFailure, RunRow, TaskRow};
pub use signal::{Attributes, Inbox, SignalRow, check_attributes};
pub use state::{AttemptState, RunStatus, TaskState};
pub use tasks::Tasks;
pub use timer::RunTimer;
pub use transition::{Because, TRANSITIONS, Transition, is_allowed, mermaid};
pub use wait::{FunctionWait, Resumed, WaitFor, WaitKind, WaitRow};
