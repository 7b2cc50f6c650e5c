use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use stepwell_core::decide::is_suspect;
use stepwell_core::fair::Position;
use stepwell_core::id::{DefinitionId, Node, RunKey, Token};
use stepwell_core::run::{RunRow, TaskRow, TaskState};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::corrupt;
use super::rows::{self, count, int, int32, key, name, node, run_key, token, unsigned};
use super::transaction::Transaction;
use super::{PostgresStore, statements};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, ParentInput, Payload, StoreError,
    TaskInputs,
};

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        self.with_retries(|| self.claim_once(&request)).await
    }

    async fn inputs(&self, claims: &[ClaimRef]) -> Result<Vec<TaskInputs>, StoreError> {
        let transaction = self.begin().await?;
        let inputs = inputs(&transaction, claims).await?;
        self.commit_transaction(transaction).await?;
        Ok(inputs)
    }
}

/// The worker that asks.
struct Asking {
    no: i64,
    queues: Vec<String>,
    next_turn: usize,
    definitions: Vec<i32>,
}

/// A ready task that may be claimed.
struct Candidate {
    slot: (u64, u64),
    position: Position,
    losses: u32,
    run: RunKey,
    node: Node,
}

/// What a claim chose.
#[derive(Default)]
struct Chosen {
    tasks: Vec<(RunKey, Node)>,
    /// The greatest position taken, by queue.
    frontiers: BTreeMap<String, Position>,
    served_last: Option<usize>,
}

impl PostgresStore {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        let transaction = self.begin().await?;
        let worker = request.worker.as_str();
        let Some(row) = transaction.one(statements::FIND_WORKER, &[&worker]).await? else {
            self.commit_transaction(transaction).await?;
            return Ok(ClaimAnswer::NotRegistered);
        };
        let next_turn: i32 = row.try_get(2)?;
        let asking = Asking {
            no: row.try_get(0)?,
            queues: row.try_get(1)?,
            next_turn: usize::try_from(next_turn).unwrap_or_default(),
            definitions: row.try_get(3)?,
        };
        let now = transaction.now;
        let chosen = choose(&transaction, &asking, request).await?;
        let mut tasks = Vec::new();
        if !chosen.tasks.is_empty() {
            tasks = hand_out(&transaction, &asking, &chosen, request).await?;
            pass_on(&transaction, &asking, &chosen).await?;
        }
        self.commit_transaction(transaction).await?;
        Ok(ClaimAnswer::Claimed { now, tasks })
    }
}

/// Chooses ready tasks in fair order, taking turns between queues, with at most one suspect.
async fn choose(
    transaction: &Transaction,
    asking: &Asking,
    request: &ClaimRequest,
) -> Result<Chosen, StoreError> {
    let n_queues = asking.queues.len().max(1);
    let mut lines: VecDeque<(usize, VecDeque<Candidate>)> = VecDeque::new();
    for turn in (0..asking.queues.len()).map(|ix| (asking.next_turn + ix) % n_queues) {
        let line = candidates(transaction, asking, &asking.queues[turn], request).await?;
        lines.push_back((turn, line.into()));
    }
    let (mut chosen, mut suspect) = (Chosen::default(), request.suspect);
    while chosen.tasks.len() < request.tasks_max {
        let Some((turn, mut line)) = lines.pop_front() else { break };
        let taken = loop {
            match line.pop_front() {
                Some(task) if is_suspect(task.losses, request.crash_limit) && !suspect => {}
                taken => break taken,
            }
        };
        let Some(task) = taken else { continue };
        suspect &= !is_suspect(task.losses, request.crash_limit);
        chosen.tasks.push((task.run, task.node));
        let frontier = chosen.frontiers.entry(asking.queues[turn].clone()).or_default();
        *frontier = task.position.max(*frontier);
        chosen.served_last = Some(turn);
        lines.push_back((turn, line));
    }
    Ok(chosen)
}

/// The first tasks of a queue that the worker can take, one suspect among them if it may.
async fn candidates(
    transaction: &Transaction,
    asking: &Asking,
    queue: &str,
    request: &ClaimRequest,
) -> Result<Vec<Candidate>, StoreError> {
    let n = i64::try_from(request.tasks_max).unwrap_or(i64::MAX);
    let (zero, suspects_from) = (0_i32, int32(request.crash_limit.saturating_sub(1)));
    let read = |row: &Row| {
        Ok(Candidate {
            slot: (unsigned(row, 0)?, unsigned(row, 1)?),
            position: Position(unsigned(row, 2)?),
            losses: count(row, 3)?,
            run: run_key(row, 4)?,
            node: node(row, 5)?,
        })
    };
    let plain: super::transaction::Params<'_> =
        &[&queue, &asking.definitions, &zero, &suspects_from, &n];
    let mut found = rows::read_all(&transaction.all(statements::FIRST_READY, plain).await?, read)?;
    if request.suspect {
        let suspects: super::transaction::Params<'_> =
            &[&queue, &asking.definitions, &suspects_from, &i32::MAX, &1_i64];
        let suspects = transaction.all(statements::FIRST_READY, suspects).await?;
        found.extend(rows::read_all(&suspects, read)?);
        found.sort_by_key(|task| task.slot);
    }
    Ok(found)
}

