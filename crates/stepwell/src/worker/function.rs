//! Functions: polled until they end, or have nothing left to do but wait.
//!
//! A step of a graph is one as well, as soon as it does something durable.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use stepwell_core::decide::{Listening, Suspension};
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::function::{MemoWrite, Moment, OpId, Turn, WriteId};
use stepwell_core::time::Timestamp;

use super::execute::Answer;
use crate::engine::{
    Doing, FunctionWaker, NoOutput, TaskContext, is_about_data, listen, while_doing,
};
use crate::ports::{
    BoxFuture, Hint, Hints, ListenAnswer, ListenRequest, MemoAnswer, Payload, StoreError,
};

/// How an execution of async code ended.
pub(super) enum FunctionEnd {
    /// The code answered.
    Answered(Answer),
    /// It goes on when something that it waits for has ended.
    Suspended(Suspension),
    /// The engine stops, and nothing of it executes.
    Released,
    /// The store does not take its memos any more.
    ClaimLost,
}

/// The code of a step, guarded against panics.
pub(super) type Code<'a> = Pin<&'a mut (dyn Future<Output = Answer> + Send)>;

/// So many turns are taken before others on the runtime get theirs.
const TURNS_MAX: usize = 64;

/// Polls the code of a step. It becomes a function when it does something durable.
pub(super) async fn run(context: &Arc<TaskContext>, mut code: Code<'_>) -> FunctionEnd {
    let mut n_polls = 0_u32;
    let polled = poll_fn(|cx| {
        n_polls += 1;
        // Nobody knows what caused a later poll.
        let doing = Doing::Function { task: context.claim, is_foreign: n_polls > 1 };
        match while_doing(doing, || code.as_mut().poll(cx)) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if context.started_function().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    match polled.await {
        Some(answer) => FunctionEnd::Answered(refused(context).unwrap_or(answer)),
        None => FunctionRun::new(context).run(code).await,
    }
}

/// What the function did that it may not do is how it ended, whatever it says.
pub(super) fn refused(context: &TaskContext) -> Option<Answer> {
    let refusal = context.started_function()?.journal().refusal().cloned();
    refusal.map(|failure| Err(failure.into()))
}

/// What became of blocking code that has returned: how the attempt ends, or its answer.
pub(super) async fn ended_blocking(
    context: &TaskContext,
    answer: Option<Answer>,
) -> Result<Option<Answer>, FunctionEnd> {
    let Some(function) = context.started_function() else { return Ok(answer) };
    let answer = match (refused(context), answer) {
        (Some(refusal), Some(_)) => Some(refusal),
        (_, Some(Err(NoOutput::Suspended))) if function.is_released() => {
            return Err(FunctionEnd::Released);
        }
        (_, answer @ (None | Some(Err(NoOutput::Suspended)))) => return Ok(answer),
        (None, answer) => answer,
    };
    match let_go(context).await {
        Some(end) => Err(end),
        None => Ok(answer),
    }
}

/// How a write went.
type Written = (WriteId, Result<MemoAnswer, StoreError>);

/// A function that runs.
struct FunctionRun<'c> {
    context: &'c Arc<TaskContext>,
    waker: Arc<FunctionWaker>,
    writes: FuturesUnordered<BoxFuture<Written>>,
    listening: Option<BoxFuture<Result<ListenAnswer, StoreError>>>,
    hints: Option<Hints>,
}

impl<'c> FunctionRun<'c> {
    fn new(context: &'c Arc<TaskContext>) -> Self {
        let waker = Arc::new(FunctionWaker::default());
        context.function().set_waker(&waker);
        let writes = FuturesUnordered::new();
        Self { context, waker, writes, listening: None, hints: None }
    }

    async fn run(mut self, mut code: Code<'_>) -> FunctionEnd {
        let function = self.context.function();
        let mut n_turns = 0;
        loop {
            if let Some(answer) = self.poll(&mut code) {
                return self.answered(answer).await;
            }
            // It runs until it is quiet before it hears of the next thing.
            if self.waker.take_restless() {
                yield_at(&mut n_turns).await;
                continue;
            }
            loop {
                let turn = function.journal().turn(self.moment());
                match turn {
                    Turn::Wake(wakers) => {
                        let wake = || wakers.into_iter().for_each(Waker::wake);
                        while_doing(Doing::Delivery, wake);
                    }
                    Turn::Store(write) => self.store(write),
                    Turn::Listen(listening) => self.listen(listening),
                    Turn::Rest { until } => {
                        if let Err(end) = self.rest(until).await {
                            return end;
                        }
                    }
                    Turn::Suspend(suspension) => return FunctionEnd::Suspended(suspension),
                    Turn::Release => return FunctionEnd::Released,
                }
                yield_at(&mut n_turns).await;
                if let Some(answer) = refused(self.context) {
                    return self.answered(answer).await;
                }
                if self.waker.is_woken() {
                    break;
                }
            }
        }
    }

    /// Polls the function once.
    fn poll(&self, code: &mut Code<'_>) -> Option<Answer> {
        let is_foreign = self.waker.begin_poll();
        self.context.function().journal().begin_poll(is_foreign);
        let waker = Waker::from(Arc::clone(&self.waker));
        let doing = Doing::Function { task: self.context.claim, is_foreign };
        let polled = while_doing(doing, || code.as_mut().poll(&mut Context::from_waker(&waker)));
        self.tell_warnings();
        match (refused(self.context), polled) {
            (Some(refusal), _) => Some(refusal),
            (None, Poll::Ready(answer)) => Some(answer),
            (None, Poll::Pending) => None,
        }
    }

    fn tell_warnings(&self) {
        for warning in self.context.function().journal().take_warnings() {
            let (run, step) = (self.context.run_id.as_str(), self.context.step());
            tracing::warn!(run, step, "{warning}");
        }
    }

    fn moment(&self) -> Moment {
        let may_start = self.context.may_start_steps();
        Moment { now: self.context.now(), may_start, is_woken: self.waker.is_woken() }
    }

    fn store(&self, write: MemoWrite<Payload>) {
        let (id, context) = (write.id, Arc::clone(self.context));
        self.writes.push(Box::pin(async move {
            let request = context.function().request(context.claim, write);
            (id, context.parts.functions().memos.store(request).await)
        }));
    }

    fn listen(&mut self, listening: Listening) {
        let (context, claim) = (Arc::clone(self.context), self.context.claim);
        // Seen before the store looks, so that what comes while it looks is not missed.
        let hints = self.hints.get_or_insert_with(|| context.parts.store.hints());
        hints.look(Hint::Received);
        self.listening = Some(Box::pin(async move {
            listen(&context.parts, ListenRequest { claim, listening }).await
        }));
    }

    /// Waits for whatever comes first, and notes it.
    async fn rest(&mut self, until: Option<Timestamp>) -> Result<(), FunctionEnd> {
        let (context, parts) = (self.context, &self.context.parts);
        let stopping = &parts.functions().stopping;
        let (is_listening, waits_for_engine) = {
            let journal = context.function().journal();
            let is_waiting = until.is_some() || journal.awaits_answer();
            (journal.is_listening(), is_waiting && !journal.is_executing())
        };
        let _waits = context.wait_for_engine(waits_for_engine);
        let mut span = until.map(|until| until.since(context.now()));
        if is_listening {
            // Hints can be lost.
            let interval = parts.config.heartbeat_interval;
            span = Some(span.map_or(interval, |span| span.min(interval)));
        }
        let hinted = async {
            match &mut self.hints {
                Some(hints) if is_listening => hints.given(Hint::Received).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(written) = self.writes.next(), if !self.writes.is_empty() => {
                self.written(written)?;
            }
            answer = answered(&mut self.listening) => self.listened(answer)?,
            () = self.waker.woken() => yield_now().await,
            () = hinted => context.function().journal().look_again(),
            () = sleep(context, span) => {
                if is_listening {
                    context.function().journal().look_again();
                }
            }
            () = stopping.cancelled(), if !stopping.is_cancelled() => {}
        }
        Ok(())
    }

    fn written(&self, (id, answer): Written) -> Result<(), FunctionEnd> {
        let function = self.context.function();
        match answer {
            Ok(MemoAnswer::Stored(at)) => function.journal().stored(id, at),
            Ok(MemoAnswer::NotMine) => return Err(FunctionEnd::ClaimLost),
            Err(error) if is_about_data(&error) => {
                function.journal().refused(id, &refusal(&error));
            }
            Err(error) => return Err(lost(self.context, &error)),
        }
        Ok(())
    }

    fn listened(&mut self, answer: Result<ListenAnswer, StoreError>) -> Result<(), FunctionEnd> {
        self.listening = None;
        let heard = match answer {
            Ok(ListenAnswer::Listening(heard)) => heard,
            Ok(ListenAnswer::NotMine) => return Err(FunctionEnd::ClaimLost),
            Err(error) => return Err(lost(self.context, &error)),
        };
        let heard = heard.map(|heard| (OpId(heard.place), heard.payload, heard.at));
        self.context.function().journal().listened(heard, self.context.now());
        Ok(())
    }

    /// The function has answered. What is on its way to the store arrives first, so that it is
    /// known which errors came last; and waits that it leaves open hold no signals of others.
    async fn answered(mut self, answer: Answer) -> FunctionEnd {
        if answer.is_err() {
            while let Some(written) = self.writes.next().await {
                if let Err(end) = self.written(written) {
                    return end;
                }
            }
        }
        if let Some(listening) = self.listening.take() {
            drop(listening.await);
        }
        match let_go(self.context).await {
            Some(end) => end,
            None => FunctionEnd::Answered(answer),
        }
    }
}

/// Gives up the waits that a function leaves open in the store.
pub(super) async fn let_go(context: &TaskContext) -> Option<FunctionEnd> {
    let listening = context.started_function()?.journal().let_go()?;
    let request = ListenRequest { claim: context.claim, listening };
    match listen(&context.parts, request).await {
        Ok(ListenAnswer::Listening(_)) => None,
        Ok(ListenAnswer::NotMine) => Some(FunctionEnd::ClaimLost),
        Err(error) => Some(lost(context, &error)),
    }
}

fn refusal(error: &StoreError) -> Failure {
    Failure::new(FailureKind::Payload, "", &error.to_string()).with_retry(RetryAdvice::Never)
}

/// The engine has closed while the store was away.
fn lost(context: &TaskContext, error: &StoreError) -> FunctionEnd {
    tracing::error!(claim = ?context.claim, %error, "memos of a function not stored");
    FunctionEnd::ClaimLost
}

async fn answered<T>(under_way: &mut Option<BoxFuture<T>>) -> T {
    match under_way {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn sleep(context: &TaskContext, span: Option<Duration>) {
    match span {
        Some(span) => context.parts.clock.sleep(span).await,
        None => std::future::pending().await,
    }
}

/// Lets others on the runtime have their turn now and then.
async fn yield_at(n_turns: &mut usize) {
    *n_turns += 1;
    if n_turns.is_multiple_of(TURNS_MAX) {
        yield_now().await;
    }
}

/// Lets others on the runtime have their turn. Code that was told to yield would otherwise be
/// polled again at once, and told the same for ever.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
