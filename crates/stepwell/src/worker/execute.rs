//! One attempt, as a pipeline: claimed, decided to skip or run, executed, committed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use stepwell_core::decide::{Notes, Suspension};
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::id::Node;
use stepwell_core::run::{WaitFor, WaitKind};
use stepwell_core::workflow::StepPolicy;
use tokio::sync::oneshot;

use super::Worker;
use super::function::{self, FunctionEnd};
use crate::engine::{
    MatchingFn, NoOutput, Slot, StepBody, StepFn, TaskArgs, TaskContext, guarded, guarded_async,
    panicked,
};
use crate::ports::{CommitItem, NoThread, Outcome, Payload};

/// How an attempt ended.
enum AttemptEnd {
    /// With an outcome to commit.
    With(Outcome),
    /// The worker lost the claim meanwhile, so the store would refuse any outcome.
    ClaimLost,
}

/// How long a task waits that lacks a thread.
const PUT_OFF: Duration = Duration::from_secs(1);

/// What user code returned.
pub(super) type Answer = Result<Payload, NoOutput>;

impl Worker {
    /// Executes a claimed task in a slot and commits what became of it. The next task may have the
    /// slot as soon as this one's outcome is handed in.
    pub(super) async fn attempt(&self, body: StepBody, args: TaskArgs, slot: Slot) {
        let context = Arc::clone(&args.context);
        let claim = context.claim;
        let n_ready_max = context.workflow.n_children(claim.node);
        // Also what is not guarded, such as a clone of the author's closure, must leave an outcome:
        // this worker's heartbeats would keep a claim without one for ever.
        let end = AssertUnwindSafe(self.execute(body, args)).catch_unwind().await;
        let end = end.unwrap_or_else(|panic| {
            let failure = panicked(panic);
            tracing::error!(?claim, failure = failure.message, "attempt panicked");
            self.ended(&context, Some(Err(failure.into())))
        });
        self.slots.held.execution_ended(&context.stop);
        match end {
            AttemptEnd::With(outcome) => {
                self.hand_in(CommitItem { claim, outcome }, n_ready_max).await;
            }
            AttemptEnd::ClaimLost => self.slots.drop_claims(&[claim]),
        }
        drop(slot);
    }

    /// Hands in an outcome by which so many tasks may become ready. The claim is held until the
    /// outcome is committed.
    pub(super) async fn hand_in(&self, item: CommitItem, n_ready_max: usize) {
        let claim = item.claim;
        if let Err(error) = self.committer.hand_in(item, n_ready_max).await {
            tracing::error!(?claim, %error, "outcome not committed");
            self.slots.drop_claims(&[claim]);
        }
    }

    async fn execute(&self, body: StepBody, args: TaskArgs) -> AttemptEnd {
        // A step that has waited was let in before, so its conditions are not asked again.
        let is_let_in = args.context.resumed.is_some() || args.context.has_suspended;
        match if is_let_in { Ok(false) } else { should_skip(&body, &args) } {
            Ok(true) => return AttemptEnd::With(Outcome::Skipped),
            Ok(false) => {}
            Err(failure) => return self.ended(&args.context, Some(Err(failure.into()))),
        }
        let context = Arc::clone(&args.context);
        let policy = context.workflow.policy(context.claim.node);
        let answer = match body.function {
            StepFn::Sleep => return AttemptEnd::With(Outcome::Slept),
            StepFn::Wait(matching) => Some(Err(wait_for(&context, &args, &matching))),
            StepFn::Async(function) => {
                let code = async { flatten(guarded_async(function(args)).await) };
                let mut code = std::pin::pin!(code);
                tokio::select! {
                    biased;
                    end = function::run(&context, code.as_mut()) => match end {
                        FunctionEnd::Answered(answer) => Some(answer),
                        end => return self.paused(&context, end),
                    },
                    () = context.stop.token().cancelled() => None,
                    failure = overdue(&context, policy) => Some(Err(failure.into())),
                }
            }
            StepFn::Blocking(function) => match self.call_blocking(function, args) {
                Ok(answer) => {
                    let answer = self.await_blocking(answer, &context, policy).await;
                    match function::ended_blocking(&context, answer).await {
                        Ok(answer) => answer,
                        Err(end) => return self.paused(&context, end),
                    }
                }
                Err(error) => return self.put_off(&context, error).await,
            },
        };
        self.ended(&context, answer)
    }

