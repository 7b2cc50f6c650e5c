//! The tools do what they say, so that what is found with them means something.

use stepwell_faults::database::{OwnDatabase, Snapshot, connect, eventually};
use stepwell_faults::interleave::{Along, Duet, Side};
use stepwell_faults::pooler::{Pooler, PreparedStatements};
use stepwell_faults::wire::{GateState, LostReplies, Statement, Wire};
use tokio_postgres::{Client, SimpleQueryMessage};

fn server() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of faults need a PostgreSQL server: run `cargo xtask test`, which brings its own, \
         or set STEPWELL_TEST_DATABASE_URL",
    )
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("it answers").get(0)
}

#[tokio::test]
async fn a_wire_passes_everything_and_counts_it() {
    let wire = Wire::to(&server()).await;
    let client = connect(&format!("{} application_name=teller", wire.url())).await;
    assert_eq!(number(&client, "select 40::bigint + 2").await, 42);
    client.batch_execute("begin").await.expect("it begins");
    assert_eq!(number(&client, "select 7::bigint").await, 7);
    client.batch_execute("commit").await.expect("it commits");
    assert!(client.batch_execute("select 1/0").await.is_err());
    // The client knows of the error before the server is idle again.
    eventually("all are counted", async || wire.sessions()[0].n_transactions == 3).await;
    let sessions = wire.sessions();
    let [session] = &sessions[..] else { panic!("one session") };
    assert_eq!(session.application_name, "teller");
    // The preparations execute nothing.
    assert_eq!((session.n_statements, session.n_transactions), (5, 3));
    assert!(session.bytes_up > 50 && session.bytes_down > 50, "{session:?}");
    assert_eq!(session.errors, ["22012"]);
    assert_eq!(session.n_sent("select"), 3);
    assert!(session.has_sent("select 40") && !session.has_sent("select 41"));
}

#[tokio::test]
async fn a_wire_may_be_a_socket_in_a_folder() {
    let folder = tempfile::TempDir::new().expect("there is room");
    let wire = Wire::in_folder(&server(), folder.path());
    let client = connect(wire.url()).await;
    assert_eq!(number(&client, "select 1::bigint").await, 1);
}

#[tokio::test]
async fn a_lost_reply_is_that_of_a_commit_that_took_effect() {
    let database = OwnDatabase::make(&server()).await;
    let direct = connect(database.url()).await;
    direct.batch_execute("create table t (n bigint)").await.expect("it is made");
    let wire = Wire::to(database.url()).await;
    wire.lose_replies(LostReplies::nth(2, Statement::is_commit));
    let client = connect(wire.url()).await;
    client.batch_execute("begin; insert into t values (1)").await.expect("it begins");
    client.batch_execute("commit").await.expect("the first commit is answered");
    client.batch_execute("begin").await.expect("it begins");
    client.batch_execute("insert into t values (2)").await.expect("it inserts");
    assert!(client.batch_execute("commit").await.is_err(), "the reply is lost");
    assert!(client.is_closed() || client.batch_execute("select 1").await.is_err());
    assert_eq!(number(&direct, "select sum(n)::bigint from t").await, 3);
    assert_eq!(wire.sessions()[0].n_replies_lost, 1);
    // A new session goes on.
    let client = connect(wire.url()).await;
    client.batch_execute("begin; insert into t values (3)").await.expect("it begins");
    client.batch_execute("commit").await.expect("the third commit is answered");
    drop((client, direct, wire));
    assert_eq!(database.leave().await, 0);
}

#[tokio::test]
async fn replies_are_lost_by_chance() {
    let wire = Wire::to(&server()).await;
    wire.lose_replies(LostReplies::by_chance(30, 7, |statement| statement.text == "select 5"));
    let mut n_lost = 0;
    for _ in 0..100 {
        let client = connect(wire.url()).await;
        client.batch_execute("select 4").await.expect("another statement is safe");
        n_lost += usize::from(client.batch_execute("select 5").await.is_err());
    }
    assert!((10..60).contains(&n_lost), "{n_lost} of 100");
}

#[tokio::test]
async fn only_the_session_that_is_meant_is_cut() {
    let wire = Wire::to(&server()).await;
    let one = connect(&format!("{} application_name=one", wire.url())).await;
    let other = connect(&format!("{} application_name=other", wire.url())).await;
    assert_eq!(wire.cut(|session| session.application_name == "one"), 1);
    eventually("the session ends", async || one.is_closed()).await;
    assert_eq!(number(&other, "select 1::bigint").await, 1);
    assert_eq!(wire.cut(|session| session.application_name == "one"), 0, "it is over");
}

