//! Where PostgreSQL is measured: on a given server, or on a private cluster that is durable and
//! otherwise as the server's makers set it up.

use stepwell_cluster::{Cluster, ClusterOptions, find_programs};
use tokio_postgres::{Client, NoTls};

use super::measure;
use crate::commands::Failure;

/// A server to measure on.
pub(super) struct Server {
    pub(super) url: String,
    /// What our schemas are called; some have an ending of their own.
    pub(super) schema: String,
    /// Ends with the measurements.
    _cluster: Option<Cluster>,
}

impl Server {
    /// The given server, or a private one.
    pub(super) fn prepare(url: Option<&str>, schema: &str) -> Result<Self, Failure> {
        let schema = schema.to_owned();
        if let Some(url) = url {
            return Ok(Self { url: url.to_owned(), schema, _cluster: None });
        }
        let Some(programs) = find_programs() else {
            return Err(Failure::Usage {
                message: "there is no PostgreSQL server on this machine to start".to_owned(),
                hint: "install one, give --url, or leave PostgreSQL out by --store sqlite",
            });
        };
        let options = ClusterOptions { is_durable: true, settings: Vec::new() };
        let cluster = Cluster::start(&programs, &options)
            .map_err(|error| Failure::Unexpected(error.to_string()))?;
        Ok(Self { url: cluster.url(), schema, _cluster: Some(cluster) })
    }

    /// A connection of our own, beside those of the store.
    pub(super) async fn connect(&self) -> Result<Client, Failure> {
        let (client, connection) =
            tokio_postgres::connect(&self.url, NoTls).await.map_err(|e| failure(&e))?;
        measure::spawn(async move {
            // An error shows in the calls of the client.
            let _ = connection.await;
        });
        Ok(client)
    }

    /// Refuses a schema that is there: it is not ours to drop.
    pub(super) async fn check_schema(&self, client: &Client, schema: &str) -> Result<(), Failure> {
        let exists = "select from pg_namespace where nspname = $1";
        let found = client.query_opt(exists, &[&schema]).await.map_err(|e| failure(&e))?;
        if found.is_some() {
            return Err(Failure::Usage {
                message: format!("the schema {schema:?} is there already"),
                hint: "drop it if an earlier benchmark left it, or give another by --schema",
            });
        }
        Ok(())
    }
}

/// Drops a schema of ours with all it holds.
pub(super) async fn drop_schema(client: &Client, schema: &str) -> Result<(), Failure> {
    let drop = format!("drop schema if exists \"{schema}\" cascade");
    client.batch_execute(&drop).await.map_err(|e| failure(&e))
}

/// What the server had to say.
pub(super) fn failure(error: &tokio_postgres::Error) -> Failure {
    let why = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Failure::Unexpected(format!("postgres: {error}{}", why.unwrap_or_default()))
}
