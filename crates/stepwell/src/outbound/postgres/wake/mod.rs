//! Wake-ups between processes.

pub(crate) mod notify;
pub(crate) mod pending;
