//! Workflows: declaring them, and handles of declared ones.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_core::code::Code;
use stepwell_core::id::{NameError, Node};
use stepwell_core::run::RunFailure;
use stepwell_core::workflow::{Definition, Draft, DraftStep, OutputRule, workflow_hash};

use super::blocking;
use super::bound::{UnboundFn, UnboundStep, failure_arg, unbound_async, unbound_blocking};
use super::chain::ChainBuilder;
use super::ctx::Ctx;
use super::run_output::{ReadOutput, read_kind, read_nothing, read_required};
use super::signalled::variants_of;
use super::sleep::SleepBuilder;
use super::step::{Root, StepBuilder};
use super::step_error::Result;
use super::step_ref::{Always, Kind, Maybe, StepRef};
use super::wait::WaitBuilder;
use crate::engine::{StepBody, StepFn};
use crate::error::Error;

/// A workflow with input `I`, output `O` and shared state `S`: a graph of steps with their code.
///
/// ```
/// # use stepwell::{Workflow, Retry};
/// fn greeting() -> Workflow<String, String> {
///     let mut w = Workflow::define::<String, ()>("greeting");
///     let upper = w.step("upper").run(async |ctx| Ok(ctx.input().to_uppercase()));
///     let hello = w.step("hello").after(upper).retry(Retry::exponential(3))
///         .run(async |_ctx, name| Ok(format!("Hello, {name}!")));
///     w.output(hello)
/// }
/// # assert!(greeting().check().is_ok());
/// ```
pub struct Workflow<I, O, S = ()> {
    definer: Definer<I, S>,
    read: ReadOutput<O>,
}

impl Workflow<(), (), ()> {
    /// Begins to declare a workflow. Input and state are inferred from what the function
    /// returns; name them as `Workflow::define::<Order, App>("order")` where a closure needs to
    /// know them earlier.
    pub fn define<I, S>(name: &str) -> Definer<I, S> {
        Definer {
            draft: Draft { workflow: name.to_owned(), ..Draft::default() },
            steps: Vec::new(),
            on_failure: None,
            refusal: None,
            input: PhantomData,
        }
    }
}

impl<I, O, S> Workflow<I, O, S> {
    /// Checks the workflow without an engine.
    ///
    /// # Errors
    /// With the first thing that is wrong, and the steps it concerns.
    pub fn check(&self) -> std::result::Result<(), Error> {
        self.definer.definition().map(|_| ())
    }

    pub(crate) fn into_parts(self) -> std::result::Result<WorkflowParts<S>, Error> {
        let definition = self.definer.definition()?;
        let Definer { steps, on_failure, .. } = self.definer;
        Ok(WorkflowParts { definition, steps, on_failure })
    }

    pub(crate) fn name(&self) -> &str {
        &self.definer.draft.workflow
    }

    pub(crate) fn reader(&self) -> ReadOutput<O> {
        self.read
    }
}

pub(crate) struct WorkflowParts<S> {
    pub(crate) definition: Definition,
    pub(crate) steps: Vec<UnboundStep<S>>,
    pub(crate) on_failure: Option<UnboundFn<S>>,
}

impl<S> WorkflowParts<S> {
    /// Binds all closures to the engine's state.
    pub(crate) fn bind(self, state: &Arc<S>) -> (Definition, Vec<StepBody>, Option<StepFn>) {
        let steps = self.steps.into_iter().map(|step| step.bind(state)).collect();
        let on_failure = self.on_failure.map(|unbound| unbound(Arc::clone(state)));
        (self.definition, steps, on_failure)
    }
}

/// A workflow while it is being declared. [`Definer::output`] completes it.
pub struct Definer<I, S = ()> {
    draft: Draft,
    steps: Vec<UnboundStep<S>>,
    on_failure: Option<UnboundFn<S>>,
    /// The first thing that was wrong with a declaration.
    refusal: Option<(Code, String)>,
    input: PhantomData<fn(I)>,
}

