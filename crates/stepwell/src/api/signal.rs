//! Sending signals: `engine.signal(..)` and `run.signal(..)` as builders to await.

use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stepwell_core::code::Code;
use stepwell_core::decide::{NewSignal, SignalAnswer};
use stepwell_core::id::{RunId, RunKey, Tenant, check_name};
use stepwell_core::run::{Attributes, RunStatus, check_attributes};

use super::engine::{Inner, names};
use super::start::bad_name;
use super::workflow::WorkflowRef;
use crate::engine::{Parts, encode, send_signal, waiting_runs};
use crate::error::Error;
use crate::ports::{Payload, SignalRequest, SignalTarget, WaitingRuns};

/// How many waiting runs are signalled in one call of the store.
const PAGE_RUNS: usize = 500;

/// What became of a signal to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sent {
    /// It is stored, and given to the wait that is for it, now or when one opens. Sending the same
    /// signal under the same key again gives the same answer and stores nothing.
    Accepted {
        /// Its number among the signals of the run, from 1.
        number: u64,
    },
    /// The run's end was decided before; it ends like this. Nothing was stored.
    AlreadyEnding(RunStatus),
    /// The run had ended before, like this. Nothing was stored.
    AlreadyEnded(RunStatus),
}

/// A signal that is not addressed yet, so that it cannot be sent.
#[derive(Debug)]
pub struct Unaddressed(());

/// A signal to one run.
#[derive(Debug)]
pub struct ToRun(Result<SignalTarget, Error>);

/// A signal to all runs of a workflow that wait for it.
#[derive(Debug)]
pub struct ToWaiting(Result<(Tenant, String), Error>);

/// A signal, sent when awaited.
#[must_use = "a signal is sent by awaiting this, once it is addressed by `.to(..)`"]
pub struct Signal<A> {
    inner: Arc<Inner>,
    name: String,
    payload: Result<Payload, Error>,
    key: Option<String>,
    attributes: Attributes,
    to: A,
}

impl Signal<Unaddressed> {
    pub(super) fn new(inner: Arc<Inner>, name: &str, payload: &impl Serialize) -> Self {
        let (codec, bytes_max) = (inner.parts.codec.as_ref(), inner.parts.config.payload_bytes_max);
        let what = format_args!("the payload of signal {name:?}");
        let payload = encode(codec, bytes_max, what, payload);
        let (name, to) = (name.to_owned(), Unaddressed(()));
        Self { inner, name, payload, key: None, attributes: Attributes::new(), to }
    }

    /// To a run, by its tenant and id. This process need not have the workflow's code.
    pub fn to(self, tenant: &str, run_id: &str) -> Signal<ToRun> {
        let target = names(tenant, run_id).map(|(tenant, id)| SignalTarget::Id(tenant, id));
        self.address(ToRun(target))
    }

    /// To every run of a tenant and workflow that waits for it at this moment. Runs that do not
    /// wait for it get nothing. Of a run with several such waits the oldest gets it. The answer is
    /// how many waits got it by this call: repeated under the same key, it adds none.
    ///
    /// It is sent page by page. Give it a key: then a call that broke off half-way can be repeated,
    /// and reaches those that the first one did not.
    pub fn to_waiting<I, O>(self, tenant: &str, workflow: &WorkflowRef<I, O>) -> Signal<ToWaiting> {
        self.to_waiting_by_name(tenant, workflow.name())
    }

    /// As [`Signal::to_waiting`], by the workflow's name.
    pub fn to_waiting_by_name(self, tenant: &str, workflow: &str) -> Signal<ToWaiting> {
        let tenant = Tenant::new(tenant).map_err(|why| bad_name("tenant", tenant, why));
        let is_name = check_name(workflow).map_err(|why| bad_name("workflow", workflow, why));
        let to = tenant.and_then(|tenant| is_name.map(|()| (tenant, workflow.to_owned())));
        self.address(ToWaiting(to))
    }