#[tokio::test]
async fn in_a_black_out_nothing_passes_and_nobody_is_let_in() {
    let wire = Wire::to(&server()).await;
    let client = connect(wire.url()).await;
    wire.black_out();
    let asked = number(&client, "select 8::bigint");
    tokio::pin!(asked);
    let refused = tokio_postgres::connect(wire.url(), tokio_postgres::NoTls);
    tokio::select! {
        biased;
        _ = &mut asked => panic!("it was answered in the dark"),
        refused = refused => assert!(refused.is_err()),
    }
    wire.light();
    assert_eq!(asked.await, 8, "it goes on where it was");
    connect(wire.url()).await;
}

#[tokio::test]
async fn a_closed_gate_lets_one_statement_go_at_a_time() {
    let wire = Wire::to(&server()).await;
    let client = connect(wire.url()).await;
    let gate = wire.gate();
    gate.close();
    let mut state = gate.watch();
    let asked = async {
        client.batch_execute("select 1").await.expect("it answers");
        client.batch_execute("select 2").await.expect("it answers");
        gate.end();
    };
    let stepped = async {
        for n_passed in 0..2 {
            let held = state.wait_for(GateState::is_holding).await.expect("the wire stands");
            assert_eq!(held.passed().len(), n_passed);
            drop(held);
            gate.let_one_go();
            let is_through =
                |state: &GateState| state.passed().len() > n_passed && !state.is_in_flight();
            state.wait_for(is_through).await.expect("the wire stands");
        }
    };
    tokio::join!(asked, stepped);
    assert_eq!(gate.watch().borrow().passed(), ["select 1", "select 2"]);
}

/// Two sides that take two rows in opposite orders.
async fn duet_of_rows() -> (OwnDatabase, Duet, [Client; 2]) {
    let database = OwnDatabase::make(&server()).await;
    let direct = connect(database.url()).await;
    direct
        .batch_execute("create table t (n int); insert into t values (1), (2)")
        .await
        .expect("ok");
    let wires = [Wire::to(database.url()).await, Wire::to(database.url()).await];
    let clients = [connect(wires[0].url()).await, connect(wires[1].url()).await];
    (database, Duet::new(wires, direct).await, clients)
}

async fn take(client: &Client, rows: [i32; 2]) -> Vec<SimpleQueryMessage> {
    client.batch_execute("begin").await.expect("it begins");
    for row in rows {
        let lock = format!("select n from t where n = {row} for update");
        client.simple_query(&lock).await.expect("the row is locked");
    }
    client.simple_query("commit").await.expect("it commits")
}

#[tokio::test]
async fn a_side_that_waits_for_a_lock_lets_the_other_go_on() {
    let (database, duet, clients) = duet_of_rows().await;
    let order = [Side::One, Side::One, Side::Other, Side::Other, Side::Other].to_vec();
    let played = duet
        .play(&mut Along(order.into_iter()), take(&clients[0], [1, 2]), take(&clients[1], [1, 2]))
        .await;
    assert_eq!((played.n_statements, played.n_waits), ([4, 4], 1));
    let trail = [
        "One: begin",
        "One: select n from t where n = 1 for update",
        "Other: begin",
        "Other: select n from t where n = 1 for update",
        "Other waits",
        "One: select n from t where n = 2 for update",
        "One: commit",
        "Other: select n from t where n = 2 for update",
        "Other: commit",
    ];
    assert_eq!(played.story, trail);
    drop((duet, clients));
    assert_eq!(database.leave().await, 0);
}

#[tokio::test]
#[should_panic(expected = "deadlock [Blocked, Blocked]")]
async fn two_sides_that_wait_for_each_other_are_a_deadlock() {
    let (_database, duet, clients) = duet_of_rows().await;
    let order = [Side::One, Side::One, Side::Other, Side::Other, Side::One, Side::Other].to_vec();
    duet.play(&mut Along(order.into_iter()), take(&clients[0], [1, 2]), take(&clients[1], [2, 1]))
        .await;
}

