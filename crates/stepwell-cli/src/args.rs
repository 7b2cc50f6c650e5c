//! What the user types: commands, options, and how their values are read.
//!
//! A value is understood in full or refused; nothing is rounded, cut or guessed.

use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;
use stepwell::cli::{OutputArgs, StoreArgs};

use crate::bench::Scenario;

const EXAMPLES: &str = "\
Examples:
  stepwell onboarding employee-1 --store demo.db --crash-after laptop
                                a durable function that is killed half-way
  stepwell onboarding employee-1 --store demo.db
                                and goes on where it was
  stepwell demo                 watch a few orders go through a workflow
  stepwell demo --orders 50     the same with a crowd
  stepwell runs --store shop.db list the runs in a store
  stepwell show bakery/order-1  one run with its tasks and its log
  stepwell explain              list all error codes
  stepwell explain SW0007       what an error means and how to mend it
  stepwell migrate --print      the SQL that makes the tables in PostgreSQL
  stepwell bench                measure how fast the stores are here";

const ONBOARDING_EXAMPLES: &str = "\
Examples:
  stepwell onboarding employee-1 --store demo.db
  stepwell onboarding employee-2 --store demo.db --crash-after laptop
  stepwell onboarding employee-2 --store demo.db      goes on after the laptop
  stepwell show acme/employee-2 --store demo.db       what happened to it

A record is created, a laptop and access are arranged side by side, and a mail is sent.
What is done is recorded in the store, which is made if it is not there: kill the process
at any moment, by Ctrl-C or kill -9, and the next call with the same id does what is left.";

const DEMO_EXAMPLES: &str = "\
Examples:
  stepwell demo
  stepwell demo --orders 50 --fraud-window 500ms
  stepwell demo --json | jq 'select(.record == \"run\")'";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  stepwell explain              list all codes
  stepwell explain SW0007       one page; `sw0007` and `7` do as well";

const MIGRATE_EXAMPLES: &str = "\
Examples:
  stepwell migrate --store postgres://owner@db.example.com/shop
  stepwell migrate --store shop.db
  stepwell migrate --print | psql postgres://owner@db.example.com/shop";

const BENCH_EXAMPLES: &str = "\
Examples:
  stepwell bench
  stepwell bench --store sqlite --scenario one --scenario latency
  stepwell bench --store postgres --scenario depth --runs 10000
  stepwell bench --store postgres --url postgres://owner@db.example.com/scratch
  stepwell bench --json | jq '.parts[] | {part, tasks_per_second}'

Build with --release: figures of a debug build say nothing. SQLite files and the
private PostgreSQL lie in the folder for temporary files (TMPDIR).";

/// Durable workflows as typed DAGs: they survive crashes, deploys and long waits.
#[derive(Debug, Parser)]
#[command(name = "stepwell", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Onboard an employee by a durable function, which can be killed and goes on
    Onboarding(OnboardingArgs),
    /// Run a small shop's order workflow and show what happens
    Demo(DemoArgs),
    /// What every program can have by `stepwell::cli`
    #[command(flatten)]
    OfStore(stepwell::cli::Command),
    /// Say what an error code means, why it came up, and what to do
    Explain(ExplainArgs),
    /// Make the tables of a store, or bring them up to date
    Migrate(MigrateArgs),
    /// Measure throughput, latency and cost, and compare with hand-written statements
    Bench(BenchArgs),
    /// One scenario of `bench`, in a process of its own
    #[command(hide = true)]
    BenchScenario(BenchScenarioArgs),
    /// A worker process of `bench`
    #[command(hide = true)]
    BenchWorker(BenchWorkerArgs),
}

/// Options of `stepwell onboarding`.
#[derive(Debug, ClapArgs)]
#[command(after_help = ONBOARDING_EXAMPLES)]
pub(crate) struct OnboardingArgs {
    /// Who begins to work here: the id of the run
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Kill the process as soon as this step is recorded; not if it was recorded before
    #[arg(long, value_name = "STEP")]
    pub(crate) crash_after: Option<OnboardingStep>,

    /// How long each step takes, such as `2s` or `500ms`
    #[arg(long, value_name = "SPAN", default_value = "400ms", value_parser = parse_span)]
    pub(crate) pace: Duration,
}

/// A step of the onboarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum OnboardingStep {
    CreateRecord,
    Laptop,
    Access,
    WelcomeMail,
}

impl OnboardingStep {
    /// All of them, in their order.
    pub(crate) const ALL: [Self; 4] =
        [Self::CreateRecord, Self::Laptop, Self::Access, Self::WelcomeMail];

