//! Bringing a file's tables up to date: forward only, in one transaction, never past what this
//! program knows.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use stepwell_core::code::Code;
use stepwell_core::time::Timestamp;

use crate::outbound::sqlite::file::{SqliteOptions, corrupt};
use crate::ports::StoreError;

/// Each migration in the parts that are applied together. Nothing was released before the first.
const MIGRATIONS: &[&[&str]] = &[&[
    include_str!("migrations/0001_names.sql"),
    include_str!("migrations/0001_tables.sql"),
    include_str!("migrations/0001_views.sql"),
]];

/// The version this program works on.
pub(crate) fn version_known() -> usize {
    MIGRATIONS.len()
}

/// Applies the migrations a file lacks.
///
/// # Errors
/// When the file is of a newer version, or is no file of ours.
pub(crate) fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let applied = applied(&transaction)?;
    check_not_newer(applied)?;
    for (ix, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        migration.iter().try_for_each(|part| transaction.execute_batch(part))?;
        let version = i64::try_from(ix + 1).unwrap_or(i64::MAX);
        transaction.execute(
            "insert into stepwell_migration (version, applied_at) values (?1, ?2)",
            [version, now.as_micros()],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// Refuses a file whose tables are not those that this program knows.
///
/// # Errors
/// When they are of another version, or not there.
pub(crate) fn check(connection: &Connection, options: &SqliteOptions) -> Result<(), StoreError> {
    let (applied, known) = (applied(connection)?, version_known());
    check_not_newer(applied)?;
    if applied == known {
        return Ok(());
    }
    let (path, command) = (options.path().display(), options.command());
    let has_tables = "select exists (select 1 from sqlite_master) as has_tables";
    let (code, message) = match is_ours(connection)? {
        true => {
            let why = format!("has schema version {applied}, this program needs {known}");
            (Code::OlderSchema, format!("{path}: the file {why}; run {command}"))
        }
        false if connection.query_row(has_tables, [], |row| row.get("has_tables"))? => {
            let why = "it is a database of another program; give the path of a store";
            (Code::NotAStore, format!("{path}: {why}"))
        }
        false => (Code::OlderSchema, format!("{path}: the file has no tables yet; run {command}")),
    };
    Err(StoreError::Refused { code, message })
}

fn check_not_newer(applied: usize) -> Result<(), StoreError> {
    let known = version_known();
    if applied > known {
        let message = format!(
            "the file has schema version {applied}, this program knows {known}; use a newer \
             program"
        );
        return Err(StoreError::Refused { code: Code::NewerSchema, message });
    }
    Ok(())
}

fn applied(connection: &Connection) -> Result<usize, StoreError> {
    if !is_ours(connection)? {
        return Ok(0);
    }
    let max = "select coalesce(max(version), 0) as version from stepwell_migration";
    let version: i64 = connection.query_row(max, [], |row| row.get("version"))?;
    usize::try_from(version).map_err(|_| corrupt("the schema version is negative"))
}

fn is_ours(connection: &Connection) -> Result<bool, StoreError> {
    let is_table = "select 1 from sqlite_master where type = 'table' and name = ?1";
    Ok(connection.query_row(is_table, ["stepwell_migration"], |_| Ok(())).optional()?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Timestamp::EPOCH).unwrap();
        connection
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = migrated();
        migrate(&mut connection, Timestamp::EPOCH).unwrap();
        assert_eq!(applied(&connection).unwrap(), MIGRATIONS.len());
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let mut connection = migrated();
        connection.execute("insert into stepwell_migration values (99, 0)", []).unwrap();
        let refused = migrate(&mut connection, Timestamp::EPOCH).unwrap_err();
        assert!(refused.to_string().contains("newer program"), "{refused}");
    }
}
