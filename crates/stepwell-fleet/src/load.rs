//! A client that starts runs, sends them signals, cancels some, waits for their ends, and remembers
//! what it was told.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use stepwell::core::id::RunKey;
use stepwell::{Engine, Error, Run, Sent};

use crate::address::Address;
use crate::asked::{Asked, AskedCancel, AskedOfRun};
use crate::chance::Chance;
use crate::expected::{input_of, run_id};
use crate::functions::{self, N_FUNCTIONS};
use crate::plan::{self, N_RANDOM, StepPlan, random_name};
use crate::real_time::{Deadline, pause, within};
use crate::{Failure, Result};

/// How long a start is repeated while the store cannot be reached.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Between two attempts, and the longest pause of a load.
const RETRY: Duration = Duration::from_millis(50);

/// Runs belong to a few tenants, so that fairness is at work too.
const TENANTS: [&str; 3] = ["ada", "bob", "eve"];

/// One run in so many gets a deadline, and one in so many is cancelled, if runs end early at all.
const EARLY_ONE_IN: usize = 6;

/// One run in so many is that of a function.
const FUNCTION_ONE_IN: usize = 3;

/// Waits for the end of one run.
type RunEnd = Pin<Box<dyn Future<Output = Result<AskedOfRun>> + Send>>;

/// A client of the store. It executes nothing.
pub struct Load {
    engine: Engine,
    label: String,
    chance: Chance,
    ends_some_early: bool,
    asked: Asked,
    in_flight: FuturesUnordered<RunEnd>,
}

/// When a run is cancelled, and how.
#[derive(Clone, Copy)]
struct CancelPlan {
    after: Duration,
    force: bool,
}

/// The steps of a plan, or the waits of a function, that are sent a signal.
fn awaited(plan: &str) -> Vec<usize> {
    if let Some(number) = functions::number_of(plan) {
        return functions::awaited(number).to_vec();
    }
    let plan = plan::all().into_iter().find(|known| known.name == plan);
    let steps = plan.map(|plan| plan.steps).unwrap_or_default();
    let is_sent = |place: &usize| steps[*place].wait.is_some_and(|wait| wait.is_sent);
    (0..steps.len()).filter(is_sent).collect()
}

/// Sends a run the signal of one of its steps, twice, and under one key: some come before their
/// wait, some after, and none may be lost or count twice. While the store cannot be reached, the
/// same signal is repeated. Gives the signal's name if it was accepted.
async fn send(run: &Run, place: usize) -> Result<Option<String>> {
    let input = input_of(run.id()).ok_or_else(|| Failure("a run's id tells no input".into()))?;
    let (name, payload) = (StepPlan::signal_name(place), plan::signal(input, place));
    let deadline = Deadline::after(WAIT_MAX);
    let (mut n_sent, mut is_accepted) = (0, false);
    while n_sent < 2 {
        match run.signal(&name, &payload).key(&name).await {
            // A run whose wait is skipped, or which is cancelled, may end before.
            Ok(sent) => {
                n_sent += 1;
                is_accepted |= matches!(sent, Sent::Accepted { .. });
            }
            Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
            Err(error) => return Err(Failure::of("send a signal", error)),
        }
    }
    Ok(is_accepted.then_some(name))
}

/// Sends a run all signals that its steps wait for; gives the names of those that were accepted.
///
/// # Errors
/// If one is refused, or the store stays away.
pub async fn send_all(run: &Run) -> Result<Vec<String>> {
    let mut accepted = Vec::new();
    for place in awaited(run.workflow()) {
        accepted.extend(send(run, place).await?);
    }
    Ok(accepted)
}

/// Cancels a run. While the store cannot be reached, the same request is repeated.
async fn cancel(run: &Run, plan: CancelPlan) -> Result<AskedCancel> {
    let (CancelPlan { after, force }, mut is_repeated) = (plan, false);
    pause(after).await;
    let deadline = Deadline::after(WAIT_MAX);
    loop {
        let request = run.cancel().by("load").reason("by chance");
        let request = if force { request.force() } else { request };
        match request.await {
            Ok(answer) => return Ok(AskedCancel { force, is_repeated, answer }),
            Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
            Err(error) => return Err(Failure::of("cancel a run", error)),
        }
        is_repeated = true;
    }
}

