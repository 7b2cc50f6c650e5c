//! How runs end, as those who wait for it are told.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::{RunFailure, RunRow, RunStatus};

use super::Payload;

/// A run that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedRun {
    /// Which run.
    pub run: RunKey,
    /// The step whose output is asked for along with the end.
    pub output: Option<Node>,
}

impl From<RunKey> for AwaitedRun {
    fn from(run: RunKey) -> Self {
        Self { run, output: None }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Its final state.
    pub status: RunStatus,
    /// Why it failed.
    pub failure: Option<Box<RunFailure>>,
    /// The step whose output it gives. Policies say which, and may change.
    pub output_of: Option<Node>,
    /// What that step left.
    pub output: EndOutput,
}

/// What a run gave that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndOutput {
    /// What [`Runs::output`](super::Runs::output) gives of the step in question; `None` also if
    /// there is no such step, or if the run did not complete.
    Known(Option<Payload>),
    /// It lies in the store.
    Stored,
}

/// Largest output that is told along with a run's end; a larger one is read by whoever needs it.
pub(crate) const TOLD_BYTES_MAX: usize = 64 << 10;

impl RunEnd {
    /// How a run ended whose output is what this step left.
    pub(crate) fn of(run: &RunRow, output: Option<Node>) -> Self {
        let is_stored = run.status == RunStatus::Completed && output.is_some();
        Self {
            status: run.status,
            failure: run.failure.clone(),
            output_of: output,
            output: if is_stored { EndOutput::Stored } else { EndOutput::Known(None) },
        }
    }

    /// The end with what a step left, read from the store if the run completed.
    pub(crate) fn with_output<E>(
        mut self,
        of: Option<Node>,
        read: impl FnOnce(Node) -> Result<Option<Payload>, E>,
    ) -> Result<Self, E> {
        let asked = of.filter(|_| self.status == RunStatus::Completed);
        self.output_of = of;
        self.output = EndOutput::Known(asked.map(read).transpose()?.flatten());
        Ok(self)
    }

    /// The bytes of what it gave, as far as they are here.
    pub(crate) fn payload_bytes(&self) -> usize {
        match &self.output {
            EndOutput::Known(Some(output)) => output.bytes.len(),
            EndOutput::Known(None) | EndOutput::Stored => 0,
        }
    }
}
