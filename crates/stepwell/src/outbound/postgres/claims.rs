use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::decide::is_suspect;
use stepwell_core::fair::{Position, take_turns};
use stepwell_core::id::{DefinitionId, Node, RunKey, Token, WorkerId};
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{conflict, corrupt};
use super::inputs::{assemble, inputs as read_inputs, left_by, parents_in, payloads};
use super::known::RunFacts;
use super::rows::{self, count, int, int32, key, name, node, run_key, token, unsigned};
use super::transaction::{Params, Transaction};
use super::{PostgresStore, Role, statements};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, StoreError, StoredDefinition,
    TaskInputs,
};

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        // Before anything is taken: nobody's task waits for this.
        self.pass_queues().await;
        self.with_retries(|| self.claim_once(&request)).await
    }

    async fn inputs(&self, claims: &[ClaimRef]) -> Result<Vec<TaskInputs>, StoreError> {
        let transaction = self.take(Role::Work).await?;
        let inputs = read_inputs(&transaction, claims).await?;
        self.give_hints(&transaction.ended());
        Ok(inputs)
    }
}

/// Most workers of one process whose registration is remembered.
const ASKERS_MAX: usize = 1_000;

/// The worker that asks.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) no: i64,
    pub(super) queues: Vec<String>,
    pub(super) next_turn: usize,
    pub(super) definitions: Vec<i32>,
}

/// A ready task that may be claimed.
struct Candidate {
    position: Position,
    losses: u32,
    run: RunKey,
    node: Node,
    facts: RunFacts,
    /// Where its rows are.
    ready_at: String,
    task_at: String,
}

/// What a claim chose.
#[derive(Default)]
struct Chosen {
    tasks: Vec<Candidate>,
    /// What was taken, by queue.
    taken: BTreeMap<String, Taken>,
    served_last: Option<usize>,
}

/// What was taken from a queue.
#[derive(Default)]
struct Taken {
    n: u64,
    greatest: Position,
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
        let (opened, found, lines) = tokio::join!(
            biased;
            transaction.open_timeless(),
            find_worker(transaction, request),
            lines,
        );
        let ((), found, lines) = (opened?, found?, lines?);
        let Some(Found { asking, now, fence }) = found else {
            transaction.close().await?;
            return Ok(ClaimAnswer::NotRegistered);
        };
        if known.is_none_or(|known| !known.is_same(&asking)) {
            // What was looked for is not what this worker serves; the next try knows better.
            self.remember_asker(&request.worker, asking);
            return Err(conflict("a worker was registered"));
        }
        let now = self.shared.injected_now().unwrap_or(now);
        transaction.now = Timestamp::from_micros(now);
        let chosen = choose(&asking, lines, request);
        let mut tasks = Vec::new();
        if chosen.tasks.is_empty() {
            transaction.close().await?;
        } else {
            tasks = hand_out(transaction, &asking, &chosen, fence, request).await?;
        }
        let mut passing = self.shared.passing();
        passing.looked();
        chosen.taken.iter().for_each(|(queue, taken)| passing.took(queue, taken.n));
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
    /// As a row begins: number, queues, whose turn it is, definitions.
    pub(super) fn of(row: &Row) -> Result<Self, StoreError> {
        let next_turn: i32 = row.try_get(2)?;
        Ok(Self {
            no: row.try_get(0)?,
            queues: row.try_get(1)?,
            next_turn: usize::try_from(next_turn).unwrap_or_default(),
            definitions: row.try_get(3)?,
        })
    }

    /// Whether it is registered as it was, whatever its turn is.
    fn is_same(&self, other: &Self) -> bool {
        (self.no, &self.queues, &self.definitions) == (other.no, &other.queues, &other.definitions)
    }
}

/// The worker as it is registered, with the database's time and what will fence its claims.
struct Found {
    asking: Asking,
    now: i64,
    fence: Token,
}

