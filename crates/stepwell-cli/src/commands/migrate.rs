//! `stepwell migrate`: brings the tables of a store up to date, or prints how.

use serde::Serialize;
use stepwell::cli::{Output, StoreAddress, Tone};
use stepwell::{PostgresOptions, PostgresStore, SqliteStore};

use super::Failure;
use crate::args::MigrateArgs;

/// What was done, as JSON.
#[derive(Serialize)]
struct MigrationRecord<'a> {
    record: &'static str,
    store: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    version: usize,
}

/// The SQL, as JSON.
#[derive(Serialize)]
struct ScriptRecord<'a> {
    record: &'static str,
    schema: &'a str,
    from_version: usize,
    version: usize,
    sql: &'a str,
}

pub(super) fn run(args: &MigrateArgs, output: Output) -> Result<(), Failure> {
    if args.print {
        return print(args, output);
    }
    let address = args.store.address()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let record = runtime.block_on(migrate(&address, args.store.schema()))?;
    if output.is_json() {
        return Ok(output.record(&record)?);
    }
    let migrated = match record.schema {
        Some(schema) => format!("schema {schema:?}"),
        None => "the file".to_owned(),
    };
    let line = format!("{migrated} is up to date at version {}", record.version);
    Ok(output.line(&output.paint(Tone::Good, &line))?)
}

/// Opening a store brings it up to date.
async fn migrate<'a>(
    address: &StoreAddress<'_>,
    schema: &'a str,
) -> Result<MigrationRecord<'a>, stepwell::Error> {
    match address {
        StoreAddress::Postgres(url) => {
            let options = PostgresOptions::new(*url).schema(schema).poll_only();
            PostgresStore::connect_with(options).await?;
            let version = PostgresStore::schema_version();
            let schema = Some(schema);
            Ok(MigrationRecord { record: "migration", store: "postgres", schema, version })
        }
        StoreAddress::Sqlite(path) => {
            SqliteStore::open(path).await?;
            let version = SqliteStore::schema_version();
            Ok(MigrationRecord { record: "migration", store: "sqlite", schema: None, version })
        }
    }
}

fn print(args: &MigrateArgs, output: Output) -> Result<(), Failure> {
    let (schema, from_version) = (args.store.schema(), args.from_version);
    let version = PostgresStore::schema_version();
    if from_version > version {
        return Err(Failure::Usage {
            message: format!("--from-version {from_version}: this program knows {version}"),
            hint: "give the version the schema has, as its table `migration` says",
        });
    }
    let sql =
        PostgresStore::migration_script(schema, from_version).map_err(stepwell::Error::from)?;
    if output.is_json() {
        let record = ScriptRecord { record: "script", schema, from_version, version, sql: &sql };
        return Ok(output.record(&record)?);
    }
    for line in sql.lines() {
        output.line(line)?;
    }
    Ok(())
}
