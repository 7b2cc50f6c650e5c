//! Signals, and the waits they are for.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use stepwell_core::decide::{NewSignal, SignalAnswer};
use stepwell_core::id::RunKey;
use stepwell_core::run::{Attributes, WaitFor, WaitRow};

use super::setup::payload;
use super::sketch::read_wait;
use super::{Run, World, tenant};
use crate::ports::{
    ClaimedTask, Outcome, Payload, SignalRequest, SignalTarget, StoredSignal, WaitingRuns,
};

/// A signal to send, in few words.
#[derive(Clone, Debug)]
pub struct Sending {
    run: Run,
    is_by_id: bool,
    name: String,
    key: String,
    attributes: Attributes,
    payload: Payload,
    only_if_awaited: bool,
}

impl Sending {
    /// Under this key.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// With this attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.attributes.insert(name.to_owned(), value.to_owned());
        self
    }

    /// With these bytes as its payload.
    #[must_use]
    pub fn carrying(self, bytes: &[u8]) -> Self {
        self.payload(payload(bytes))
    }

    /// With this payload.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// To the run by its tenant and id, not by its key.
    #[must_use]
    pub const fn by_id(mut self) -> Self {
        self.is_by_id = true;
        self
    }

    /// Dropped if no wait is open that it is for.
    #[must_use]
    pub const fn if_awaited(mut self) -> Self {
        self.only_if_awaited = true;
        self
    }
}

impl From<Sending> for SignalRequest {
    fn from(sending: Sending) -> Self {
        let digest = sending.digest();
        let Sending { run, is_by_id, name, key, attributes, payload, only_if_awaited } = sending;
        let to = if is_by_id {
            SignalTarget::Id(run.tenant, run.id)
        } else {
            SignalTarget::Key(run.key)
        };
        let signal = NewSignal { name, key, attributes, digest, only_if_awaited };
        Self { to, signal, payload }
    }
}

impl Sending {
    /// Every part with its length before it, so that no two signals run together.
    fn digest(&self) -> [u8; 32] {
        let attributes = self.attributes.iter().flat_map(|(name, value)| [name, value]);
        let texts = [self.name.as_str(), &self.payload.codec];
        let texts = texts.into_iter().chain(attributes.map(String::as_str)).map(str::as_bytes);
        let mut digest = Sha256::new();
        for part in texts.chain([&*self.payload.bytes]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

impl World {
    /// A signal to a run, under a key of its own.
    #[must_use]
    pub fn to(&self, run: &Run, name: &str) -> Sending {
        let number = {
            let mut desk = self.desk();
            desk.n_signals += 1;
            desk.n_signals
        };
        Sending {
            run: run.clone(),
            is_by_id: false,
            name: name.to_owned(),
            key: format!("key-{number}"),
            attributes: Attributes::new(),
            payload: payload(format!("payload-{number}").as_bytes()),
            only_if_awaited: false,
        }
    }

    /// Sends a plain signal to a run that exists.
    pub async fn signal(&self, run: &Run, name: &str) -> SignalAnswer {
        self.send(self.to(run, name)).await
    }

    /// Sends a signal to a run that exists.
    pub async fn send(&self, sending: Sending) -> SignalAnswer {
        self.send_all(vec![sending]).await.remove(0).expect("the run exists")
    }

    /// Sends signals in one transaction, whatever the answers.
    pub async fn send_all(&self, sendings: Vec<Sending>) -> Vec<Option<SignalAnswer>> {
        let n_sent = sendings.len();
        let requests = sendings.into_iter().map(SignalRequest::from).collect();
        let answers = self.store.signal(requests).await.expect("send signals");
        assert_eq!(answers.len(), n_sent, "one answer per signal");
        self.acted().await;
        answers
    }

    /// Lets a claimed task wait for what a text says, as in `paid|refused/3h`.
    pub async fn waits_for(&self, task: &ClaimedTask, text: &str) {
        self.settle(task, waiting(text)).await;
    }

    /// A run's open waits, oldest first.
    pub async fn waits(&self, run: &Run) -> Vec<WaitRow> {
        self.store.waits(run.key).await.expect("read waits")
    }

    /// A run's open waits, oldest first, as in `w for paid|refused, v for paid`.
    pub async fn open_waits(&self, run: &Run) -> String {
        let name = |wait: &WaitRow| run.flow.0.definition.name(wait.node).to_owned();
        let words = |wait: &WaitRow| format!("{} for {}", name(wait), wait.signals.join("|"));
        self.waits(run).await.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    /// The signals that were sent to a run, in order.
    pub async fn signals(&self, run: &Run) -> Vec<StoredSignal> {
        self.store.signals(run.key).await.expect("read signals")
    }

    /// The signals that were sent to a run and who got them, as in `1 paid to w, 2 refused`.
    pub async fn inbox(&self, run: &Run) -> String {
        let receiver = |signal: &StoredSignal| match signal.row.consumed_by {
            Some(node) => format!(" to {}", run.flow.0.definition.name(node)),
            None => String::new(),
        };
        let words = |signal: &StoredSignal| {
            format!("{} {}{}", signal.row.number, signal.row.name, receiver(signal))
        };
        self.signals(run).await.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    /// A page of the runs of a tenant and a workflow that wait for a signal.
    pub async fn waiting_runs(
        &self,
        (whose, workflow, signal): (&str, &str, &str),
        after: Option<RunKey>,
        rows_max: usize,
    ) -> Vec<RunKey> {
        let (workflow, signal) = (workflow.to_owned(), signal.to_owned());
        let asked = WaitingRuns { tenant: tenant(whose), workflow, signal };
        self.store.waiting_runs(&asked, after, rows_max).await.expect("read waiting runs")
    }
}

/// What a text says is waited for, as in `paid|refused&order=4711/3h`.
#[must_use]
pub fn wait_for(text: &str) -> WaitFor {
    read_wait(text)
}

/// An execution that waits for what a text says.
#[must_use]
pub fn waiting(text: &str) -> Outcome {
    Outcome::Waits { wait_for: wait_for(text), notes: BTreeMap::new() }
}
