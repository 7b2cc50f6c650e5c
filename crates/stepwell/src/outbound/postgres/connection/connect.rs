//! Making connections, and the thread that drives them.
//!
//! Connections live on a thread of the store's own: a program that keeps its runtime busy, or
//! drops it, costs the store no connection and no worker its lease.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::hosts::{HEAD_START, each_host, first_success};
use super::role::Role;

/// A connection that has not come about by then, with all that is settled first, is given up.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long ended connections get to say goodbye to the server.
const GOODBYE: Duration = Duration::from_secs(1);

/// A connection as the driver library gives it.
pub(crate) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// How connections of one role are made.
#[derive(Clone)]
pub(crate) struct Connector {
    /// One for each host.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    /// Settings of the session; none where a pooler would leak them to others.
    settings: Option<Arc<str>>,
}

impl Connector {
    pub(crate) fn new(config: &Config, tls: MakeRustlsConnect, settings: Option<Arc<str>>) -> Self {
        Self { hosts: each_host(config), tls, settings }
    }

    /// The same way for connections of this role.
    pub(crate) fn for_role(&self, role: Role) -> Self {
        let mut connector = self.clone();
        for host in &mut connector.hosts {
            host.application_name(role.application_name());
        }
        connector
    }

    /// Connects; the caller drives what it gets, and gives up after a while. Called on the driving
    /// thread.
    pub(crate) async fn dial(&self) -> Result<(Client, Wire), Error> {
        let attempts = self.hosts.iter().map(|host| host.connect(self.tls.clone()));
        first_success(attempts, HEAD_START).await.expect("a URL without a host is refused")
    }

    /// Connects and has the connection driven.
    async fn connect(self, tracker: TaskTracker) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, connection) = self.dial().await?;
        let driven = tracker.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        if let Some(settings) = &self.settings {
            client.batch_execute(settings).await?;
        }
        Ok((client, driven))
    }
}

/// The thread that drives connections. It ends when this is dropped.
pub(crate) struct Driver {
    runtime: Handle,
    tracker: TaskTracker,
    closing: CancellationToken,
}

impl Driver {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be had.
    #[expect(clippy::disallowed_methods, reason = "connections are driven apart from user code")]
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (tracker, closing) = (TaskTracker::new(), CancellationToken::new());
        let driver = Self {
            runtime: runtime.handle().clone(),
            tracker: tracker.clone(),
            closing: closing.clone(),
        };
        let drive = async move {
            closing.cancelled().await;
            tracker.close();
            let _ = tokio::time::timeout(GOODBYE, tracker.wait()).await;
        };
        let thread = std::thread::Builder::new().name("stepwell-postgres".into());
        thread.spawn(move || runtime.block_on(drive))?;
        Ok(driver)
    }

    /// Runs a future on the driving thread, until it ends or the store is gone.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(future));
    }

    /// Makes a connection that this thread drives. The caller gives up after [`CONNECT_MAX`].
    #[expect(clippy::disallowed_methods, reason = "what the caller gave up must not stay behind")]
    pub(crate) async fn connect(
        &self,
        connector: Connector,
    ) -> Result<(Client, JoinHandle<()>), Error> {
        let connect = tokio::time::timeout(CONNECT_MAX, connector.connect(self.tracker.clone()));
        match self.runtime.spawn(connect).await {
            Ok(Ok(connected)) => connected,
            // It took too long, or the thread is gone, and with it the store.
            Ok(Err(_)) | Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Gives a pool its connections.
pub(crate) struct PoolConnect {
    pub(crate) connector: Connector,
    pub(crate) driver: Arc<Driver>,
}

impl Connect for PoolConnect {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(self.driver.connect(self.connector.clone()))
    }
}
