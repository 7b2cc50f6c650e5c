//! A gate to hold steps at.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::waits::InnerWait;

/// Holds async steps until the test lets them pass. Clones share one gate.
///
/// Virtual time may move while a step waits at a gate. For a step that waits for anything else
/// that is not of this engine, such as a channel of the test's own, time stands still, since the
/// step may as well wait for a socket: see
/// [`real_time_max`](super::TestEngineBuilder::real_time_max).
///
/// ```
/// use std::time::Duration;
/// use stepwell::testing::{Gate, TestEngine};
/// use stepwell::{TaskState, Workflow};
///
/// let mut w = Workflow::define::<(), Gate>("gated");
/// w.step("wait").run(async |ctx| Ok(ctx.state().pass().await));
/// let gate = Gate::new();
/// let mut builder = TestEngine::builder().state(gate.clone());
/// let gated = builder.workflow(w.no_output());
/// let test = builder.start()?;
/// let run = test.start(&gated, ()).now()?;
/// test.advance(Duration::from_secs(24 * 60 * 60));
/// assert_eq!(run.tasks()?[0].state, TaskState::Running);
/// gate.let_pass(1);
/// run.result()?;
/// # Ok::<(), stepwell::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Waits for a passage and uses it up. Whoever came first passes first.
    pub async fn pass(&self) {
        let passage = InnerWait(Box::pin(self.0.acquire())).await;
        passage.expect("nobody closes the semaphore").forget();
    }

    /// Lets `n` steps pass, those that wait and those that come.
    pub fn let_pass(&self, n: usize) {
        self.0.add_permits(n);
    }
}
