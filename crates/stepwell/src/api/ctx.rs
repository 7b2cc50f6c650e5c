//! What a step is handed.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_core::code::Code;
use stepwell_core::id::Node;
use stepwell_core::time::Timestamp;

use super::signalled::{Resumed, Signalled};
use super::step_error::{Result, StepError};
use super::step_ref::{Kind, StepRef};
use crate::engine::{Doing, TaskContext, as_declared, decode, doing};
use crate::error::Error;
use crate::wiring::is_polled;

/// What a step is handed: the run's input, the engine's state, and what is known of the task.
///
/// Cheap to clone.
pub struct Ctx<I = (), S = ()> {
    pub(crate) task: Arc<TaskContext>,
    pub(super) input: Arc<I>,
    pub(super) state: Arc<S>,
    /// What names of steps of a function begin with.
    pub(super) scope: Option<Arc<str>>,
    /// Whether it is that of a function, as opposed to a step of a graph.
    pub(super) is_function: bool,
}

impl<I, S> Clone for Ctx<I, S> {
    fn clone(&self) -> Self {
        Self {
            task: Arc::clone(&self.task),
            input: Arc::clone(&self.input),
            state: Arc::clone(&self.state),
            scope: self.scope.clone(),
            is_function: self.is_function,
        }
    }
}

impl<I, S> Ctx<I, S> {
    pub(crate) fn new(task: Arc<TaskContext>, input: I, state: Arc<S>) -> Self {
        Self { task, input: Arc::new(input), state, scope: None, is_function: false }
    }

    /// The same context, as that of a function.
    pub(crate) fn into_function(self) -> Self {
        self.task.mark_function();
        Self { is_function: true, ..self }
    }

    /// The run's input.
    #[must_use]
    pub fn input(&self) -> &I {
        &self.input
    }

