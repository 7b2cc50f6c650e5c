//! Two calls, statement by statement, in an order of the test's choosing.
//!
//! Each call goes through a [wire](crate::wire) of its own whose gate is closed. A [`Duet`] lets
//! one statement go at a time, as an [`Order`] says. A side that waits for a lock of the other
//! cannot go on, so the other does.

mod duet;
mod orders;

pub use duet::{Duet, Played};
pub use orders::{Effort, Order, Side, orders};
