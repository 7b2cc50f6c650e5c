//! The binary `stepwell`.

mod args;
mod commands;
mod output;
mod store;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
