//! A database that was put back to an earlier state, or made anew, under processes that have been
//! working on it: whatever they remember of its numbers, runs are those of their own workflows and
//! tenants, and workers come back by themselves.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use stepwell::{Engine, PostgresOptions, PostgresStore, Workflow, WorkflowRef};
use support_postgres::{Schema, connect, fresh_name, rows, url};
use tokio_postgres::Client;

/// A schema, and a plain connection to it.
struct Place {
    name: String,
    client: Client,
}

impl Place {
    async fn make() -> Self {
        let name = fresh_name("restored");
        drop(store(&name).await);
        let client = connect(&url()).await;
        let path = format!("set search_path to {name}");
        client.batch_execute(&path).await.expect("the schema is there");
        Self { name, client }
    }

    async fn run(&self, sql: &str) {
        let sql = sql.replace("NAME", &self.name);
        self.client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Makes the schema anew, without anything in it.
    async fn remake(&self) {
        self.run("drop schema NAME cascade").await;
        drop(store(&self.name).await);
    }

    async fn list(&self, sql: &str) -> Vec<String> {
        rows(&self.client, &sql.replace("NAME", &self.name)).await
    }

    /// Keeps everything that is in the schema now, as a dump does.
    async fn dump(&self) {
        self.run("create schema NAME_dump").await;
        for table in self.tables().await {
            self.run(&format!("create table NAME_dump.{table} as table NAME.{table}")).await;
        }
        for sequence in self.sequences().await {
            let keep = format!(
                "create table NAME_dump.{sequence} as select last_value, is_called from {sequence}"
            );
            self.run(&keep).await;
        }
    }

    /// Puts back what was kept, in one transaction; the rest is lost.
    async fn restore(&self) {
        let tables = self.tables().await;
        let mut restore = vec![
            "begin; set local session_replication_role = replica".to_owned(),
            format!("truncate {}", tables.join(", ")),
        ];
        let copy = |table: String| format!("insert into {table} select * from NAME_dump.{table}");
        restore.extend(tables.into_iter().map(copy));
        restore.extend(self.sequences().await.into_iter().map(|sequence| {
            format!("select setval('{sequence}', last_value, is_called) from NAME_dump.{sequence}")
        }));
        restore.push("commit; drop schema NAME_dump cascade".to_owned());
        self.run(&restore.join("; ")).await;
    }

    async fn tables(&self) -> Vec<String> {
        self.list("select tablename from pg_tables where schemaname = 'NAME'").await
    }

    async fn sequences(&self) -> Vec<String> {
        self.list("select sequencename from pg_sequences where schemaname = 'NAME'").await
    }

    /// The runs there are, each with its tenant and its workflow.
    async fn runs(&self) -> Vec<String> {
        let runs = "select run.id, tenant.name, definition.workflow from run \
                    left join tenant using (tenant_no) \
                    left join definition on definition.id = run.definition order by run.id";
        self.list(runs).await
    }

    async fn remove(self) {
        self.run("drop schema NAME cascade").await;
    }
}

/// A store as another process has it.
async fn store(schema: &str) -> PostgresStore {
    let options = PostgresOptions::new(url()).schema(schema).connections_max(2).poll_only();
    PostgresStore::connect_with(options).await.expect("the server answers")
}

/// A workflow whose one step says whose code it is.
fn named(name: &'static str) -> Workflow<(), String> {
    let mut w = Workflow::define::<(), ()>(name);
    let a = w.step("a").run(async move |_| Ok(name.to_owned()));
    w.output(a)
}

/// An engine of a process of its own, with these workflows.
struct Process {
    engine: Engine,
    flows: Vec<WorkflowRef<(), String>>,
}

impl Process {
    async fn client(place: &Place, workflows: &[&'static str]) -> Self {
        let mut builder = Engine::builder(store(&place.name).await).client_only();
        let flows = workflows.iter().map(|name| builder.workflow(named(name))).collect();
        Self { engine: builder.start().await.expect("the engine starts"), flows }
    }

    async fn worker(place: &Place, workflows: &[&'static str]) -> Self {
        let mut builder = Engine::builder(store(&place.name).await);
        let flows = workflows.iter().map(|name| builder.workflow(named(name))).collect();
        Self { engine: builder.start().await.expect("the engine starts"), flows }
    }

    /// Starts a run of a workflow without waiting for it.
    async fn start(&self, flow: usize, tenant: &str, id: &str) {
        let start = self.engine.start(&self.flows[flow], ()).tenant(tenant).id(id);
        start.await.expect("it starts");
    }

    /// Runs a workflow to its end, and says whose code was executed.
    async fn run(&self, flow: usize, tenant: &str, id: &str) -> String {
        let run = self.engine.run(&self.flows[flow], ()).tenant(tenant).id(id);
        run.await.expect("it ends")
    }
}

#[tokio::test]
async fn whatever_is_remembered_of_a_schema_that_was_made_anew_is_forgotten() {
    // FD11: a run of one workflow was once started as a run of the other.
    let place = Place::make().await;
    let client = Process::client(&place, &["work", "other"]).await;
    let worker = Process::worker(&place, &["work", "other"]).await;
    assert_eq!(client.run(0, "acme", "before").await, "work");
    place.remake().await;
    // Numbers are given in another order now.
    let stranger = Process::client(&place, &["other", "work"]).await;
    stranger.start(0, "zeta", "first").await;
    assert_eq!(client.run(0, "acme", "second").await, "work");
    assert_eq!(client.run(1, "acme", "third").await, "other");
    let expected = ["first | zeta | other", "second | acme | work", "third | acme | other"];
    assert_eq!(place.runs().await, expected);
    for process in [client, worker, stranger] {
        process.engine.stop_gracefully().await;
    }
    place.remove().await;
}

#[tokio::test]
async fn a_worker_alone_comes_back_when_its_schema_was_made_anew() {
    // FD11: nobody but this process has the code, and nobody starts anything through it.
    let place = Place::make().await;
    let worker = Process::worker(&place, &["work", "other"]).await;
    let client = Process::client(&place, &[]).await;
    let start = client.engine.start_by_name("work", &()).tenant("acme").id("before");
    assert_eq!(start.await.expect("it starts").result().await.expect("it ends"), "work");
    place.remake().await;
    let stranger = Process::client(&place, &["other", "work"]).await;
    assert_eq!(stranger.run(1, "acme", "after").await, "work");
    assert_eq!(stranger.run(0, "acme", "last").await, "other");
    for process in [client, worker, stranger] {
        process.engine.stop_gracefully().await;
    }
    place.remove().await;
}

#[tokio::test]
async fn whatever_came_after_a_dump_is_forgotten_when_it_is_restored() {
    // FD11: as a standby that takes over without the last commits; numbers that it never heard of
    // are given to others.
    let place = Place::make().await;
    let early = Process::worker(&place, &["early"]).await;
    assert_eq!(early.run(0, "acme", "one").await, "early");
    place.dump().await;
    let client = Process::client(&place, &["early", "late"]).await;
    let late = Process::worker(&place, &["late"]).await;
    assert_eq!(client.run(1, "newcomer", "lost").await, "late");
    place.restore().await;
    let stranger = Process::client(&place, &["strange"]).await;
    stranger.start(0, "zeta", "two").await;
    assert_eq!(client.run(1, "newcomer", "three").await, "late");
    assert_eq!(client.run(0, "acme", "four").await, "early");
    let expected = [
        "four | acme | early",
        "one | acme | early",
        "three | newcomer | late",
        "two | zeta | strange",
    ];
    assert_eq!(place.runs().await, expected);
    for process in [client, early, late, stranger] {
        process.engine.stop_gracefully().await;
    }
    place.remove().await;
}

#[tokio::test]
async fn the_tenant_of_a_run_is_told_as_the_database_has_it() {
    // S18, FD11: the worker remembers the name of a number that is somebody else's by now.
    let place = Place::make().await;
    let mut builder = Engine::builder(store(&place.name).await);
    let mut w = Workflow::define::<(), ()>("who");
    let a = w.step("a").run(async |ctx| Ok(ctx.tenant().to_string()));
    let who = builder.workflow(w.output(a));
    let engine = builder.start().await.expect("the engine starts");
    engine.run(&who, ()).tenant("first").id("one").await.expect("it ends");
    place.dump().await;
    let told = engine.run(&who, ()).tenant("acme").id("two").await.expect("it ends");
    assert_eq!(told, "acme");
    place.restore().await;
    let stranger = Process::client(&place, &[]).await;
    let start = stranger.engine.start_by_name("who", &()).tenant("zeta").id("three");
    let told = start.await.expect("it starts").result().await.expect("it ends");
    assert_eq!(told, "zeta", "it has the number that acme had");
    stranger.engine.stop_gracefully().await;
    engine.stop_gracefully().await;
    place.remove().await;
}

#[tokio::test]
async fn a_run_never_goes_to_another_tenant_whatever_a_process_remembers_of_their_numbers() {
    // S18: the store remembers the numbers of tenants, and checks them in every start.
    let schema = Schema::make("restored").await;
    let mut builder = Engine::builder(schema.store.clone()).client_only();
    let mut w = Workflow::define::<(), ()>("flow");
    w.step("a").run(async |_| Ok(()));
    let flow = builder.workflow(w.no_output());
    let engine = builder.start().await.expect("the engine starts");
    engine.start(&flow, ()).tenant("acme").id("before").await.expect("it starts");
    // In the restored database the number belongs to somebody else.
    let rename = "update tenant set name = 'zeta', mark = default where name = 'acme'";
    schema.client.batch_execute(rename).await.expect("it is renamed");
    engine.start(&flow, ()).tenant("acme").id("after").await.expect("it starts");
    let runs = "select tenant.name, run.id from run join tenant using (tenant_no) order by run.id";
    assert_eq!(rows(&schema.client, runs).await, ["acme | after", "zeta | before"]);
    engine.stop_gracefully().await;
    schema.remove().await;
}
