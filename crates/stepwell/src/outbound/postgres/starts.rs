use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use stepwell_core::id::{DefinitionId, Tenant};
use stepwell_core::queue::FairError;

use super::run::RunSet;
use super::run::start::{Definitions, NewRuns, definition_of};
use super::run::write::{Payloads, Write};
use super::session::{Done, Learned, PgResult};
use super::{PostgresStore, Role};
use crate::ports::{ClaimRequest, StartAnswer, StartRequest, Started, Starts, StoreError};

#[async_trait]
impl Starts for PostgresStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError> {
        self.with_retries(|| self.start_once(&requests, offer.as_ref())).await
    }
}

impl PostgresStore {
    async fn start_once(
        &self,
        requests: &[StartRequest],
        offer: Option<&ClaimRequest>,
    ) -> PgResult<Done<Started>> {
        // In the order of their appearance, by which new ones are numbered.
        let mut seen = HashSet::new();
        let tenants = requests.iter().map(|r| &r.seed.tenant).filter(|tenant| seen.insert(*tenant));
        let tenants: Vec<Tenant> = tenants.cloned().collect();
        let beliefs = self.shared.beliefs();
        let numbers = self.tenant_nos(&tenants).await?;
        let definitions = self.definitions_of(requests).await?;
        let session = self.unopened(Role::Work).await?;
        let new = NewRuns::of(requests, &numbers, &definitions);
        let runs = self.shared.runs_by(&session, self.beliefs_since(beliefs));
        let answer = self.start_within(&runs, requests, &new, &definitions, offer).await;
        drop(runs);
        self.commit_or_roll_back(session, answer).await
    }

    /// The definitions that starts name, as far as they are stored.
    async fn definitions_of(&self, requests: &[StartRequest]) -> PgResult<Definitions> {
        let ids: BTreeSet<DefinitionId> = requests.iter().map(|r| r.seed.definition).collect();
        let mut definitions = self.shared.plans.cached(&ids);
        if definitions.len() < ids.len() {
            let session = self.begin(Role::Work).await?;
            for id in ids {
                let stored = self.shared.ids(&session).find_plan(id).await?;
                definitions.extend(stored.map(|stored| (id, stored)));
            }
            self.commit_session(session).await?;
        }
        Ok(definitions)
    }

    /// Inserts runs whose ids are free, and commits them with everything that belongs to them.
    async fn start_within(
        &self,
        runs: &RunSet<'_>,
        requests: &[StartRequest],
        new: &NewRuns<'_>,
        definitions: &Definitions,
        offer: Option<&ClaimRequest>,
    ) -> PgResult<Done<Started>> {
        let (inserted, idle) = runs.open_and_insert(new, offer).await?;
        let existing = runs.find_existing(requests, &inserted.keys).await?;
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(match definition_of(definitions, request) {
                None => {
                    StartAnswer::Refused(StoreError::unknown_definition(request.seed.definition))
                }
                Some(_) if inserted.keys.contains(&request.seed.key) => StartAnswer::Started,
                Some(_) if !new.has_tenant(&request.seed.tenant) => {
                    StartAnswer::Refused(FairError::TooManyTenants.into())
                }
                Some(stored) => {
                    let without_room = &inserted.without_room;
                    runs.compare_with_existing(request, stored, &existing, without_room).await?
                }
            });
        }
        let (updates, inputs) = new.updates(runs.session.now(), &inserted.keys);
        let (tenants, payloads, closes) = (inserted.tenants, Payloads::Inputs(&inputs), true);
        let outcome = runs.write(Write { updates, tenants, payloads, closes, idle }).await?;
        let learned = Learned { limits: runs.queues.learned().limits, ..inserted.learned };
        let answer = Started { answers, handed_over: outcome.handed_over };
        Ok(Done { answer, hints: outcome.hints, learned })
    }
}
