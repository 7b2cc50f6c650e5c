use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::decide::is_suspect;
use stepwell_core::id::{DefinitionId, Token};
use stepwell_core::trial::may_begin;

use super::queue::claim::{Candidates, Chosen};
use super::rows::corrupt;
use super::rows::queue::ClaimedCandidate;
use super::rows::run::RunRef;
use super::rows::task::is_failure_handler;
use super::rows::worker::ServingWorker;
use super::run::inputs::{InputPlan, ReadyTask, read_inputs};
use super::session::{Conflict, Done, PgResult, Session};
use super::{PostgresStore, Role};
use crate::ports::{
    ClaimAnswer, ClaimRef, ClaimRequest, ClaimedTask, Claims, InputsOf, StoreError,
    StoredDefinition, Take, TaskInputs,
};

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        // Before anything is taken: nobody's task waits for this.
        self.shared.watermarks.advance(&self.shared.pool).await;
        self.with_retries(|| self.claim_once(&request)).await
    }

    async fn inputs(&self, tasks: &[InputsOf]) -> Result<Vec<TaskInputs>, StoreError> {
        let session = self.unopened(Role::Work).await?;
        let inputs = read_inputs(&self.shared.ids(&session), tasks).await?;
        session.end();
        Ok(inputs)
    }
}

impl PostgresStore {
    async fn claim_once(&self, request: &ClaimRequest) -> PgResult<Done<ClaimAnswer>> {
        let session = self.unopened(Role::Work).await?;
        let answer = match request.take {
            Take::Plain => self.claim_within(&session, request).await,
            Take::Suspect => self.claim_suspect_within(&session, request).await,
        };
        let answer = answer.map(Done::quiet);
        self.commit_or_roll_back(session, answer).await
    }

    async fn claim_within(
        &self,
        session: &Session,
        request: &ClaimRequest,
    ) -> PgResult<ClaimAnswer> {
        let (ids, queues) = (self.shared.ids(session), self.shared.queues(session));
        let cached = self.shared.guesses.cached_worker(&request.worker);
        let candidates = async {
            match &cached {
                Some(serving) => queues.candidates(serving, request).await,
                None => Ok(Candidates::default()),
            }
        };
        let (opened, found, candidates) = tokio::join!(
            biased;
            session.open_timeless(),
            queues.find_worker(&ids, request),
            candidates,
        );
        let ((), found, candidates) = (opened?, found?, candidates?);
        let Some((serving, fence)) = found else {
            session.close().await?;
            return Ok(ClaimAnswer::NotRegistered);
        };
        if cached.is_none_or(|cached| !cached.is_same(&serving)) {
            // What was looked for is not what this worker serves; the next try knows better.
            let changed = Box::new((request.worker.clone(), serving));
            return Err(Conflict::WorkerChanged(changed).into());
        }
        if serving.in_trial && !queues.end_trial(&serving, request).await? {
            session.close().await?;
            let (now, tasks, suspect_waits) = (session.now(), Vec::new(), false);
            return Ok(ClaimAnswer::Claimed { now, tasks, suspect_waits });
        }
        let Candidates { queues: candidates, suspect_waits } = candidates;
        let chosen = Chosen::of(&serving, candidates, request.tasks_max);
        let mut tasks = Vec::new();
        if chosen.tasks.is_empty() {
            session.close().await?;
        } else {
            tasks = self.hand_out(session, &serving, &chosen, fence, request).await?;
        }
        queues.count_taken(&chosen);
        Ok(ClaimAnswer::Claimed { now: session.now(), tasks, suspect_waits })
    }

