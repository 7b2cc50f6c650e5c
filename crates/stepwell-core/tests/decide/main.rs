//! What becomes of a run, told as stories: a workflow, what happens to it, and where that leads.
//!
//! After every single happening the driver checks the invariants S3, S4, S6, S8, S9, S16 and S19,
//! and that signals are given once, in time and in turn, so a story only has to say what is special
//! about it.

mod cancel;
mod deadline;
mod fail;
mod fan_in;
mod function;
mod lose;
mod on_failure;
mod random;
mod retry;
mod signal;
mod signal_order;
mod skip;
mod sleep;
mod story;
mod wait;
