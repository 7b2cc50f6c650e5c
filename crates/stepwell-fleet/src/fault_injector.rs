//! Faults at random: workers are killed, stopped for a while or asked to stop, and the server
//! crashes.

use std::time::Duration;

use serde::Serialize;

use crate::chance::Chance;
use crate::cluster::{Cluster, Crash};
use crate::fleet::Fleet;
use crate::pace::{Deadline, pause};
use crate::process::Worker;
use crate::{Failure, Result};

/// How many faults there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Workers that were killed.
    pub kills: usize,
    /// Workers that stood still for a while.
    pub freezes: usize,
    /// Workers that were asked to stop.
    pub stops: usize,
    /// Crashes of the server.
    pub server_restarts: usize,
}

/// A worker that stands still.
struct Frozen {
    name: String,
    until: Deadline,
}

/// A worker that was asked to stop.
struct Leaving {
    worker: Worker,
    until: Deadline,
}

/// How long a worker may take to stop. It may have to wait for locks of one that stands still.
const LEAVING_MAX: Duration = Duration::from_mins(1);

/// Faults for a fleet.
pub struct Storm<'a> {
    fleet: &'a mut Fleet,
    cluster: Option<&'a mut Cluster>,
    chance: Chance,
    /// What there was so far.
    pub tally: Tally,
    frozen: Vec<Frozen>,
    leaving: Vec<Leaving>,
}

impl<'a> Storm<'a> {
    /// Faults for this fleet, and for its server if there is one of its own.
    pub fn new(fleet: &'a mut Fleet, cluster: Option<&'a mut Cluster>, seed: u64) -> Self {
        let (chance, tally) = (Chance::new(seed), Tally::default());
        let (frozen, leaving) = (Vec::new(), Vec::new());
        Self { fleet, cluster, chance, tally, frozen, leaving }
    }

    /// Kills a worker by chance every `period`, and replaces it, for this long.
    ///
    /// # Errors
    /// If a worker cannot be replaced, or one ended by itself.
    pub async fn kill_every(&mut self, period: Duration, span: Duration) -> Result<()> {
        let deadline = Deadline::after(span);
        while !deadline.has_passed() {
            pause(period).await;
            self.check_deserters()?;
            self.kill()?;
        }
        self.fleet.ready().await
    }

    /// Faults of every kind, about one a second, for this long. Afterwards all workers live.
    ///
    /// # Errors
    /// If something cannot be done, or a worker ended by itself.
    pub async fn rage(&mut self, span: Duration, progress: impl FnMut(Tally)) -> Result<()> {
        let raged = self.strike_until(Deadline::after(span), progress).await;
        self.thaw_due(true)?;
        for mut left in std::mem::take(&mut self.leaving) {
            left.worker.stopped().await?;
        }
        raged?;
        self.fleet.ready().await
    }

    async fn strike_until(
        &mut self,
        deadline: Deadline,
        mut progress: impl FnMut(Tally),
    ) -> Result<()> {
        while !deadline.has_passed() {
            pause(Duration::from_millis(500 + self.chance.next() % 1_000).min(deadline.left()))
                .await;
            self.check_deserters()?;
            self.thaw_due(false)?;
            self.check_leaving()?;
            match self.chance.below(10) {
                0..=4 => self.kill()?,
                5 | 6 => self.freeze()?,
                7 | 8 => self.stop().await?,
                _ => self.crash_server().await?,
            }
            progress(self.tally);
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        let place = self.fleet.any(&mut self.chance);
        let name = self.fleet.worker(place).name().to_owned();
        self.frozen.retain(|frozen| frozen.name != name);
        self.fleet.kill(place)?;
        self.tally.kills += 1;
        self.fleet.spawn().map(drop)
    }

    /// One worker stands still, shorter or longer than its lease. Another goes on.
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
        self.frozen.push(Frozen { name, until: Deadline::after(span) });
        self.tally.freezes += 1;
        Ok(())
    }

    fn thaw_due(&mut self, all: bool) -> Result<()> {
        let is_due = |frozen: &mut Frozen| all || frozen.until.has_passed();
        for frozen in self.frozen.extract_if(.., is_due) {
            let place = self.fleet.find(&frozen.name)?;
            self.fleet.worker(place).thaw()?;
        }
        Ok(())
    }

    /// Asks one worker to stop and starts another. Nobody waits for it here, because it may have
    /// to wait for one that stands still.
    async fn stop(&mut self) -> Result<()> {
        let place = self.fleet.any(&mut self.chance);
        let name = self.fleet.worker(place).name().to_owned();
        let is_frozen = self.frozen.iter().any(|frozen| frozen.name == name);
        if is_frozen {
            return Ok(());
        }
        self.fleet.worker(place).ready().await?;
        self.fleet.spawn()?;
        let worker = self.fleet.take(place);
        worker.terminate()?;
        self.leaving.push(Leaving { worker, until: Deadline::after(LEAVING_MAX) });
        self.tally.stops += 1;
        Ok(())
    }

    fn check_leaving(&mut self) -> Result<()> {
        let mut staying = Vec::new();
        for mut left in self.leaving.drain(..) {
            if left.worker.has_stopped()? {
                continue;
            }
            if left.until.has_passed() {
                return Err(Failure::of(left.worker.name(), "was asked to stop and does not"));
            }
            staying.push(left);
        }
        self.leaving = staying;
        Ok(())
    }

    async fn crash_server(&mut self) -> Result<()> {
        let crash = if self.chance.one_in(2) { Crash::Immediate } else { Crash::Kill };
        if let Some(cluster) = &mut self.cluster {
            cluster.restart_after(crash).await?;
            self.tally.server_restarts += 1;
        }
        Ok(())
    }

    fn check_deserters(&mut self) -> Result<()> {
        match self.fleet.deserters()?.as_slice() {
            [] => Ok(()),
            found => Err(Failure(found.join("\n"))),
        }
    }
}