    /// Calls a blocking function on its own thread; the answer comes when it returns.
    fn call_blocking(
        &self,
        function: Arc<dyn Fn(TaskArgs) -> Answer + Send + Sync>,
        args: TaskArgs,
    ) -> Result<oneshot::Receiver<Answer>, NoThread> {
        let (answer_to, answer) = oneshot::channel();
        self.parts.spawner.spawn_blocking(Box::new(move || {
            let result = flatten(guarded(|| function(args)));
            // The engine may have closed meanwhile.
            let _ = answer_to.send(result);
        }))?;
        Ok(answer)
    }

    /// Hands a task back that cannot be executed here now. After a while, during which it keeps its
    /// slot: this worker might claim it again at once.
    async fn put_off(&self, context: &TaskContext, error: NoThread) -> AttemptEnd {
        tracing::error!(claim = ?context.claim, %error, "blocking step not executed");
        tokio::select! {
            biased;
            () = context.stop.token().cancelled() => {}
            () = self.parts.clock.sleep(PUT_OFF) => {}
        }
        AttemptEnd::With(Outcome::Released)
    }

    /// Waits for a blocking function. It cannot be interrupted: it is told to stop, and keeps its
    /// claim and its slot until it returns. If the task moved on before that, it could run twice at
    /// once.
    async fn await_blocking(
        &self,
        mut answer: oneshot::Receiver<Answer>,
        context: &TaskContext,
        policy: Option<&StepPolicy>,
    ) -> Option<Answer> {
        let gone =
            || Err(NoOutput::Failed(Failure::new(FailureKind::Panic, "", "its thread went away")));
        tokio::select! {
            biased;
            answer = &mut answer => return Some(answer.unwrap_or_else(|_| gone())),
            () = context.stop.token().cancelled() => {}
            failure = overdue(context, policy) => {
                context.stop.token().cancel();
                // Whatever it still returns came too late.
                let _ = answer.await;
                return Some(Err(failure.into()));
            }
        }
        let late = answer.await.unwrap_or_else(|_| gone());
        // Stopped by a shutdown, it may still have finished its work.
        context.stop.hands_back().then_some(late)
    }

    /// How an attempt ended whose function goes on later, here or elsewhere.
    fn paused(&self, context: &TaskContext, end: FunctionEnd) -> AttemptEnd {
        match end {
            FunctionEnd::Answered(answer) => self.ended(context, Some(answer)),
            FunctionEnd::Suspended(suspension) => {
                let notes = context.take_notes();
                match check_suspension(context, &suspension) {
                    Ok(()) => {
                        let suspension = Box::new(suspension);
                        AttemptEnd::With(Outcome::Suspended { suspension, notes })
                    }
                    Err(failure) => self.failed(context, failure, notes),
                }
            }
            FunctionEnd::Released => AttemptEnd::With(Outcome::Released),
            FunctionEnd::ClaimLost => AttemptEnd::ClaimLost,
        }
    }

    /// How an attempt ended: with this answer, or without one because it was stopped.
    fn ended(&self, context: &TaskContext, answer: Option<Answer>) -> AttemptEnd {
        if let Some(Ok(_) | Err(NoOutput::Continues(_))) = answer {
            tell_drift(context);
        }
        let notes = context.take_notes();
        match answer {
            Some(Ok(output)) => AttemptEnd::With(Outcome::Completed { output, notes }),
            Some(Err(NoOutput::Waits(wait_for))) => match check_wait(context, &wait_for) {
                Ok(()) => AttemptEnd::With(Outcome::Waits { wait_for, notes }),
                Err(failure) => self.failed(context, failure, notes),
            },
            Some(Err(NoOutput::Continues(input))) => {
                let round = context.round + 1;
                AttemptEnd::With(Outcome::Continued { round, input, notes })
            }
            // The context of blocking code alone says so, and it knows what is waited for.
            Some(Err(NoOutput::Suspended)) => {
                let suspension = context.function().journal().suspension();
                self.paused(context, FunctionEnd::Suspended(suspension))
            }
            // Told to stop for a shutdown, a step may give up with an error. It is not charged.
            Some(Err(NoOutput::Failed(failure)))
                if context.stop.hands_back() && failure.kind != FailureKind::TimedOut =>
            {
                AttemptEnd::With(Outcome::Released)
            }
            Some(Err(NoOutput::Failed(failure))) => self.failed(context, failure, notes),
            None if context.stop.hands_back() => AttemptEnd::With(Outcome::Released),
            None => AttemptEnd::ClaimLost,
        }
    }

