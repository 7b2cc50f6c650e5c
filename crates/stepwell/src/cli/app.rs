//! A program of a user: its workflows, and the command line that starts and executes them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use stepwell_core::code::Code;

use super::resume::ResumeArgs;
use super::start::StartArgs;
use super::worker::WorkerArgs;
use super::{Command, Failure, Output, OutputArgs, refuse, resume, start, worker};
use crate::api::{Engine, EngineBuilder};
use crate::error::Error;
use crate::ports::{BoxFuture, DynStore};
use crate::wiring::is_polled;

const STORES: &str = "\
The store is named by --store, or by the variable STEPWELL_STORE: a PostgreSQL URL, or the
path of a SQLite file.";

/// A program with workflows of its own: `start`, `resume` and `worker` for them, and the commands
/// that work on any store. [`run`](super::run) is short for it.
///
/// The closure gets the builder of an engine and hands it back: with a state, a default tenant,
/// settings or a codec, if need be, and with the workflows.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use stepwell::cli::App;
/// use stepwell::{Ctx, Result};
///
/// struct Shop {
///     greeting: String,
/// }
///
/// async fn greet(ctx: Ctx<String, Shop>) -> Result<String> {
///     ctx.step("greet", async || Ok(format!("{}, {}!", ctx.state().greeting, ctx.input()))).await
/// }
///
/// fn main() -> ExitCode {
///     let app = App::new(|builder| {
///         let shop = Shop { greeting: "Hello".to_owned() };
///         let mut builder = builder.default_tenant("docs").state(shop);
///         builder.function("greet", greet);
///         builder
///     });
///     app.name("shop").run_blocking()
/// }
/// ```
#[must_use = "a program is run by `.run().await` or `.run_blocking()`"]
pub struct App {
    name: Option<String>,
    args: Vec<OsString>,
    build: Build,
}

/// Builds and starts an engine on the user's store.
type Build = Box<dyn FnOnce(EngineBuilder<()>, Role) -> BoxFuture<Result<Engine, Error>> + Send>;

/// What a command needs an engine for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// To execute what its program has code for.
    Worker,
    /// To start runs and to wait for them.
    Client,
}

/// Start, execute and look after runs.
#[derive(Debug, clap::Parser)]
#[command(
    version = concat!("(stepwell ", env!("CARGO_PKG_VERSION"), ")"),
    after_help = STORES,
    arg_required_else_help = true
)]
struct Args {
    #[command(subcommand)]
    command: AppCommand,

    #[command(flatten)]
    output: OutputArgs,
}

/// The commands of a program with workflows.
#[derive(Debug, clap::Subcommand)]
enum AppCommand {
    /// Start a run
    Start(StartArgs),
    /// Work until a run has ended, and say how
    Resume(ResumeArgs),
    #[command(flatten)]
    OfStore(Command),
    /// Execute runs until Ctrl-C
    Worker(WorkerArgs),
}

impl App {
    /// A program whose engine is built like this. Its arguments are those of the process.
    pub fn new<S, F>(build: F) -> Self
    where
        S: Send + Sync + 'static,
        F: FnOnce(EngineBuilder<()>) -> EngineBuilder<S> + Send + 'static,
    {
        let build: Build = Box::new(|builder, role| {
            let built = build(builder);
            let built = if role == Role::Client { built.client_only() } else { built };
            Box::pin(built.start())
        });
        Self { name: None, args: std::env::args_os().collect(), build }
    }

    /// What the program is called in its help, and what the ids of its workers begin with. Without
    /// it, that is the name of its file.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Other arguments than those of the process; the first of them is the program's own name.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Does the command that the arguments name, and says how the process should exit.
    pub async fn run(self) -> ExitCode {
        match self.parse() {
            Ok((app, command, output)) => output.finish(app.execute(command, output).await),
            Err(exit_code) => exit_code,
        }
    }

    /// As [`App::run`], for programs without async.
    pub fn run_blocking(self) -> ExitCode {
        let (app, command, output) = match self.parse() {
            Ok(parsed) => parsed,
            Err(exit_code) => return exit_code,
        };
        let runtime = if is_polled() {
            let message = "`run_blocking` was called inside an async context; use `run` there";
            Err(Error::refused(Code::BlockingInAsync, message).into())
        } else {
            tokio::runtime::Runtime::new().map_err(Failure::from)
        };
        let done = runtime.and_then(|runtime| runtime.block_on(app.execute(command, output)));
        output.finish(done)
    }

    /// Starts the engine of the program.
    pub(super) async fn engine(self, store: DynStore, role: Role) -> Result<Engine, Failure> {
        let builder = EngineBuilder::new(store).app(&self.program());
        Ok((self.build)(builder, role).await?)
    }

    /// What the program is called.
    pub(super) fn program(&self) -> String {
        let of_file = || {
            let path = Path::new(self.args.first()?);
            Some(path.file_stem()?.to_string_lossy().into_owned())
        };
        let name = self.name.clone().or_else(of_file);
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| "stepwell".to_owned())
    }

    fn parse(self) -> Result<(Self, AppCommand, Output), ExitCode> {
        let program = self.program();
        let command = named(Args::command(), &program);
        let parsed = command.try_get_matches_from(&self.args);
        let parsed = parsed.and_then(|matches| Args::from_arg_matches(&matches));
        let Args { command, output } = parsed.map_err(|error| refuse(&error))?;
        Ok((self, command, Output::new(output)))
    }

    async fn execute(self, command: AppCommand, output: Output) -> Result<(), Failure> {
        match command {
            AppCommand::Start(args) => start::run(&args, self, output).await,
            AppCommand::Resume(args) => resume::run(&args, self, output).await,
            AppCommand::Worker(args) => worker::run(&args, self, output).await,
            AppCommand::OfStore(command) => command.run(output).await,
        }
    }
}

/// The command line under the program's own name, also in its examples.
fn named(command: clap::Command, program: &str) -> clap::Command {
    let program = program.to_owned();
    let named = command.display_name(program.clone()).bin_name(program.clone());
    named.mut_subcommands(|command| {
        let example = command.get_after_help().map(ToString::to_string);
        match example {
            Some(text) => command.after_help(text.replace("  stepwell ", &format!("  {program} "))),
            None => command,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_program_is_called_as_it_says_or_by_its_file() {
        let app = || App::new(|builder| builder);
        assert_eq!(app().args(["/opt/bin/shop", "runs"]).program(), "shop");
        assert_eq!(app().args(["/opt/bin/shop", "runs"]).name("bakery").program(), "bakery");
        assert_eq!(app().args([""; 0]).program(), "stepwell");
    }

    #[test]
    fn examples_are_those_of_the_program() {
        let mut command = named(Args::command(), "shop");
        for name in ["start", "resume", "worker", "runs", "show", "events", "signal", "cancel"] {
            let command = command.find_subcommand_mut(name).expect(name);
            let help = command.render_long_help().to_string();
            assert!(help.contains(&format!("  shop {name}")), "{help}");
        }
    }
}