#[tokio::test]
async fn the_server_s_count_of_deadlocks_is_told() {
    let (database, duet, [one, other]) = duet_of_rows().await;
    let soon = "set deadlock_timeout = '10ms'; begin; select n from t where n = ";
    one.batch_execute(&format!("{soon} 1 for update")).await.expect("it locks");
    other.batch_execute(&format!("{soon} 2 for update")).await.expect("it locks");
    let (a, b) = tokio::join!(
        one.batch_execute("select n from t where n = 2 for update"),
        other.batch_execute("select n from t where n = 1 for update"),
    );
    assert!(a.is_err() || b.is_err());
    let errors = duet.wires().iter().flat_map(Wire::sessions).flat_map(|session| session.errors);
    assert_eq!(errors.collect::<Vec<_>>(), ["40P01"]);
    drop((one, other, duet));
    assert_eq!(database.leave().await, 1);
}

#[tokio::test]
async fn a_snapshot_brings_rows_and_sequences_back() {
    let database = OwnDatabase::make(&server()).await;
    let client = connect(database.url()).await;
    let make = "create schema s; create table s.a (n bigint generated always as identity primary \
        key); create table s.b (a bigint references s.a (n)); insert into s.a default values; \
        insert into s.b values (1)";
    client.batch_execute(make).await.expect("it is made");
    let snapshot = Snapshot::take(&client, "s").await;
    let change = "insert into s.a default values; delete from s.b; insert into s.b values (2)";
    for _ in 0..2 {
        client.batch_execute(change).await.expect("it changes");
        assert_eq!(number(&client, "select max(n) from s.a").await, 2);
        snapshot.restore(&client).await;
        assert_eq!(number(&client, "select a from s.b").await, 1);
        assert_eq!(number(&client, "select count(*) from s.a").await, 1);
    }
    drop(client);
    assert_eq!(database.leave().await, 0);
}

#[tokio::test]
async fn a_pooler_gives_each_transaction_whatever_connection_is_free() {
    let database = OwnDatabase::make(&server()).await;
    let pooler = Pooler::to(database.url(), 2, PreparedStatements::Kept).await;
    let (one, other) = (connect(pooler.url()).await, connect(pooler.url()).await);
    let pid = "select pg_backend_pid()::bigint";
    let lock = "select pg_try_advisory_lock(4711)::int::bigint";
    one.batch_execute("begin").await.expect("it begins");
    let first = number(&one, pid).await;
    assert_eq!(number(&one, pid).await, first, "one connection for a transaction");
    assert_ne!(number(&other, pid).await, first, "another one for another");
    assert_eq!(number(&one, lock).await, 1);
    one.batch_execute("commit").await.expect("it commits");
    // A lock of the session stays with the connection, not with the client.
    eventually("the client gets the other connection", async || {
        one.batch_execute("begin").await.expect("it begins");
        let (now, got) = (number(&one, pid).await, number(&one, lock).await);
        one.batch_execute("commit").await.expect("it commits");
        assert_eq!(got, i64::from(now == first));
        now != first
    })
    .await;
    assert!(pooler.n_clients() == 2 && pooler.n_transactions() >= 3);
    database.abandon().await;
}

#[tokio::test]
async fn prepared_statements_follow_their_client_or_stay_behind() {
    for (mode, is_kept) in
        [(PreparedStatements::Kept, true), (PreparedStatements::LeftBehind, false)]
    {
        let pooler = Pooler::to(&server(), 2, mode).await;
        let (one, other) = (connect(pooler.url()).await, connect(pooler.url()).await);
        let statement = one.prepare("select 5::bigint").await.expect("it is prepared");
        // While another holds the connection on which it was prepared, there is only the other.
        let mut answers = Vec::new();
        for client in [&one, &other] {
            client.batch_execute("begin").await.expect("it begins");
        }
        answers.push(one.query_one(&statement, &[]).await.is_ok());
        one.batch_execute("rollback").await.expect("it ends");
        other.batch_execute("rollback").await.expect("it ends");
        answers.push(one.query_one(&statement, &[]).await.is_ok());
        answers.push(one.query_one(&statement, &[]).await.is_ok());
        assert_eq!(answers.iter().all(|answer| *answer), is_kept, "{mode:?}: {answers:?}");
    }
}

#[tokio::test]
async fn a_client_that_goes_within_a_transaction_leaves_no_trace() {
    let pooler = Pooler::to(&server(), 1, PreparedStatements::Kept).await;
    let one = connect(pooler.url()).await;
    one.batch_execute("begin; select pg_advisory_xact_lock(815)").await.expect("it locks");
    let other = connect(pooler.url()).await;
    drop(one);
    let lock = "select pg_try_advisory_xact_lock(815)::int::bigint";
    eventually("the lock is free", async || number(&other, lock).await == 1).await;
}
