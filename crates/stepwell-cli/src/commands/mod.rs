//! The commands, one file each, and how they end.
//!
//! [`run`] is all there is to a binary: it reads the arguments, does the command, prints, and
//! says how the process should exit.

mod demo;
mod explain;
mod migrate;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::bench;
use crate::output::{self, Output};

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user asked for something that is not there.
    Usage { message: String, hint: &'static str },
    /// The engine refused or failed.
    Engine(stepwell::Error),
    /// It ran, and it did not end as it should.
    Unexpected(String),
    /// The output could not be written, or the process could not be set up.
    Io(io::Error),
}

/// Runs the command that the arguments name; the first of them is the program's own name.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        // Help and version come this way too; clap knows which of them are errors.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let output = Output::new(args.json, args.color);
    let done = match args.command {
        Command::Demo(demo) => demo::run(&demo, output),
        Command::Explain(explain) => explain::run(&explain, output),
        Command::Migrate(migrate) => migrate::run(&migrate, output),
        Command::Bench(bench) => bench::run(&bench, output),
        Command::BenchScenario(scenario) => bench::run_isolated(&scenario),
        Command::BenchWorker(worker) => bench::work(&worker),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has seen enough, as `head` does.
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            output::error(args.color, &failure.message(), failure.hint().as_deref());
            failure.exit_code()
        }
    }
}

impl Failure {
    fn message(&self) -> String {
        match self {
            Self::Usage { message, .. } | Self::Unexpected(message) => message.clone(),
            Self::Engine(error) => error.to_string(),
            Self::Io(error) => error.to_string(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => Some((*hint).to_owned()),
            Self::Engine(error) => Some(format!("stepwell explain {}", error.code())),
            Self::Unexpected(_) | Self::Io(_) => None,
        }
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl From<stepwell::Error> for Failure {
    fn from(error: stepwell::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<stepwell::ports::StoreError> for Failure {
    fn from(error: stepwell::ports::StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
