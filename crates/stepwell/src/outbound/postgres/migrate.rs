//! Bringing a schema up to date: forward only, one migrator at a time, never past what this
//! program knows.

use super::error::corrupt;
use super::pool::Pool;
use crate::ports::StoreError;

const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_first.sql")];

/// Applies the migrations a schema lacks, under a lock that a second migrator waits for.
///
/// # Errors
/// When the schema is of a newer version.
pub(super) async fn migrate(pool: &Pool) -> Result<(), StoreError> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    let schema = pool.schema();
    let lock = "select pg_advisory_xact_lock(hashtextextended('stepwell migration ' || $1, 0))";
    transaction.execute(lock, &[&schema]).await?;
    // The name was checked to need no quotes; DDL takes no parameters.
    let frame = pool.sql(
        "create table if not exists stepwell.migration (
            version integer primary key, applied_at timestamptz not null default now())",
    );
    let exists = "select 1 from pg_namespace where nspname = $1";
    if transaction.query_opt(exists, &[&schema]).await?.is_none() {
        transaction.batch_execute(&["create schema ", schema].concat()).await?;
    }
    transaction.batch_execute(&frame).await?;
    let max = pool.sql("select coalesce(max(version), 0) from stepwell.migration");
    let applied: i32 = transaction.query_one(&*max, &[]).await?.try_get(0)?;
    let applied =
        usize::try_from(applied).map_err(|_| corrupt("the schema version is negative"))?;
    let known = MIGRATIONS.len();
    if applied > known {
        return Err(corrupt(format!(
            "schema {schema:?} has version {applied}, this program knows {known}; use a newer \
             program"
        )));
    }
    for (ix, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        transaction.batch_execute(&pool.sql(migration)).await?;
        let version = i32::try_from(ix + 1).unwrap_or(i32::MAX);
        let insert = pool.sql("insert into stepwell.migration (version) values ($1)");
        transaction.execute(&*insert, &[&version]).await?;
    }
    transaction.commit().await?;
    Ok(())
}