    pub(super) fn addressed_to(self, run: RunKey) -> Signal<ToRun> {
        self.address(ToRun(Ok(SignalTarget::Key(run))))
    }

    fn address<A>(self, to: A) -> Signal<A> {
        let Self { inner, name, payload, key, attributes, .. } = self;
        Signal { inner, name, payload, key, attributes, to }
    }
}

impl<A> Signal<A> {
    /// What tells this signal from others to the same run, such as the id of the event behind it.
    /// Sent again under the same key, it is stored once; another signal under the key is refused.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// An attribute beside the payload, for waits that ask for one by `matching`.
    pub fn attr(mut self, attribute: impl Into<String>, value: impl Display) -> Self {
        self.attributes.insert(attribute.into(), value.to_string());
        self
    }

    /// The signal, once everything is checked. Nothing is stored before.
    fn check(self) -> Result<(Arc<Inner>, NewSignal, Payload, A), Error> {
        let Self { inner, name, payload, key, attributes, to } = self;
        inner.check_open()?;
        let key = key.unwrap_or_else(|| inner.parts.ids.run_key().to_string());
        let (signal, payload) = new_signal(&inner.parts, name, key, attributes, payload)?;
        Ok((inner, signal, payload, to))
    }
}

/// A signal, once everything is checked.
fn new_signal(
    parts: &Parts,
    name: String,
    key: String,
    attributes: Attributes,
    payload: Result<Payload, Error>,
) -> Result<(NewSignal, Payload), Error> {
    check_name(&name).map_err(|why| bad_name("signal", &name, why))?;
    check_name(&key).map_err(|why| bad_name("key of the signal", &key, why))?;
    check_attributes(&attributes)
        .map_err(|why| Error::refused(Code::BadArgument, format!("signal {name:?}: {why}")))?;
    let payload = payload?;
    let digest = digest(&name, &attributes, parts.codec.digest(&payload.bytes));
    let signal = NewSignal { name, key, attributes, digest, only_if_awaited: false };
    Ok((signal, payload))
}

/// A signal that a function sends.
#[derive(Clone)]
pub(crate) struct SignalDraft {
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
    payload: Result<Payload, Error>,
}

impl SignalDraft {
    pub(crate) fn new(parts: &Parts, name: &str, payload: &impl Serialize) -> Self {
        let (codec, bytes_max) = (parts.codec.as_ref(), parts.config.payload_bytes_max);
        let what = format_args!("the payload of signal {name:?}");
        let payload = encode(codec, bytes_max, what, payload);
        Self { name: name.to_owned(), attributes: Attributes::new(), payload }
    }

    /// Sends it to a run under a key, by which it is stored at most once.
    pub(crate) async fn send(
        &self,
        parts: &Parts,
        tenant: &str,
        run_id: &str,
        key: String,
    ) -> Result<Sent, Error> {
        let Self { name, attributes, payload } = self.clone();
        let (tenant, id) = names(tenant, run_id)?;
        let to = SignalTarget::Id(tenant, id);
        let unknown = unknown(&to);
        let (signal, payload) = new_signal(parts, name, key, attributes, payload)?;
        let (name, key) = (signal.name.clone(), signal.key.clone());
        let answer = send_signal(parts, SignalRequest { to, signal, payload }).await?;
        sent(answer.ok_or(unknown)?, &name, &key)
    }
}

/// What is said of an answer of the store.
fn sent(answer: SignalAnswer, name: &str, key: &str) -> Result<Sent, Error> {
    match answer {
        SignalAnswer::Stored { number, .. } | SignalAnswer::AlreadyStored { number } => {
            Ok(Sent::Accepted { number })
        }
        SignalAnswer::AlreadyEnding(status) => Ok(Sent::AlreadyEnding(status)),
        SignalAnswer::AlreadyEnded(status) => Ok(Sent::AlreadyEnded(status)),
        answer => Err(refusal(answer, name, key)),
    }
}

