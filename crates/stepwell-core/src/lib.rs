//! The rules of Stepwell as pure code.
//!
//! Given what is known about a run and what happened to it, this crate says what follows. It
//! does no I/O and knows no clock, no randomness, no threads and no async: times, ids and chance
//! come in as arguments. Stores call [`decide`] inside their transactions, so memory, SQLite and
//! PostgreSQL share one set of rules.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod code;
pub mod decide;
pub mod failure;
pub mod function;
pub mod id;
pub mod lead;
pub mod lease;
pub mod limits;
pub mod queue;
pub mod retry;
pub mod run;
pub mod silence;
pub mod store_time;
pub mod time;
pub mod trial;
pub mod workflow;