impl<I, S> Definer<I, S> {
    /// Declares a step.
    pub fn step(&mut self, name: &str) -> StepBuilder<'_, I, S, Root, Always> {
        StepBuilder::new(self, name)
    }

    /// Declares a member of the chain: a step whose parent is whatever stands before it.
    pub fn chain(&mut self, name: &str) -> ChainBuilder<'_, I, S> {
        ChainBuilder::new(self, name)
    }

    /// Declares a sleep. It is durable and holds no thread and no slot.
    pub fn sleep(&mut self, name: &str, span: Duration) -> SleepBuilder<'_, I, S> {
        SleepBuilder::new(self, name, span)
    }

    /// Declares a wait for a signal with a payload of type `T`. It is durable and holds no thread,
    /// no slot and no worker.
    ///
    /// ```
    /// # use stepwell::{Signalled, Workflow};
    /// # use std::time::Duration;
    /// # fn example() -> Workflow<(), String> {
    /// let mut w = Workflow::define::<(), ()>("expense");
    /// let ask = w.step("ask").run(async |_ctx| Ok(()));
    /// let approval = w.wait::<String>("approval", "approved")
    ///     .timeout(Duration::from_hours(72))
    ///     .after(ask);
    /// let done = w.step("book").after(approval).run(async |_ctx, approval| Ok(match approval {
    ///     Signalled::Received(by) => format!("approved by {by}"),
    ///     Signalled::TimedOut => "nobody answered".to_owned(),
    /// }));
    /// w.output(done)
    /// # }
    /// # assert!(example().check().is_ok());
    /// ```
    pub fn wait<T>(&mut self, name: &str, signal: &str) -> WaitBuilder<'_, I, S, T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        WaitBuilder::new(self, name, vec![signal.to_owned()], false)
    }

    /// Declares a wait for one of several signals: the variants of the enum `E`, under the names
    /// that serde knows them by, with their contents as payloads.
    ///
    /// ```
    /// # use stepwell::Workflow;
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "kebab-case")]
    /// enum Decision {
    ///     Approved { by: String },
    ///     Rejected { why: String },
    ///     Withdrawn,
    /// }
    /// # fn example() -> Workflow<(), bool> {
    /// let mut w = Workflow::define::<(), ()>("expense");
    /// let decision = w.wait_any::<Decision>("decision").from_start();
    /// let done = w.step("book").after(decision).run(async |_ctx, decision| {
    ///     Ok(matches!(decision, Decision::Approved { .. }))
    /// });
    /// w.output(done)
    /// # }
    /// # assert!(example().check().is_ok());
    /// ```
    pub fn wait_any<E>(&mut self, name: &str) -> WaitBuilder<'_, I, S, E>
    where
        E: DeserializeOwned + Send + 'static,
    {
        let variants = variants_of::<E>();
        if variants.is_none() {
            let type_name = std::any::type_name::<E>();
            let why = format!(
                "step {name:?}: `wait_any` takes an enum whose variants are the signals, and \
                 {type_name} is none; use `wait` for one signal"
            );
            self.refuse(Code::BadPolicy, why);
        }
        let signals = variants.unwrap_or_default().iter().map(|name| (*name).to_owned());
        WaitBuilder::new(self, name, signals.collect(), true)
    }

    /// How long a run may take, unless its start says otherwise. After that it fails, and its
    /// failure handler runs.
    pub fn deadline(&mut self, deadline: Duration) {
        self.draft.deadline = Some(deadline);
    }

    /// How long the failure handler may take.
    pub fn on_failure_timeout(&mut self, timeout: Duration) {
        self.draft.on_failure_timeout = Some(timeout);
    }

    /// Gives the workflow a version of its author's. Without one, the store numbers structures.
    pub fn version(&mut self, version: u32) {
        self.draft.version = Some(version);
    }

    /// Cancels everything else of a run as soon as one task has failed. Without it, independent
    /// branches go on.
    pub fn fail_fast(&mut self) {
        self.draft.fail_fast = true;
    }

    /// Completes a workflow without an output.
    #[must_use]
    pub fn no_output(self) -> Workflow<I, (), S> {
        Workflow { definer: self, read: read_nothing }
    }

    /// Completes the workflow: its output is that of this step, or `None` if it may be skipped
    /// and was.
    #[must_use]
    pub fn output<T, K>(mut self, step: StepRef<T, K>) -> Workflow<I, K::Output<T>, S>
    where
        T: DeserializeOwned + Send + 'static,
        K: Kind,
    {
        self.set_output(step, false);
        Workflow { definer: self, read: read_kind::<T, K> }
    }

    /// Completes the workflow: its output is that of this step, and a run in which it is skipped
    /// fails.
    #[must_use]
    pub fn output_required<T>(mut self, step: StepRef<T, Maybe>) -> Workflow<I, T, S>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.set_output(step, true);
        Workflow { definer: self, read: read_required::<T> }
    }

    fn set_output<T, K>(&mut self, step: StepRef<T, K>, required: bool) {
        if step.workflow != workflow_hash(&self.draft.workflow) {
            let why = "the output is a step of another workflow";
            self.refuse(Code::UnknownParent, why.to_owned());
        }
        self.draft.output = Some(OutputRule { node: Node(step.index), required });
    }

    pub(super) fn add<T, K>(&mut self, step: DraftStep, body: UnboundStep<S>) -> StepRef<T, K> {
        let index = u32::try_from(self.draft.steps.len()).unwrap_or(u32::MAX);
        self.draft.steps.push(step);
        self.steps.push(body);
        StepRef::new(index, workflow_hash(&self.draft.workflow))
    }

    pub(super) fn refuse_queue(&mut self, step: &str, queue: &str, why: NameError) {
        self.refuse(Code::BadName, format!("step {step:?}: queue name {queue:?} {why}"));
    }

    fn refuse(&mut self, code: Code, why: String) {
        self.refusal.get_or_insert((code, why));
    }

    fn definition(&self) -> std::result::Result<Definition, Error> {
        let workflow = self.draft.workflow.clone();
        if let Some((code, why)) = &self.refusal {
            let message = format!("workflow {workflow:?}: {why}");
            return Err(Error::refused(*code, message));
        }
        let draft = self.draft.clone();
        draft.resolve().map_err(|source| Error::Definition { workflow, source })
    }
}

