//! Durable functions: ordinary code whose steps, sleeps and waits are recorded, so that it goes on
//! where it was after a crash, a deploy or a long wait.

mod ctx;
mod define;
mod map;
mod name;
mod op;
mod race;
mod signal;
mod sleep;
mod step;
mod wait;

pub use define::{Function, IntoWorkflow};
pub use map::FunctionMap;
pub use name::{IntoStepName, StepName};
pub use race::{First, Race, Racers};
pub use signal::{FunctionSignal, SendSignal};
pub use sleep::FunctionSleep;
pub use step::FunctionStep;
pub use wait::FunctionWait;

pub(crate) use ctx::{random_of, uuid_of};
pub(crate) use op::read_value;
pub(crate) use step::{step_output, timed_out};
pub(crate) use wait::{as_called, signals_of};
