//! Several worker processes on one store.

use crate::chance::Chance;
use crate::process::{Setup, Worker, WorkerMessage};
use crate::{Failure, Result};

/// Worker processes that live now; dead ones are replaced by new ones under new names.
#[derive(Debug)]
pub struct Fleet {
    setup: Setup,
    workers: Vec<Worker>,
    n_spawned: usize,
}

impl Fleet {
    /// Starts so many workers and waits until they are ready.
    ///
    /// # Errors
    /// If one of them does not start.
    pub async fn start(setup: Setup, n_workers: usize) -> Result<Self> {
        let mut fleet = Self { setup, workers: Vec::new(), n_spawned: 0 };
        for _ in 0..n_workers {
            fleet.spawn()?;
        }
        fleet.ready().await?;
        Ok(fleet)
    }

    /// Starts one more worker without waiting for it; gives its place.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(&mut self) -> Result<usize> {
        let number = self.setup.names_from + self.n_spawned;
        self.n_spawned += 1;
        let worker = Worker::spawn(&self.setup, &format!("w{number:03}"))?;
        self.workers.push(worker);
        Ok(self.workers.len() - 1)
    }

    /// Waits until all workers are ready.
    ///
    /// # Errors
    /// If one of them ends before.
    pub async fn ready(&mut self) -> Result<()> {
        for worker in &mut self.workers {
            worker.ready().await?;
        }
        Ok(())
    }

    /// How many live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Whether none lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The worker at this place.
    #[must_use]
    pub fn worker(&mut self, place: usize) -> &mut Worker {
        &mut self.workers[place]
    }

    /// The place of the worker with this name.
    ///
    /// # Errors
    /// If it does not live.
    pub fn find(&self, name: &str) -> Result<usize> {
        let place = self.workers.iter().position(|worker| worker.name() == name);
        place.ok_or_else(|| Failure::of(name, "no such worker lives"))
    }

    /// The worker at this place, which is no longer one of the fleet.
    #[must_use]
    pub fn take(&mut self, place: usize) -> Worker {
        self.workers.remove(place)
    }

    /// A place by chance.
    pub fn any(&self, chance: &mut Chance) -> usize {
        chance.below(self.workers.len())
    }

    /// Kills the worker at this place; it is gone when this returns.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self, place: usize) -> Result<()> {
        self.workers.remove(place).kill()
    }

    /// Asks the worker at this place to stop and waits for its report.
    ///
    /// # Errors
    /// If it does not stop with exit code 0 and a report.
    pub async fn stop(&mut self, place: usize) -> Result<WorkerMessage> {
        let mut worker = self.workers.remove(place);
        worker.terminate()?;
        worker.stopped().await
    }

    /// Stops all workers; none may have ended by itself. Afterwards none lives, whatever happened.
    ///
    /// # Errors
    /// If one does not stop with exit code 0 and a report.
    pub async fn stop_all(&mut self) -> Result<Vec<WorkerMessage>> {
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        let mut stopping = Vec::new();
        for worker in std::mem::take(&mut self.workers) {
            // One that has ended cannot be told; its report says how it ended.
            let _ = worker.terminate();
            stopping.push(worker);
        }
        for mut worker in stopping {
            match worker.stopped().await {
                Ok(report) => reports.push(report),
                Err(error) => failures.push(error.to_string()),
            }
        }
        if failures.is_empty() { Ok(reports) } else { Err(Failure(failures.join("\n"))) }
    }

    /// The workers that ended without having been asked to, in words.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn ended_by_themselves(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for worker in &mut self.workers {
            if worker.has_ended()? {
                let (name, stderr) = (worker.name(), worker.stderr());
                found.push(format!("worker {name} ended by itself: {stderr}"));
            }
        }
        Ok(found)
    }
}
