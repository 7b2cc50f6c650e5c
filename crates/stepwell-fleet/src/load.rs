//! A client that starts runs, waits for their ends, and remembers which starts were acknowledged.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use stepwell::core::id::RunKey;
use stepwell::{Engine, Error, Run};

use crate::address::Address;
use crate::chance::Chance;
use crate::expected::{input_of, run_id};
use crate::plan::{self, N_RANDOM, StepPlan, random_name};
use crate::real_time::{Deadline, pause, within};
use crate::{Failure, Result};

/// How long a start is repeated while the store cannot be reached.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Between two attempts, and the longest pause of a load.
const RETRY: Duration = Duration::from_millis(50);

/// Runs belong to a few tenants, so that fairness is at work too.
const TENANTS: [&str; 3] = ["ada", "bob", "eve"];

/// Waits for the end of one run.
type RunEnd = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// A client of the store. It executes nothing.
pub struct Load {
    engine: Engine,
    label: String,
    chance: Chance,
    acknowledged: Vec<String>,
    in_flight: FuturesUnordered<RunEnd>,
}

/// The steps of a plan that wait for a signal.
fn awaited(plan: &str) -> impl Iterator<Item = usize> {
    let plan = plan::all().into_iter().find(|known| known.name == plan);
    let steps = plan.map(|plan| plan.steps).unwrap_or_default();
    (0..steps.len()).filter(move |place| steps[*place].awaits)
}

/// Sends a run the signal of one of its steps, twice, and under one key: some come before their
/// wait, some after, and none may be lost or count twice. While the store cannot be reached, the
/// same signal is repeated.
async fn send(run: &Run, place: usize) -> Result<()> {
    let input = input_of(run.id()).ok_or_else(|| Failure("a run's id tells no input".into()))?;
    let (name, payload) = (StepPlan::signal_name(place), plan::signal(input, place));
    let deadline = Deadline::after(WAIT_MAX);
    let mut n_sent = 0;
    while n_sent < 2 {
        match run.signal(&name, &payload).key(&name).await {
            // A run whose wait is skipped may end before.
            Ok(_) => n_sent += 1,
            Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
            Err(error) => return Err(Failure::of("send a signal", error)),
        }
    }
    Ok(())
}

/// Sends a run all signals that its steps wait for.
///
/// # Errors
/// If one is refused, or the store stays away.
pub async fn send_all(run: &Run) -> Result<()> {
    for place in awaited(run.workflow()) {
        send(run, place).await?;
    }
    Ok(())
}

impl Load {
    /// A client whose runs are named after a label.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn connect(address: &Address, label: &str, seed: u64) -> Result<Self> {
        let engine = address.builder().await?.client_only().start().await?;
        let (label, chance) = (label.to_owned(), Chance::new(seed));
        let in_flight = FuturesUnordered::new();
        Ok(Self { engine, label, chance, acknowledged: Vec::new(), in_flight })
    }

    /// The ids of the runs whose start was acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> &[String] {
        &self.acknowledged
    }

    /// Starts a run of a plan. While the store cannot be reached, the same start is repeated.
    ///
    /// # Errors
    /// If the start is refused, or the store stays away.
    pub async fn start(&mut self, plan: &str) -> Result<Run> {
        let input = self.chance.next();
        let id = run_id(&self.label, input);
        let tenant = TENANTS[self.chance.below(TENANTS.len())];
        let deadline = Deadline::after(WAIT_MAX);
        let run = loop {
            match self.engine.start_by_name(plan, &input).tenant(tenant).id(&id).await {
                Ok(run) => break run,
                Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
                Err(error) => return Err(Failure::of("start a run", error)),
            }
        };
        self.wait_for(&run);
        Ok(run)
    }

    /// Waits for runs that another process started, too.
    ///
    /// # Errors
    /// If one of them is not there.
    pub async fn adopt(&mut self, tenant: &str, ids: &[String]) -> Result<()> {
        for id in ids {
            let run = self.engine.run_handle(tenant, id).await?;
            self.wait_for(&run);
        }
        Ok(())
    }

    fn wait_for(&mut self, run: &Run) {
        self.acknowledged.push(run.id().to_owned());
        let waited = run.clone();
        let pauses: Vec<(usize, Duration)> = awaited(run.workflow())
            .map(|place| (place, Duration::from_millis(self.chance.below(300) as u64)))
            .collect();
        self.in_flight.push(Box::pin(async move {
            for (place, span) in pauses {
                pause(span).await;
                send(&waited, place).await?;
            }
            Ok(waited.ended().await.map(drop)?)
        }));
    }

    /// Starts so many runs of a plan.
    ///
    /// # Errors
    /// As [`Load::start`].
    pub async fn start_many(&mut self, plan: &str, n_runs: usize) -> Result<Vec<RunKey>> {
        let mut keys = Vec::new();
        for _ in 0..n_runs {
            keys.push(self.start(plan).await?.key());
        }
        Ok(keys)
    }

    /// Keeps so many random runs going for this long.
    ///
    /// # Errors
    /// As [`Load::start`].
    pub async fn keep_going(&mut self, n_runs: usize, span: Duration) -> Result<()> {
        let deadline = Deadline::after(span);
        self.keep_going_while(n_runs, || !deadline.has_passed()).await
    }

    /// Keeps so many random runs going for as long as this is true. A start that has begun is
    /// brought to its end, so that nothing runs that is not waited for.
    ///
    /// # Errors
    /// As [`Load::start`].
    pub async fn keep_going_while(
        &mut self,
        n_runs: usize,
        goes_on: impl Fn() -> bool,
    ) -> Result<()> {
        while goes_on() {
            while self.in_flight.len() < n_runs && goes_on() {
                let plan = random_name(self.chance.below(N_RANDOM));
                self.start(&plan).await?;
            }
            tokio::select! {
                ended = self.in_flight.next() => ended.transpose().map(drop)?,
                () = pause(RETRY) => {}
            }
        }
        Ok(())
    }

    /// Waits until all runs have ended.
    ///
    /// # Errors
    /// If some have not after `span`.
    pub async fn all_ended(&mut self, span: Duration) -> Result<()> {
        let in_flight = &mut self.in_flight;
        let ended = within("end of all runs", span, async {
            while let Some(ended) = in_flight.next().await {
                ended?;
            }
            Ok(())
        });
        let ended = ended.await.and_then(|ended| ended);
        ended.map_err(|error| Failure(format!("{error}: {} are open", self.in_flight.len())))
    }
}
