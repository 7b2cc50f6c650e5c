//! Where queued tasks wait: in a queue, behind their tenant's limit, or for a worker that serves
//! them. How they get there, and how they leave.

pub(crate) mod claim;
mod enqueue;
pub(crate) mod enqueue_unlimited;
mod fill;
pub(crate) mod hand_over;
mod limits;
pub(crate) mod positions;
pub(crate) mod remove;
pub(crate) mod room_for_start;
pub(crate) mod service;
pub(crate) mod trial;
pub(crate) mod watermark;

pub(crate) use limits::{LOCK_TENANTS, LimitsSeen};
pub(crate) use positions::Arrivals;
use watermark::Watermarks;

use super::lookup::Guesses;
use super::session::{Learned, Session};

/// The queues, as one transaction changes them.
pub(crate) struct QueueSet<'s> {
    pub(crate) session: &'s Session,
    pub(crate) guesses: &'s Guesses,
    pub(crate) watermarks: &'s Watermarks,
    /// Whether the tenants that were looked at have limits.
    pub(crate) limits_seen: LimitsSeen,
}

impl QueueSet<'_> {
    /// What the next transaction may guess by.
    pub(crate) fn learned(&self) -> Learned {
        Learned { limits: self.limits_seen.take(), ..Learned::default() }
    }
}