impl<I, S> Definer<I, S>
where
    I: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    /// Runs once each time a run comes to fail, as the last task before it is FAILED, with the
    /// failure that decided it. It is durable; its own error is recorded and not retried.
    pub fn on_failure<F, Fut>(&mut self, handler: F)
    where
        F: FnOnce(Ctx<I, S>, RunFailure) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.draft.on_failure = true;
        self.on_failure = Some(unbound_async(failure_arg, handler));
    }

    /// As [`Definer::on_failure`], as an ordinary closure that may block.
    pub fn on_failure_blocking<F>(&mut self, handler: F)
    where
        F: Fn(blocking::Ctx<I, S>, RunFailure) -> Result<()> + Send + Sync + 'static,
    {
        self.draft.on_failure = true;
        self.on_failure = Some(unbound_blocking(failure_arg, handler));
    }
}

/// A handle of a workflow that an engine knows: for starting runs.
pub struct WorkflowRef<I, O> {
    pub(crate) name: Arc<str>,
    pub(crate) read: ReadOutput<O>,
    steps: Arc<[String]>,
    input: PhantomData<fn(I)>,
}

impl<I, O> WorkflowRef<I, O> {
    pub(crate) fn new<S>(workflow: &Workflow<I, O, S>) -> Self {
        let steps = workflow.definer.draft.steps.iter().map(|step| step.name.clone());
        Self {
            name: workflow.name().into(),
            read: workflow.reader(),
            steps: steps.collect(),
            input: PhantomData,
        }
    }

    /// The workflow's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A handle of one of its steps, by name, to read its output as `T`.
    ///
    /// # Errors
    /// `SW0014` if there is no such step.
    pub fn step<T>(&self, name: &str) -> std::result::Result<StepRef<T, Maybe>, Error> {
        let found = (0..).zip(self.steps.iter()).find(|(_, step)| *step == name);
        let (index, _) = found.ok_or_else(|| {
            let workflow = &self.name;
            let message = format!("workflow {workflow:?} has no step {name:?}");
            Error::refused(Code::UnknownStep, message)
        })?;
        Ok(StepRef::new(index, workflow_hash(&self.name)))
    }
}

impl<I, O> Clone for WorkflowRef<I, O> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            read: self.read,
            steps: Arc::clone(&self.steps),
            input: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<O>(workflow: &Workflow<(), O>) -> Option<Code> {
        workflow.check().err().map(|error| error.code())
    }

    #[test]
    fn a_queue_name_that_cannot_be_used_is_refused_as_a_name() {
        let mut w = Workflow::define("pack");
        w.step("pack").queue("").run(async |_ctx| Ok(()));
        assert_eq!(code(&w.no_output()), Some(Code::BadName));
    }

    #[test]
    fn an_output_of_another_workflow_is_refused_as_foreign() {
        let mut other = Workflow::define::<(), ()>("other");
        let foreign = other.step("pack").run(async |_ctx| Ok(1));
        let mut w = Workflow::define("pack");
        w.step("pack").run(async |_ctx| Ok(1));
        assert_eq!(code(&w.output(foreign)), Some(Code::UnknownParent));
    }
}
