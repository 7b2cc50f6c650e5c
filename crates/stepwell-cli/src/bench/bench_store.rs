//! An empty store of one kind to measure on, and what it has sent and written.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use stepwell::cli::StoreAddress;
use stepwell::ports::DynStore;
use stepwell::{EngineBuilder, MemoryStore, PostgresOptions, PostgresStore, SqliteStore, Traffic};
use tempfile::TempDir;
use tokio_postgres::Client;

use super::cluster::{self, Server, failure};
use super::measure;
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
pub(super) struct BenchStore {
    pub(super) kind: StoreKind,
    pub(super) open: OpenStore,
    location: Location,
}

/// Where the store is, with what has to be removed at the end.
enum Location {
    Memory,
    Sqlite(TempDir),
    Postgres { url: String, schema: String, control: Client },
}

/// How another process finds a store.
pub(super) struct Address {
    pub(super) store: String,
    pub(super) schema: String,
}

impl OpenStore {
    /// Opens what an address names.
    pub(super) async fn open(address: &Address) -> Result<Self, Failure> {
        Ok(match StoreAddress::parse(&address.store) {
            StoreAddress::Postgres(url) => {
                let options = PostgresOptions::new(url).schema(&address.schema);
                Self::Postgres(PostgresStore::connect_with(options).await?)
            }
            StoreAddress::Sqlite(path) => Self::Sqlite(SqliteStore::open(path).await?),
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
    pub(super) fn traffic(&self) -> Option<Traffic> {
        match self {
            Self::Memory(_) => None,
            Self::Sqlite(store) => Some(store.traffic()),
            Self::Postgres(store) => Some(store.traffic()),
        }
    }
}

impl BenchStore {
    /// Makes a store of this kind. PostgreSQL needs a server.
    pub(super) async fn make(kind: StoreKind, server: Option<&Server>) -> Result<Self, Failure> {
        let (open, location) = match (kind, server) {
            (StoreKind::Postgres, Some(server)) => {
                let (url, schema) = (server.url.clone(), server.schema.clone());
                let control = server.connect().await?;
                server.check_schema(&control, &schema).await?;
                let address = Address { store: url.clone(), schema: schema.clone() };
                (OpenStore::open(&address).await?, Location::Postgres { url, schema, control })
            }
            (StoreKind::Sqlite, _) => {
                let folder = TempDir::with_prefix("stepwell-bench-")?;
                let store = SqliteStore::open(file(&folder)).await?;
                (OpenStore::Sqlite(store), Location::Sqlite(folder))
            }
            _ => (OpenStore::Memory(MemoryStore::new()), Location::Memory),
        };
        Ok(Self { kind, open, location })
    }

    /// How another process finds this store; `None` for one that only this process has.
    pub(super) fn address(&self) -> Option<Address> {
        match &self.location {
            Location::Memory => None,
            Location::Sqlite(folder) => {
                let store = file(folder).display().to_string();
                Some(Address { store, schema: String::new() })
            }
            Location::Postgres { url, schema, .. } => {
                Some(Address { store: url.clone(), schema: schema.clone() })
            }
        }
    }

    /// A connection of our own, beside those of the store; only PostgreSQL has one.
    pub(super) fn control(&self) -> Option<&Client> {
        match &self.location {
            Location::Postgres { control, .. } => Some(control),
            _ => None,
        }
    }

    /// Removes all of it. Engines on it were stopped before.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        drop(self.open);
        match self.location {
            Location::Postgres { schema, control, .. } => {
                cluster::drop_schema(&control, &schema).await
            }
            Location::Sqlite(folder) => Ok(folder.close()?),
            Location::Memory => Ok(()),
        }
    }

    /// Bytes that were written so far: PostgreSQL's write-ahead log, or everything this process
    /// wrote to files, which on SQLite is the log and the checkpoints.
    pub(super) async fn bytes_written(&self) -> Result<Option<u64>, Failure> {
        let Location::Postgres { control, .. } = &self.location else {
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
