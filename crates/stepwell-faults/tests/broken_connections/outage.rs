//! A server that is away for everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stepwell::AttemptState;
use stepwell_faults::database::{OwnDatabase, connect, eventually};
use stepwell_faults::wire::Wire;

use crate::support::{Journal, all_came_right, count, engine, server, start, store};

/// When workers were seen last, by worker, in the database's own time; and what it is now.
async fn seen(client: &tokio_postgres::Client) -> (BTreeMap<String, i64>, i64) {
    let read = "select id, seen_at, (extract(epoch from clock_timestamp()) * 1e6)::bigint \
        from stepwell.worker where state = 0";
    let rows = client.query(read, &[]).await.expect("it answers");
    let now = rows.first().map_or(0, |row| row.get(2));
    (rows.iter().map(|row| (row.get(0), row.get(1))).collect(), now)
}

/// How often dead workers were looked for through a wire, as leaders do when they renew their term.
fn n_rounds(wire: &Wire) -> u64 {
    wire.sessions().iter().map(|session| session.n_sent("-- read_lives")).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_longer_than_the_lease_costs_nobody_an_attempt() {
    // FA1, FA4, S9: the leader was cut off itself, so it cannot tell who is dead.
    const N_RUNS: u32 = 8;
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let journal = Journal::new(0);
    let lease = Duration::from_secs(5);
    let wires = [Wire::to(database.url()).await, Wire::to(database.url()).await];
    let (first, sums) = engine(store(wires[0].url()).await, &journal, lease).await;
    let (second, _) = engine(store(wires[1].url()).await, &journal, lease).await;
    for n in 0..N_RUNS {
        start(&first, &sums, n).await;
    }
    let n_begun = || journal.executions().iter().filter(|(_, step, _)| step == "double").count();
    eventually("all runs are in their second step", async || n_begun() == N_RUNS as usize).await;

    wires.iter().for_each(Wire::black_out);
    let silence = i64::try_from(lease.as_micros()).expect("a short lease");
    eventually("everybody is silent for longer than a lease", async || {
        let (seen, now) = seen(&client).await;
        seen.len() == 2 && seen.values().all(|seen| now - seen > silence)
    })
    .await;
    let (before, _) = seen(&client).await;
    // One of them is back first, and leads. It must not judge the other by the silence.
    wires[0].light();
    eventually("the first beats again", async || {
        let (seen, _) = seen(&client).await;
        seen.get(first.worker_id()) > before.get(first.worker_id())
    })
    .await;
    // The next look for dead workers shows that the one before has ended.
    let n_before = n_rounds(&wires[0]);
    eventually("the first leads", async || n_rounds(&wires[0]) >= n_before + 2).await;
    wires[1].light();

    journal.permits.add_permits(1_000);
    start(&second, &sums, N_RUNS).await;
    let dump = all_came_right(database.url(), &journal, N_RUNS + 1).await;
    assert_eq!(count(&dump, AttemptState::Lost), 0);
    let (after, _) = seen(&client).await;
    let ids = |seen: &BTreeMap<String, i64>| seen.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids(&before), ids(&after), "nobody was taken for dead");
    first.stop_gracefully().await;
    second.stop_gracefully().await;
    database.abandon().await;
}
