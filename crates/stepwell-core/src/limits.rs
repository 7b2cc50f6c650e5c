//! Every limit of the engine, as a named constant with its unit.
//!
//! Limits are checked at the edge, before anything is stored; a refusal names the field and the
//! limit. Raising one here is safe as long as the stores' column types still hold the value.

use core::time::Duration;

/// Longest name of a workflow, step, queue, tenant or run id, in bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// Largest payload (input, output) unless the engine is configured otherwise, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Deepest nesting of a JSON payload. Readers refuse to go much deeper than this.
pub const PAYLOAD_DEPTH_MAX: usize = 64;

/// Longest error message or cause that is kept, in bytes; the rest is cut.
pub const ERROR_BYTES_MAX: usize = 8 * 1024;

/// How many causes of an error are kept.
pub const ERROR_CAUSES_MAX: usize = 16;

/// Most notes one attempt may carry.
pub const NOTES_MAX: usize = 64;

/// Longest name of a note, in bytes; the rest is cut.
pub const NOTE_NAME_BYTES_MAX: usize = 200;

/// Longest note, in bytes; the rest is cut.
pub const NOTE_BYTES_MAX: usize = 8 * 1024;

/// Most steps in one workflow. Node numbers above it are reserved for tasks the engine inserts.
pub const STEPS_MAX: usize = 1_000_000;

/// Most edges in one workflow.
pub const EDGES_MAX: usize = 10_000_000;

/// Most attributes of one signal or wait.
pub const ATTRIBUTES_MAX: usize = 8;

/// Longest name of an attribute, in bytes.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 64;

/// Longest value of an attribute, in bytes.
pub const ATTRIBUTE_VALUE_BYTES_MAX: usize = 256;

/// Most signals that one wait can be for.
pub const AWAITED_SIGNALS_MAX: usize = 64;

/// Most signals of one run that nobody got yet.
pub const UNCONSUMED_SIGNALS_MAX: u32 = 10_000;

/// Longest progress that a step can tell, in bytes. What is longer is cut.
pub const PROGRESS_BYTES_MAX: usize = 1_024;

/// Longest reason of a cancellation, in bytes.
pub const REASON_BYTES_MAX: usize = 1_024;

/// Most starts, commits or signals in one store call.
pub const BATCH_ITEMS_MAX: usize = 10_000;

/// Most rows on one page of a listing.
pub const PAGE_ROWS_MAX: usize = 1_000;

/// Most runs that a page of a listing looks at, whether they are like what is asked for or not.
pub const PAGE_LOOKS_MAX: usize = 10_000;

/// Longest sleep, delay or time-out: a hundred years. Longer spans are refused, so that sums with
/// any stored time stay far from overflow.
pub const SPAN_MAX: Duration = Duration::from_hours(100 * 366 * 24);

/// Greatest limit of a tenant: most of its tasks that may be ready or running at once.
pub const TENANT_TASKS_MAX: u32 = i32::MAX.unsigned_abs();

/// Greatest number of retries of one step.
pub const RETRIES_MAX: u32 = 1_000_000;

/// Greatest weight of a tenant. A stride must stay at least one tick.
pub const WEIGHT_MAX: u32 = 1_000;

/// Most memos of one function in one round.
pub const MEMOS_MAX: usize = 50_000;

/// Most bytes of values in the memos of one function in one round.
pub const MEMO_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest key of a memo, in bytes.
pub const MEMO_KEY_BYTES_MAX: usize = 1_024;

/// Most open waits of a function that an event names, and most signals.
pub const TOLD_KEYS_MAX: usize = 64;
