//! Signals that functions send, once.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;

use super::name::StepName;
use super::step::FunctionStep;
use crate::api::ctx::Ctx;
use crate::api::signal::{Sent, SignalDraft};
use crate::api::step_error::{Result, StepError};

/// A signal that a function sends and that is not addressed yet. See [`Ctx::signal`].
#[must_use = "a signal is sent by awaiting this, once it is addressed by `.to(..)`"]
pub struct FunctionSignal<'c, I, S> {
    ctx: &'c Ctx<I, S>,
    draft: SignalDraft,
}

impl<'c, I, S> FunctionSignal<'c, I, S> {
    pub(super) fn new(ctx: &'c Ctx<I, S>, name: &str, payload: &impl Serialize) -> Self {
        Self { ctx, draft: SignalDraft::new(&ctx.task.parts, name, payload) }
    }

    /// An attribute beside the payload, for waits that ask for one by `matching`.
    pub fn attr(mut self, attribute: impl Into<String>, value: impl Display) -> Self {
        self.draft.attributes.insert(attribute.into(), value.to_string());
        self
    }

    /// To a run, by its tenant and id.
    pub fn to(self, tenant: &str, run_id: &str) -> SendSignal {
        let Self { ctx, draft } = self;
        let name = StepName(format!("signal:{}", draft.name));
        let (tenant, run_id) = (Arc::<str>::from(tenant), Arc::<str>::from(run_id));
        let (task, draft) = (Arc::clone(&ctx.task), Arc::new(draft));
        let send = async move |key: String| {
            draft.send(&task.parts, &tenant, &run_id, key).await.map_err(StepError::of_error)
        };
        // The key is the same for every try, so that it is stored at most once.
        SendSignal(FunctionStep::with_key(ctx, name, send))
    }
}

/// A signal that a function sends when it is awaited.
#[must_use = "a signal is sent when it is awaited"]
pub struct SendSignal(FunctionStep<'static, Sent>);

impl Future for SendSignal {
    type Output = Result<Sent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Sent>> {
        Pin::new(&mut self.0).poll(cx)
    }
}
