//! What tests ask a store about its statements and connections.

use super::connection::pool::describe;
use super::connection::settings::PLANNER_SETTINGS;
use super::rows::server::read_setting;
use super::sql::{self, Sql};
use super::{PostgresStore, Role};
use crate::ports::StoreError;

const READ_SETTING: Sql = sql::SESSION.named("read_setting");

impl PostgresStore {
    /// Prepares every statement against the schema, as a test wants. Gives their number.
    ///
    /// # Errors
    /// With the first statement that does not fit, by name.
    pub async fn prepare_every_statement(&self) -> Result<usize, StoreError> {
        let client = self.shared.pool.get(Role::Work).await?;
        let mut n_statements = 0;
        for (name, text) in self.shared.pool.texts.all() {
            let prepared = client.prepare(text).await;
            prepared.map_err(|error| StoreError::Corrupt {
                what: format!("{name}: {}", describe(&error)),
            })?;
            n_statements += 1;
        }
        Ok(n_statements)
    }

    /// Every statement by name, under this store's schema, for tests that look at their plans.
    #[must_use]
    pub fn every_statement(&self) -> Vec<(&'static str, String)> {
        self.shared.pool.texts.all().map(|(name, text)| (name, text.to_owned())).collect()
    }

    /// What plans of the store's statements rest on.
    #[must_use]
    pub fn planner_settings(&self) -> String {
        let set = |(name, value): &(&str, &str)| format!("set {name} = {value}");
        PLANNER_SETTINGS.iter().map(set).collect::<Vec<_>>().join("; ")
    }

    /// What a setting of the server is within this store's transactions.
    ///
    /// # Errors
    /// When the server does not answer, or has no such setting.
    pub async fn setting_within_a_transaction(&self, name: &str) -> Result<String, StoreError> {
        let session = self.begin(Role::Work).await?;
        let row = session.one(READ_SETTING, &[&name]).await?;
        let setting = row.as_ref().map(read_setting).transpose()?.unwrap_or_default();
        self.commit_session(session).await?;
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
