//! Bringing a schema up to date: forward only, one migrator at a time, never past what this
//! program knows. No statement gets a name, which could stay behind in a pooler.

use stepwell_core::code::Code;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::super::connection::options::Access;
use super::super::rows;
use super::super::sql::{SCHEMA, in_schema};
use crate::ports::StoreError;

/// Each migration in the parts that are applied together. Nothing was released before the first.
const MIGRATIONS: &[&[&str]] = &[&[
    include_str!("migrations/0001_names.sql"),
    include_str!("migrations/0001_tables.sql"),
    include_str!("migrations/0001_leader.sql"),
    include_str!("migrations/0001_watermark.sql"),
    include_str!("migrations/0001_views.sql"),
]];

/// How long a migration waits for a table that others use, and how often it tries.
const LOCK_TIMEOUT: &str = "3s";
const TRIES_MAX: u32 = 20;

const HISTORY: &str = "create table if not exists stepwell.migration (
    version integer primary key, applied_at timestamptz not null default now())";

/// Why a store was not opened.
pub(crate) enum Failed {
    Server(tokio_postgres::Error),
    Refused(StoreError),
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// The version this program works on.
pub(crate) fn version_known() -> usize {
    MIGRATIONS.len()
}

/// Brings a schema of the version `applied` up to date, if that is allowed.
pub(crate) async fn migrate(
    client: &mut Client,
    schema: &str,
    applied: usize,
    access: Access,
) -> Result<(), Failed> {
    check_not_newer(applied, schema)?;
    if applied == version_known() {
        return Ok(());
    }
    if access != Access::Migrate {
        return Err(older(applied, schema).into());
    }
    for _ in 1..TRIES_MAX {
        match migrate_once(client, schema).await {
            Err(Failed::Server(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                tracing::warn!(schema, "a migration waits for programs that use the tables");
            }
            other => return other,
        }
    }
    migrate_once(client, schema).await
}

/// Waits a short while for each table that others use, and gives way to them then: whoever waits
/// for the lock of a table keeps everybody out who comes later.
async fn migrate_once(client: &mut Client, schema: &str) -> Result<(), Failed> {
    let transaction = client.transaction().await?;
    // Other migrators are waited for as long as they take, the tables are not.
    let lock = "select set_config('statement_timeout', '0', true), \
                pg_advisory_xact_lock(hashtextextended('stepwell migration ' || $1, 0))";
    transaction.execute_typed(lock, &[(&schema, Type::TEXT)]).await?;
    let patience = "select set_config('lock_timeout', $1, true)";
    transaction.execute_typed(patience, &[(&LOCK_TIMEOUT, Type::TEXT)]).await?;
    // Another migrator may have been quicker.
    let applied = version_applied(&transaction, schema).await?;
    check_not_newer(applied, schema)?;
    transaction.batch_execute(&script(schema, applied)).await?;
    Ok(transaction.commit().await?)
}

/// The statements that lead from a version to the one this program knows. The schema's name was
/// checked to be plain; DDL takes no parameters.
pub(crate) fn script(schema: &str, applied: usize) -> String {
    let mut script = String::new();
    if applied == 0 {
        // `create schema if not exists` asks for the right to create even if it exists.
        let make = "do $$ begin if to_regnamespace('\"SCHEMA\"') is null \
                    then create schema \"SCHEMA\"; end if; end $$;\n";
        script.push_str(&make.replace("SCHEMA", schema));
        script.push_str(&in_schema(HISTORY, schema));
        script.push_str(";\n\n");
    }
    for (ix, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        for part in *migration {
            script.push_str(&in_schema(part, schema));
        }
        let insert = in_schema("\ninsert into stepwell.migration (version) values (", schema);
        script.push_str(&insert);
        script.push_str(&(ix + 1).to_string());
        script.push_str(");\n\n");
    }
    script
}

/// The version a schema has; 0 if it is not there.
pub(crate) async fn version_applied(
    client: &Transaction<'_>,
    schema: &str,
) -> Result<usize, Failed> {
    let exists = "select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace \
                  where n.nspname = $1 and c.relname = 'migration'";
    if client.query_typed_opt(exists, &[(&schema, Type::TEXT)]).await?.is_none() {
        return Ok(0);
    }
    let max = in_schema("select coalesce(max(version), 0) from stepwell.migration", schema);
    Ok(rows::server::read_schema_version(&client.query_typed_one(&max, &[]).await?)?)
}

fn check_not_newer(applied: usize, schema: &str) -> Result<(), StoreError> {
    let known = version_known();
    if applied > known {
        let message = format!(
            "schema {schema:?} has version {applied}, this program knows {known}; use a newer \
             program"
        );
        return Err(StoreError::Refused { code: Code::NewerSchema, message });
    }
    Ok(())
}

fn older(applied: usize, schema: &str) -> StoreError {
    let known = version_known();
    let what = match applied {
        0 => format!("schema {schema:?} is not there, or has no tables yet"),
        _ => format!("schema {schema:?} has version {applied}, this program needs {known}"),
    };
    let option = if schema == SCHEMA { String::new() } else { format!(" --schema {schema}") };
    let message =
        format!("{what}; run `stepwell migrate --store URL{option}` as the owner of the schema");
    StoreError::Refused { code: Code::OlderSchema, message }
}
