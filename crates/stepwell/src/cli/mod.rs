//! Commands for people, and for programs that read JSON: the same as of the binary `stepwell`, for
//! binaries of your own, on the stores that your program is built with.
//!
//! One call is a whole command line for workflows of your own: `start`, `resume` and `worker` for
//! them, and `runs`, `show`, `events`, `signal` and `cancel` for what is in the store. It reads the
//! arguments, does the command, prints, and says how the process should exit:
//!
//! ```no_run
//! use stepwell::{Ctx, Result};
//!
//! async fn greet(ctx: Ctx<String>) -> Result<String> {
//!     ctx.step("greet", async || Ok(format!("Hello, {}!", ctx.input()))).await
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     stepwell::cli::run_blocking(|builder| {
//!         builder.function("greet", greet);
//!     })
//! }
//! ```
//!
//! An [`App`] takes a state, a default tenant, settings and a name as well.
//!
//! A program with commands of its own takes [`Command`] in among them, and [`OutputArgs`] for the
//! options that all of them share:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use stepwell::cli::{self, Output, OutputArgs};
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(subcommand)]
//!     command: Command,
//!     #[command(flatten)]
//!     output: OutputArgs,
//! }
//!
//! #[derive(clap::Subcommand)]
//! enum Command {
//!     /// Serve the shop
//!     Serve,
//!     #[command(flatten)]
//!     Stepwell(cli::Command),
//! }
//!
//! #[tokio::main]
//! async fn main() -> ExitCode {
//!     let args = Args::parse();
//!     let output = Output::new(args.output);
//!     output.finish(match args.command {
//!         Command::Serve => Ok(()),
//!         Command::Stepwell(command) => command.run(output).await,
//!     })
//! }
//! ```
//!
//! What commands share stands here: how they answer ([`Output`]), which store they work on
//! ([`StoreArgs`]), how they fail ([`Failure`]), and one word for one thing ([`words`]). A command
//! is a file or folder of its own.

mod app;
mod cancel;
mod client;
mod event_record;
mod events;
mod failure;
mod log_table;
mod output;
mod pretty_json;
mod resume;
mod run_end;
mod run_name;
mod run_record;
mod runs;
mod show;
mod signal;
mod start;
mod store;
pub mod words;
mod worker;

use std::process::ExitCode;

use stepwell_core::code::Code;
use tokio::runtime::Builder;

pub use app::App;
pub use cancel::CancelArgs;
pub use event_record::EventRecord;
pub use events::EventsArgs;
pub use failure::Failure;
pub use log_table::log_table;
pub use output::{Cell, Output, OutputArgs, Tone};
pub use runs::RunsArgs;
pub use show::ShowArgs;
pub use signal::SignalArgs;
pub use store::{StoreAddress, StoreArgs};

use crate::api::EngineBuilder;
use crate::error::Error;
use crate::wiring::is_polled;

/// The commands that work on a store.
#[derive(Clone, Debug, clap::Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// List runs, newest first
    Runs(RunsArgs),
    /// Show a run: how it stands, its tasks, what it waits for, and its log
    Show(ShowArgs),
    /// Print the log of a run
    Events(EventsArgs),
    /// Send a run a signal
    Signal(SignalArgs),
    /// Cancel a run
    Cancel(CancelArgs),
}

/// The command line of a program with these workflows: does the command that the arguments of the
/// process name, and says how it should exit. Short for an [`App`].
pub async fn run(register: impl FnOnce(&mut EngineBuilder<()>) + Send + 'static) -> ExitCode {
    registering(register).run().await
}

/// As [`run`], for programs without async.
pub fn run_blocking(register: impl FnOnce(&mut EngineBuilder<()>) + Send + 'static) -> ExitCode {
    registering(register).run_blocking()
}

fn registering(register: impl FnOnce(&mut EngineBuilder<()>) + Send + 'static) -> App {
    App::new(|mut builder| {
        register(&mut builder);
        builder
    })
}

impl Command {
    /// Does the command.
    ///
    /// # Errors
    /// When what it asks for cannot be, or cannot be printed. [`Output::finish`] tells the user.
    pub async fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Runs(args) => runs::run(&args, output).await,
            Self::Show(args) => show::run(&args, output).await,
            Self::Events(args) => events::run(&args, output).await,
            Self::Signal(args) => signal::run(&args, output).await,
            Self::Cancel(args) => cancel::run(&args, output).await,
        }
    }

    /// As [`Command::run`], for programs without async.
    ///
    /// # Errors
    /// As there, and `SW0024` when it is called inside an async context.
    pub fn run_blocking(self, output: Output) -> Result<(), Failure> {
        if is_polled() {
            let message = "`run_blocking` was called inside an async context; use `run` there";
            return Err(Error::refused(Code::BlockingInAsync, message).into());
        }
        Builder::new_current_thread().enable_all().build()?.block_on(self.run(output))
    }
}

/// Prints what is wrong with the arguments, or the help or version that they ask for, and says how
/// to exit.
#[must_use]
pub fn refuse(error: &clap::Error) -> ExitCode {
    // There is nobody left to tell when both outputs are closed.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
