//! One attempt, as a pipeline: claimed, decided to skip or run, executed, committed.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::workflow::StepPolicy;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::panic::{guarded, guarded_async};
use super::{TaskArgs, Worker};
use crate::engine::{Code, StepCode};
use crate::ports::{CommitItem, Outcome, Payload};

/// How an execution ended.
enum Ended {
    /// With something to commit.
    With(Outcome),
    /// The claim is no longer ours; nothing it could say would change anything.
    NotMine,
}

/// What user code gave.
type Answer = Result<Payload, Failure>;

impl Worker {
    /// Executes a claimed task in a slot and commits what became of it. The next task may have the
    /// slot as soon as this one's outcome is handed in.
    pub(super) async fn attempt(&self, code: StepCode, args: TaskArgs, slot: OwnedSemaphorePermit) {
        let claim = args.context.claim;
        let n_next = args.context.workflow.n_children(claim.node);
        match self.execute(code, args).await {
            Ended::With(outcome) => self.hand_in(CommitItem { claim, outcome }, n_next).await,
            Ended::NotMine => self.hands.drop_claims(&[claim]),
        }
        drop(slot);
    }

    /// Hands in an outcome by which so many tasks may become ready. The claim is held until that is
    /// committed.
    pub(super) async fn hand_in(&self, item: CommitItem, n_next: usize) {
        let claim = item.claim;
        if let Err(error) = self.committer.hand_in(item, n_next).await {
            tracing::error!(?claim, %error, "outcome not committed");
            self.hands.drop_claims(&[claim]);
        }
    }

    async fn execute(&self, code: StepCode, args: TaskArgs) -> Ended {
        match should_skip(&code, &args) {
            Ok(true) => return Ended::With(Outcome::Skipped),
            Ok(false) => {}
            Err(failure) => return self.failed(&args, failure),
        }
        let context = Arc::clone(&args.context);
        let policy = context.workflow.policy(context.claim.node);
        let answer = match code.code {
            Code::Sleep => return Ended::With(Outcome::Slept),
            Code::Async(code) => {
                let future = guarded_async(code(args));
                tokio::select! {
                    biased;
                    answer = future => Some(answer.and_then(|answer| answer)),
                    () = context.stop.token().cancelled() => None,
                    failure = overdue(&context, policy) => Some(Err(failure)),
                }
            }
            Code::Blocking(code) => {
                let answer = self.call_blocking(code, args);
                self.await_blocking(answer, &context, policy).await
            }
        };
        self.ended(&context, answer)
    }

    /// Calls blocking code on its own thread; the answer comes when it returns.
    fn call_blocking(
        &self,
        code: Arc<dyn Fn(TaskArgs) -> Answer + Send + Sync>,
        args: TaskArgs,
    ) -> oneshot::Receiver<Answer> {
        let (answer_to, answer) = oneshot::channel();
        self.parts.spawner.spawn_blocking(Box::new(move || {
            let result = guarded(|| code(args)).and_then(|answer| answer);
            // The engine may have closed meanwhile.
            let _ = answer_to.send(result);
        }));
        answer
    }

    /// A blocking closure cannot be interrupted: it is told to stop, and keeps its claim and its
    /// slot until it returns. Only then may the task move on, or it would run twice at once.
    async fn await_blocking(
        &self,
        mut answer: oneshot::Receiver<Answer>,
        context: &super::TaskContext,
        policy: Option<&StepPolicy>,
    ) -> Option<Answer> {
        let gone = || Err(Failure::new(FailureKind::Panic, "", "its thread went away"));
        tokio::select! {
            biased;
            answer = &mut answer => return Some(answer.unwrap_or_else(|_| gone())),
            () = context.stop.token().cancelled() => {}
            failure = overdue(context, policy) => {
                context.stop.token().cancel();
                // Whatever it still returns came too late.
                let _ = answer.await;
                return Some(Err(failure));
            }
        }
        let late = answer.await.unwrap_or_else(|_| gone());
        // Stopped by a shutdown, it may still have finished its work.
        context.stop.hands_back().then_some(late)
    }

    fn ended(&self, context: &super::TaskContext, answer: Option<Answer>) -> Ended {
        let notes = context.take_notes();
        match answer {
            Some(Ok(output)) => Ended::With(Outcome::Completed { output, notes }),
            // Told to stop for a shutdown, a step may give up with an error. It is not charged.
            Some(Err(failure))
                if context.stop.hands_back() && failure.kind != FailureKind::TimedOut =>
            {
                Ended::With(Outcome::Released)
            }
            Some(Err(failure)) => {
                let (chance, failures) = (self.parts.chance(), context.failures);
                Ended::With(Outcome::Failed { failure, notes, chance, failures })
            }
            None if context.stop.hands_back() => Ended::With(Outcome::Released),
            None => Ended::NotMine,
        }
    }

    fn failed(&self, args: &TaskArgs, failure: Failure) -> Ended {
        self.ended(&args.context, Some(Err(failure)))
    }
}

/// Whether any condition says that the step is skipped. One that fails, fails the step.
fn should_skip(code: &StepCode, args: &TaskArgs) -> Result<bool, Failure> {
    for condition in &code.skip_if {
        if guarded(|| condition(args))?? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Completes when the step has taken too long, or has been silent for too long.
async fn overdue(context: &super::TaskContext, policy: Option<&StepPolicy>) -> Failure {
    let clock = &context.parts.clock;
    let timeout = async {
        let Some(span) = policy.and_then(|policy| policy.timeout) else {
            return std::future::pending().await;
        };
        clock.sleep(span).await;
        timed_out(&format!("took longer than its time-out of {span:?}"))
    };
    let silence = async {
        let span = policy.and_then(|policy| policy.heartbeat_timeout);
        let Some(span) = span else { return std::future::pending().await };
        loop {
            let left = span.saturating_sub(context.silent_for());
            if left == Duration::ZERO {
                return timed_out(&format!("gave no heartbeat for {span:?}"));
            }
            clock.sleep(left).await;
        }
    };
    tokio::select! {
        biased;
        failure = timeout => failure,
        failure = silence => failure,
    }
}

fn timed_out(message: &str) -> Failure {
    Failure::new(FailureKind::TimedOut, "", message)
}
