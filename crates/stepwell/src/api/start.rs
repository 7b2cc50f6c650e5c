//! Starting runs: `engine.start(..)` and `engine.run(..)` as builders to await.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use stepwell_core::code::Code;
use stepwell_core::decide::RunSeed;
use stepwell_core::id::{RunId, Tenant};
use stepwell_core::limits::SPAN_MAX;

use super::engine::Inner;
use super::run::Run;
use super::run_output::ReadOutput;
use crate::engine::{already_started, encode};
use crate::error::Error;
use crate::ports::{Payload, StartRequest, StoredDefinition};

/// A run to start: its input, whose it is, and an id.
#[derive(Clone, Debug)]
pub struct NewRun<I> {
    input: I,
    names: Names,
}

impl<I> NewRun<I> {
    /// A run with this input.
    pub fn new(input: I) -> Self {
        Self { input, names: Names::default() }
    }

    /// Whose run it is.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.names.tenant = Some(tenant.into());
        self
    }

    /// The run's id, unique per tenant.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.names.id = Some(id.into());
        self
    }

    /// How long the run may take; the workflow's own deadline if not given.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.names.deadline = Some(deadline);
        self
    }

    pub(super) fn into_parts(self) -> (I, Names) {
        (self.input, self.names)
    }
}

/// Names and deadline as the caller gave them.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    tenant: Option<String>,
    id: Option<String>,
    deadline: Option<Duration>,
}

/// Starts a run when awaited, and gives a handle of it.
#[must_use = "a run is started by awaiting this"]
pub struct Start<O> {
    inner: Arc<Inner>,
    workflow: String,
    input: Result<Payload, Error>,
    names: Names,
    read: ReadOutput<O>,
}

impl<O> Start<O> {
    pub(super) fn new(
        inner: Arc<Inner>,
        workflow: &str,
        input: &impl Serialize,
        names: Names,
        read: ReadOutput<O>,
    ) -> Self {
        let (codec, bytes_max) = (inner.parts.codec.as_ref(), inner.parts.config.payload_bytes_max);
        let input = encode(codec, bytes_max, "the run's input", input);
        Self { workflow: workflow.to_owned(), input, names, read, inner }
    }

    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.names.tenant = Some(tenant.into());
        self
    }

    /// The run's id, unique per tenant. Starting again with the same id and input finds the run
    /// that is there; with another input it is refused.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.names.id = Some(id.into());
        self
    }

    /// How long the run may take, from its start by the store's time; the workflow's own deadline
    /// if not given. After that it fails, and its failure handler runs. A start that finds the run
    /// there does not change it.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.names.deadline = Some(deadline);
        self
    }

    /// The request, once everything is checked. Nothing is stored before.
    pub(super) async fn request(
        self,
    ) -> Result<(StartRequest, Arc<StoredDefinition>, ReadOutput<O>), Error> {
        self.inner.check_open()?;
        let input = self.input?;
        let tenant = tenant(&self.inner, self.names.tenant)?;
        let key = self.inner.parts.ids.run_key();
        let codec = self.inner.parts.codec.as_ref();
        // Only a given id can meet another start, so only then the input is brought into one
        // form before it is digested.
        let (id, input_digest) = match self.names.id {
            Some(id) => (id, codec.digest(&input.bytes)),
            None => (key.to_string(), digest(&input.bytes)),
        };
        let id = RunId::new(id.clone()).map_err(|why| bad_name("run id", &id, why))?;
        let stored = self.inner.stored_definition(&self.workflow).await?;
        let deadline = self.names.deadline;
        check_deadline(deadline)?;
        let seed = RunSeed { key, tenant, id, definition: stored.id, deadline };
        let mark = stored.mark;
        Ok((StartRequest { seed, mark, input, input_digest }, stored, self.read))
    }

    /// Starts the run and waits for its end. It is waited for before it is started, so that its
    /// end, if it comes to that in this process, tells the result itself.
    async fn start_and_wait(self) -> Result<O, Error> {
        let (inner, workflow) = (Arc::clone(&self.inner), self.workflow.clone());
        let (request, stored, read) = self.request().await?;
        let names = (request.seed.tenant.clone(), request.seed.id.clone());
        let (key, mark) = (request.seed.key, stored.mark);
        let waiter = inner.awaited_runs.wait_for_start_of(key, stored.definition.output_step());
        let (answer, stored) = inner.start(&workflow, request, stored).await?;
        match already_started(answer)? {
            None if stored.mark == mark => {
                Run::from_parts(inner, key, names, stored, read).result_of(waiter).await
            }
            // It was registered anew, and the step that gives the output may have another number.
            None => Run::from_parts(inner, key, names, stored, read).result().await,
            Some(_) => inner.find(&names.0, &names.1, read).await?.result().await,
        }
    }

    async fn start(self) -> Result<Run<O>, Error> {
        let (inner, workflow) = (Arc::clone(&self.inner), self.workflow.clone());
        let (request, stored, read) = self.request().await?;
        let names = (request.seed.tenant.clone(), request.seed.id.clone());
        let key = request.seed.key;
        let (answer, stored) = inner.start(&workflow, request, stored).await?;
        match already_started(answer)? {
            None => Ok(Run::from_parts(inner, key, names, stored, read)),
            Some(_) => inner.find(&names.0, &names.1, read).await,
        }
    }
}

fn check_deadline(deadline: Option<Duration>) -> Result<(), Error> {
    let refuse = |why: &str| {
        Err(Error::refused(Code::BadArgument, format!("the deadline of the start {why}")))
    };
    match deadline {
        Some(span) if span.is_zero() => refuse("is zero; give the run time to end"),
        Some(span) if span > SPAN_MAX => refuse("is longer than a hundred years"),
        _ => Ok(()),
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).into()
}

/// The tenant of a start: the given one, or the engine's default.
pub(super) fn tenant(inner: &Inner, given: Option<String>) -> Result<Tenant, Error> {
    match given {
        Some(name) => Tenant::new(name.clone()).map_err(|why| bad_name("tenant", &name, why)),
        None => inner.default_tenant.clone().ok_or_else(|| {
            let message = "no tenant: call `.tenant(..)` on the start, or give the engine's \
                           builder a `default_tenant`";
            Error::refused(Code::NoTenant, message)
        }),
    }
}

pub(super) fn bad_name(field: &str, name: &str, why: stepwell_core::id::NameError) -> Error {
    Error::refused(Code::BadName, format!("{field} {name:?} {why}"))
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl<O: 'static> IntoFuture for Start<O> {
    type Output = Result<Run<O>, Error>;
    type IntoFuture = Boxed<Run<O>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// Starts a run when awaited, waits for its end, and gives its output.
#[must_use = "a run is started by awaiting this"]
pub struct StartAndWait<O>(pub(super) Start<O>);

impl<O> StartAndWait<O> {
    /// Whose run it is. Required, unless the engine has a default tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self(self.0.tenant(tenant))
    }

    /// The run's id, unique per tenant.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self(self.0.id(id))
    }

    /// How long the run may take; the workflow's own deadline if not given.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(self.0.deadline(deadline))
    }
}

impl<O: 'static> IntoFuture for StartAndWait<O> {
    type Output = Result<O, Error>;
    type IntoFuture = Boxed<O>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.start_and_wait())
    }
}