impl Load {
    /// A client whose runs are named after a label.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn connect(address: &Address, label: &str, seed: u64) -> Result<Self> {
        let engine = address.builder().await?.client_only().start().await?;
        let (label, chance) = (label.to_owned(), Chance::new(seed));
        let (asked, in_flight) = (Asked::default(), FuturesUnordered::new());
        Ok(Self { engine, label, chance, ends_some_early: false, asked, in_flight })
    }

    /// Gives some of the runs of [`Load::keep_going`] a deadline that they may miss, and cancels
    /// some, also by force.
    pub const fn end_some_early(&mut self) {
        self.ends_some_early = true;
    }

    /// What was asked for and answered so far.
    #[must_use]
    pub const fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Starts a run of a plan. While the store cannot be reached, the same start is repeated.
    ///
    /// # Errors
    /// If the start is refused, or the store stays away.
    pub async fn start(&mut self, plan: &str) -> Result<Run> {
        let run = self.start_within(plan, None).await?;
        self.wait_for(&run, None);
        Ok(run)
    }

    /// Starts a run of a plan by chance, which may have to end early.
    async fn start_any(&mut self) -> Result<()> {
        let plan = if self.chance.one_in(FUNCTION_ONE_IN) {
            functions::name(self.chance.below(N_FUNCTIONS))
        } else {
            random_name(self.chance.below(N_RANDOM))
        };
        let (mut deadline, mut cancel) = (None, None);
        if self.ends_some_early {
            let is_early = |chance: &mut Chance| chance.one_in(EARLY_ONE_IN);
            let millis = |n: usize| Duration::from_millis(n as u64);
            deadline = is_early(&mut self.chance).then(|| millis(1 + self.chance.below(3_000)));
            cancel = is_early(&mut self.chance).then(|| CancelPlan {
                after: millis(self.chance.below(1_500)),
                force: self.chance.one_in(2),
            });
        }
        let run = self.start_within(&plan, deadline).await?;
        self.wait_for(&run, cancel);
        Ok(())
    }

    async fn start_within(&mut self, plan: &str, span: Option<Duration>) -> Result<Run> {
        let input = self.chance.next();
        let id = run_id(&self.label, input);
        let tenant = TENANTS[self.chance.below(TENANTS.len())];
        let deadline = Deadline::after(WAIT_MAX);
        loop {
            let mut start = self.engine.start_by_name(plan, &input).tenant(tenant).id(&id);
            if let Some(span) = span {
                start = start.deadline(span);
            }
            match start.await {
                Ok(run) => return Ok(run),
                Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
                Err(error) => return Err(Failure::of("start a run", error)),
            }
        }
    }

    /// Waits for runs that another process started, too.
    ///
    /// # Errors
    /// If one of them is not there.
    pub async fn adopt(&mut self, tenant: &str, ids: &[String]) -> Result<()> {
        for id in ids {
            let run = self.engine.run_handle(tenant, id).await?;
            self.wait_for(&run, None);
        }
        Ok(())
    }

    fn wait_for(&mut self, run: &Run, plan: Option<CancelPlan>) {
        self.asked.acknowledged.push(run.id().to_owned());
        let waited = run.clone();
        let pauses: Vec<(usize, Duration)> = awaited(run.workflow())
            .into_iter()
            .map(|place| (place, Duration::from_millis(self.chance.below(300) as u64)))
            .collect();
        self.in_flight.push(Box::pin(async move {
            let sent = async {
                let mut accepted = Vec::new();
                for (place, span) in pauses {
                    pause(span).await;
                    accepted.extend(send(&waited, place).await?);
                }
                Ok::<_, Failure>(accepted)
            };
            let cancelled = async {
                match plan {
                    Some(plan) => cancel(&waited, plan).await.map(Some),
                    None => Ok(None),
                }
            };
            let (signals, cancel) = tokio::try_join!(sent, cancelled)?;
            waited.ended().await?;
            Ok(AskedOfRun { run: waited.id().to_owned(), signals, cancel })
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
                self.start_any().await?;
            }
            tokio::select! {
                ended = self.in_flight.next() => {
                    ended.transpose()?.into_iter().for_each(|of_run| self.asked.add(of_run));
                }
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
        let (in_flight, asked) = (&mut self.in_flight, &mut self.asked);
        let ended = within("end of all runs", span, async {
            while let Some(ended) = in_flight.next().await {
                asked.add(ended?);
            }
            Ok(())
        });
        let ended = ended.await.and_then(|ended| ended);
        ended.map_err(|error| Failure(format!("{error}: {} are open", self.in_flight.len())))
    }
}
