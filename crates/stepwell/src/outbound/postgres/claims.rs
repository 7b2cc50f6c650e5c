use std::collections::{BTreeMap, HashMap, VecDeque};

use async_trait::async_trait;
use stepwell_core::decide::is_suspect;
use stepwell_core::fair::Position;
use stepwell_core::id::{DefinitionId, Node, RunKey, Token, WorkerId};
use stepwell_core::run::{RunRow, TaskRow, TaskState};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{conflict, corrupt};
use super::rows::{self, count, int, int32, key, name, node, run_key, token, unsigned};
use super::transaction::{Params, Transaction, first_error};
use super::{PostgresStore, Role, statements};
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
        let transaction = self.take(Role::Work).await?;
        let inputs = inputs(&transaction, claims).await?;
        self.give_hints(&transaction.ended());
        Ok(inputs)
    }
}

/// Most workers of one process whose registration is remembered.
const ASKERS_MAX: usize = 1_000;

/// The worker that asks.
#[derive(Clone)]
pub(super) struct Asking {
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
        let mut transaction = self.take(Role::Work).await?;
        let answer = self.claim_within(&mut transaction, request).await;
        self.conclude(transaction, answer).await
    }

    async fn claim_within(
        &self,
        transaction: &mut Transaction,
        request: &ClaimRequest,
    ) -> Result<ClaimAnswer, StoreError> {
        let known = self.asker(&request.worker);
        let lines = async {
            match &known {
                Some(asking) => lines(transaction, asking, request).await,
                None => Ok(Vec::new()),
            }
        };
        let (now, asking, lines, fence) = tokio::join!(
            biased;
            transaction.open_relaxed(),
            find_worker(transaction, request),
            lines,
            new_token(transaction, request),
        );
        let (asking, lines, fence) = (asking?, lines?, fence?);
        transaction.now = now?;
        let Some(asking) = asking else {
            transaction.close().await?;
            return Ok(ClaimAnswer::NotRegistered);
        };
        if known.is_none_or(|known| !known.is_same(&asking)) {
            // What was looked for is not what this worker serves; the next try knows better.
            self.remember_asker(&request.worker, asking);
            return Err(conflict("a worker was registered"));
        }
        let chosen = choose(&asking, lines, request);
        let mut tasks = Vec::new();
        if chosen.tasks.is_empty() {
            transaction.close().await?;
        } else {
            tasks = hand_out(transaction, &asking, &chosen, fence, request).await?;
        }
        Ok(ClaimAnswer::Claimed { now: transaction.now, tasks })
    }

    /// What a worker was registered with, as far as this process knows.
    fn asker(&self, worker: &WorkerId) -> Option<Asking> {
        self.shared.askers.lock().expect("no holder of the lock panics").get(worker).cloned()
    }

    fn remember_asker(&self, worker: &WorkerId, asking: Asking) {
        let mut askers = self.shared.askers.lock().expect("no holder of the lock panics");
        if askers.len() >= ASKERS_MAX {
            askers.clear();
        }
        askers.insert(worker.clone(), asking);
    }
}

impl Asking {
    /// Whether it is registered as it was, whatever its turn is.
    fn is_same(&self, other: &Self) -> bool {
        (self.no, &self.queues, &self.definitions) == (other.no, &other.queues, &other.definitions)
    }
}

async fn find_worker(
    transaction: &Transaction,
    request: &ClaimRequest,
) -> Result<Option<Asking>, StoreError> {
    let row = transaction.one(statements::FIND_WORKER, &[&request.worker.as_str()]).await?;
    let Some(row) = row else { return Ok(None) };
    let next_turn: i32 = row.try_get(2)?;
    Ok(Some(Asking {
        no: row.try_get(0)?,
        queues: row.try_get(1)?,
        next_turn: usize::try_from(next_turn).unwrap_or_default(),
        definitions: row.try_get(3)?,
    }))
}

async fn new_token(transaction: &Transaction, request: &ClaimRequest) -> Result<Token, StoreError> {
    let row = transaction.one(statements::TAKE_CLAIM_COUNT, &[]).await?;
    let row = row.ok_or_else(|| corrupt("the claim counter is missing"))?;
    Ok(Token::new(unsigned(&row, 0)?, request.salt))
}

/// The first tasks of each of the worker's queues, in the order of its queues.
async fn lines(
    transaction: &Transaction,
    asking: &Asking,
    request: &ClaimRequest,
) -> Result<Vec<Vec<Candidate>>, StoreError> {
    let lines = asking.queues.iter().map(|queue| candidates(transaction, asking, queue, request));
    // Polled in order, so that all are asked for in one go.
    futures_util::future::join_all(lines).await.into_iter().collect()
}

