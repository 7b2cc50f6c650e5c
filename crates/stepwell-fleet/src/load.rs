//! A client that starts runs, waits for their ends, and remembers which starts were acknowledged.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use stepwell::core::id::RunKey;
use stepwell::{Engine, Error, Run};

use crate::address::Address;
use crate::chance::Chance;
use crate::expected::run_id;
use crate::plan::{N_RANDOM, random_name};
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
        self.in_flight.push(Box::pin(async move { Ok(waited.ended().await.map(drop)?) }));
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
