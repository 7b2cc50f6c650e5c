//! Queues: where tasks wait, who takes them, and in which order.

pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod hand_over;
pub(crate) mod limits;
pub(crate) mod positions;
pub(crate) mod service;
mod trial;
