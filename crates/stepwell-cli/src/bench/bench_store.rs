//! An empty store of one kind to measure on, and what it has sent and written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use stepwell::ports::DynStore;
use stepwell::{EngineBuilder, MemoryStore, PostgresOptions, PostgresStore, SqliteStore, Traffic};
use tempfile::TempDir;
use tokio_postgres::Client;

use super::cluster::{self, Server, failure};
use super::measure;
use super::report::Part;
use crate::commands::Failure;

/// The kinds of stores there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StoreKind {
    Memory,
    Sqlite,
    Postgres,
}

impl StoreKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// An open store of any kind.
#[derive(Clone)]
pub(super) enum OpenStore {
    Memory(MemoryStore),
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

/// A fresh store, where it is, and the way to look at it from outside.
pub(super) struct Bed {
    pub(super) kind: StoreKind,
    pub(super) store: OpenStore,
    place: Place,
}

enum Place {
    Memory,
    Sqlite(TempDir),
    Postgres { url: String, schema: String, control: Client },
}

/// How another process finds the store of a bed.
pub(super) struct Address {
    pub(super) store: String,
    pub(super) schema: String,
}

impl OpenStore {
    /// Opens what an address names.
    pub(super) async fn open(address: &Address) -> Result<Self, Failure> {
        Ok(match crate::store::Place::parse(&address.store) {
            crate::store::Place::Postgres(url) => {
                let options = PostgresOptions::new(url).schema(&address.schema);
                Self::Postgres(PostgresStore::connect_with(options).await?)
            }
            crate::store::Place::Sqlite(path) => Self::Sqlite(SqliteStore::open(path).await?),
        })
    }

    /// Begins an engine on it.
    pub(super) fn builder(&self) -> EngineBuilder<()> {
        match self.clone() {
            Self::Memory(store) => stepwell::Engine::builder(store),
            Self::Sqlite(store) => stepwell::Engine::builder(store),
            Self::Postgres(store) => stepwell::Engine::builder(store),
        }
    }

    /// Its ports.
    pub(super) fn ports(&self) -> DynStore {
        match self.clone() {
            Self::Memory(store) => Arc::new(store),
            Self::Sqlite(store) => Arc::new(store),
            Self::Postgres(store) => Arc::new(store),
        }
    }

    /// What it has sent; `None` in memory, where nothing is sent.
    fn traffic(&self) -> Option<Traffic> {
        match self {
            Self::Memory(_) => None,
            Self::Sqlite(store) => Some(store.traffic()),
            Self::Postgres(store) => Some(store.traffic()),
        }
    }
}

impl Bed {
    /// Makes a store of this kind. PostgreSQL needs a server.
    pub(super) async fn make(kind: StoreKind, server: Option<&Server>) -> Result<Self, Failure> {
        let (store, place) = match (kind, server) {
            (StoreKind::Postgres, Some(server)) => {
                let (url, schema) = (server.url.clone(), server.schema.clone());
                let control = server.connect().await?;
                server.check_schema(&control, &schema).await?;
                let address = Address { store: url.clone(), schema: schema.clone() };
                (OpenStore::open(&address).await?, Place::Postgres { url, schema, control })
            }
            (StoreKind::Sqlite, _) => {
                let folder = TempDir::with_prefix("stepwell-bench-")?;
                let store = SqliteStore::open(file(&folder)).await?;
                (OpenStore::Sqlite(store), Place::Sqlite(folder))
            }
            _ => (OpenStore::Memory(MemoryStore::new()), Place::Memory),
        };
        Ok(Self { kind, store, place })
    }

    /// How another process finds this store; `None` for one that only this process has.
    pub(super) fn address(&self) -> Option<Address> {
        match &self.place {
            Place::Memory => None,
            Place::Sqlite(folder) => {
                let store = file(folder).display().to_string();
                Some(Address { store, schema: String::new() })
            }
            Place::Postgres { url, schema, .. } => {
                Some(Address { store: url.clone(), schema: schema.clone() })
            }
        }
    }

    /// A connection of our own, beside those of the store; only PostgreSQL has one.
    pub(super) fn control(&self) -> Option<&Client> {
        match &self.place {
            Place::Postgres { control, .. } => Some(control),
            _ => None,
        }
    }

    /// Removes all of it. Engines on it were stopped before.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        drop(self.store);
        match self.place {
            Place::Postgres { schema, control, .. } => {
                cluster::drop_schema(&control, &schema).await
            }
            Place::Sqlite(folder) => Ok(folder.close()?),
            Place::Memory => Ok(()),
        }
    }

    /// Bytes that were written so far: PostgreSQL's write-ahead log, or everything this process
    /// wrote to files, which on SQLite is the log and the checkpoints.
    async fn bytes_written(&self) -> Result<Option<u64>, Failure> {
        let Place::Postgres { control, .. } = &self.place else {
            return Ok(measure::bytes_written().filter(|_| self.kind == StoreKind::Sqlite));
        };
        let lsn = "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8";
        let row = control.query_one(lsn, &[]).await.map_err(|error| failure(&error))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).ok())
    }
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("stepwell.db")
}

/// Reads time, traffic, bytes and memory from here on.
pub(super) struct Meter {
    began_at: Instant,
    traffic: Option<Traffic>,
    bytes_written: Option<u64>,
}

impl Meter {
    pub(super) async fn begin(bed: &Bed) -> Result<Self, Failure> {
        measure::forget_memory_peak();
        let bytes_written = bed.bytes_written().await?;
        Ok(Self { began_at: measure::now(), traffic: bed.store.traffic(), bytes_written })
    }

    /// What so many runs and tasks have cost since then.
    pub(super) async fn end(
        self,
        bed: &Bed,
        part: &str,
        n_runs: usize,
        n_tasks: usize,
    ) -> Result<Part, Failure> {
        let span = self.began_at.elapsed();
        let rss_bytes = measure::memory_peak();
        let n_tasks = n_tasks as u64;
        let traffic = self.traffic.zip(bed.store.traffic()).map(|(then, now)| now.since(then));
        let bytes = self.bytes_written.zip(bed.bytes_written().await?);
        let bytes = bytes.map(|(then, now)| now.saturating_sub(then));
        Ok(Part {
            n_runs: Some(n_runs as u64),
            n_tasks: Some(n_tasks),
            seconds: Some(span.as_secs_f64()),
            tasks_per_second: Some(measure::rate(n_tasks, span)),
            statements_per_task: traffic.map(|t| measure::per_count(t.statements, n_tasks)),
            transactions_per_task: traffic.map(|t| measure::per_count(t.transactions, n_tasks)),
            statements: traffic.map(|t| t.statements),
            transactions: traffic.map(|t| t.transactions),
            written_bytes_per_task: bytes.map(|n| measure::per_count(n, n_tasks)),
            rss_bytes,
            ..Part::named(part)
        })
    }
}
