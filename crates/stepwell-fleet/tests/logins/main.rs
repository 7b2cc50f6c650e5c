//! Who gets in, and over which connection: passwords and encryption on a real server.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use stepwell::core::id::Tenant;
use stepwell::ports::{StoreError, Tenants};
use stepwell::{Code, PostgresOptions, PostgresStore};
use stepwell_fleet::cluster::{Cluster, Identity};
use tokio_postgres::{Client, NoTls};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logins").join(name)
}

/// A server whose certificate is for `localhost`, with one user that has a password.
async fn server() -> (Cluster, u16) {
    let free = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let identity = Identity { certificate: &certificate, key: &key };
    let cluster = Cluster::start_guarded(identity, port).await.expect("the server starts");
    let owner = PostgresStore::connect(cluster.url());
    drop(owner.await.expect("the owner needs no password here"));
    let make = "create role shop login password 'open sesame'; \
                grant usage on schema stepwell to shop; \
                grant select, insert, update, delete on all tables in schema stepwell to shop; \
                grant usage on all sequences in schema stepwell to shop";
    beside(&cluster).await.batch_execute(make).await.expect("it is a superuser");
    (cluster, port)
}

/// A plain connection of the owner.
#[expect(clippy::disallowed_methods, reason = "the connection lives on the test's runtime")]
async fn beside(cluster: &Cluster) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&cluster.url(), NoTls).await.expect("the server answers");
    drop(tokio::spawn(connection));
    client
}

/// Whether the connections of the user are encrypted, as the server sees them.
async fn is_encrypted(owner: &Client) -> bool {
    let sql = "select bool_or(ssl) from pg_stat_ssl join pg_stat_activity using (pid) \
               where usename = 'shop'";
    owner.query_one(sql, &[]).await.expect("it answers").get(0)
}

/// The connections of a dropped store end a moment later.
async fn wait_until_gone(owner: &Client) {
    let sql = "select count(*) from pg_stat_activity where usename = 'shop'";
    while owner.query_one(sql, &[]).await.expect("it answers").get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
}

fn url(port: u16, password: &str, parameters: &str) -> String {
    format!("postgres://shop:{password}@localhost:{port}/postgres?hostaddr=127.0.0.1&{parameters}")
}

async fn refused(url: String) -> (Code, String) {
    match PostgresStore::connect(url).await {
        Err(StoreError::Refused { code, message }) => (code, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_and_certificates_are_checked_as_the_url_says() {
    let (cluster, port) = server().await;
    let owner = beside(&cluster).await;
    let (good, authority) = ("open%20sesame", file("authority.pem"));
    let (authority, stranger) = (authority.display(), file("stranger.pem"));
    let stranger = stranger.display();

    let (code, message) = refused(url(port, "wrong", "sslmode=require")).await;
    assert_eq!(code, Code::LoginRefused, "{message}");
    assert!(message.contains("password") && !message.contains("wrong"), "{message}");
    let (code, message) = refused(url(port, "", "sslmode=disable")).await;
    assert_eq!(code, Code::LoginRefused, "{message}");

    for parameters in [
        "sslmode=disable".to_owned(),
        "sslmode=prefer".to_owned(),
        "sslmode=require".to_owned(),
        format!("sslmode=verify-ca&sslrootcert={authority}"),
        format!("sslmode=verify-full&sslrootcert={authority}"),
    ] {
        let store = PostgresStore::connect(url(port, good, &parameters)).await;
        let store = store.unwrap_or_else(|error| panic!("{parameters}: {error}"));
        let tenant = Tenant::new("t").expect("a good name");
        store.tenant(&tenant).await.expect("it answers");
        assert_eq!(is_encrypted(&owner).await, parameters != "sslmode=disable", "{parameters}");
        drop(store);
        wait_until_gone(&owner).await;
    }

    for parameters in [
        format!("sslmode=verify-full&sslrootcert={stranger}"),
        format!("sslmode=require&sslrootcert={stranger}"),
        "sslmode=verify-full&sslrootcert=/none.pem".to_owned(),
    ] {
        let (code, message) = refused(url(port, good, &parameters)).await;
        assert_eq!(code, Code::NoEncryption, "{parameters}: {message}");
        assert!(message.contains("sslrootcert"), "{message}");
    }

    // The certificate is for the name, not for the address.
    let by_address = |mode: &str| {
        let url = url(port, good, &format!("sslmode={mode}&sslrootcert={authority}"));
        url.replace("@localhost", "@127.0.0.1")
    };
    assert_eq!(refused(by_address("verify-full")).await.0, Code::NoEncryption);
    let store = PostgresStore::connect_with(PostgresOptions::new(by_address("verify-ca"))).await;
    store.expect("the authority is enough");
}
