//! What workers and clients do: claim, commit, cancel.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use stepwell_core::decide::{CancelAnswer, CancelRequest};
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::id::WorkerId;

use super::setup::payload;
use super::{CRASH_LIMIT, Run, WORKER, World, worker};
use crate::ports::{
    ClaimAnswer, ClaimRequest, ClaimedTask, CommitAnswer, CommitItem, Committed, Outcome,
    StartRequest, Started, Take, TaskInputs,
};

/// More than any case makes ready.
const ALL: usize = 1_000_000;

/// More rounds of claims than any case needs to come to its end.
const ROUNDS_MAX: usize = 1_000;

/// What one claim handed out, in order.
#[derive(Clone, Debug)]
pub struct Batch(pub Vec<ClaimedTask>);

impl Batch {
    /// The first task of this step.
    #[must_use]
    pub fn of(&self, step: &str) -> &ClaimedTask {
        let found = self.iter().find(|task| step_of(task) == step);
        found.unwrap_or_else(|| panic!("{step:?} was not claimed, but {:?}", self.steps()))
    }

    /// The steps in order, as in `a b c`.
    #[must_use]
    pub fn steps(&self) -> String {
        self.iter().map(step_of).collect::<Vec<_>>().join(" ")
    }

    /// The tenants in order, as in `acme acme zeta`.
    #[must_use]
    pub fn tenants(&self) -> String {
        self.iter().map(|task| task.tenant.as_str()).collect::<Vec<_>>().join(" ")
    }
}

impl Deref for Batch {
    type Target = [ClaimedTask];

    fn deref(&self) -> &[ClaimedTask] {
        &self.0
    }
}

impl World {
    /// Everything that is ready, for [`WORKER`].
    pub async fn claim_all(&self) -> Batch {
        self.claim(&worker(WORKER), ALL).await
    }

    /// The first ready task, for [`WORKER`].
    pub async fn claim_one(&self) -> ClaimedTask {
        let mut tasks = self.claim(&worker(WORKER), 1).await.0;
        assert_eq!(tasks.len(), 1, "a task is ready");
        tasks.remove(0)
    }

    /// Up to `tasks_max` ready tasks, or else a suspect, for a worker that lives.
    pub async fn claim(&self, worker: &WorkerId, tasks_max: usize) -> Batch {
        match self.try_claim(worker, tasks_max).await {
            ClaimAnswer::Claimed { tasks, .. } => Batch(tasks),
            ClaimAnswer::NoTrial => panic!("{worker} may hold no trial"),
            ClaimAnswer::NotRegistered => panic!("{worker} is not registered"),
        }
    }

    /// Up to `tasks_max` ready tasks for a worker whose crash limit makes nothing a suspect.
    pub async fn claim_trusting(&self, worker: &WorkerId, tasks_max: usize) -> Batch {
        let request = self.claim_request(worker, tasks_max);
        let request = ClaimRequest { crash_limit: 1_000, ..request };
        let answer = self.store.claim(request).await.expect("claim tasks");
        let ClaimAnswer::Claimed { tasks, .. } = answer else { panic!("{answer:?}") };
        self.acted().await;
        Batch(tasks)
    }

    /// A claim, whatever the answer. If it brings nothing but tells of a suspect, that is claimed.
    pub async fn try_claim(&self, worker: &WorkerId, tasks_max: usize) -> ClaimAnswer {
        let request = self.claim_request(worker, tasks_max);
        let mut answer = self.store.claim(request).await.expect("claim tasks");
        if let ClaimAnswer::Claimed { tasks, suspect_waits: true, .. } = &answer
            && tasks.is_empty()
        {
            let request = self.claim_request(worker, tasks_max);
            let request = ClaimRequest { take: Take::Suspect, ..request };
            answer = self.store.claim(request).await.expect("claim a suspect");
        }
        self.acted().await;
        answer
    }

