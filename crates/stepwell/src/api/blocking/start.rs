use std::sync::Arc;
use std::time::Duration;

use super::Run;
use super::block_on::{BlockOn, answer_of};
use crate::api::{Start as AsyncStart, StartAndWait as AsyncStartAndWait};
use crate::error::Error;

/// A run to start; [`Start::now`] does it.
#[must_use = "a run is started by `.now()`"]
pub struct Start<O> {
    start: AsyncStart<O>,
    runtime: Arc<dyn BlockOn>,
}

impl<O: 'static> Start<O> {
    pub(super) fn new(start: AsyncStart<O>, runtime: Arc<dyn BlockOn>) -> Self {
        Self { start, runtime }
    }

    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { start: self.start.tenant(tenant), runtime: self.runtime }
    }

    /// The run's id, unique per tenant.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { start: self.start.id(id), runtime: self.runtime }
    }

    /// How long the run may take; the workflow's own deadline if not given.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { start: self.start.deadline(deadline), runtime: self.runtime }
    }

    /// Starts the run and gives a handle of it.
    ///
    /// # Errors
    /// When the start is refused, or the store cannot be reached.
    #[track_caller]
    pub fn now(self) -> Result<Run<O>, Error> {
        let Self { start, runtime } = self;
        let run = answer_of(runtime.as_ref(), start.into_future())?;
        Ok(Run::new(run, runtime))
    }
}

/// A run to start and wait for; [`StartAndWait::wait`] does it.
#[must_use = "a run is started by `.wait()`"]
pub struct StartAndWait<O> {
    start: AsyncStartAndWait<O>,
    runtime: Arc<dyn BlockOn>,
}

impl<O: Send + 'static> StartAndWait<O> {
    pub(super) fn new(start: AsyncStartAndWait<O>, runtime: Arc<dyn BlockOn>) -> Self {
        Self { start, runtime }
    }

    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { start: self.start.tenant(tenant), runtime: self.runtime }
    }

    /// The run's id, unique per tenant.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { start: self.start.id(id), runtime: self.runtime }
    }

    /// How long the run may take; the workflow's own deadline if not given.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { start: self.start.deadline(deadline), runtime: self.runtime }
    }

    /// Starts the run, waits for its end and gives its output.
    ///
    /// # Errors
    /// When the start is refused, the store cannot be reached, or the run does not complete.
    #[track_caller]
    pub fn wait(self) -> Result<O, Error> {
        answer_of(self.runtime.as_ref(), self.start.into_future())
    }
}