    fn failed(&self, context: &TaskContext, failure: Failure, notes: Notes) -> AttemptEnd {
        let (chance, failures) = (self.parts.chance(), context.failures);
        let function = context.started_function();
        let forgets = function.map_or_else(Vec::new, |function| function.journal().forgets());
        AttemptEnd::With(Outcome::Failed { failure, notes, chance, failures, forgets })
    }
}

/// Whether any condition says that the step is skipped. One that fails, fails the step.
fn should_skip(body: &StepBody, args: &TaskArgs) -> Result<bool, Failure> {
    for condition in &body.skip_if {
        if guarded(|| condition(args))?? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What user code answered; a panic is a failure.
fn flatten(answer: Result<Answer, Failure>) -> Answer {
    answer.map_err(NoOutput::Failed).and_then(|answer| answer)
}

/// What a wait node waits for: its policy, and the attributes that its code tells.
fn wait_for(context: &TaskContext, args: &TaskArgs, matching: &[MatchingFn]) -> NoOutput {
    let policy = context.workflow.policy(context.claim.node);
    let Some(policy) = policy.and_then(|policy| policy.wait.as_ref()) else {
        let message = "this program does not say what the node waits for";
        return Failure::new(FailureKind::Error, "", message).into();
    };
    let mut wait_for = policy.wait_for.clone();
    for matching in matching {
        match guarded(|| matching(args)).and_then(|attribute| attribute) {
            Ok((name, value)) => drop(wait_for.matching.insert(name, value)),
            Err(failure) => return failure.into(),
        }
    }
    NoOutput::Waits(wait_for)
}

/// Tells once that a function did not ask for things that are recorded of it.
fn tell_drift(context: &TaskContext) {
    let keys = context.drift();
    if !keys.is_empty() {
        let (run, step, keys) = (context.run_id.as_str(), context.step(), keys.join(", "));
        tracing::warn!(run, step, keys, "recorded steps that the code did not ask for");
        context.note("drift", &format!("recorded, and not asked for: {keys}"));
    }
}

/// Whether a function may wait for this.
fn check_suspension(context: &TaskContext, suspension: &Suspension) -> Result<(), Failure> {
    let listens = suspension.waits.iter().any(|wait| wait.kind == WaitKind::Signal);
    if listens { refuse_handler(context) } else { Ok(()) }
}

/// A failure handler cannot wait for signals.
fn refuse_handler(context: &TaskContext) -> Result<(), Failure> {
    if context.claim.node != Node::ON_FAILURE {
        return Ok(());
    }
    Err(refused(
        "a failure handler cannot wait for a signal: its run is ending and takes none; start \
         another run that waits",
    ))
}

fn refused(message: &str) -> Failure {
    Failure::new(FailureKind::Error, "", message).with_retry(RetryAdvice::Never)
}

/// Whether a task may wait for this. Trying again would end the same way.
fn check_wait(context: &TaskContext, wait_for: &WaitFor) -> Result<(), Failure> {
    refuse_handler(context)?;
    match wait_for.check() {
        Ok(()) => Ok(()),
        Err((field, why)) => Err(refused(&format!("{field} of the wait: {why}"))),
    }
}

/// Completes when the step has taken too long, or has been silent for too long.
async fn overdue(context: &TaskContext, policy: Option<&StepPolicy>) -> Failure {
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
