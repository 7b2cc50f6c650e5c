use std::collections::BTreeSet;

use async_trait::async_trait;
use stepwell_core::code::Code;
use stepwell_core::decide;
use stepwell_core::fair::FairError;
use stepwell_core::id::{Node, Queue, RunKey};
use stepwell_core::workflow::Definition;

use super::tables::{RunBook, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{StartAnswer, StartRequest, Starts, StoreError};

#[async_trait]
impl Starts for MemoryStore {
    async fn start(&self, requests: Vec<StartRequest>) -> Result<Vec<StartAnswer>, StoreError> {
        Ok(self.transact(|tables| {
            let answer = |request| start(tables, request).unwrap_or_else(StartAnswer::Refused);
            requests.into_iter().map(answer).collect()
        }))
    }
}

fn start(tables: &mut Tables, request: StartRequest) -> Result<StartAnswer, StoreError> {
    let seed = &request.seed;
    let stored = tables.definition(seed.definition).map_err(|_| StoreError::Refused {
        code: Code::UnknownWorkflow,
        message: format!("definition {} is not stored", seed.definition.0),
    })?;
    let name = (seed.tenant.clone(), seed.id.clone());
    if let Some(key) = tables.run_ids.get(&name).copied() {
        return repeated(tables, key, &stored.definition.workflow, &request);
    }
    if tables.runs.contains_key(&seed.key) {
        return Err(corrupt(format!("run key {} is taken", seed.key)));
    }
    let queues = root_queues(&stored.definition);
    tables.line.check_room(&seed.tenant, &queues).map_err(refuse_unfair)?;
    let key = seed.key;
    let image = decide::start(&stored.definition, tables.now, request.seed);
    let book = RunBook {
        row: image.run().clone(),
        input: request.input,
        input_digest: request.input_digest,
        tasks: std::collections::BTreeMap::new(),
        outputs: std::collections::BTreeMap::new(),
        attempts: Vec::new(),
        events: Vec::new(),
    };
    tables.runs.insert(key, book);
    tables.run_keys.insert(key);
    tables.run_ids.insert(name, key);
    tables.write(image, &stored);
    Ok(StartAnswer::Started)
}

/// The id was used before: the same start again, or another one?
fn repeated(
    tables: &Tables,
    key: RunKey,
    workflow: &str,
    request: &StartRequest,
) -> Result<StartAnswer, StoreError> {
    let book = tables.book(key)?;
    let known = tables.definition(book.row.definition)?;
    let (tenant, id) = (&request.seed.tenant, &request.seed.id);
    if known.definition.workflow != workflow {
        return Err(StoreError::Refused {
            code: Code::RunIdConflict,
            message: format!(
                "run {id:?} of tenant {tenant:?} exists as a run of workflow {:?}, not {workflow:?}",
                known.definition.workflow,
                id = id.as_str(),
                tenant = tenant.as_str(),
            ),
        });
    }
    if book.input_digest != request.input_digest {
        return Err(StoreError::Refused {
            code: Code::RunIdConflict,
            message: format!(
                "run {:?} of tenant {:?} was started before with another input",
                id.as_str(),
                tenant.as_str(),
            ),
        });
    }
    Ok(StartAnswer::AlreadyStarted(key))
}

fn root_queues(definition: &Definition) -> BTreeSet<Queue> {
    let graph = &definition.graph;
    let is_root = |node: &Node| graph.parents(*node).is_empty();
    graph.nodes().filter(is_root).map(|node| definition.queue(node)).collect()
}

fn refuse_unfair(error: FairError) -> StoreError {
    StoreError::Refused { code: Code::FairnessLimit, message: error.to_string() }
}
