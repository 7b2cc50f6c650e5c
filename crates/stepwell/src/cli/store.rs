//! Which store a command works on.

use std::path::PathBuf;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use std::sync::Arc;

use super::Failure;
#[cfg(feature = "postgres")]
use crate::outbound::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
use crate::outbound::sqlite::{SqliteOptions, SqliteStore};
use crate::ports::DynStore;

/// The store of a command, as the user names it.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreArgs {
    /// The store: a PostgreSQL URL, or the path of a SQLite file
    #[arg(
        long,
        visible_alias = "db",
        value_name = "URL|PATH",
        env = "STEPWELL_STORE",
        hide_env_values = true
    )]
    store: Option<String>,

    /// The PostgreSQL schema that holds the tables
    #[arg(long, value_name = "NAME", default_value = "stepwell")]
    schema: String,
}

/// Where a store is.
#[derive(Debug, PartialEq, Eq)]
pub enum StoreAddress<'a> {
    /// A server and a database on it.
    Postgres(&'a str),
    /// A file.
    Sqlite(PathBuf),
}

impl StoreArgs {
    /// Where the store is.
    ///
    /// # Errors
    /// When the user names none.
    pub fn address(&self) -> Result<StoreAddress<'_>, Failure> {
        // A variable that is set to nothing names no store.
        let named = self.store.as_deref().filter(|store| !store.is_empty());
        named.map(StoreAddress::parse).ok_or_else(|| Failure::Usage {
            message: "no store is named".to_owned(),
            hint: "give --store with a PostgreSQL URL or the path of a SQLite file, or set \
                   STEPWELL_STORE",
        })
    }

    /// Opens the store to look at it. It is not made, not migrated and not written.
    ///
    /// # Errors
    /// When the user names none, or it is not there as this program knows it.
    pub(super) async fn open_to_read(&self) -> Result<DynStore, Failure> {
        match self.address()? {
            StoreAddress::Postgres(url) => read_postgres(url, &self.schema).await,
            StoreAddress::Sqlite(path) => read_sqlite(path),
        }
    }

    /// Opens the store to change runs in it. It is not made and not migrated.
    ///
    /// # Errors
    /// When the user names none, or it is not there as this program knows it.
    pub(super) async fn open_to_write(&self) -> Result<DynStore, Failure> {
        match self.address()? {
            StoreAddress::Postgres(url) => write_postgres(url, &self.schema).await,
            StoreAddress::Sqlite(path) => write_sqlite(path),
        }
    }

    /// Opens the store to execute runs in it. What is not there is made, and tables are brought up
    /// to date, as by programs that open their store themselves.
    ///
    /// # Errors
    /// When the user names none, or it cannot be opened.
    pub(super) async fn open_to_work(&self) -> Result<DynStore, Failure> {
        match self.address()? {
            StoreAddress::Postgres(url) => open_postgres(url, &self.schema).await,
            StoreAddress::Sqlite(path) => open_sqlite(path),
        }
    }

    /// The PostgreSQL schema that holds the tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

impl<'a> StoreAddress<'a> {
    /// URLs, and lists of `key=value`, are PostgreSQL's; anything else is a path.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let is_list = text.split(' ').any(|pair| pair.starts_with("host="));
        if is_url || is_list {
            return Self::Postgres(text);
        }
        Self::Sqlite(PathBuf::from(text.strip_prefix("sqlite:").unwrap_or(text)))
    }
}

/// Few connections, since a command is one caller. The URL may lead to a pooler; a few statements
/// are as quick if nothing outlives them.
#[cfg(feature = "postgres")]
fn postgres(url: &str, schema: &str) -> PostgresOptions {
    PostgresOptions::new(url).schema(schema).connections_max(2).pooled()
}

#[cfg(feature = "postgres")]
async fn read_postgres(url: &str, schema: &str) -> Result<DynStore, Failure> {
    Ok(Arc::new(PostgresStore::connect_with(postgres(url, schema).read_only()).await?))
}

#[cfg(feature = "postgres")]
async fn write_postgres(url: &str, schema: &str) -> Result<DynStore, Failure> {
    Ok(Arc::new(PostgresStore::connect_with(postgres(url, schema).without_migration()).await?))
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: &str, schema: &str) -> Result<DynStore, Failure> {
    let options = PostgresOptions::new(url).schema(schema);
    Ok(Arc::new(PostgresStore::connect_with(options).await?))
}

#[cfg(not(feature = "postgres"))]
async fn write_postgres(url: &str, schema: &str) -> Result<DynStore, Failure> {
    read_postgres(url, schema).await
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(url: &str, schema: &str) -> Result<DynStore, Failure> {
    read_postgres(url, schema).await
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "as of programs that have the store")]
async fn read_postgres(_: &str, _: &str) -> Result<DynStore, Failure> {
    Err(Failure::Usage {
        message: "this program was built without PostgreSQL".to_owned(),
        hint: "build it with the feature `postgres` of Stepwell",
    })
}

#[cfg(feature = "sqlite")]
fn read_sqlite(path: PathBuf) -> Result<DynStore, Failure> {
    Ok(Arc::new(SqliteStore::open_with(SqliteOptions::new(path).read_only())?))
}

#[cfg(feature = "sqlite")]
fn write_sqlite(path: PathBuf) -> Result<DynStore, Failure> {
    Ok(Arc::new(SqliteStore::open_with(SqliteOptions::new(path).without_migration())?))
}

#[cfg(feature = "sqlite")]
fn open_sqlite(path: PathBuf) -> Result<DynStore, Failure> {
    Ok(Arc::new(SqliteStore::open_with(SqliteOptions::new(path))?))
}

#[cfg(not(feature = "sqlite"))]
fn write_sqlite(path: PathBuf) -> Result<DynStore, Failure> {
    read_sqlite(path)
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(path: PathBuf) -> Result<DynStore, Failure> {
    read_sqlite(path)
}

#[cfg(not(feature = "sqlite"))]
fn read_sqlite(_: PathBuf) -> Result<DynStore, Failure> {
    Err(Failure::Usage {
        message: "this program was built without SQLite".to_owned(),
        hint: "build it with the feature `sqlite` of Stepwell",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_from_files() {
        for url in ["postgres://u@h/d", "postgresql:///d", "dbname=d host=/run"] {
            assert_eq!(StoreAddress::parse(url), StoreAddress::Postgres(url));
        }
        for (text, path) in [("shop.db", "shop.db"), ("sqlite:/var/shop.db", "/var/shop.db")] {
            assert_eq!(StoreAddress::parse(text), StoreAddress::Sqlite(PathBuf::from(path)));
        }
    }

    #[test]
    fn a_store_that_is_named_by_nothing_is_no_store() {
        let schema = "stepwell".to_owned();
        let args = StoreArgs { store: Some(String::new()), schema };
        assert!(matches!(args.address(), Err(Failure::Usage { .. })));
    }
}