    /// What was given to the engine's builder by `state`.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The caller's id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        self.task.run_id.as_str()
    }

    /// Whose run it is.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.task.tenant.as_str()
    }

    /// The workflow's name.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.task.workflow.declared.workflow
    }

    /// The step's name.
    #[must_use]
    pub fn step_name(&self) -> &str {
        self.task.step()
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// How the step was resumed, if it has waited by [`Wait`](crate::Wait): with the payload of the
    /// signal, or by the time-out. It says the same through retries and crashes, until the step is
    /// done or waits again.
    ///
    /// # Errors
    /// When the payload does not fit `T`. Trying again would not mend that, so the step fails for
    /// good if this is handed up by `?`.
    pub fn resumed<T: DeserializeOwned>(&self) -> Result<Resumed<T>> {
        let Some(payload) = &self.task.resumed else { return Ok(Resumed::Not) };
        let codec = self.task.parts.codec.as_ref();
        let signalled = decode::<Signalled<T>>(codec, "what resumed the step", payload);
        Ok(match signalled.map_err(refusal)? {
            Signalled::Received(payload) => Resumed::Signal(payload),
            Signalled::TimedOut => Resumed::TimedOut,
        })
    }

    /// The store's time, which is the same for all workers. In a function it is the time at which
    /// it last heard of something, so that it is the same whenever the function runs again.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        if self.is_function { self.task.heard_at() } else { self.task.now() }
    }

    /// A key to hand to outside services, so that they recognise a repeated call: the same for
    /// every attempt of this step of this run, and for no other. Inside the code of a step of a
    /// function it is that step's own.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        match doing() {
            Doing::Step { task, key } if task == self.task.claim => self.idempotency_key_of(&key),
            _ => self.task.idempotency_key(),
        }
    }

    /// The key of a step of the function.
    pub(super) fn idempotency_key_of(&self, key: &str) -> String {
        format!("{}/{key}", self.task.idempotency_key())
    }

    /// Says that the step is alive, and learns whether it should go on.
    ///
    /// # Errors
    /// When the run was cancelled, the engine is stopping, or the claim passed on to another
    /// worker. Return it by `?`: whatever the step gives now changes nothing any more.
    pub fn heartbeat(&self) -> Result<()> {
        self.task.beat();
        if self.is_cancelled() {
            return Err(StepError::cancelled());
        }
        Ok(())
    }

    /// As [`Ctx::heartbeat`], and tells how far the step has come, to be read by
    /// [`Run::tasks`](crate::Run::tasks) while it runs: up to 1 KiB, what is longer is cut. It
    /// travels with the worker's heartbeat, once a second at most, and goes with the attempt.
    ///
    /// ```
    /// # use stepwell::Ctx;
    /// fn import(ctx: &Ctx<Vec<String>>) -> stepwell::Result<()> {
    ///     for (n, line) in ctx.input().iter().enumerate() {
    ///         ctx.heartbeat_with(format!("{n} of {} lines", ctx.input().len()))?;
    ///         // store the line
    /// #       let _ = line;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Ctx::heartbeat`].
    pub fn heartbeat_with(&self, progress: impl ToString) -> Result<()> {
        self.task.tell_progress(&progress.to_string());
        self.heartbeat()
    }

    /// Whether the step should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.task.stop.is_stopped()
    }

    /// Completes when the step should stop. Async steps are dropped then; this is for work they
    /// have started elsewhere.
    pub async fn cancelled(&self) {
        let stopped = self.task.stop.token().clone().cancelled_owned();
        self.task.parts.spawner.engine_wait(Box::pin(stopped)).await;
    }

    /// Notes something about this attempt, to be read in the run's history: up to 64 notes of up to
    /// 8 KiB. What is longer is cut.
    pub fn note(&self, name: impl Into<String>, text: impl ToString) {
        self.task.note(&name.into(), &text.to_string());
    }

    /// How long ago the last heartbeat of this step was.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.task.silent_for()
    }

    /// The output of any step upstream: `T`, or `Option<T>` if it may have been skipped. For a
    /// failure handler all steps lie upstream.
    ///
    /// # Errors
    /// When the step does not lie upstream of this one, when the store cannot be reached, or
    /// when the stored output does not fit the type.
    pub async fn output<T, K>(&self, step: &StepRef<T, K>) -> Result<K::Output<T>>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        read_output(Arc::clone(&self.task), *step).await.map_err(refusal)
    }

    /// As [`Ctx::output`], for blocking steps.
    pub(super) fn output_blocking<T, K>(&self, step: StepRef<T, K>) -> Result<K::Output<T>>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        if is_polled() {
            let message =
                "`output` of a blocking context was called by async code; use `ctx.output` there";
            return Err(refusal(Error::refused(Code::BlockingInAsync, message)));
        }
        let (answer_to, mut answer) = tokio::sync::oneshot::channel();
        let task = Arc::clone(&self.task);
        self.task.parts.spawner.block_on(Box::pin(async move {
            let _ = answer_to.send(read_output(task, step).await);
        }));
        let gone = |_| Error::Unavailable { message: "the read was abandoned".into() };
        answer.try_recv().map_err(gone).and_then(|output| output).map_err(refusal)
    }
}

/// Asking for a wrong step will not go better the next time; an unreachable store may.
fn refusal(error: Error) -> StepError {
    StepError::of_error(error)
}

async fn read_output<T, K>(
    task: Arc<TaskContext>,
    step: StepRef<T, K>,
) -> std::result::Result<K::Output<T>, Error>
where
    T: DeserializeOwned + Send + 'static,
    K: Kind,
{
    let definition = &task.workflow.declared;
    let graph = &definition.graph;
    let is_own = step.workflow == stepwell_core::workflow::workflow_hash(&definition.workflow);
    let stored = task.workflow.stored_node(step.node()).filter(|_| is_own);
    let Some(stored) = stored else {
        let message = "ctx.output: the step belongs to another workflow";
        return Err(Error::refused(Code::UnknownStep, message));
    };
    let name = graph.name(step.node()).unwrap_or_default();
    // The failure handler comes after everything else of its run.
    let is_upstream = task.claim.node == Node::ON_FAILURE
        || task.workflow.stored.definition.graph.is_ancestor(stored, task.claim.node);
    if !is_upstream {
        let own = task.step();
        let message = format!("ctx.output: step {name:?} does not lie upstream of {own:?}");
        return Err(Error::refused(Code::UnknownStep, message));
    }
    let read = || task.parts.store.output(task.claim.run, stored);
    let payload = task.parts.patiently(read).await?;
    let payload = payload.map(|payload| as_declared(task.workflow.policy(stored), payload));
    let what = format!("the output of step {name:?}");
    let codec = task.parts.codec.as_ref();
    let value = payload.map(|payload| decode(codec, &what, &payload)).transpose()?;
    let skipped = || Error::refused(Code::StepSkipped, format!("step {name:?} has no output"));
    K::output(value).ok_or_else(skipped)
}