/// Chooses ready tasks in fair order, taking turns between queues, with at most one suspect.
fn choose(asking: &Asking, lines: Vec<Vec<Candidate>>, request: &ClaimRequest) -> Chosen {
    let n_queues = asking.queues.len().max(1);
    let mut lines: VecDeque<(usize, VecDeque<Candidate>)> =
        lines.into_iter().map(VecDeque::from).enumerate().collect();
    lines.rotate_left(asking.next_turn % n_queues);
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
    chosen
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
    let plain: Params<'_> = &[&queue, &asking.definitions, &zero, &suspects_from, &n];
    let suspects: Params<'_> = &[&queue, &asking.definitions, &suspects_from, &i32::MAX, &1_i64];
    let suspects = async {
        if request.suspect {
            transaction.all(statements::FIRST_READY, suspects).await
        } else {
            Ok(Vec::new())
        }
    };
    let (found, suspects) =
        tokio::join!(biased; transaction.all(statements::FIRST_READY, plain), suspects);
    let mut found = rows::read_all(&found?, read)?;
    found.extend(rows::read_all(&suspects?, read)?);
    found.sort_by_key(|task| task.slot);
    Ok(found)
}

/// Marks the chosen tasks as the worker's, moves its frontiers and its turn on, and commits.
async fn hand_out(
    transaction: &Transaction,
    asking: &Asking,
    chosen: &Chosen,
    fence: Token,
    request: &ClaimRequest,
) -> Result<Vec<ClaimedTask>, StoreError> {
    // Read before the commit: what is claimed can be handed out.
    let mut definitions = BTreeMap::new();
    for id in &asking.definitions {
        let id = DefinitionId(id.unsigned_abs());
        definitions.extend(transaction.find_definition(id).await?.map(|stored| (id, stored)));
    }
    let runs: Vec<Uuid> = chosen.tasks.iter().map(|(run, _)| key(*run)).collect();
    let nodes: Vec<i32> = chosen.tasks.iter().map(|(_, node)| int32(node.0)).collect();
    let now = transaction.now.as_micros();
    let params: Params<'_> = &[&runs, &nodes, &asking.no, &token(fence), &now];
    let (claimed, passed, closed) = tokio::join!(
        biased;
        transaction.all(statements::CLAIM_TASKS, params),
        pass_on(transaction, asking, chosen),
        transaction.close(),
    );
    let (claimed, ()) = (claimed?, passed.and(closed)?);
    let read = |row: &Row| {
        let definition = DefinitionId(count(row, 6)?);
        let missing = || corrupt(format!("definition {} is not served", definition.0));
        Ok(ClaimedTask {
            claim: ClaimRef { run: run_key(row, 0)?, node: node(row, 1)?, token: fence },
            tenant: name(row, 4)?,
            run_id: name(row, 5)?,
            definition: definitions.get(&definition).cloned().ok_or_else(missing)?,
            attempt: count(row, 2)?,
            is_suspect: is_suspect(count(row, 3)?, request.crash_limit),
        })
    };
    rows::read_all(&claimed, read)
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
    let turn = async {
        match chosen.served_last {
            Some(turn) if asking.queues.len() > 1 => {
                let next = i32::try_from((turn + 1) % asking.queues.len()).unwrap_or_default();
                transaction.run(statements::PASS_THE_TURN, &[&asking.no, &next]).await
            }
            _ => Ok(()),
        }
    };
    let params: Params<'_> = &[&queues, &workers, &positions];
    let frontiers = transaction.run(statements::RAISE_FRONTIER, params);
    first_error(tokio::join!(biased; frontiers, turn).into())
}

async fn inputs(
    transaction: &Transaction,
    claims: &[ClaimRef],
) -> Result<Vec<TaskInputs>, StoreError> {
    let keys: Vec<Uuid> = claims.iter().map(|claim| key(claim.run)).collect();
    let params: Params<'_> = &[&keys];
    let (opened, inputs, runs) = tokio::join!(
        biased;
        transaction.open_timeless(),
        transaction.all(statements::READ_INPUTS, params),
        transaction.all(statements::READ_RUNS, params),
    );
    opened?;
    let mut payloads = HashMap::new();
    for row in inputs? {
        payloads.insert(run_key(&row, 0)?, rows::payload(&row, 1)?);
    }
    let runs = rows::read_all(&runs?, rows::run)?.into_iter().map(|run| (run.row.key, run.row));
    let runs: HashMap<RunKey, RunRow> = runs.collect();
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
    let (left, closed) = tokio::join!(biased; left_by(transaction, &asked), transaction.close());
    let left = left?;
    closed?;
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
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let params: Params<'_> = &[&runs, &nodes];
    let (tasks, rows) = tokio::join!(
        biased;
        transaction.all(statements::READ_SOME_TASKS, params),
        transaction.all(statements::READ_SOME_OUTPUTS, params),
    );
    let tasks = tasks?;
    let mut outputs = BTreeMap::new();
    for row in rows? {
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
