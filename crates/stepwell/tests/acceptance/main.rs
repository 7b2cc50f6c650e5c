//! What Stepwell promises to those who use it, shown through the public API only: on virtual
//! time and on every store, except where real threads or real time are the point. One module per
//! theme.
#![cfg(all(feature = "sqlite", feature = "postgres", feature = "testing"))]
#![expect(clippy::unwrap_used, reason = "a test panics rather than returning an error")]
#![expect(clippy::unchecked_time_subtraction, reason = "a test that underflows should panic")]
#![expect(
    clippy::many_single_char_names,
    clippy::similar_names,
    reason = "in small workflows the letters are the names of the steps"
)]

#[macro_use]
mod support;

mod blocking;
mod cancel;
mod chain;
mod client;
mod clocks;
mod codec;
mod context;
mod crash;
mod dag;
mod deadline;
mod events;
mod failure;
mod fairness;
mod function;
mod function_blocking;
mod function_crash;
mod function_life;
mod function_replay;
mod function_rules;
mod harness;
mod order;
mod outside;
mod policies;
mod real_time;
mod refusals;
mod retry;
mod shutdown;
mod signal;
mod skip;
mod sleep;
mod starting;
mod threads;
mod timeout;
mod trial;
mod wait;
