//! The roles of `docs/operating.md`: an owner that migrates, programs that may only read and write
//! rows, people that may only read views. The statements are taken from the page.
#![cfg(all(feature = "testing", feature = "postgres"))]

mod support_postgres;

use std::path::Path;

use stepwell::ports::StoreError;
use stepwell::{Engine, PostgresOptions, PostgresStore, Retry, StepError, Workflow};
use support_postgres::{connect, fresh_name, rows, url};
use tokio_postgres::Client;
use tokio_postgres::config::{Config, Host};

/// "Insufficient privilege".
const NO_RIGHT: &str = "42501";

/// Roles and a schema of the test's own, under names of their own.
struct Roles {
    admin: Client,
    name: String,
}

impl Roles {
    /// Makes the owner and its schema; the owner migrates; then come the others.
    async fn make() -> Self {
        let roles = Self { admin: connect(&url()).await, name: fresh_name("rights") };
        let blocks = roles.statements();
        let [owner, app, report] = blocks.as_slice() else {
            panic!("the page has a block for each role: {blocks:?}")
        };
        roles.admin.batch_execute(owner).await.unwrap_or_else(|why| panic!("{owner}: {why:?}"));
        roles.give_password("owner").await;
        drop(roles.store("owner").await.expect("the owner migrates"));
        for block in [app, report] {
            roles.admin.batch_execute(block).await.unwrap_or_else(|why| panic!("{block}: {why:?}"));
        }
        roles.give_password("app").await;
        roles.give_password("report").await;
        roles
    }

    /// The blocks of statements on the page, with this test's names.
    fn statements(&self) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let (_, section) = page.split_once("\n## Roles and rights\n").expect("it has the section");
        let (section, _) = section.split_once("\n## ").expect("another section follows");
        let blocks = section.split("```sql\n").skip(1).map(|rest| rest.split("```").next());
        blocks.flatten().map(|block| block.replace("stepwell", &self.name)).collect()
    }

    fn role(&self, role: &str) -> String {
        format!("{}_{role}", self.name)
    }

    /// A server that asks for passwords must let the roles in, too.
    async fn give_password(&self, role: &str) {
        let sql = format!("alter role {} password 'secret'", self.role(role));
        self.admin.batch_execute(&sql).await.expect("the role is there");
    }

    /// How a role connects to the tests' server.
    fn url_of(&self, role: &str) -> String {
        let config: Config = url().parse().expect("the tests' own URL is good");
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let database = config.get_dbname().unwrap_or("postgres");
        let user = self.role(role);
        format!("host={host} port={port} dbname={database} user={user} password=secret")
    }

    async fn store(&self, role: &str) -> Result<PostgresStore, StoreError> {
        let options = PostgresOptions::new(self.url_of(role)).schema(self.name.clone());
        PostgresStore::connect_with(options.connections_max(4)).await
    }

    async fn client(&self, role: &str) -> Client {
        connect(&self.url_of(role)).await
    }

    /// Takes everything away again.
    async fn remove(self, extra: &[&str]) {
        let schema = format!("drop schema {} cascade", self.name);
        self.admin.batch_execute(&schema).await.expect("the schema is there");
        for role in ["app", "report", "owner"].iter().chain(extra) {
            let name = self.role(role);
            let sql = format!("drop owned by {name} cascade; drop role {name}");
            self.admin.batch_execute(&sql).await.unwrap_or_else(|why| panic!("{sql}: {why:?}"));
        }
    }
}

/// The code of the error a statement ends with.
async fn refusal(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

/// a -> (b, nap) -> c; `b` fails once.
fn sums() -> Workflow<u32, u32> {
    let mut w = Workflow::define::<u32, ()>("sums");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let retry = Retry::fixed(1, std::time::Duration::from_millis(5));
    let b = w.step("b").after(a).retry(retry).run(async |ctx, n| {
        if ctx.attempt() == 1 { Err(StepError::new("flaky")) } else { Ok(2 * n) }
    });
    let nap = w.sleep("nap", std::time::Duration::from_millis(5)).after(a);
    let c = w.step("c").after((a, b, nap)).run(async |_ctx, (a, b, ())| Ok(a + b));
    w.output(c)
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_workflows_with_rights_to_rows_only() {
    let roles = Roles::make().await;
    let store = roles.store("app").await.expect("programs connect to a migrated schema");
    let mut builder = Engine::builder(store);
    let sums = builder.workflow(sums());
    let engine = builder.start().await.expect("the engine starts");
    let run = engine.start(&sums, 7).tenant("acme").id("seven").await.expect("it starts");
    assert_eq!(run.result().await.expect("it completes"), 21);
    let doomed = engine.start(&sums, 8).tenant("acme").await.expect("it starts");
    doomed.cancel().await.expect("it is cancelled");
    engine.stop_gracefully().await;
    drop((run, doomed, engine));

    let (client, schema) = (roles.client("app").await, &roles.name);
    for sql in [
        format!("create table {schema}.more (id integer)"),
        format!("create view {schema}.more as select 1"),
        format!("alter table {schema}.run add column more integer"),
        format!("drop table {schema}.run"),
        format!("truncate {schema}.run cascade"),
        format!("drop schema {schema} cascade"),
        format!("insert into {schema}.migration (version) values (99)"),
        format!("delete from {schema}.migration"),
        format!("create schema {schema}_more"),
        format!("alter role {} superuser", roles.role("app")),
    ] {
        assert_eq!(refusal(&client, &sql).await, NO_RIGHT, "{sql}");
    }
    drop(client);
    roles.remove(&[]).await;
}

#[tokio::test]
async fn a_role_without_rights_is_told_so() {
    let roles = Roles::make().await;
    let stranger = roles.role("stranger");
    let make = format!("create role {stranger} login password 'secret'");
    roles.admin.batch_execute(&make).await.expect("an administrator makes roles");
    let refused = roles.store("stranger").await.expect_err("it has no rights").to_string();
    let (schema, denied) = (&roles.name, "permission denied");
    assert!(refused.contains(denied) && refused.contains(schema), "{refused}");
    // People are not programs.
    let refused = roles.store("report").await.expect_err("it reads views only").to_string();
    assert!(refused.contains(denied), "{refused}");
    roles.remove(&["stranger"]).await;
}

#[tokio::test]
async fn people_read_views_and_nothing_else() {
    let roles = Roles::make().await;
    let (client, schema) = (roles.client("report").await, &roles.name);
    let views = "workflows runs tasks attempts events timers waits workers queues tenants";
    for view in views.split(' ') {
        // By the search path that the page sets.
        assert_eq!(rows(&client, &format!("select count(*) from {view}")).await.len(), 1);
    }
    let tables = format!(
        "select table_name from information_schema.tables where table_schema = '{schema}' \
         and table_type = 'BASE TABLE'"
    );
    let tables = rows(&roles.admin, &tables).await;
    assert!(tables.len() > 15, "{tables:?}");
    let payloads = ["inputs", "signals", "memos", "outputs"];
    for table in tables.iter().map(String::as_str).chain(payloads) {
        let sql = format!("select count(*) from {schema}.{table}");
        assert_eq!(refusal(&client, &sql).await, NO_RIGHT, "{sql}");
    }
    for sql in ["delete from runs", "update tenants set weight = 1", "create table more (id int)"] {
        let code = refusal(&client, sql).await;
        // A view that joins tables cannot be written to by anybody.
        assert!([NO_RIGHT, "55000"].contains(&code.as_str()), "{sql}: {code}");
    }
    drop(client);
    roles.remove(&[]).await;
}
