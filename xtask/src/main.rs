//! The project's own commands, run as `cargo xtask <command>`.
//!
//! They are Rust and not shell so that they run wherever the project builds. Each command is one
//! file and one row of [`COMMANDS`]. The crate depends on nothing from outside, because every
//! fresh clone and every build server compiles it before anything else.

mod audit;
mod cargo;
mod chaos;
mod ci;
mod lint;
mod postgres;
mod server_packages;
mod test;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

/// A command as the user types it.
struct Command {
    name: &'static str,
    summary: &'static str,
    run: Run,
}

/// What a command does in the workspace.
enum Run {
    /// Always the same.
    Alone(fn(&Path) -> Result<(), Failure>),
    /// What the words after its name say.
    With(fn(&Path, &[String]) -> Result<(), Failure>),
}

const COMMANDS: &[Command] = &[
    Command { name: "test", summary: test::SUMMARY, run: Run::With(test::run) },
    alone("interleave", "run all interleavings, also those that take long", test::interleave),
    alone("lint", "check format, lints, docs and dependencies", lint::run),
    alone("audit", audit::SUMMARY, audit::run),
    alone("tidy", "check layers, sizes, words and documents", tidy::run),
    alone("ci", "test, lint, tidy: what must pass before a push", ci::run),
    Command { name: "chaos", summary: chaos::SUMMARY, run: Run::With(chaos::run) },
];

const fn alone(
    name: &'static str,
    summary: &'static str,
    run: fn(&Path) -> Result<(), Failure>,
) -> Command {
    Command { name, summary, run: Run::Alone(run) }
}

/// Why a command ended with exit code 1, as one sentence for the last line of its output.
struct Failure {
    reason: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((command, rest)) = chosen(&arguments) else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    let done = match command.run {
        Run::Alone(run) => run(workspace_root()),
        Run::With(run) => run(workspace_root(), rest),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {}: {}", command.name, failure.reason);
            ExitCode::FAILURE
        }
    }
}

/// The command that was typed, with its own arguments. One without any takes none.
fn chosen(arguments: &[String]) -> Option<(&'static Command, &[String])> {
    let (name, rest) = arguments.split_first()?;
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    let takes_them = rest.is_empty() || matches!(command.run, Run::With(_));
    takes_them.then_some((command, rest))
}

fn usage() -> String {
    let lines =
        COMMANDS.iter().map(|command| format!("  {:10} {}\n", command.name, command.summary));
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
    fn only_commands_that_take_arguments_get_some() {
        let typed = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(chosen(&typed(&["tidy"])).is_some());
        assert!(chosen(&typed(&["tidy", "--fast"])).is_none());
        assert!(chosen(&typed(&["no-such-command"])).is_none());
        assert!(chosen(&[]).is_none());
        let words = typed(&["chaos", "--minutes", "2"]);
        let (command, rest) = chosen(&words).expect("it takes arguments");
        assert_eq!((command.name, rest), ("chaos", &words[1..]));
    }

    #[test]
    fn workspace_root_holds_the_manifest() {
        assert!(workspace_root().join("Cargo.toml").is_file());
    }
}
