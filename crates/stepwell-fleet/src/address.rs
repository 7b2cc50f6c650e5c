//! Where a store is: a PostgreSQL server and schema, or a SQLite file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stepwell::ports::{DynStore, StoreError};
use stepwell::{
    Engine, EngineBuilder, Error, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore,
};

use crate::jumping_clock::JumpingClock;
use crate::real_time::{Deadline, pause};
use crate::{Failure, Result};

/// Between two attempts to reach a store.
const RETRY: Duration = Duration::from_millis(50);

/// How long a process tries to reach a store before it gives up.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A schema of a PostgreSQL database.
    Postgres {
        /// The server and database, as a URL or as `host=… user=…`.
        url: String,
        /// The schema.
        schema: String,
    },
    /// The same by way of a transaction pooler.
    Pooled {
        /// The pooler and database, as `host=… user=…`.
        url: String,
        /// The schema.
        schema: String,
    },
    /// A SQLite file.
    Sqlite(PathBuf),
}

/// What the URL of a pooler begins with on a command line.
const POOLED: &str = "pooled:";

impl Address {
    /// Reads an address as it stands on a command line.
    #[must_use]
    pub fn parse(store: &str, schema: &str) -> Self {
        if let Some(url) = store.strip_prefix(POOLED) {
            return Self::Pooled { url: url.to_owned(), schema: schema.to_owned() };
        }
        let is_server = store.starts_with("postgres://")
            || store.starts_with("postgresql://")
            || store.contains("host=");
        if is_server {
            return Self::Postgres { url: store.to_owned(), schema: schema.to_owned() };
        }
        Self::Sqlite(PathBuf::from(store))
    }

    /// The address as arguments of a command.
    #[must_use]
    pub fn arguments(&self) -> [String; 4] {
        let (store, schema) = match self {
            Self::Postgres { url, schema } => (url.clone(), schema.clone()),
            Self::Pooled { url, schema } => (format!("{POOLED}{url}"), schema.clone()),
            Self::Sqlite(path) => (path.display().to_string(), "none".to_owned()),
        };
        ["--store".to_owned(), store, "--schema".to_owned(), schema]
    }

    /// Begins to build an engine on the store, which may have to be waited for.
    ///
    /// # Errors
    /// If the store cannot be reached for a minute, or refuses.
    pub async fn builder(&self) -> Result<EngineBuilder<()>> {
        match self {
            Self::Sqlite(path) => Ok(Engine::builder(SqliteStore::open(path).await?)),
            server => Ok(Engine::builder(server.connect().await?)),
        }
    }

    /// As [`Address::builder`]; waits for a file, too, that a worker holds which is frozen while it
    /// writes.
    ///
    /// # Errors
    /// As [`Address::builder`].
    pub async fn builder_in_time(&self) -> Result<EngineBuilder<()>> {
        let Self::Sqlite(path) = self else { return self.builder().await };
        in_time(|| SqliteStore::open_with(SqliteOptions::new(path))).await
    }

    /// As [`Address::builder_in_time`]; a file goes by this clock, as a server goes by its own.
    ///
    /// # Errors
    /// As [`Address::builder`].
    pub async fn builder_on(&self, clock: &JumpingClock) -> Result<EngineBuilder<()>> {
        let Self::Sqlite(path) = self else { return self.builder().await };
        let options = || SqliteOptions::new(path);
        in_time(|| Ok(SqliteStore::with_clock(options(), Arc::new(clock.clone()))?)).await
    }

    /// Opens the store itself.
    ///
    /// # Errors
    /// As [`Address::builder`].
    pub async fn open(&self) -> Result<DynStore> {
        Ok(match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path).await?),
            server => Arc::new(server.connect().await?),
        })
    }

    /// Connects to a server; one that is just being restarted is waited for.
    async fn connect(&self) -> Result<PostgresStore> {
        let options = match self {
            Self::Postgres { url, schema } => PostgresOptions::new(url).schema(schema),
            Self::Pooled { url, schema } => PostgresOptions::new(url).schema(schema).pooled(),
            Self::Sqlite(_) => return Err(Failure::of("connect", "a file is no server")),
        };
        let deadline = Deadline::after(WAIT_MAX);
        loop {
            match PostgresStore::connect_with(options.clone()).await {
                Ok(store) => return Ok(store),
                Err(StoreError::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
                Err(error) => return Err(Failure::of("connect", error)),
            }
        }
    }
}

/// Begins to build an engine on a file, which may have to be waited for.
async fn in_time(
    open: impl Fn() -> std::result::Result<SqliteStore, Error>,
) -> Result<EngineBuilder<()>> {
    let deadline = Deadline::after(WAIT_MAX);
    loop {
        match open() {
            Ok(store) => return Ok(Engine::builder(store)),
            Err(Error::Unavailable { .. }) if !deadline.has_passed() => pause(RETRY).await,
            Err(error) => return Err(Failure::of("open", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_from_files() {
        let schema = "a".to_owned();
        for url in ["postgres://u@h/d", "postgresql://h/d", "host=/run user=u"] {
            let server = Address::Postgres { url: url.to_owned(), schema: schema.clone() };
            assert_eq!(Address::parse(url, "a"), server);
        }
        let pooled = Address::Pooled { url: "host=/run".to_owned(), schema };
        assert_eq!(Address::parse(&pooled.arguments()[1], "a"), pooled);
        assert_eq!(Address::parse("a/b.db", "a"), Address::Sqlite(PathBuf::from("a/b.db")));
    }
}
