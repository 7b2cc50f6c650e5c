//! The commands, one file each.
//!
//! [`run`] is all there is to a binary: it reads the arguments, does the command, prints, and
//! says how the process should exit.

mod demo;
mod explain;
mod migrate;
mod onboarding;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
pub(crate) use stepwell::cli::Failure;
use stepwell::cli::Output;

use crate::args::{Args, Command};
use crate::bench;

/// Runs the command that the arguments name; the first of them is the program's own name.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        // Help and version come this way too; clap knows which of them are errors.
        Err(error) => return stepwell::cli::refuse(&error),
    };
    let output = Output::new(args.output);
    let done = match args.command {
        Command::Onboarding(onboarding) => onboarding::run(&onboarding, output),
        Command::Demo(demo) => demo::run(&demo, output),
        Command::OfStore(command) => command.run_blocking(output),
        Command::Explain(explain) => explain::run(&explain, output),
        Command::Migrate(migrate) => migrate::run(&migrate, output),
        Command::Bench(bench) => bench::run(&bench, output),
        Command::BenchScenario(scenario) => bench::run_isolated(&scenario),
        Command::BenchWorker(worker) => bench::work(&worker),
    };
    output.finish(done)
}
