use async_trait::async_trait;
use stepwell_core::decide;

use super::claims::hand_over;
use super::tables::{StoredRun, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimRequest, ExistingRun, StartAnswer, StartRequest, Started, Starts, StoreError,
};

#[async_trait]
impl Starts for MemoryStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError> {
        let (answers, handed_over) = self.transact(|tables| {
            hand_over(tables, offer.as_ref(), |tables| {
                let answer = |request| start(tables, request).unwrap_or_else(StartAnswer::Refused);
                Ok(requests.into_iter().map(answer).collect())
            })
        })?;
        Ok(Started { answers, handed_over })
    }
}

fn start(tables: &mut Tables, request: StartRequest) -> Result<StartAnswer, StoreError> {
    let seed = &request.seed;
    let stored = tables.definition(seed.definition).ok();
    let stored = stored.filter(|stored| stored.mark == request.mark);
    let stored = stored.ok_or_else(|| StoreError::unknown_definition(seed.definition))?;
    let name = (seed.tenant.clone(), seed.id.clone());
    if let Some(key) = tables.run_ids.get(&name).copied() {
        let run = tables.run(key)?;
        let plan = tables.plan_of(run)?;
        let existing = ExistingRun {
            key,
            workflow: &plan.definition.workflow,
            input_digest: &run.input_digest,
        };
        return request.compare_with(&stored.definition.workflow, existing);
    }
    if tables.runs.contains_key(&seed.key) {
        return Err(corrupt(format!("run key {} is taken", seed.key)));
    }
    tables.queues.check_room(&seed.tenant, &stored.definition.root_queues())?;
    let key = seed.key;
    let image = decide::start(&stored.definition, tables.now, request.seed);
    let run = StoredRun {
        row: image.run().clone(),
        input: request.input,
        input_digest: request.input_digest,
        tasks: std::collections::BTreeMap::new(),
        outputs: std::collections::BTreeMap::new(),
        attempts: Vec::new(),
        events: Vec::new(),
        waits: std::collections::BTreeMap::new(),
        memos: std::collections::BTreeMap::new(),
        signals: std::collections::BTreeMap::new(),
        signal_numbers: std::collections::HashMap::new(),
        progress: std::collections::BTreeMap::new(),
    };
    tables.runs.insert(key, run);
    tables.run_keys.insert(key);
    tables.run_ids.insert(name, key);
    tables.write(image, &stored);
    Ok(StartAnswer::Started)
}
