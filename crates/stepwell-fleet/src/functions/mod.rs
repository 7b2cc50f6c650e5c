//! Durable functions for the fleet: what they do, what their processes write down of it, and which
//! signals they are sent.
//!
//! Every step of theirs gives a value that no other execution gives, so that it can be told which
//! execution a value came from.

mod code;
mod effect;

use crate::plan::Plan;

pub use code::{next_input, register};
pub use effect::{Effect, EffectMark, EffectRecorder, output_of, read};

/// How many functions there are.
pub const N_FUNCTIONS: usize = 5;

/// Steps one after the other, with retries and sleeps.
pub const ROW: usize = 0;
/// Steps side by side, races, a map and waits.
pub const FAN: usize = 1;
/// Several rounds.
pub const ROUNDS: usize = 2;
/// Errors that are caught, and errors that end an execution.
pub const ERRORS: usize = 3;
/// Blocking code, also side by side.
pub const BLOCKING: usize = 4;

/// So many rounds has [`ROUNDS`].
pub const N_ROUNDS: u32 = 3;

/// The name of a function, which is that of its task as well.
#[must_use]
pub fn name(number: usize) -> String {
    format!("function-{number}")
}

/// The number of a function.
#[must_use]
pub fn number_of(workflow: &str) -> Option<usize> {
    (0..N_FUNCTIONS).find(|number| name(*number) == workflow)
}

/// The places of the signals that a function is sent. It may wait for others, for a while.
#[must_use]
pub const fn awaited(number: usize) -> &'static [usize] {
    match number {
        FAN => &[0, 1],
        ROUNDS | BLOCKING => &[0],
        _ => &[],
    }
}

/// Functions as plans without steps: what the checks of graphs have to know of them.
pub fn plans() -> impl Iterator<Item = Plan> {
    let plan = |number| Plan { name: name(number), steps: Vec::new(), has_handler: false };
    (0..N_FUNCTIONS).map(plan)
}