/// A digest of all that a signal says. Lengths go in front, so that two texts never read as one.
fn digest(name: &str, attributes: &Attributes, payload: [u8; 32]) -> [u8; 32] {
    let mut sha = Sha256::new();
    let texts = attributes.iter().flat_map(|(name, value)| [name.as_str(), value]);
    for text in [name].into_iter().chain(texts) {
        sha.update((text.len() as u64).to_le_bytes());
        sha.update(text.as_bytes());
    }
    sha.update(payload);
    sha.finalize().into()
}

impl Signal<ToRun> {
    async fn send(self) -> Result<Sent, Error> {
        let (inner, signal, payload, ToRun(to)) = self.check()?;
        let to = to?;
        let unknown = unknown(&to);
        let (name, key) = (signal.name.clone(), signal.key.clone());
        let request = SignalRequest { to, signal, payload };
        let answer = inner.signaller.send(vec![request]).await?.into_iter().next().flatten();
        sent(answer.ok_or(unknown)?, &name, &key)
    }
}

impl Signal<ToWaiting> {
    /// Sends it page by page, and counts the waits that got it. A run that refuses it keeps no
    /// other from getting it: the refusal is told at the end.
    async fn send(self) -> Result<usize, Error> {
        let (inner, signal, payload, ToWaiting(to)) = self.check()?;
        let (tenant, workflow) = to?;
        inner.stored_definition(&workflow).await?;
        let signal = NewSignal { only_if_awaited: true, ..signal };
        let asked = WaitingRuns { tenant, workflow, signal: signal.name.clone() };
        let (mut after, mut n_reached, mut refused) = (None, 0, None);
        loop {
            let runs = waiting_runs(&inner.parts, &asked, after, PAGE_RUNS).await?;
            let is_last = runs.len() < PAGE_RUNS;
            after = runs.last().copied();
            let request = |run| SignalRequest {
                to: SignalTarget::Key(run),
                signal: signal.clone(),
                payload: payload.clone(),
            };
            for answer in inner.signaller.send(runs.into_iter().map(request).collect()).await? {
                match answer {
                    Some(SignalAnswer::Stored { is_consumed: true, .. }) => n_reached += 1,
                    Some(answer @ (SignalAnswer::KeyTaken | SignalAnswer::TooMany)) => {
                        refused = refused.or(Some(answer));
                    }
                    // It ended meanwhile, or no longer waits.
                    _ => {}
                }
            }
            if is_last {
                let refusal = |answer| refusal(answer, &signal.name, &signal.key);
                return refused.map_or(Ok(n_reached), |answer| Err(refusal(answer)));
            }
        }
    }
}

fn unknown(to: &SignalTarget) -> Error {
    let message = match to {
        SignalTarget::Key(key) => format!("there is no run {key}"),
        SignalTarget::Id(tenant, id) => unknown_run(tenant, id),
    };
    Error::refused(Code::UnknownRun, message)
}

fn unknown_run(tenant: &Tenant, id: &RunId) -> String {
    format!("tenant {:?} has no run {:?}", tenant.as_str(), id.as_str())
}

/// Why a signal was refused.
fn refusal(answer: SignalAnswer, name: &str, key: &str) -> Error {
    match answer {
        SignalAnswer::KeyTaken => {
            let message = format!(
                "key {key:?} was used before for another signal than {name:?} with this payload; \
                 give each signal a key of its own"
            );
            Error::refused(Code::SignalKeyConflict, message)
        }
        SignalAnswer::TooMany => {
            let message = format!(
                "the run holds 10,000 signals that nobody waits for; signal {name:?} was not \
                 stored"
            );
            Error::refused(Code::TooManySignals, message)
        }
        answer => Error::Corrupt { message: format!("signal {name:?} was answered by {answer:?}") },
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl IntoFuture for Signal<ToRun> {
    type Output = Result<Sent, Error>;
    type IntoFuture = Boxed<Sent>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl IntoFuture for Signal<ToWaiting> {
    type Output = Result<usize, Error>;
    type IntoFuture = Boxed<usize>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
