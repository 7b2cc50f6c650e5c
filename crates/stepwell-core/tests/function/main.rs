//! The journal of a function, driven by hand: what it hears of when, and what that costs.

mod hear;
mod linear;
mod program;
mod refused;
