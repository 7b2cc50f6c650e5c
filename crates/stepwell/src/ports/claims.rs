//! Claiming ready tasks.

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{Node, RunId, RunKey, Tenant, Token, WorkerId};
use stepwell_core::run::{Resumed, RunFailure, TaskState};
use stepwell_core::time::Timestamp;

use super::{History, Payload, StoreError, StoredDefinition};

/// A worker asks for work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who asks. Its registration says which queues and services it serves.
    pub worker: WorkerId,
    /// Most tasks to hand out.
    pub tasks_max: usize,
    /// What it may be handed.
    pub take: Take,
    /// Losses at which a task ends; one below it makes a suspect.
    pub crash_limit: u32,
    /// Random bits for the token.
    pub salt: u64,
}

/// What a worker may be handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Tasks that are no suspects. The worker holds no trial any more.
    Plain,
    /// One suspect, for a worker in a [trial](stepwell_core::trial) that holds nothing else. The
    /// first such request begins the trial; one for no tasks at all only does that.
    Suspect,
}

/// What a worker gets.
#[derive(Clone, Debug)]
pub enum ClaimAnswer {
    /// Tasks in fair order, perhaps none.
    Claimed {
        /// The store's time of the claim.
        now: Timestamp,
        /// The tasks.
        tasks: Vec<ClaimedTask>,
        /// Whether no suspect was handed out although one waits that this worker could take.
        suspect_waits: bool,
    },
    /// A suspect waits, and enough others who serve the same hold trials: this worker may not begin
    /// one now.
    NoTrial,
    /// The worker is not registered, or was taken for dead: it must register anew.
    NotRegistered,
}

/// Tasks that went straight to a worker, in the transaction that made them ready: as if it had
/// claimed right after, without a place in line in between and without another transaction.
///
/// Only what a claim would have found may be handed over, and only if nothing waited in any of the
/// worker's queues before: whoever waits goes first. If not everything can be handed over, what is
/// comes first in the fair order. A store may always leave tasks in line instead, and need not
/// count what nobody waited behind as a turn of its tenant. A worker that is not registered gets
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct HandedOver {
    /// The store's time of the claim.
    pub now: Timestamp,
    /// The tasks, in fair order.
    pub tasks: Vec<ClaimedTask>,
}

/// A claimed task.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// What every write about it carries.
    pub claim: ClaimRef,
    /// Whose run it is.
    pub tenant: Tenant,
    /// The caller's id of the run.
    pub run_id: RunId,
    /// The definition of the run.
    pub definition: Arc<StoredDefinition>,
    /// The number of this attempt.
    pub attempt: u32,
    /// How many of its attempts have failed.
    pub failures: u32,
    /// What ended its last wait, if it has waited.
    pub resumed: Option<Resumed>,
    /// Whether one more loss would end it.
    pub is_suspect: bool,
    /// What it is executed with, if the store had that at hand; else [`Claims::inputs`] tells.
    pub inputs: Option<TaskInputs>,
}

/// Names one claim. A write with a token that no longer holds the task changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimRef {
    /// The run.
    pub run: RunKey,
    /// The task.
    pub node: Node,
    /// The fence.
    pub token: Token,
}

/// A claimed task whose inputs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputsOf {
    /// The claim.
    pub claim: ClaimRef,
    /// The number of the attempt.
    pub attempt: u32,
    /// What ended its last wait, as the claim told.
    pub resumed: Option<Resumed>,
}

/// A task that is executed for the first time.
impl From<ClaimRef> for InputsOf {
    fn from(claim: ClaimRef) -> Self {
        Self { claim, attempt: 1, resumed: None }
    }
}

impl InputsOf {
    /// Whether there may be something of earlier executions to read.
    #[must_use]
    pub const fn has_history(&self) -> bool {
        self.attempt > 1
    }
}

impl ClaimedTask {
    /// The task, to read its inputs.
    #[must_use]
    pub const fn inputs_of(&self) -> InputsOf {
        InputsOf { claim: self.claim, attempt: self.attempt, resumed: self.resumed }
    }
}

/// What a task is executed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInputs {
    /// The run's input.
    pub input: Payload,
    /// Its parents, in the order of the stored graph.
    pub parents: Vec<ParentInput>,
    /// What made the run fail, if this is its failure handler.
    pub failure: Option<Box<RunFailure>>,
    /// What ended its last wait: a signal's payload, or that its deadline passed.
    pub resumed: Option<Payload>,
    /// What earlier executions left, if there were any.
    pub history: Option<Box<History>>,
}

/// What a parent left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentInput {
    /// The parent.
    pub node: Node,
    /// COMPLETED or SKIPPED.
    pub state: TaskState,
    /// Its output if it completed; the empty payload if it has none of its own. A wait node gives
    /// the signal it got, or that its deadline passed.
    pub output: Option<Payload>,
}

/// Claims ready tasks.
#[async_trait]
pub trait Claims {
    /// Hands up to `tasks_max` ready tasks to a live worker and marks them RUNNING under a fresh
    /// token, in one step: no task is ever out of the queue without being claimed. Tasks come in
    /// fair order among what the worker serves; it takes turns between its queues.
    ///
    /// Two claims never hand out the same task. The attempt is counted here. No task of a run is
    /// handed out whose deadline has passed.
    ///
    /// A worker that holds a suspect holds nothing else. A suspect goes to a worker in a trial that
    /// holds no task, and a worker in a trial is handed nothing over. If it asks for plain tasks,
    /// its trial ends, unless it holds a suspect: then it gets nothing. No more workers hold trials
    /// at a time than [`may_begin`](stepwell_core::trial::may_begin) allows; the crews of a worker
    /// are those who have a service of its own, and those who have it in one of its queues.
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError>;

    /// What claimed tasks are executed with, in the order asked for. One read per claim batch.
    async fn inputs(&self, tasks: &[InputsOf]) -> Result<Vec<TaskInputs>, StoreError>;
}
