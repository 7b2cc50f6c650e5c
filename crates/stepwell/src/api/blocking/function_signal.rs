//! Signals that blocking functions send, once.

use std::fmt::Display;
use std::sync::{Arc, mpsc};

use serde::Serialize;
use stepwell_core::function::Call;
use stepwell_core::retry::Retry;

use super::ctx::Ctx;
use super::op::Place;
use crate::api::function::{StepName, step_output};
use crate::api::signal::{Sent, SignalDraft};
use crate::api::step_error::{Result, StepError};
use crate::error::Error;

/// A signal that a blocking function sends. See [`Ctx::signal`].
#[must_use = "a signal is sent by `.to(..).wait()?`"]
pub struct FunctionSignal<'c, I, S> {
    ctx: &'c Ctx<I, S>,
    draft: SignalDraft,
}

impl<'c, I, S> FunctionSignal<'c, I, S> {
    pub(super) fn new(ctx: &'c Ctx<I, S>, name: &str, payload: &impl Serialize) -> Self {
        Self { ctx, draft: SignalDraft::new(&ctx.ctx.task.parts, name, payload) }
    }

    /// An attribute beside the payload, for waits that ask for one by `matching`.
    pub fn attr(mut self, attribute: impl Into<String>, value: impl Display) -> Self {
        self.draft.attributes.insert(attribute.into(), value.to_string());
        self
    }

    /// To a run, by its tenant and id.
    pub fn to(self, tenant: &str, run_id: &str) -> SendSignal {
        let name = StepName(format!("signal:{}", self.draft.name));
        let place = self.ctx.place(name, Call::Step { retry: Retry::never(), timeout: None });
        let key = self.ctx.ctx.idempotency_key_of(&place.key);
        let to = (tenant.to_owned(), run_id.to_owned());
        SendSignal { place, draft: self.draft, to, key }
    }
}

/// A signal that a blocking function sends by `.wait()?`.
#[must_use = "a signal is sent by `.wait()?`"]
pub struct SendSignal {
    place: Place,
    draft: SignalDraft,
    to: (String, String),
    key: String,
}

impl SendSignal {
    /// Sends the signal, or says what became of it before.
    ///
    /// # Errors
    /// When there is no such run, or the signal is refused.
    pub fn wait(self) -> Result<Sent> {
        let Self { place, draft, to: (tenant, run_id), key } = self;
        let task = Arc::clone(&place.task);
        let text = Arc::clone(&place.key);
        let send = || {
            let (answer_to, answer) = mpsc::channel();
            let (parts, draft) = (Arc::clone(&task.parts), draft.clone());
            let (tenant, run_id, key) = (tenant.clone(), run_id.clone(), key.clone());
            task.parts.spawner.block_on(Box::pin(async move {
                let _ = answer_to.send(draft.send(&parts, &tenant, &run_id, key).await);
            }));
            let sent = answer.recv().unwrap_or_else(|_| Err(Error::stopped()));
            step_output(&task, &text, sent.map_err(StepError::of_error))
        };
        place.wait(Some(&send))
    }
}
