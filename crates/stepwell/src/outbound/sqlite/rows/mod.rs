//! Rows to values and back, a file per table, with the statements of that table.
//!
//! The columns of a table are listed once, in its file. Statements name them by words such as
//! `{run}`, and rows are read by the index that a column has in that list. Nothing outside of this
//! folder knows a column, a parameter or the text of a statement.

pub(crate) mod attempt;
mod cells;
pub(crate) mod definition;
pub(crate) mod event;
pub(crate) mod leader;
pub(crate) mod memo;
pub(crate) mod payload;
#[cfg(test)]
mod plans;
pub(crate) mod progress;
pub(crate) mod queue;
#[cfg(test)]
mod round_trip;
pub(crate) mod run;
pub(crate) mod signal;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod timer;
pub(crate) mod wait;
pub(crate) mod worker;

pub(crate) use cells::int;

use crate::outbound::sql::Table;

/// What the words in statements stand for.
pub(crate) const TABLES: &[Table] = &[
    attempt::ATTEMPT,
    definition::DEFINITION,
    event::EVENT,
    memo::MEMO,
    queue::CANDIDATE,
    queue::PARKED,
    queue::PLACE,
    queue::THROTTLED,
    run::GIVEN,
    run::RUN,
    signal::SIGNAL,
    store::COUNTER,
    task::RESULT,
    task::TASK,
    tenant::TENANT,
    timer::TIMER,
    wait::WAIT,
];

/// The files of statements, each with the code that uses them, for tests that look at all of them.
#[cfg(test)]
const FILES: &[(&str, &str)] = &[
    (include_str!("../sql/attempt.sql"), include_str!("attempt.rs")),
    (include_str!("../sql/definition.sql"), include_str!("definition.rs")),
    (include_str!("../sql/event.sql"), include_str!("event.rs")),
    (include_str!("../sql/leader.sql"), include_str!("leader.rs")),
    (include_str!("../sql/memo.sql"), include_str!("memo.rs")),
    (include_str!("../sql/payload.sql"), include_str!("payload.rs")),
    (include_str!("../sql/progress.sql"), include_str!("progress.rs")),
    (include_str!("../sql/queue.sql"), include_str!("queue.rs")),
    (include_str!("../sql/run.sql"), include_str!("run.rs")),
    (include_str!("../sql/signal.sql"), include_str!("signal.rs")),
    (include_str!("../sql/store.sql"), include_str!("store.rs")),
    (include_str!("../sql/task.sql"), include_str!("task.rs")),
    (include_str!("../sql/tenant.sql"), include_str!("tenant.rs")),
    (include_str!("../sql/timer.sql"), include_str!("timer.rs")),
    (include_str!("../sql/wait.sql"), include_str!("wait.rs")),
    (include_str!("../sql/worker.sql"), include_str!("worker.rs")),
];