async fn find_worker(
    transaction: &Transaction,
    request: &ClaimRequest,
) -> Result<Option<Found>, StoreError> {
    let row = transaction.one(statements::FIND_WORKER, &[&request.worker.as_str()]).await?;
    let Some(row) = row else { return Ok(None) };
    let asking = Asking::of(&row)?;
    let fence = Token::new(unsigned(&row, 5)?, request.salt);
    Ok(Some(Found { asking, now: row.try_get(4)?, fence }))
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
    let is_suspect = |task: &Candidate| is_suspect(task.losses, request.crash_limit);
    let (first, n) = (asking.next_turn, request.tasks_max);
    let mut chosen = Chosen::default();
    for (turn, task) in take_turns(lines, first, n, request.suspect, is_suspect) {
        let taken = chosen.taken.entry(asking.queues[turn].clone()).or_default();
        taken.n += 1;
        taken.greatest = task.position.max(taken.greatest);
        chosen.tasks.push(task);
        chosen.served_last = Some(turn);
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
    let suspects_from = int32(request.crash_limit.saturating_sub(1));
    let read = |row: &Row| {
        Ok(Candidate {
            position: Position(unsigned(row, 2)?),
            losses: count(row, 3)?,
            run: run_key(row, 4)?,
            node: node(row, 5)?,
            facts: RunFacts { definition: DefinitionId(count(row, 6)?), group: count(row, 7)? },
            ready_at: row.try_get(8)?,
            task_at: row.try_get(9)?,
        })
    };
    let n_suspects = i64::from(request.suspect);
    let params: Params<'_> = &[&queue, &asking.definitions, &suspects_from, &n, &n_suspects];
    rows::read_all(&transaction.all(statements::FIRST_READY, params).await?, read)
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
    let groups = chosen.tasks.iter().map(|task| task.facts.group).collect();
    let tenants = transaction.tenant_names(&groups).await?;
    let ready_at: Vec<&str> = chosen.tasks.iter().map(|task| task.ready_at.as_str()).collect();
    let task_at: Vec<&str> = chosen.tasks.iter().map(|task| task.task_at.as_str()).collect();
    let now = transaction.now.as_micros();
    let queues: Vec<&str> = chosen.taken.keys().map(String::as_str).collect();
    let positions: Vec<i64> = chosen.taken.values().map(|taken| int(taken.greatest.0)).collect();
    let runs: Vec<Uuid> = chosen.tasks.iter().map(|task| key(task.run)).collect();
    let keys: Params<'_> = &[&runs];
    let params: Params<'_> =
        &[&task_at, &ready_at, &asking.no, &token(fence), &now, &queues, &positions];
    let parents = parents(chosen, &definitions);
    let (claimed, passed, inputs, left, closed) = tokio::join!(
        biased;
        transaction.all(statements::CLAIM_TASKS, params),
        pass_the_turn(transaction, asking, chosen),
        transaction.all(statements::READ_INPUTS, keys),
        left_by(transaction, parents.iter().flatten().copied()),
        transaction.close(),
    );
    let (claimed, inputs, left) = (claimed?, payloads(&inputs?)?, left?);
    passed.and(closed)?;
    let facts = chosen.tasks.iter().map(|task| (task.run, task.facts));
    transaction.known().remember_runs(facts);
    transaction.known().remember_inputs(&inputs);
    let read = |row: &Row| {
        let ix = usize::try_from(unsigned(row, 0)?.wrapping_sub(1)).unwrap_or(usize::MAX);
        let task = chosen.tasks.get(ix);
        let task = task.ok_or_else(|| corrupt("a task was claimed that was not chosen"))?;
        let definition = task.facts.definition;
        let missing = || corrupt(format!("definition {} is not served", definition.0));
        let nobody = || corrupt("a tenant is missing");
        Ok(ClaimedTask {
            claim: ClaimRef { run: task.run, node: task.node, token: fence },
            tenant: tenants.get(&task.facts.group).cloned().ok_or_else(nobody)?,
            run_id: name(row, 3)?,
            definition: definitions.get(&definition).cloned().ok_or_else(missing)?,
            attempt: count(row, 1)?,
            is_suspect: is_suspect(count(row, 2)?, request.crash_limit),
            inputs: parents
                .get(ix)
                .filter(|_| task.node != Node::ON_FAILURE)
                .and_then(|parents| assemble(&inputs, &left, task.run, parents)),
        })
    };
    rows::read_all(&claimed, read)
}

/// The parents of the chosen tasks.
fn parents(
    chosen: &Chosen,
    definitions: &BTreeMap<DefinitionId, Arc<StoredDefinition>>,
) -> Vec<Vec<(RunKey, Node)>> {
    let parents = |task: &Candidate| {
        let stored = definitions.get(&task.facts.definition);
        stored.map(|stored| parents_in(stored, task.run, task.node)).unwrap_or_default()
    };
    chosen.tasks.iter().map(parents).collect()
}

/// Moves the turn among the worker's queues on.
async fn pass_the_turn(
    transaction: &Transaction,
    asking: &Asking,
    chosen: &Chosen,
) -> Result<(), StoreError> {
    match chosen.served_last {
        Some(turn) if asking.queues.len() > 1 => {
            let next = i32::try_from((turn + 1) % asking.queues.len()).unwrap_or_default();
            transaction.run(statements::PASS_THE_TURN, &[&asking.no, &next]).await
        }
        _ => Ok(()),
    }
}
