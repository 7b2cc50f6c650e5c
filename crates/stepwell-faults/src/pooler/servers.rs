//! The connections to the server that clients share.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::endpoint::{Server, Stream};
use crate::frame::{Startup, take_message};

/// A connection to the server. Dropped, it makes room for another one.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) arrived: Vec<u8>,
    /// Statements that are prepared on it, by their names at the server.
    pub(super) known: BTreeSet<String>,
    permit: Option<OwnedSemaphorePermit>,
}

pub(super) struct Servers {
    server: Server,
    room: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// What the server says to a newcomer.
    greeting: OnceCell<Vec<u8>>,
}

impl Servers {
    pub(super) fn new(server: Server, connections_max: usize) -> Self {
        let room = Arc::new(Semaphore::new(connections_max));
        Self { server, room, idle: Mutex::default(), greeting: OnceCell::new() }
    }

    /// What the server says to a newcomer: learned once, by connecting for the first one.
    pub(super) async fn greeting(&self, startup: &Startup) -> io::Result<Vec<u8>> {
        let learn = async || self.connect(startup).await.map(|(_, greeting)| greeting);
        self.greeting.get_or_try_init(learn).await.cloned()
    }

    /// A connection for one transaction; waits for one that comes free.
    pub(super) async fn take(&self, startup: &Startup) -> io::Result<Connection> {
        let permit = Arc::clone(&self.room).acquire_owned().await.map_err(io::Error::other)?;
        let idle = self.idle.lock().expect("no holder of the lock panics").pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect(startup).await?.0,
        };
        connection.permit = Some(permit);
        Ok(connection)
    }

    /// Lets others have it. The one that was used last is last to be used again, so that clients
    /// do not get their own back by chance.
    pub(super) fn give_back(&self, mut connection: Connection) {
        let permit = connection.permit.take();
        self.idle.lock().expect("no holder of the lock panics").insert(0, connection);
        drop(permit);
    }

    async fn connect(&self, startup: &Startup) -> io::Result<(Connection, Vec<u8>)> {
        let mut stream = self.server.connect().await?;
        stream.write_all(&startup.bytes).await?;
        let (mut arrived, mut greeting) = (Vec::new(), Vec::new());
        loop {
            while let Some(message) = take_message(&mut arrived) {
                greeting.extend(&message.bytes);
                if message.status().is_some() {
                    let known = BTreeSet::new();
                    return Ok((Connection { stream, arrived, known, permit: None }, greeting));
                }
            }
            if stream.read_buf(&mut arrived).await? == 0 {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
        }
    }
}
