//! Duties of an engine beside its worker: leading, and telling callers that their runs have ended.

mod end_waiters;
mod leader;

pub(crate) use end_waiters::start_waking;
pub(crate) use leader::lead_loop;
