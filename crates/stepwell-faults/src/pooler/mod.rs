//! A transaction pooler: many clients share few connections to the server.
//!
//! A client has a server connection from its first statement outside of a transaction until the
//! server says that it is idle again. Whatever a session keeps at the server is therefore lost
//! between two transactions, or found by somebody else: LISTEN, SET, advisory locks of the
//! session. Everything like pgbouncer in transaction mode, for one user and one database.

mod prepared;
mod servers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::endpoint::{Door, Server, Stream};
use crate::frame::{Message, take_message};
use crate::wire::greet;
use prepared::Prepared;
pub use prepared::PreparedStatements;
use servers::{Connection, Servers};

/// A pooler. Dropped, it accepts nobody any more.
pub struct Pooler {
    shared: Arc<Shared>,
    url: String,
    listening: tokio::task::AbortHandle,
}

struct Shared {
    servers: Servers,
    mode: PreparedStatements,
    n_clients: AtomicU64,
    n_transactions: AtomicU64,
}

impl Pooler {
    /// Stands before the server of this URL with so many connections to it.
    pub async fn to(server: &str, connections_max: usize, mode: PreparedStatements) -> Self {
        let door = Door::on_a_free_port().await.expect("the machine has a free port");
        let server = Server::of(server);
        let host = door.host().expect("the door has an address");
        let url = format!("{host}{}", server.rest());
        let shared = Arc::new(Shared {
            servers: Servers::new(server, connections_max),
            mode,
            n_clients: AtomicU64::new(0),
            n_transactions: AtomicU64::new(0),
        });
        let listening = listen(Arc::clone(&shared), door);
        Self { shared, url, listening }
    }

    /// Where clients connect to, as whom the server's URL says.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many clients there were.
    #[must_use]
    pub fn n_clients(&self) -> u64 {
        self.shared.n_clients.load(Ordering::Relaxed)
    }

    /// How many transactions it has passed, statements of their own among them.
    #[must_use]
    pub fn n_transactions(&self) -> u64 {
        self.shared.n_transactions.load(Ordering::Relaxed)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl std::fmt::Debug for Pooler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pooler").field("url", &self.url).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "a server in a test lives beside the test")]
fn listen(shared: Arc<Shared>, door: Door) -> tokio::task::AbortHandle {
    let accept = async move {
        while let Ok(client) = door.accept().await {
            // A client that breaks off is its own affair.
            drop(tokio::spawn(serve(Arc::clone(&shared), client)));
        }
    };
    tokio::spawn(accept).abort_handle()
}

/// Serves one client until it goes.
async fn serve(shared: Arc<Shared>, mut client: Stream) -> io::Result<()> {
    let Some((startup, mut arrived)) = greet(&mut client).await? else { return Ok(()) };
    client.write_all(&shared.servers.greeting(&startup).await?).await?;
    let number = shared.n_clients.fetch_add(1, Ordering::Relaxed);
    let mut prepared = Prepared::new(number, shared.mode);
    let mut group = Vec::new();
    // Held within a transaction; dropped there if the client goes, so that the server rolls back.
    let mut held: Option<Connection> = None;
    loop {
        let Some(message) = take_message(&mut arrived) else {
            if client.read_buf(&mut arrived).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let ends = matches!(message.kind(), b'S' | b'Q');
        match message.kind() {
            b'X' => return Ok(()),
            _ => group.push(message),
        }
        if !ends {
            continue;
        }
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => shared.servers.take(&startup).await?,
        };
        let status = pass(&mut client, &mut connection, &mut prepared, &mut group).await?;
        if status == b'I' {
            shared.n_transactions.fetch_add(1, Ordering::Relaxed);
            shared.servers.give_back(connection);
        } else {
            held = Some(connection);
        }
    }
}

/// Passes what a client said up to a Sync, and the server's answer. Gives the transaction's
/// status.
async fn pass(
    client: &mut Stream,
    connection: &mut Connection,
    prepared: &mut Prepared,
    group: &mut Vec<Message>,
) -> io::Result<u8> {
    let (said, mut expected) = prepared.translate(std::mem::take(group), &mut connection.known);
    connection.stream.write_all(&said).await?;
    let mut answer = Vec::new();
    loop {
        while let Some(message) = take_message(&mut connection.arrived) {
            let prepared = (message.kind() == b'1').then(|| expected.pop_front()).flatten();
            let is_own = prepared.is_some_and(|prepared| prepared.is_own);
            // A notification is for a session that this client does not have.
            if !is_own && message.kind() != b'A' {
                answer.extend(&message.bytes);
            }
            if let Some(status) = message.status() {
                // An error came first.
                connection.known.retain(|name| expected.iter().all(|lost| lost.name != *name));
                client.write_all(&answer).await?;
                return Ok(status);
            }
        }
        if connection.stream.read_buf(&mut connection.arrived).await? == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
}
