//! What lies between Stepwell and PostgreSQL, under a test's control.
//!
//! [`wire`] is a man in the middle: it passes, holds, cuts and counts what a program says to the
//! server. [`pooler`] shares few server connections among many clients, as transaction poolers
//! do. [`interleave`] plays two calls against each other, statement by statement.
//! [`database`] gives a test a database of its own. Nothing here knows what Stepwell stores.

mod endpoint;
mod frame;

pub mod database;
pub mod interleave;
pub mod pooler;
pub mod wire;
