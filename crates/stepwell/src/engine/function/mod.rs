//! Functions while they run: their journal, what their thread is doing, and who woke them.

mod journal;
mod mark;
mod waker;

pub(crate) use journal::FunctionState;
pub(crate) use mark::{Doing, doing, while_doing};
pub(crate) use waker::{FunctionWaker, step_waker};
