//! Faults at random: workers are killed, frozen for a while or asked to stop, their clocks jump,
//! and the server crashes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::chance::Chance;
use crate::cluster::{Cluster, Crash};
use crate::fleet::Fleet;
use crate::jumping_clock::Jump;
use crate::process::Worker;
use crate::real_time::{Deadline, pause};
use crate::{Failure, Result};

/// How many faults were injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Workers that were killed.
    pub kills: usize,
    /// Workers that were frozen for a while.
    pub freezes: usize,
    /// Workers that were asked to stop.
    pub stops: usize,
    /// Jumps of workers' clocks.
    pub clock_jumps: usize,
    /// Crashes of the server.
    pub server_restarts: usize,
}

/// A worker that is frozen.
struct FrozenWorker {
    name: String,
    until: Deadline,
}

/// A worker that was asked to stop.
struct StoppingWorker {
    worker: Worker,
    until: Deadline,
}

/// How long a worker may take to stop. It may have to wait for locks of a frozen one.
const STOP_MAX: Duration = Duration::from_mins(1);

/// Injects faults into a fleet.
pub struct FaultInjector<'a> {
    fleet: &'a mut Fleet,
    cluster: Option<&'a mut Cluster>,
    chance: Chance,
    /// How many faults there were so far.
    pub counts: FaultCounts,
    /// Workers that stood still, were killed or asked to stop. From others nothing should be taken,
    /// as long as the machine lets them beat.
    pub harmed: BTreeSet<String>,
    frozen: Vec<FrozenWorker>,
    stopping: Vec<StoppingWorker>,
}

impl<'a> FaultInjector<'a> {
    /// Faults for this fleet, and for its server if there is one of its own.
    pub fn new(fleet: &'a mut Fleet, cluster: Option<&'a mut Cluster>, seed: u64) -> Self {
        let (chance, counts) = (Chance::new(seed), FaultCounts::default());
        let (frozen, stopping) = (Vec::new(), Vec::new());
        Self { fleet, cluster, chance, counts, harmed: BTreeSet::new(), frozen, stopping }
    }

    /// Kills a worker by chance every `period`, and replaces it, for this long.
    ///
    /// # Errors
    /// If a worker cannot be replaced, or one ended by itself.
    pub async fn kill_every(&mut self, period: Duration, span: Duration) -> Result<()> {
        let deadline = Deadline::after(span);
        while !deadline.has_passed() {
            pause(period).await;
            self.check_ended()?;
            self.kill()?;
        }
        self.fleet.ready().await
    }

    /// Faults of every kind, about one a second, for this long, and as many jumps of clocks as half
    /// of them; workers need clocks that jump. Afterwards all workers live.
    ///
    /// # Errors
    /// If something cannot be done, or a worker ended by itself.
    pub async fn inject(
        &mut self,
        span: Duration,
        progress: impl FnMut(FaultCounts),
    ) -> Result<()> {
        let injected = self.inject_until(Deadline::after(span), progress).await;
        self.thaw_due(true)?;
        for mut stopping in std::mem::take(&mut self.stopping) {
            stopping.worker.stopped().await?;
        }
        injected?;
        self.fleet.ready().await
    }

    async fn inject_until(
        &mut self,
        deadline: Deadline,
        mut progress: impl FnMut(FaultCounts),
    ) -> Result<()> {
        while !deadline.has_passed() {
            pause(Duration::from_millis(500 + self.chance.next() % 1_000).min(deadline.left()))
                .await;
            self.check_ended()?;
            self.thaw_due(false)?;
            self.check_stopping()?;
            match self.chance.below(10) {
                0..=4 => self.kill()?,
                5 | 6 => self.freeze()?,
                7 | 8 => self.stop()?,
                _ => self.crash_server().await?,
            }
            // On top of all others, so that clocks jump in the midst of them.
            if self.chance.one_in(2) {
                self.jump()?;
            }
            progress(self.counts);
        }
        Ok(())
    }

    /// Lets the clock of one worker jump, of one that is frozen or just starting as well.
    fn jump(&mut self) -> Result<()> {
        let place = self.fleet.any(&mut self.chance);
        let jump = Jump::any(&mut self.chance);
        let worker = self.fleet.worker(place);
        worker.jump(jump)?;
        if jump.elapsed_millis > 0 {
            // It has stood still, as far as it can tell.
            self.harmed.insert(worker.name().to_owned());
        }
        self.counts.clock_jumps += 1;
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        let place = self.fleet.any(&mut self.chance);
        let name = self.fleet.worker(place).name().to_owned();
        self.frozen.retain(|frozen| frozen.name != name);
        self.harmed.insert(name);
        self.fleet.kill(place)?;
        self.counts.kills += 1;
        self.fleet.spawn().map(drop)
    }

    /// Freezes one worker, shorter or longer than its lease. At least one other goes on.
    fn freeze(&mut self) -> Result<()> {
        if self.frozen.len() + 1 >= self.fleet.len() {
            return Ok(());
        }
        let place = self.fleet.any(&mut self.chance);
        let name = self.fleet.worker(place).name().to_owned();
        if self.frozen.iter().any(|frozen| frozen.name == name) {
            return Ok(());
        }
        self.fleet.worker(place).freeze()?;
        let span = Duration::from_millis(500 + self.chance.next() % 6_000);
        self.harmed.insert(name.clone());
        self.frozen.push(FrozenWorker { name, until: Deadline::after(span) });
        self.counts.freezes += 1;
        Ok(())
    }

    fn thaw_due(&mut self, all: bool) -> Result<()> {
        let is_due = |frozen: &mut FrozenWorker| all || frozen.until.has_passed();
        for frozen in self.frozen.extract_if(.., is_due) {
            let place = self.fleet.find(&frozen.name)?;
            self.fleet.worker(place).thaw()?;
        }
        Ok(())
    }

    /// Asks one worker to stop and starts another, unless it has just been started itself. Neither
    /// its start nor its stop is waited for here, because both may have to wait for a worker that
    /// is frozen while it writes, and would stay so.
    fn stop(&mut self) -> Result<()> {
        let place = self.fleet.any(&mut self.chance);
        let name = self.fleet.worker(place).name().to_owned();
        let is_frozen = self.frozen.iter().any(|frozen| frozen.name == name);
        if is_frozen || !self.fleet.worker(place).is_ready()? {
            return Ok(());
        }
        self.fleet.spawn()?;
        let worker = self.fleet.take(place);
        self.harmed.insert(name);
        worker.terminate()?;
        self.stopping.push(StoppingWorker { worker, until: Deadline::after(STOP_MAX) });
        self.counts.stops += 1;
        Ok(())
    }

    fn check_stopping(&mut self) -> Result<()> {
        let mut running = Vec::new();
        for mut stopping in self.stopping.drain(..) {
            if stopping.worker.has_stopped()? {
                continue;
            }
            if stopping.until.has_passed() {
                return Err(Failure::of(stopping.worker.name(), "was asked to stop and does not"));
            }
            running.push(stopping);
        }
        self.stopping = running;
        Ok(())
    }

    async fn crash_server(&mut self) -> Result<()> {
        let crash = if self.chance.one_in(2) { Crash::Immediate } else { Crash::Kill };
        if let Some(cluster) = &mut self.cluster {
            cluster.restart_after(crash).await?;
            self.counts.server_restarts += 1;
        }
        Ok(())
    }

    fn check_ended(&mut self) -> Result<()> {
        match self.fleet.ended_by_themselves()?.as_slice() {
            [] => Ok(()),
            found => Err(Failure(found.join("\n"))),
        }
    }
}
