use std::sync::Arc;

use super::Run;
use super::wait::{Wait, wait_for};
use crate::api::{Start as AsyncStart, StartAndWait as AsyncStartAndWait};
use crate::engine::Error;

/// A run to start; [`Start::now`] does it.
#[must_use = "a run is started by `.now()`"]
pub struct Start<O> {
    start: AsyncStart<O>,
    wait: Arc<dyn Wait>,
}

impl<O: 'static> Start<O> {
    pub(super) fn new(start: AsyncStart<O>, wait: Arc<dyn Wait>) -> Self {
        Self { start, wait }
    }

    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { start: self.start.tenant(tenant), wait: self.wait }
    }

    /// The run's id, unique per tenant.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { start: self.start.id(id), wait: self.wait }
    }

    /// Starts the run and gives a handle of it.
    ///
    /// # Errors
    /// When the start is refused, or the store cannot be reached.
    pub fn now(self) -> Result<Run<O>, Error> {
        let Self { start, wait } = self;
        let run = wait_for(wait.as_ref(), start.into_future())?;
        Ok(Run::new(run, wait))
    }
}

/// A run to start and wait for; [`StartAndWait::wait`] does it.
#[must_use = "a run is started by `.wait()`"]
pub struct StartAndWait<O> {
    start: AsyncStartAndWait<O>,
    wait: Arc<dyn Wait>,
}

impl<O: Send + 'static> StartAndWait<O> {
    pub(super) fn new(start: AsyncStartAndWait<O>, wait: Arc<dyn Wait>) -> Self {
        Self { start, wait }
    }

    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { start: self.start.tenant(tenant), wait: self.wait }
    }

    /// The run's id, unique per tenant.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { start: self.start.id(id), wait: self.wait }
    }

    /// Starts the run, waits for its end and gives its output.
    ///
    /// # Errors
    /// When the start is refused, the store cannot be reached, or the run does not complete.
    pub fn wait(self) -> Result<O, Error> {
        wait_for(self.wait.as_ref(), self.start.into_future())
    }
}