    /// Hands a suspect to a worker that may hold a trial, once it holds nothing else.
    async fn claim_suspect_within(
        &self,
        session: &Session,
        request: &ClaimRequest,
    ) -> PgResult<ClaimAnswer> {
        let (ids, queues) = (self.shared.ids(session), self.shared.queues(session));
        let (opened, locked, found) = tokio::join!(
            biased;
            session.open_timeless(),
            queues.lock_trials(request),
            queues.find_worker(&ids, request),
        );
        let ((), (), found) = (opened?, locked?, found?);
        let Some((serving, fence)) = found else {
            session.close().await?;
            return Ok(ClaimAnswer::NotRegistered);
        };
        let (suspects, crews, held) = tokio::join!(
            biased;
            queues.suspects(&serving, request),
            queues.crews(&serving),
            queues.losses_held(&serving),
        );
        let (suspects, crews, held) = (suspects?, crews?, held?);
        let suspect_waits = suspects.iter().any(|queue| !queue.is_empty());
        if suspect_waits && !serving.in_trial {
            if !may_begin(&crews) {
                session.close().await?;
                return Ok(ClaimAnswer::NoTrial);
            }
            queues.set_in_trial(&serving, true).await?;
        }
        if !suspect_waits || !held.is_empty() || request.tasks_max == 0 {
            session.close().await?;
            return Ok(ClaimAnswer::Claimed {
                now: session.now(),
                tasks: Vec::new(),
                suspect_waits,
            });
        }
        let chosen = Chosen::of(&serving, suspects, 1);
        let tasks = self.hand_out(session, &serving, &chosen, fence, request).await?;
        queues.count_taken(&chosen);
        Ok(ClaimAnswer::Claimed { now: session.now(), tasks, suspect_waits: false })
    }

    /// Marks the chosen tasks as the worker's, reads what they are executed with, and commits.
    async fn hand_out(
        &self,
        session: &Session,
        serving: &ServingWorker,
        chosen: &Chosen,
        fence: Token,
        request: &ClaimRequest,
    ) -> PgResult<Vec<ClaimedTask>> {
        let (ids, queues) = (self.shared.ids(session), self.shared.queues(session));
        // Read before the commit: what is claimed can be handed out.
        let mut definitions: BTreeMap<DefinitionId, Arc<StoredDefinition>> = BTreeMap::new();
        for service in serving.services() {
            let id = RunRef::of_service(service, 0).definition;
            definitions.extend(ids.find_plan(id).await?.map(|stored| (id, stored)));
        }
        let tenants = chosen.tasks.iter().map(|task| task.run_ref.tenant_no).collect();
        let tenants = ids.tenant_names(&tenants).await?;
        let stored = |id: &DefinitionId| definitions.get(id).map(|stored| &**stored);
        let plan = InputPlan::new(chosen.tasks.iter().map(|task| ReadyTask {
            run: task.run,
            node: task.node,
            attempt: queues.start_attempt(task).attempt,
            resumed: task.resumed,
            stored: stored(&task.run_ref.definition),
        }));
        let (claimed, turn, inputs, closed) = tokio::join!(
            biased;
            queues.claim(serving, chosen, fence),
            queues.set_next_turn(serving, chosen),
            plan.read(session),
            session.close(),
        );
        let (claimed, inputs) = (claimed?, inputs?);
        turn.and(closed)?;
        ids.cache.remember_runs(chosen.tasks.iter().map(|task| (task.run, task.run_ref)));
        ids.cache.remember_inputs(inputs.of_runs());
        let task = |claimed: ClaimedCandidate| {
            let task = chosen.tasks.get(claimed.ix);
            let task = task.ok_or_else(|| corrupt("a task was claimed that was not chosen"))?;
            let definition = task.run_ref.definition;
            let missing = || corrupt(format!("definition {} is not served", definition.0));
            let nobody = || corrupt("a tenant is missing");
            let inputs = inputs.of_task(claimed.ix);
            Ok(ClaimedTask {
                claim: ClaimRef { run: task.run, node: task.node, token: fence },
                tenant: tenants.get(&task.run_ref.tenant_no).cloned().ok_or_else(nobody)?,
                run_id: claimed.run_id,
                definition: definitions.get(&definition).cloned().ok_or_else(missing)?,
                attempt: queues.start_attempt(task).attempt,
                failures: task.failures,
                resumed: task.resumed,
                is_suspect: is_suspect(task.losses, request.crash_limit),
                inputs: inputs.filter(|_| !is_failure_handler(task.node)),
            })
        };
        claimed.into_iter().map(task).collect()
    }
}
