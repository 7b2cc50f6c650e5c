//! The limit of PostgreSQL: one statement per transaction, arrays as parameters, and the next
//! batch on its way while the last one is completed.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::{BATCH, Limit};
use crate::bench::cluster::{Server, drop_schema, failure};
use crate::bench::measure;
use crate::commands::Failure;

/// How many connections are tried.
const CONNECTIONS: [usize; 3] = [1, 2, 4];

const TABLES: &str = "
    create schema \"SCHEMA\";
    create table \"SCHEMA\".task (
        run uuid not null, node integer not null, state smallint not null,
        attempt integer not null, queued_at bigint not null, started_at bigint, token uuid,
        primary key (run, node)
    ) with (fillfactor = 70);
    create table \"SCHEMA\".queue (
        order_key bigint primary key, run uuid not null, node integer not null
    );
    create table \"SCHEMA\".event (
        run uuid not null, number bigint not null, node integer not null, at bigint not null,
        kind smallint not null, primary key (run, number)
    );";

const INSERT: &str = "
    with made as (
        insert into \"SCHEMA\".task (run, node, state, attempt, queued_at)
        select run, 0, 1, 0, 1700000000000000 from unnest($1::uuid[]) as given (run)
    )
    insert into \"SCHEMA\".queue (order_key, run, node)
    select order_key, run, 0 from unnest($1::uuid[], $2::int8[]) as given (run, order_key)";

const CLAIM: &str = "
    with taken as (
        delete from \"SCHEMA\".queue where order_key in (
            select order_key from \"SCHEMA\".queue order by order_key
            limit $1 for update skip locked
        ) returning run, node
    )
    update \"SCHEMA\".task as task
    set state = 2, attempt = 1, started_at = 1700000000000001, token = $2
    from taken where task.run = taken.run and task.node = taken.node
    returning task.run";

const COMPLETE: &str = "
    with ended as (
        update \"SCHEMA\".task as task set state = 5, token = null
        from unnest($1::uuid[]) as given (run)
        where task.run = given.run and task.node = 0 and task.token = $2
    )
    insert into \"SCHEMA\".event (run, number, node, at, kind)
    select run, 2, 0, 1700000000000002, 5 from unnest($1::uuid[]) as given (run)";

/// One connection with its statements.
struct LimitConnection {
    client: Client,
    insert: Statement,
    claim: Statement,
    complete: Statement,
    /// Tells its tasks from those of other connections.
    number: usize,
}

pub(super) async fn measure(server: &Server, n_batches: usize) -> Result<Limit, Failure> {
    let control = server.connect().await?;
    let schema = format!("{}_limit", server.schema);
    server.check_schema(&control, &schema).await?;
    let mut best = Limit { tasks_per_second: 0.0, connections: 0 };
    for connections in CONNECTIONS {
        control
            .batch_execute(&TABLES.replace("SCHEMA", &schema))
            .await
            .map_err(|error| failure(&error))?;
        let tasks_per_second = with_connections(server, &schema, connections, n_batches).await;
        drop_schema(&control, &schema).await?;
        let tasks_per_second = tasks_per_second?;
        if tasks_per_second > best.tasks_per_second {
            best = Limit { tasks_per_second, connections };
        }
    }
    Ok(best)
}

async fn with_connections(
    server: &Server,
    schema: &str,
    connections: usize,
    n_batches: usize,
) -> Result<f64, Failure> {
    let opened = (0..connections).map(|number| LimitConnection::prepare(server, schema, number));
    let opened = try_join_all(opened).await?;
    let began_at = measure::now();
    let each = n_batches.div_ceil(connections);
    let working = opened.into_iter().map(|connection| measure::spawn(connection.work(each)));
    let mut n_completed = 0;
    for worked in try_join_all(working).await.map_err(std::io::Error::from)? {
        n_completed += worked.map_err(|error| failure(&error))?;
    }
    let span = began_at.elapsed();
    let n_expected = each * connections * BATCH;
    if n_completed != n_expected {
        let message = format!("the limit completed {n_completed} tasks instead of {n_expected}");
        return Err(Failure::Unexpected(message));
    }
    Ok(measure::rate(n_completed as u64, span))
}

impl LimitConnection {
    async fn prepare(server: &Server, schema: &str, number: usize) -> Result<Self, Failure> {
        let client = server.connect().await?;
        let prepare = async |sql: &str| client.prepare(&sql.replace("SCHEMA", schema)).await;
        let prepared =
            async { Ok((prepare(INSERT).await?, prepare(CLAIM).await?, prepare(COMPLETE).await?)) };
        let (insert, claim, complete) =
            prepared.await.map_err(|error: tokio_postgres::Error| failure(&error))?;
        Ok(Self { client, insert, claim, complete, number })
    }

    /// Takes this many batches through and says how many tasks were completed. Other connections
    /// may claim what this one inserted, so there may be less to claim; all is claimed in the end.
    async fn work(self, n_batches: usize) -> Result<usize, tokio_postgres::Error> {
        let mut claimed: Vec<Uuid> = Vec::new();
        let mut n_completed = 0;
        for batch in 0..n_batches {
            let (_, next, n) = tokio::try_join!(
                self.insert(batch),
                self.claim(batch),
                self.complete(&claimed, batch),
            )?;
            (claimed, n_completed) = (next, n_completed + n);
        }
        // What is left: the last batch, and tasks passed over while another connection held them.
        let mut batch = n_batches;
        while !claimed.is_empty() {
            n_completed += self.complete(&claimed, batch).await?;
            claimed = self.claim(batch).await?;
            batch += 1;
        }
        Ok(n_completed)
    }

    async fn insert(&self, batch: usize) -> Result<u64, tokio_postgres::Error> {
        let first = ((self.number << 40) + batch * BATCH) as u64;
        let numbers = first..first + BATCH as u64;
        let runs: Vec<Uuid> = numbers.clone().map(|n| Uuid::from_u128(u128::from(n))).collect();
        // All connections put their tasks in at the end of one queue.
        let order_key = |n: u64| (n & 0xff_ffff_ffff) * 8 + self.number as u64;
        let keys: Vec<i64> = numbers.map(|n| order_key(n).cast_signed()).collect();
        self.client.execute(&self.insert, &[&runs, &keys]).await
    }

    async fn claim(&self, batch: usize) -> Result<Vec<Uuid>, tokio_postgres::Error> {
        let rows_max = i64::try_from(BATCH).unwrap_or(i64::MAX);
        let rows = self.client.query(&self.claim, &[&rows_max, &token(self.number, batch)]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    /// Completes what the batch before has claimed.
    async fn complete(&self, runs: &[Uuid], batch: usize) -> Result<usize, tokio_postgres::Error> {
        let Some(claimed_by) = batch.checked_sub(1).filter(|_| !runs.is_empty()) else {
            return Ok(0);
        };
        let token = token(self.number, claimed_by);
        self.client.execute(&self.complete, &[&runs, &token]).await?;
        Ok(runs.len())
    }
}

fn token(number: usize, batch: usize) -> Uuid {
    Uuid::from_u64_pair(number as u64, batch as u64)
}
