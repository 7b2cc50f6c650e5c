//! One scenario in a process of its own: this binary starts itself. What earlier scenarios left
//! in memory would otherwise count as this one's.

use std::io::Write;
use std::process::Stdio;

use tokio::process::Command;

use super::bench_store::{BenchStore, StoreKind};
use super::cluster::Server;
use super::progress::Progress;
use super::report::Part;
use super::scenario_input::ScenarioInput;
use super::scenarios::Scenario;
use crate::args::BenchScenarioArgs;
use crate::commands::Failure;

/// What to measure.
pub(super) struct ScenarioRequest<'a> {
    pub(super) kind: StoreKind,
    pub(super) scenario: Scenario,
    pub(super) server: Option<&'a Server>,
    pub(super) runs: Option<usize>,
    pub(super) is_watched: bool,
}

/// Has a scenario measured by a process of its own.
pub(super) async fn measure(request: &ScenarioRequest<'_>) -> Result<Vec<Part>, Failure> {
    let (store, scenario) = (request.kind.name(), request.scenario.name());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-scenario", "--store", store, "--scenario", scenario]);
    let schema = request.server.map_or("", |server| &server.schema);
    command.args(["--schema", schema]);
    if let Some(server) = request.server {
        command.args(["--url", &server.url]);
    }
    if let Some(runs) = request.runs {
        command.args(["--runs", &runs.to_string()]);
    }
    if request.is_watched {
        command.arg("--watched");
    }
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let done = command.output().await?;
    if !done.status.success() {
        // It has said why on standard error, which is ours too.
        return Err(Failure::Unexpected(format!("{store}: {scenario} could not be measured")));
    }
    Ok(serde_json::from_slice(&done.stdout).map_err(std::io::Error::from)?)
}

/// In that process: measures and prints the parts.
pub(super) async fn run(args: &BenchScenarioArgs) -> Result<(), Failure> {
    let server = match &args.url {
        Some(url) => Some(Server::prepare(Some(url), &args.schema)?),
        None => None,
    };
    let Some(kind) = super::kinds(&[args.store]).first().copied() else { return Ok(()) };
    let (progress, runs) = (Progress::new(args.watched), args.runs.map(|runs| runs as usize));
    progress.begin(&format!("{}: {}", kind.name(), args.scenario.name()), runs.unwrap_or(0));
    let store = BenchStore::make(kind, server.as_ref()).await?;
    let input = ScenarioInput { store: &store, progress: &progress, runs };
    let measured = args.scenario.measure(&input).await;
    progress.finish();
    // The store is removed even if the scenario failed.
    let removed = store.remove().await;
    let parts = measured?;
    removed?;
    let json = serde_json::to_string(&parts).map_err(std::io::Error::from)?;
    Ok(writeln!(std::io::stdout().lock(), "{json}")?)
}
