//! The same engine without async anywhere in user code.
//!
//! Steps are given by `run_blocking`, and every call waits for its answer.
//!
//! ```
//! use stepwell::blocking::Engine;
//! use stepwell::{MemoryStore, Workflow};
//!
//! let mut w = Workflow::define::<String, ()>("greeting");
//! let hello = w.step("hello").run_blocking(|ctx| Ok(format!("Hello, {}!", ctx.input())));
//! let greeting: Workflow<String, String> = w.output(hello);
//!
//! let mut builder = Engine::builder(MemoryStore::new());
//! let greeting = builder.workflow(greeting);
//! let engine = builder.start()?;
//! let text = engine.run(&greeting, "Ada".to_owned()).tenant("docs").wait()?;
//! assert_eq!(text, "Hello, Ada!");
//! engine.stop(std::time::Duration::from_secs(30));
//! # Ok::<(), stepwell::Error>(())
//! ```

mod block_on;
mod branch;
mod builder;
mod crew;
mod ctx;
mod engine;
mod function_signal;
mod join;
mod op;
mod operations;
mod run;
mod signal;
mod start;

#[cfg(feature = "testing")]
pub(crate) use block_on::{BlockOn, Stuck};
pub use builder::EngineBuilder;
pub use ctx::Ctx;
pub use engine::Engine;
pub use function_signal::{FunctionSignal, SendSignal};
pub use join::{BranchOf, Operation, Operations, Stores};
pub use operations::{FunctionSleep, FunctionStep, FunctionWait};
pub use run::Run;
pub use signal::{Cancel, Signal};
pub use start::{Start, StartAndWait};
