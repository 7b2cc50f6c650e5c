//! The binary `stepwell`.

mod args;
mod bench;
mod commands;
mod store;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
