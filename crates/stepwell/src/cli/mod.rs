//! Commands for people, and for programs that read JSON: the same as of the binary `stepwell`, for
//! binaries of your own, on the stores that your program is built with.
//!
//! One call is a whole command line. It reads the arguments, does the command, prints, and says how
//! the process should exit:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     stepwell::cli::run_blocking(std::env::args_os())
//! }
//! ```
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

mod cancel;
mod client;
mod event_record;
mod failure;
mod log_table;
mod output;
mod pretty_json;
mod run_name;
mod run_record;
mod runs;
mod show;
mod signal;
mod store;
pub mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use stepwell_core::code::Code;
use tokio::runtime::Builder;

pub use cancel::CancelArgs;
pub use event_record::EventRecord;
pub use failure::Failure;
pub use log_table::log_table;
pub use output::{Cell, Output, OutputArgs, Tone};
pub use runs::RunsArgs;
pub use show::ShowArgs;
pub use signal::SignalArgs;
pub use store::{StoreAddress, StoreArgs};

use crate::error::Error;
use crate::wiring::is_polled;

const EXAMPLES: &str = "\
The store is named by --store, or by the variable STEPWELL_STORE: a PostgreSQL URL, or the
path of a SQLite file.";

/// Look after the runs in a store.
#[derive(Debug, Parser)]
#[command(name = "stepwell", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    output: OutputArgs,
}

/// The commands that work on a store.
#[derive(Clone, Debug, clap::Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// List runs, newest first
    Runs(RunsArgs),
    /// Show a run: how it stands, its tasks, what it waits for, and its log
    Show(ShowArgs),
    /// Send a run a signal
    Signal(SignalArgs),
    /// Cancel a run
    Cancel(CancelArgs),
}

/// Does the command that the arguments name; the first of them is the program's own name.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse(args) {
        Ok((command, output)) => output.finish(command.run(output).await),
        Err(exit_code) => exit_code,
    }
}

/// As [`run`], for programs without async.
pub fn run_blocking(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse(args) {
        Ok((command, output)) => output.finish(command.run_blocking(output)),
        Err(exit_code) => exit_code,
    }
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

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(Command, Output), ExitCode> {
    let Args { command, output } = Args::try_parse_from(args).map_err(|error| refuse(&error))?;
    Ok((command, Output::new(output)))
}

/// Prints what is wrong with the arguments, or the help or version that they ask for, and says how
/// to exit.
#[must_use]
pub fn refuse(error: &clap::Error) -> ExitCode {
    // There is nobody left to tell when both outputs are closed.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }
}
