//! The project's own commands, run as `cargo xtask <command>`.
//!
//! They are Rust and not shell so that they run wherever the project builds. Each command is one
//! file and one row of [`COMMANDS`]. The crate has no dependencies, because every fresh clone and
//! every build server compiles it before anything else.

mod cargo;
mod ci;
mod lint;
mod postgres;
mod test;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

/// A command as the user types it.
struct Command {
    name: &'static str,
    summary: &'static str,
    run: fn(&Path) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command { name: "test", summary: "run all tests and doc tests", run: test::run },
    Command { name: "lint", summary: "check format, lints, docs and dependencies", run: lint::run },
    Command { name: "tidy", summary: "check layers, sizes, words and documents", run: tidy::run },
    Command { name: "ci", summary: "test, lint, tidy: what must pass before a push", run: ci::run },
];

/// Why a command ended with exit code 1, as one sentence for the last line of its output.
struct Failure {
    reason: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let command = match arguments.as_slice() {
        [name] => COMMANDS.iter().find(|command| command.name == name),
        _ => None,
    };
    let Some(command) = command else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    match (command.run)(workspace_root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {}: {}", command.name, failure.reason);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let lines =
        COMMANDS.iter().map(|command| format!("  {:6} {}\n", command.name, command.summary));
    format!("usage: cargo xtask <command>\n\n{}", lines.collect::<String>())
}

/// The folder that holds the workspace's `Cargo.toml`, whatever folder the user stands in.
fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_every_command() {
        for command in COMMANDS {
            assert!(usage().contains(command.name), "{}", command.name);
        }
    }

    #[test]
    fn workspace_root_holds_the_manifest() {
        assert!(workspace_root().join("Cargo.toml").is_file());
    }
}
