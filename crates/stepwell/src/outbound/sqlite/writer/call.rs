//! Calls on their way to a thread and their answers on the way back.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use super::Transaction;
use crate::ports::StoreError;

/// A call that waits for its turn.
pub(super) trait WaitingCall: Send {
    /// Whether its changes must be on disk when it is answered.
    fn must_last(&self) -> bool;
    /// Does the work. Says whether its changes stand.
    fn run(&mut self, transaction: &mut Transaction<'_, '_>) -> bool;
    /// What it changed could not be written.
    fn fail(&mut self, error: StoreError);
    /// Answers, once it is known whether the transaction is durable.
    fn answer(self: Box<Self>, durable: Result<(), StoreError>);
}

struct Call<T, W> {
    must_last: bool,
    work: Option<W>,
    result: Option<Result<T, StoreError>>,
    answer_to: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> WaitingCall for Call<T, W>
where
    T: Send,
    W: FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send,
{
    fn must_last(&self) -> bool {
        self.must_last
    }

    fn run(&mut self, transaction: &mut Transaction<'_, '_>) -> bool {
        let result = self.work.take().map(|work| work(transaction));
        let stands = matches!(result, Some(Ok(_)));
        self.result = result;
        stands
    }

    fn fail(&mut self, error: StoreError) {
        self.result = Some(Err(error));
    }

    fn answer(self: Box<Self>, durable: Result<(), StoreError>) {
        let closed = || Err(closed());
        let result = match durable {
            Ok(()) => self.result.unwrap_or_else(closed),
            Err(error) => Err(error),
        };
        // The caller may have gone; the effect stands.
        let _ = self.answer_to.send(result);
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable { operation: "sqlite", why: "the store has closed".into() }
}

/// Where calls are handed in to a thread. It ends when this is dropped.
pub(crate) struct Calls(Sender<Box<dyn WaitingCall>>);

impl Calls {
    /// A thread's end of calls and the other one.
    pub(super) fn channel() -> (Self, Receiver<Box<dyn WaitingCall>>) {
        let (sender, calls) = channel();
        (Self(sender), calls)
    }

    /// Hands in a call and waits for its answer, which comes when what it changed is on disk.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_in(work, true).await
    }

    /// As [`call`](Self::call), but the answer does not wait for the disk. What it changed outlives
    /// the process, and a power cut from the next call on that waits.
    pub(crate) async fn call_without_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_in(work, false).await
    }

    async fn hand_in<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
        must_last: bool,
    ) -> Result<T, StoreError> {
        let (answer_to, answer) = oneshot::channel();
        let call = Call { must_last, work: Some(work), result: None, answer_to };
        self.0.send(Box::new(call)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}
