//! The connections of a store, by what they are for.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod, Runtime, Timeouts};

use super::super::sql::Texts;
use super::connect::{CONNECT_MAX, Connector, Driver, PoolConnect};
use super::patience::{BRIEF, Patience};
use super::role::Role;
use crate::ports::{Clock, StoreError, TrafficCounter};

/// A connection from the pool.
pub(crate) type Client = Object;

/// The connections of a store.
pub(crate) struct Pool {
    work: deadpool_postgres::Pool,
    heartbeat: deadpool_postgres::Pool,
    leader: deadpool_postgres::Pool,
    pub(crate) driver: Arc<Driver>,
    pub(crate) schema: String,
    /// The statements, as they are sent.
    pub(crate) texts: Texts,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// What was sent so far.
    pub(crate) traffic: TrafficCounter,
    /// How a transaction begins.
    pub(crate) begin: String,
    /// How long transactions wait for the answer to each statement.
    pub(crate) patience: Patience,
    /// Whether nothing may outlive a transaction on connections for work.
    pub(crate) is_pooled: bool,
    /// Whether the leader's connection can hold a lock beyond a transaction.
    pub(crate) has_leader_lock: bool,
}

/// What a pool is made of.
pub(crate) struct PoolParts {
    pub(crate) driver: Driver,
    pub(crate) work: Connector,
    /// The way past a pooler.
    pub(crate) direct: Option<Connector>,
    pub(crate) connections_max: usize,
    pub(crate) schema: String,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) begin: String,
    pub(crate) statement_timeout: Duration,
    pub(crate) is_pooled: bool,
}

impl Pool {
    pub(crate) fn new(parts: PoolParts) -> Result<Self, String> {
        let driver = Arc::new(parts.driver);
        let pool = |connector: &Connector, role: Role, n: usize| {
            let connector = connector.for_role(role);
            let connect = PoolConnect { connector, driver: Arc::clone(&driver) };
            connections(connect, n, role.wait_max())
        };
        let leader = parts.direct.as_ref().unwrap_or(&parts.work);
        Ok(Self {
            work: pool(&parts.work, Role::Work, parts.connections_max)?,
            heartbeat: pool(&parts.work, Role::Heartbeat, 1)?,
            leader: pool(leader, Role::Leader, 1)?,
            driver: Arc::clone(&driver),
            texts: Texts::new(&parts.schema),
            schema: parts.schema,
            clock: parts.clock,
            traffic: TrafficCounter::default(),
            begin: parts.begin,
            patience: Patience::beyond(parts.statement_timeout),
            is_pooled: parts.is_pooled,
            has_leader_lock: !parts.is_pooled || parts.direct.is_some(),
        })
    }

    /// The injected time, if there is one; else a statement takes the database's own.
    pub(crate) fn injected_now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.now().as_micros())
    }

    /// A connection has gone dark, or its server has become a standby. Others that are idle may
    /// have gone with it, and whoever took one would find that out after a long wait, or by an
    /// error; new ones are quickly made.
    pub(crate) fn discard_idle(&self) {
        for pool in [&self.work, &self.heartbeat] {
            drop(pool.retain(|_, _| false));
        }
    }

    /// A connection for this.
    pub(crate) async fn get(&self, role: Role) -> Result<Client, StoreError> {
        let pool = match role {
            Role::Heartbeat => &self.heartbeat,
            Role::Leader => &self.leader,
            Role::Work | Role::Listen => &self.work,
        };
        pool.get().await.map_err(|error| StoreError::Unavailable {
            operation: "connect to postgres",
            why: match error {
                deadpool_postgres::PoolError::Backend(error) => describe(&error),
                error => error.to_string(),
            },
        })
    }
}

/// The server's own words, which the driver's summary leaves out.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{} ({})", db.message(), db.code().code());
    }
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn connections(
    connect: PoolConnect,
    n: usize,
    wait_max: Duration,
) -> Result<deadpool_postgres::Pool, String> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let config = tokio_postgres::Config::new();
    let manager = Manager::from_connect(config, connect, recycling);
    let timeouts =
        Timeouts { wait: Some(wait_max), create: Some(CONNECT_MAX), recycle: Some(BRIEF) };
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(n)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1)
        .build();
    pool.map_err(|error| error.to_string())
}
