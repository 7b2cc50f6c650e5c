//! The connections of a store, by what they are for.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod, Runtime, Timeouts};

use super::connect::{Connector, Driver, PoolConnect, Role};
use super::options::SCHEMA;
use crate::ports::{Clock, StoreError};

/// A connection from the pool.
pub(super) type Client = Object;

/// Longest wait for a connection of the pool.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The connections of a store.
pub(super) struct Pool {
    work: deadpool_postgres::Pool,
    heartbeat: deadpool_postgres::Pool,
    leader: deadpool_postgres::Pool,
    pub(super) driver: Arc<Driver>,
    pub(super) schema: String,
    pub(super) clock: Option<Arc<dyn Clock>>,
    /// How a transaction begins.
    pub(super) begin: String,
    /// Whether nothing may outlive a transaction on connections for work.
    pub(super) is_pooled: bool,
    /// Whether the leader's connection can hold a lock beyond a transaction.
    pub(super) has_leader_lock: bool,
}

/// What a pool is made of.
pub(super) struct PoolParts {
    pub(super) driver: Driver,
    pub(super) work: Connector,
    /// The way past a pooler.
    pub(super) direct: Option<Connector>,
    pub(super) connections_max: usize,
    pub(super) schema: String,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) begin: String,
    pub(super) is_pooled: bool,
}

impl Pool {
    pub(super) fn new(parts: PoolParts) -> Result<Self, String> {
        let driver = Arc::new(parts.driver);
        let pool = |connector: &Connector, role: Role, n: usize| {
            let connector = connector.for_role(role);
            let connect = PoolConnect { connector, driver: Arc::clone(&driver) };
            connections(connect, n)
        };
        let leader = parts.direct.as_ref().unwrap_or(&parts.work);
        Ok(Self {
            work: pool(&parts.work, Role::Work, parts.connections_max.max(2))?,
            heartbeat: pool(&parts.work, Role::Heartbeat, 1)?,
            leader: pool(leader, Role::Leader, 1)?,
            driver: Arc::clone(&driver),
            schema: parts.schema,
            clock: parts.clock,
            begin: parts.begin,
            is_pooled: parts.is_pooled,
            has_leader_lock: !parts.is_pooled || parts.direct.is_some(),
        })
    }

    /// A connection for this.
    pub(super) async fn get(&self, role: Role) -> Result<Client, StoreError> {
        let pool = match role {
            Role::Heartbeat => &self.heartbeat,
            Role::Leader => &self.leader,
            Role::Work | Role::Listen => &self.work,
        };
        pool.get().await.map_err(|error| StoreError::Unavailable {
            operation: "connect to postgres",
            why: match error {
                deadpool_postgres::PoolError::Backend(error) => super::error::describe(&error),
                error => error.to_string(),
            },
        })
    }

    /// A statement under this store's schema.
    pub(super) fn sql(&self, sql: &'static str) -> Cow<'static, str> {
        in_schema(sql, &self.schema)
    }
}

/// A statement under a schema. Its name was checked to be plain, but may be a word of SQL.
pub(super) fn in_schema(sql: &'static str, schema: &str) -> Cow<'static, str> {
    if schema == SCHEMA {
        return Cow::Borrowed(sql);
    }
    Cow::Owned(sql.replace("stepwell.", &format!("\"{schema}\".")))
}

fn connections(connect: PoolConnect, n: usize) -> Result<deadpool_postgres::Pool, String> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let config = tokio_postgres::Config::new();
    let manager = Manager::from_connect(config, connect, recycling);
    let timeouts =
        Timeouts { wait: Some(WAIT_MAX), create: Some(WAIT_MAX), recycle: Some(WAIT_MAX) };
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(n)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1)
        .build();
    pool.map_err(|error| error.to_string())
}
