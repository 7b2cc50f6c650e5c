//! A primary that another host takes over from: one that stays and takes no writes, and one that
//! vanishes.

use std::time::Duration;

use stepwell::AttemptState;
use stepwell_faults::database::{OwnDatabase, connect, eventually};
use stepwell_faults::wire::Wire;
use tokio::net::TcpListener;
use tokio_postgres::Client;
use tokio_postgres::config::Config;

use crate::support::{Journal, TENANT, all_came_right, count, engine, server, start, store};

const LEASE: Duration = Duration::from_secs(30);

/// From now on connections that were made before are to a standby, as far as they can tell; new
/// ones are to a primary.
async fn demote(client: &Client) {
    let tables = ["run", "worker", "leader"].map(|table| {
        format!(
            "create trigger demoted before insert or update on stepwell.{table}
                 for each statement execute function public.refuse();"
        )
    });
    let demote = format!(
        "create table public.demoted as select clock_timestamp() as at;
         create function public.refuse() returns trigger language plpgsql as $$ begin
             if exists (select from public.demoted, pg_stat_activity
                 where pid = pg_backend_pid() and backend_start < at) then
                 raise exception 'cannot execute % in a read-only transaction', tg_op
                     using errcode = '25006';
             end if;
             return null;
         end $$;
         {}",
        tables.concat()
    );
    client.batch_execute(&demote).await.expect("the triggers are made");
}

/// How many connections there are from before the change that work, beat or lead.
async fn n_old(client: &Client) -> i64 {
    let read = "select count(*) from public.demoted, pg_stat_activity
        where datname = current_database() and backend_start < at
            and application_name in ('stepwell work', 'stepwell heartbeat', 'stepwell leader')";
    client.query_one(read, &[]).await.expect("it answers").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_kept_to_a_server_that_takes_no_writes_any_more() {
    // FA6
    const N_RUNS: u32 = 6;
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let journal = Journal::new(0);
    let (engine, sums) = engine(store(database.url()).await, &journal, LEASE).await;
    // Side by side, so that more than one connection is idle afterwards.
    let begin = |n: u32| start(&engine, &sums, n);
    tokio::join!(begin(0), begin(1), begin(2), begin(3), begin(4), begin(5));
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("all are in their second step", async || n_begun() == N_RUNS as usize).await;
    demote(&client).await;
    let one_more = engine.start(&sums, N_RUNS).tenant(TENANT).id(format!("run-{N_RUNS}"));
    one_more.await.expect("a start rides it out");
    eventually("all old connections are gone", async || n_old(&client).await == 0).await;
    journal.permits.add_permits(1_000);
    let dump = all_came_right(database.url(), &journal, N_RUNS + 1).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    engine.stop_gracefully().await;
    database.abandon().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_vanishes_keeps_nobody_from_the_next_one() {
    // FA5: nobody is refused by a machine that is gone, and nobody is answered.
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let journal = Journal::new(0);
    let wire = Wire::to(database.url()).await;
    let first: Config = wire.url().parse().expect("the URL is well formed");
    let port = *first.get_ports().first().expect("it has a port");
    // Hosts and ports that are named twice are two of them.
    let url =
        format!("host=127.0.0.1 port={port} {} target_session_attrs=read-write", database.url());
    let (engine, sums) = engine(store(&url).await, &journal, LEASE).await;
    start(&engine, &sums, 1).await;
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("it is in its second step", async || n_begun() == 1).await;
    assert!(!wire.sessions().is_empty(), "the first host was used");

    drop(wire);
    let mut vanished = None;
    eventually("the port is free", async || {
        // It takes connections, and never looks at them.
        vanished = TcpListener::bind(("127.0.0.1", port)).await.ok();
        vanished.is_some()
    })
    .await;
    let n_beats = async || {
        let read = "select n_beats from stepwell.worker where id = $1 and state = 0";
        let row = client.query_opt(read, &[&engine.worker_id()]).await.expect("it answers");
        row.map_or(0, |row| row.get::<_, i64>(0))
    };
    let before = n_beats().await;
    eventually("it beats by the other host", async || n_beats().await > before + 1).await;
    journal.permits.add_permits(1_000);
    start(&engine, &sums, 2).await;
    let dump = all_came_right(database.url(), &journal, 2).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    engine.stop_gracefully().await;
    database.abandon().await;
}
