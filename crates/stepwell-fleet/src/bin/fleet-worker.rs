//! A worker process: an ordinary program on `stepwell` that executes the plans of the fleet, and
//! writes down what it does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use stepwell::{Config, Engine, Error, StopReport};
use stepwell_fleet::address::Address;
use stepwell_fleet::history::Recorder;
use stepwell_fleet::jumping_clock::JumpingClock;
use stepwell_fleet::process::WorkerMessage;
use stepwell_fleet::real_time::{Deadline, pause};
use stepwell_fleet::{Result, functions, plan, start_record, workflow};
use tokio::signal::unix::{SignalKind, signal};

/// How long the store may be away while the worker starts.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// The signal of a write beyond the limit of file sizes.
const SIGXFSZ: i32 = 25;

/// Executes the plans of the fleet until it is asked to stop.
#[derive(Parser)]
struct Arguments {
    /// A PostgreSQL server, or the path of a SQLite file.
    #[arg(long)]
    store: String,
    /// The schema on a PostgreSQL server.
    #[arg(long, default_value = "stepwell")]
    schema: String,
    /// Where to write down what was done.
    #[arg(long)]
    folder: PathBuf,
    /// The worker's id.
    #[arg(long)]
    name: String,
    #[arg(long, default_value_t = 8)]
    slots: usize,
    #[arg(long, default_value_t = 30_000)]
    lease_ms: u64,
    #[arg(long, default_value_t = 6_000)]
    leader_ttl_ms: u64,
    #[arg(long, default_value_t = 30_000)]
    grace_ms: u64,
    #[arg(long, default_value_t = 3)]
    crash_limit: u32,
    /// Start runs as well, one after the other.
    #[arg(long)]
    starts_runs: bool,
    /// Wait for a store that a frozen worker holds.
    #[arg(long)]
    waits_for_store: bool,
    /// Go by a clock that jumps as standard input says.
    #[arg(long)]
    jumping_clock: bool,
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let clock = JumpingClock::new();
    obey_parent(clock.clone());
    match run(Arguments::parse(), clock).await {
        // A blocking step that does not return must not hold up the end of the process.
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("fleet-worker: {error}");
            std::process::exit(1)
        }
    }
}

async fn run(arguments: Arguments, clock: JumpingClock) -> Result<()> {
    let asked_to_stop = stepwell::shutdown_signal();
    tokio::pin!(asked_to_stop);
    // Without a handler a write beyond the limit would kill the process instead of failing.
    let _handled = signal(SignalKind::from_raw(SIGXFSZ))?;
    let engine = start(&arguments, &clock).await?;
    tell(&WorkerMessage::Ready);
    if arguments.starts_runs {
        let starts = start_record::keep_starting(&engine, &arguments.folder, &arguments.name);
        tokio::select! {
            () = &mut asked_to_stop => {}
            ended = starts => ended?,
        }
    } else {
        asked_to_stop.await;
    }
    let report = engine.stop(Duration::from_millis(arguments.grace_ms)).await;
    let StopReport { n_drained, n_handed_back, n_still_running, .. } = report;
    tell(&WorkerMessage::Stopped { n_drained, n_handed_back, n_still_running });
    Ok(())
}

/// Starts the engine; a store that is away for a moment is waited for.
async fn start(arguments: &Arguments, clock: &JumpingClock) -> Result<Engine> {
    let address = Address::parse(&arguments.store, &arguments.schema);
    let recorder = Arc::new(Recorder::open(&arguments.folder, &arguments.name)?);
    let deadline = Deadline::after(WAIT_MAX);
    loop {
        let builder = match (arguments.jumping_clock, arguments.waits_for_store) {
            (true, _) => address.builder_on(clock).await?,
            (false, true) => address.builder_in_time().await?,
            (false, false) => address.builder().await?,
        };
        let builder = builder.state(Arc::clone(&recorder));
        let mut builder = builder.worker_id(&arguments.name).config(config(arguments));
        if arguments.jumping_clock {
            builder = builder.clock(Arc::new(clock.clone()))?;
        }
        for plan in plan::all() {
            workflow::register(&mut builder, &plan);
        }
        functions::register(&mut builder);
        match builder.start().await {
            Ok(engine) => return Ok(engine),
            Err(Error::Unavailable { .. }) if !deadline.has_passed() => {
                pause(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn config(arguments: &Arguments) -> Config {
    let lease = Duration::from_millis(arguments.lease_ms);
    Config {
        slots: arguments.slots,
        lease,
        heartbeat_interval: lease / 3,
        leader_ttl: Duration::from_millis(arguments.leader_ttl_ms),
        crash_limit: arguments.crash_limit,
        ..Config::default()
    }
}

#[expect(clippy::print_stdout, reason = "it tells the process that started it")]
fn tell(message: &WorkerMessage) {
    println!("{}", serde_json::to_string(message).expect("it is plain data"));
}

/// Lets the clock jump as the process that started this one says, and ends with it: a test that was
/// killed cleans up nothing. Its end of the pipe is closed by the system.
#[expect(clippy::disallowed_methods, reason = "the thread waits in a read for the whole time")]
fn obey_parent(clock: JumpingClock) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(std::io::Result::ok) {
            if let Ok(jump) = serde_json::from_str(&line) {
                clock.jump(jump);
            }
        }
        std::process::exit(3);
    });
}
