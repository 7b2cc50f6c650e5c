//! Two calls of the store meet on real PostgreSQL, statement by statement, in many orders.
//!
//! Whatever the order, what they leave and what they answer is what one of the two would have left
//! and answered after the other; the invariants hold, and nobody meets a deadlock (FB3).
//! `STEPWELL_INTERLEAVINGS` is a number of orders to draw by chance for each pair, or `all`; all
//! orders of two long calls take longer than anybody lives, so name a test with it.

mod acts;
mod cancelling;
mod claiming;
mod deadlines;
mod fan_in;
mod functions;
mod handing;
mod limits;
mod pairs;
mod parking;
mod passing;
mod picture;
mod reading;
mod scene;
mod signalling;
mod stage;
mod suspending;
mod times;
