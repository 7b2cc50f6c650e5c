//! Two calls, statement by statement, in an order of the test's choosing.
//!
//! Each call goes through a [wire](crate::wire) of its own whose gate is closed. A [`Duet`] lets
//! one statement go at a time, as its [`Guide`] says: an [`Explorer`] leads through every order
//! that can matter, [`Along`] through a given one. A side that waits for a lock of the other
//! cannot go on, so the other does.

mod duet;
mod explorer;
mod footprint;
mod orders;

pub use duet::{Duet, Played};
pub use explorer::{Explorer, Guide};
pub use orders::{Along, Order, Side, all};