    /// What it is called on the command line, and recorded under.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CreateRecord => "create-record",
            Self::Laptop => "laptop",
            Self::Access => "access",
            Self::WelcomeMail => "welcome-mail",
        }
    }
}

/// Options of `stepwell demo`.
#[derive(Debug, ClapArgs)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// How many orders come in
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = orders_range())]
    pub(crate) orders: u32,

    /// How long a charged order sleeps before it is shipped, such as `2s`, `1m30s` or `500ms`
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = parse_span)]
    pub(crate) fraud_window: Duration,

    /// What the orders are drawn from; the same seed gives the same orders
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) seed: u64,
}

/// Options of `stepwell explain`.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The code; without it, all codes are listed
    pub(crate) code: Option<String>,
}

/// Options of `stepwell migrate`.
#[derive(Debug, ClapArgs)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print PostgreSQL's SQL instead of running it; needs no store
    #[arg(long)]
    pub(crate) print: bool,

    /// The version the schema has; only what it lacks is printed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "print")]
    pub(crate) from_version: usize,
}

/// Options of `stepwell bench`.
#[derive(Debug, ClapArgs)]
#[command(after_help = BENCH_EXAMPLES)]
pub(crate) struct BenchArgs {
    /// A store to measure; may be given several times
    #[arg(long, value_name = "STORE", default_value = "all")]
    pub(crate) store: Vec<StoreChoice>,

    /// A scenario to measure; may be given several times. Default: all that take seconds
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Vec<Scenario>,

    /// A PostgreSQL server to measure; without it a private one is started, with fsync on
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub(crate) url: Option<String>,

    /// The schema to work in; it must not be there before, and is dropped afterwards
    #[arg(long, value_name = "NAME", default_value = "stepwell_bench")]
    pub(crate) schema: String,

    /// How many runs (or sleeps, or queued tasks), instead of what each scenario has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
}

/// One scenario on one store. The PostgreSQL server is there already.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchScenarioArgs {
    #[arg(long)]
    pub(crate) store: StoreChoice,

    #[arg(long)]
    pub(crate) scenario: Scenario,

    #[arg(long)]
    pub(crate) url: Option<String>,

    #[arg(long)]
    pub(crate) schema: String,

    #[arg(long)]
    pub(crate) runs: Option<u32>,

    /// Whether a person watches the process that started this one
    #[arg(long)]
    pub(crate) watched: bool,
}

/// Where a worker process of `bench` finds its store.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchWorkerArgs {
    /// The store: a PostgreSQL URL, or the path of a SQLite file
    #[arg(long)]
    pub(crate) store: String,

    /// The PostgreSQL schema that holds the tables
    #[arg(long)]
    pub(crate) schema: String,
}

/// Which stores to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreChoice {
    Memory,
    Sqlite,
    Postgres,
    All,
}

/// More orders than this would only scroll by.
const ORDERS_MAX: i64 = 1_000;

fn orders_range() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=ORDERS_MAX)
}

/// Reads a span of time with units, such as `1m30s`.
fn parse_span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration =
        text.parse().map_err(|_| "give hours, minutes, seconds or ms, such as 1m30s".to_owned())?;
    Duration::try_from(span).map_err(|_| "a span of time cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn spans_are_read_in_full() {
        assert_eq!(parse_span("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_span("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_span("1h 5m"), Ok(Duration::from_mins(65)));
    }

    #[test]
    fn spans_that_are_not_understood_are_refused() {
        for text in
            ["", "2", "s", "2x", "2s3", "2 s x", "-2s", "2s ago", "1mo", "99999999999999999999h"]
        {
            assert!(parse_span(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn steps_of_the_onboarding_are_typed_as_they_are_recorded() {
        for step in OnboardingStep::ALL {
            assert_eq!(OnboardingStep::from_str(step.name(), false), Ok(step));
        }
    }

    #[test]
    fn the_page_on_the_command_line_has_every_command_and_option() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        // What all commands have stands before the sections of each.
        let shared = ["json", "color", "help", "version", "store", "schema"];
        for name in shared.iter().filter(|name| !["help", "version"].contains(name)) {
            assert!(page.contains(&format!("`--{name}")), "--{name} is missing");
        }
        for command in Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let heading = format!("\n## `stepwell {}`\n", command.get_name());
            let (_, section) = page.split_once(&heading).expect(&heading);
            let section = section.split("\n## ").next().unwrap_or_default();
            let options = command.get_arguments().filter_map(|argument| argument.get_long());
            for option in options.filter(|option| !shared.contains(option)) {
                assert!(section.contains(&format!("| `--{option}")), "{heading}: --{option}");
            }
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }
}
