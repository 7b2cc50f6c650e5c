use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::SqliteStore;
use super::queue::claim;
use super::run::inputs;
use super::writer::Transaction;
use crate::ports::{ClaimAnswer, ClaimRequest, Claims, InputsOf, StoreError, TaskInputs};

/// A claim of few tasks does not wait for the disk: a power cut that takes it back ends its worker,
/// too, and the task is in its queue again. Among many the wait costs each hardly anything, and
/// what gathers meanwhile goes into one commit; so while claims are large, they wait.
const FEW: usize = 10;

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        let work = move |transaction: &mut Transaction<'_, '_>| claim(transaction, &request);
        let n_before = self.shared.n_claimed_last.load(Ordering::Relaxed);
        let answer = if n_before > FEW {
            self.write(work).await?
        } else {
            self.write_without_wait(work).await?
        };
        if let ClaimAnswer::Claimed { tasks, .. } = &answer {
            self.shared.n_claimed_last.store(tasks.len(), Ordering::Relaxed);
        }
        Ok(answer)
    }

    async fn inputs(&self, tasks: &[InputsOf]) -> Result<Vec<TaskInputs>, StoreError> {
        let tasks = tasks.to_vec();
        self.read_for_claims(move |transaction| {
            inputs::read(transaction.file, transaction.definitions, &tasks)
        })
        .await
    }
}

fn claim(
    transaction: &mut Transaction<'_, '_>,
    request: &ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let mut answer = claim::claim(transaction, request)?;
    if let ClaimAnswer::Claimed { tasks, .. } = &mut answer {
        inputs::add_at_hand(transaction, tasks)?;
    }
    Ok(answer)
}
