use async_trait::async_trait;

use super::SqliteStore;
use super::queue::hand_over::hand_over;
use super::run::{inputs, start};
use super::writer::Transaction;
use crate::ports::{ClaimRequest, StartAnswer, StartRequest, Started, Starts, StoreError};

#[async_trait]
impl Starts for SqliteStore {
    async fn start_and_claim(
        &self,
        requests: Vec<StartRequest>,
        offer: Option<ClaimRequest>,
    ) -> Result<Started, StoreError> {
        self.write(move |transaction| {
            let (answers, mut handed_over) =
                hand_over(transaction, offer.as_ref(), |transaction| {
                    requests.into_iter().map(|request| answer(transaction, request)).collect()
                })?;
            inputs::add_at_hand(transaction, &mut handed_over.tasks)?;
            Ok(Started { answers, handed_over })
        })
        .await
    }
}

/// A refusal is an answer; anything else fails the whole transaction.
fn answer(
    transaction: &mut Transaction<'_, '_>,
    request: StartRequest,
) -> Result<StartAnswer, StoreError> {
    match start::start(transaction, request) {
        Err(refused @ StoreError::Refused { .. }) => Ok(StartAnswer::Refused(refused)),
        other => other,
    }
}
