//! What tests ask a store about its connections.

use super::{PostgresStore, Role};
use crate::ports::StoreError;

impl PostgresStore {
    /// What a setting of the server is within this store's transactions.
    ///
    /// # Errors
    /// When the server does not answer, or has no such setting.
    pub async fn setting_within_a_transaction(&self, name: &str) -> Result<String, StoreError> {
        let transaction = self.begin().await?;
        let row = transaction.one("select current_setting($1)", &[&name]).await?;
        let setting = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        self.commit_transaction(transaction).await?;
        Ok(setting)
    }

    /// Keeps `n` working connections from everybody else, until what it gives is dropped.
    ///
    /// # Errors
    /// When there are not as many.
    pub async fn hold_connections(&self, n: usize) -> Result<Vec<impl Send + use<>>, StoreError> {
        let mut held = Vec::with_capacity(n);
        for _ in 0..n {
            held.push(self.shared.pool.get(Role::Work).await?);
        }
        Ok(held)
    }
}