async fn hand_out(
    transaction: &Transaction,
    asking: &Asking,
    chosen: &Chosen,
    request: &ClaimRequest,
) -> Result<Vec<ClaimedTask>, StoreError> {
    let row = transaction.one(statements::TAKE_CLAIM_COUNT, &[]).await?;
    let row = row.ok_or_else(|| corrupt("the claim counter is missing"))?;
    let fence = Token::new(unsigned(&row, 0)?, request.salt);
    let runs: Vec<Uuid> = chosen.tasks.iter().map(|(run, _)| key(*run)).collect();
    let nodes: Vec<i32> = chosen.tasks.iter().map(|(_, node)| int32(node.0)).collect();
    let now = transaction.now.as_micros();
    let params: super::transaction::Params<'_> = &[&runs, &nodes, &asking.no, &token(fence), &now];
    let mut tasks = Vec::with_capacity(runs.len());
    for row in transaction.all(statements::CLAIM_TASKS, params).await? {
        let definition = DefinitionId(count(&row, 6)?);
        tasks.push(ClaimedTask {
            claim: ClaimRef { run: run_key(&row, 0)?, node: node(&row, 1)?, token: fence },
            tenant: name(&row, 4)?,
            run_id: name(&row, 5)?,
            definition: transaction.definition(definition).await?,
            attempt: count(&row, 2)?,
            is_suspect: is_suspect(count(&row, 3)?, request.crash_limit),
        });
    }
    Ok(tasks)
}

/// Moves the worker's frontiers on, and the turn among its queues.
async fn pass_on(
    transaction: &Transaction,
    asking: &Asking,
    chosen: &Chosen,
) -> Result<(), StoreError> {
    let queues: Vec<&str> = chosen.frontiers.keys().map(String::as_str).collect();
    let workers = vec![asking.no; queues.len()];
    let positions: Vec<i64> = chosen.frontiers.values().map(|p| int(p.0)).collect();
    transaction.run(statements::RAISE_FRONTIER, &[&queues, &workers, &positions]).await?;
    if asking.queues.len() > 1
        && let Some(turn) = chosen.served_last
    {
        let next = i32::try_from((turn + 1) % asking.queues.len()).unwrap_or_default();
        transaction.run(statements::PASS_THE_TURN, &[&asking.no, &next]).await?;
    }
    Ok(())
}

async fn inputs(
    transaction: &Transaction,
    claims: &[ClaimRef],
) -> Result<Vec<TaskInputs>, StoreError> {
    let keys: Vec<Uuid> = claims.iter().map(|claim| key(claim.run)).collect();
    let mut payloads = BTreeMap::new();
    for row in transaction.all(statements::READ_INPUTS, &[&keys]).await? {
        payloads.insert(run_key(&row, 0)?, rows::payload(&row, 1)?);
    }
    let rows = transaction.all(statements::READ_RUNS, &[&keys]).await?;
    let runs = rows::read_all(&rows, rows::run)?.into_iter().map(|run| (run.row.key, run.row));
    let runs: BTreeMap<RunKey, RunRow> = runs.collect();
    let mut found = Vec::with_capacity(claims.len());
    let (mut asked, mut parents_of) = (Vec::new(), Vec::new());
    for claim in claims {
        let missing = || corrupt(format!("run {} is missing", claim.run));
        let run = runs.get(&claim.run).ok_or_else(missing)?;
        let stored = transaction.definition(run.definition).await?;
        let parents: Vec<Node> =
            stored.definition.graph.parents(claim.node).iter().map(|edge| edge.node).collect();
        asked.extend(parents.iter().map(|node| (claim.run, *node)));
        parents_of.push((run, parents));
    }
    let left = left_by(transaction, &asked).await?;
    for (claim, (run, parents)) in claims.iter().zip(parents_of) {
        let input = payloads.get(&claim.run).cloned();
        let missing = || corrupt(format!("the input of run {} is missing", claim.run));
        let parent = |node: Node| {
            let (state, output) =
                left.get(&(claim.run, node)).cloned().unwrap_or((TaskState::Pending, None));
            ParentInput { node, state, output }
        };
        found.push(TaskInputs {
            input: input.ok_or_else(missing)?,
            parents: parents.into_iter().map(parent).collect(),
            failure: run.failure.clone(),
        });
    }
    Ok(found)
}

/// The states and outputs of tasks; a completed one without an output has the empty payload.
pub(super) async fn left_by(
    transaction: &Transaction,
    asked: &[(RunKey, Node)],
) -> Result<BTreeMap<(RunKey, Node), (TaskState, Option<Payload>)>, StoreError> {
    let runs: Vec<Uuid> = asked.iter().map(|(run, _)| key(*run)).collect();
    let nodes: Vec<i32> = asked.iter().map(|(_, node)| int32(node.0)).collect();
    let tasks = transaction.all(statements::READ_SOME_TASKS, &[&runs, &nodes]).await?;
    let mut outputs = BTreeMap::new();
    for row in transaction.all(statements::READ_SOME_OUTPUTS, &[&runs, &nodes]).await? {
        outputs.insert((run_key(&row, 0)?, node(&row, 1)?), rows::payload(&row, 2)?);
    }
    let left = |(run, task): (RunKey, TaskRow)| {
        let state = task.state();
        let own = || outputs.get(&(run, task.node)).cloned();
        let output = (state == TaskState::Completed).then(|| own().unwrap_or_else(Payload::empty));
        ((run, task.node), (state, output))
    };
    Ok(rows::read_all(&tasks, rows::task)?.into_iter().map(left).collect())
}
