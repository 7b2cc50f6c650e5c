//! Connections: how they are made, and how many.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod, Runtime, Timeouts};
use stepwell_core::code::Code;
use tokio_postgres::NoTls;

use super::transaction::DefinitionCache;
use super::{PostgresStore, Shared, migrate, notify};
use crate::ports::{Clock, HintSender, StoreError};

/// A connection from the pool.
pub(super) type Client = Object;

/// The schema that holds the tables, unless another is given.
const SCHEMA: &str = "stepwell";

/// Longest wait for a connection of the pool.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How a server is connected to.
#[derive(Clone)]
pub struct PostgresOptions {
    url: String,
    schema: String,
    connections_max: usize,
    poll_only: bool,
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresOptions {
    /// The server and database of this URL.
    pub fn new(url: impl Into<String>) -> Self {
        let schema = SCHEMA.to_owned();
        Self { url: url.into(), schema, connections_max: 8, poll_only: false, clock: None }
    }

    /// Another schema than `stepwell`: lower-case letters, digits and underscores.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Most connections. Default: 8.
    #[must_use]
    pub fn connections_max(mut self, n: usize) -> Self {
        self.connections_max = n;
        self
    }

    /// Without wake-ups between processes, which need a connection of their own that no
    /// transaction pooler stands before. Work of other processes is then found by polling.
    #[must_use]
    pub fn poll_only(mut self) -> Self {
        self.poll_only = true;
        self
    }

    /// Another clock than the database's, as tests use.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

/// The URL may hold a password, so it is not shown.
impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The connections of a store.
pub(super) struct Pool {
    connections: deadpool_postgres::Pool,
    schema: String,
    pub(super) clock: Option<Arc<dyn Clock>>,
}

impl Pool {
    pub(super) async fn get(&self) -> Result<Client, StoreError> {
        self.connections.get().await.map_err(|error| StoreError::Unavailable {
            operation: "connect to postgres",
            why: match error {
                deadpool_postgres::PoolError::Backend(error) => super::error::describe(&error),
                error => error.to_string(),
            },
        })
    }

    /// A statement under this store's schema.
    pub(super) fn sql(&self, sql: &'static str) -> Cow<'static, str> {
        if self.schema == SCHEMA {
            return Cow::Borrowed(sql);
        }
        // The name was checked to need no quotes.
        Cow::Owned(sql.replace("stepwell.", &format!("{}.", self.schema)))
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }
}

impl PostgresStore {
    /// Connects to a server and brings its tables up to date.
    ///
    /// # Errors
    /// When the URL makes no sense, the server cannot be reached, or its schema is newer.
    pub async fn connect(url: impl Into<String>) -> Result<Self, crate::ports::StoreError> {
        Self::connect_with(PostgresOptions::new(url)).await
    }

    /// Connects with other settings.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, StoreError> {
        check_schema(&options.schema)?;
        let config = tokio_postgres::Config::from_str(&options.url).map_err(|error| {
            refuse(format!("url: {error}; it looks like postgres://user@host/database"))
        })?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), NoTls, recycling);
        let timeouts =
            Timeouts { wait: Some(WAIT_MAX), create: Some(WAIT_MAX), recycle: Some(WAIT_MAX) };
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(options.connections_max.max(2))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        let pool = Pool { connections, schema: options.schema, clock: options.clock };
        migrate::migrate(&pool).await?;
        let (hints, definitions) = (HintSender::default(), DefinitionCache::default());
        let shared = Arc::new(Shared {
            pool,
            hints,
            definitions,
            outbox: Arc::default(),
            revisions: AtomicI64::new(-1),
        });
        if !options.poll_only {
            notify::start(&shared, config);
        }
        Ok(Self { shared })
    }
}

/// A schema name that needs no quotes anywhere.
fn check_schema(schema: &str) -> Result<(), StoreError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins_well = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if !begins_well || schema.len() > 63 || !schema.chars().all(is_plain) {
        return Err(refuse(format!(
            "schema {schema:?}: use at most 63 lower-case letters, digits and underscores"
        )));
    }
    Ok(())
}

fn refuse(message: String) -> StoreError {
    StoreError::Refused { code: Code::BadConfig, message }
}