    /// A claim for plain tasks, with a salt of its own.
    #[must_use]
    pub fn claim_request(&self, worker: &WorkerId, tasks_max: usize) -> ClaimRequest {
        let mut desk = self.desk();
        desk.n_claims += 1;
        ClaimRequest {
            worker: worker.clone(),
            tasks_max,
            take: Take::Plain,
            crash_limit: CRASH_LIMIT,
            salt: desk.n_claims.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// What a claimed task is executed with, which is also what came with the claim if anything
    /// did.
    pub async fn inputs(&self, task: &ClaimedTask) -> TaskInputs {
        let mut inputs = self.store.inputs(&[task.inputs_of()]).await.expect("read inputs");
        assert_eq!(inputs.len(), 1, "one claim, one answer");
        let inputs = inputs.remove(0);
        assert!(task.inputs.as_ref().is_none_or(|claimed| *claimed == inputs), "one truth");
        inputs
    }

    /// Completes a task.
    pub async fn complete(&self, task: &ClaimedTask) {
        self.settle(task, completed()).await;
    }

    /// Fails a task; its policy says what follows.
    pub async fn fail(&self, task: &ClaimedTask) {
        self.settle(task, failed("boom")).await;
    }

    /// Skips a claimed task, as its condition would.
    pub async fn skip(&self, task: &ClaimedTask) {
        self.settle(task, Outcome::Skipped).await;
    }

    /// Hands a task back.
    pub async fn release(&self, task: &ClaimedTask) {
        self.settle(task, Outcome::Released).await;
    }

    /// Commits one outcome that must be accepted.
    pub async fn settle(&self, task: &ClaimedTask, outcome: Outcome) {
        let answer = self.commit_one(task, outcome).await;
        assert_eq!(answer, CommitAnswer::Accepted, "{} of {}", step_of(task), task.run_id);
    }

    /// Commits one outcome, whatever the answer.
    pub async fn commit_one(&self, task: &ClaimedTask, outcome: Outcome) -> CommitAnswer {
        self.commit(vec![CommitItem { claim: task.claim, outcome }]).await.remove(0)
    }

    /// Completes several tasks in one transaction.
    pub async fn complete_together(&self, tasks: &[ClaimedTask]) {
        let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
        let answers = self.commit(tasks.iter().map(item).collect()).await;
        let is_accepted = |answer: &CommitAnswer| *answer == CommitAnswer::Accepted;
        assert!(answers.iter().all(is_accepted), "{answers:?}");
    }

    /// Commits outcomes in one transaction, whatever the answers.
    pub async fn commit(&self, items: Vec<CommitItem>) -> Vec<CommitAnswer> {
        let n_items = items.len();
        let answers = self.store.commit(items).await.expect("commit outcomes");
        assert_eq!(answers.len(), n_items, "one answer per item");
        self.acted().await;
        answers
    }

    /// Completes tasks in one transaction while a worker offers to take up to `tasks_max` of what
    /// becomes ready; gives what was handed over.
    pub async fn complete_for(
        &self,
        tasks: &[ClaimedTask],
        worker: &WorkerId,
        tasks_max: usize,
    ) -> Batch {
        let item = |task: &ClaimedTask| CommitItem { claim: task.claim, outcome: completed() };
        let items: Vec<CommitItem> = tasks.iter().map(item).collect();
        let committed = self.commit_for(items, worker, tasks_max).await;
        assert_eq!(committed.answers, vec![CommitAnswer::Accepted; tasks.len()]);
        Batch(committed.handed_over.tasks)
    }

    /// Commits outcomes while a worker offers to take what becomes ready, whatever the answers.
    pub async fn commit_for(
        &self,
        items: Vec<CommitItem>,
        worker: &WorkerId,
        tasks_max: usize,
    ) -> Committed {
        let offer = self.claim_request(worker, tasks_max);
        let committed = self.store.commit_and_claim(items, Some(offer)).await;
        self.acted().await;
        committed.expect("commit outcomes")
    }

    /// Starts runs while a worker offers to take up to `tasks_max` of their roots.
    pub async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        worker: &WorkerId,
        tasks_max: usize,
    ) -> Started {
        let offer = self.claim_request(worker, tasks_max);
        let started = self.store.start_and_claim(requests, Some(offer)).await;
        self.acted().await;
        started.expect("start runs")
    }

    /// Claims the first ready task and completes it; gives its step.
    pub async fn step(&self) -> String {
        let task = self.claim_one().await;
        self.complete(&task).await;
        step_of(&task).to_owned()
    }

    /// Claims and completes until nothing is ready; gives the steps in order.
    pub async fn drain(&self) -> String {
        let mut steps = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let batch = self.claim_all().await;
            if batch.is_empty() {
                return steps.join(" ");
            }
            steps.push(batch.steps());
            self.complete_together(&batch).await;
        }
        panic!("work does not come to an end")
    }

    /// Cancels a run that exists.
    pub async fn cancel(&self, run: &Run) -> CancelAnswer {
        self.cancel_with(run, CancelRequest::by("a test")).await
    }

    /// Cancels a run that exists, failure handler included.
    pub async fn force(&self, run: &Run) -> CancelAnswer {
        self.cancel_with(run, CancelRequest { force: true, ..CancelRequest::by("a test") }).await
    }

    /// Cancels a run that exists as the request says.
    pub async fn cancel_with(&self, run: &Run, request: CancelRequest) -> CancelAnswer {
        let answer = self.store.cancel(run.key, request).await.expect("cancel a run");
        self.acted().await;
        answer.expect("the run exists")
    }
}

/// The step of a claimed task.
#[must_use]
pub fn step_of(task: &ClaimedTask) -> &str {
    task.definition.definition.name(task.claim.node)
}

/// An execution that gave some output.
#[must_use]
pub fn completed() -> Outcome {
    completed_with(b"output")
}

/// An execution that gave this output.
#[must_use]
pub fn completed_with(output: &[u8]) -> Outcome {
    Outcome::Completed { output: payload(output), notes: BTreeMap::new() }
}

/// An execution that failed; the policy says what follows.
#[must_use]
pub fn failed(message: &str) -> Outcome {
    failed_with(message, RetryAdvice::ByPolicy)
}

/// An execution that failed and asks not to be tried again.
#[must_use]
pub fn failed_for_good(message: &str) -> Outcome {
    failed_with(message, RetryAdvice::Never)
}

/// An execution that failed and asks to be tried again after a delay.
#[must_use]
pub fn failed_until(delay: Duration) -> Outcome {
    failed_with("not yet", RetryAdvice::After(delay))
}

/// An execution that failed after steps of its function did.
#[must_use]
pub fn failed_forgetting(keys: &[&str]) -> Outcome {
    match failed("a step failed") {
        Outcome::Failed { failure, notes, chance, failures, .. } => {
            let forgets = keys.iter().map(|key| (*key).to_owned()).collect();
            Outcome::Failed { failure, notes, chance, failures, forgets }
        }
        other => other,
    }
}

fn failed_with(message: &str, advice: RetryAdvice) -> Outcome {
    let failure = Failure::new(FailureKind::Error, "Error", message).with_retry(advice);
    Outcome::Failed { failure, notes: BTreeMap::new(), chance: 0, failures: 0, forgets: Vec::new() }
}
