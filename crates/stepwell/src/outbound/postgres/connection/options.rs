//! How a server is connected to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::super::sql::SCHEMA;
use crate::ports::Clock;

/// A round that advances a queue's watermark is as dear as stepping over this many places.
const STEPS_PER_ROUND: u64 = 50_000;

/// How a server is connected to.
///
/// A store holds at most [`connections_max`](Self::connections_max) connections for work, and
/// beside them one each for heartbeats, for leading, and for wake-ups, so that a busy pool costs
/// nobody a lease. Each says what it is for in its `application_name`.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) url: String,
    pub(crate) direct_url: Option<String>,
    pub(crate) schema: String,
    pub(crate) connections_max: usize,
    pub(crate) is_pooled: bool,
    pub(crate) poll_only: bool,
    pub(crate) access: Access,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) statement_timeout: Duration,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) steps_per_round: u64,
}

/// What may be done to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is made if it is not there, and its tables are brought up to date.
    Migrate,
    /// Rows are written. The tables have to be there as this program knows them.
    Work,
    /// Rows are read.
    Read,
}

impl PostgresOptions {
    /// The server and database of this URL, or of a text such as `host=… dbname=…`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            direct_url: None,
            schema: SCHEMA.to_owned(),
            connections_max: 8,
            is_pooled: false,
            poll_only: false,
            access: Access::Migrate,
            root_certificates: None,
            statement_timeout: Duration::from_secs(30),
            clock: None,
            steps_per_round: STEPS_PER_ROUND,
        }
    }

    /// Another schema than `stepwell`: lower-case letters, digits and underscores.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Most connections for work, at least 1. Default: 8. No call holds more than one, so one is
    /// enough, and calls then wait for each other.
    #[must_use]
    pub fn connections_max(mut self, n: usize) -> Self {
        self.connections_max = n;
        self
    }

    /// The URL leads to a transaction pooler: nothing may outlive a transaction on a connection.
    /// Wake-ups and the leader's lock need what does; they use the [direct](Self::direct) URL,
    /// and without one work of others is found by polling and leaders go by their lease alone.
    #[must_use]
    pub fn pooled(mut self) -> Self {
        self.is_pooled = true;
        self
    }

    /// The way to the same database past the pooler that the main URL leads to.
    #[must_use]
    pub fn direct(mut self, url: impl Into<String>) -> Self {
        self.direct_url = Some(url.into());
        self.pooled()
    }

    /// Without wake-ups between processes. Work of other processes is then found by polling.
    #[must_use]
    pub fn poll_only(mut self) -> Self {
        self.poll_only = true;
        self
    }

    /// Leaves the tables as they are, and refuses to work on tables of another version. Without
    /// this, connecting brings them up to date, which the owner of the schema may do.
    #[must_use]
    pub fn without_migration(mut self) -> Self {
        self.access = Access::Work;
        self
    }

    /// For those who only look, also on a standby: as
    /// [`without_migration`](Self::without_migration), and all transactions are read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.access = Access::Read;
        self
    }

    /// Trusts the authorities in this PEM file, as `sslrootcert` in the URL does, instead of
    /// those the machine trusts.
    #[must_use]
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.root_certificates = Some(path.into());
        self
    }

    /// Longest time the server works on one statement. Default: 30 s.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Another clock than the database's, as tests use.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Advances the watermarks of queues at every claim, and not only when that pays: for tests.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn passing_eagerly(mut self) -> Self {
        self.steps_per_round = 0;
        self
    }
}

/// The URL may hold a password, so it is not shown.
impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions").field("schema", &self.schema).finish_non_exhaustive()
    }
}
