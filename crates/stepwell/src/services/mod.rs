//! Duties beside the worker's: leading, and waking those who wait for results.

mod leader;
mod waiters;

pub(crate) use leader::lead_loop;
pub(crate) use waiters::Waiters;
