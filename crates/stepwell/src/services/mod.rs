//! Duties of an engine beside its worker: leading, and telling callers that their runs have ended.

mod end_waiters;
mod leader;

pub(crate) use end_waiters::EndWaiters;
pub(crate) use leader::lead_loop;
