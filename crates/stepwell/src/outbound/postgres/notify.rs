//! Wake-ups between processes: one connection that tells others, and listens to them.
//!
//! NOTIFY takes a lock of the whole cluster at commit, so it is never sent inside a transaction
//! that does work. What a process has to tell within a few milliseconds goes out as one
//! notification without a payload. It is only a hint: without it, everything is found by polling.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::connect::Connector;
use super::error::describe;
use super::{Shared, statements};
use crate::ports::{Hint, HintSender};

/// What is told within this span after something else was goes out together.
const GATHER: Duration = Duration::from_millis(5);

/// A silent connection is probed after this span.
const PROBE: Duration = Duration::from_secs(5);

/// Pauses between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A line hears itself tell this, within this span, or it is of no use.
const TEST: &str = "test";
const TEST_TIMEOUT: Duration = Duration::from_secs(5);

/// What this process has to tell others.
#[derive(Default)]
pub(super) struct Outbox {
    is_pending: AtomicBool,
    filled: Notify,
    /// Another process told something.
    heard: Notify,
    /// The line's test of itself was heard.
    heard_ourselves: Notify,
}

impl Outbox {
    /// Others will be told soon that there is something to see.
    pub(super) fn tell(&self) {
        self.is_pending.store(true, Ordering::Release);
        self.filled.notify_one();
    }

    async fn wait(&self) {
        while !self.is_pending.swap(false, Ordering::AcqRel) {
            self.filled.notified().await;
        }
    }
}

/// Starts telling and listening, until the store is gone.
pub(super) fn start(shared: &Arc<Shared>, connector: Connector) {
    let channel = format!("{}_wake", shared.pool.schema);
    let (store, hints) = (Arc::downgrade(shared), shared.hints.clone());
    let line = Line { store, hints, connector, channel, own: AtomicI32::new(0) };
    shared.pool.driver.spawn(line.keep_connected());
}

/// The line to other processes.
struct Line {
    store: Weak<Shared>,
    hints: HintSender,
    connector: Connector,
    channel: String,
    /// The server process of our connection: our own notifications are passed over.
    own: AtomicI32,
}

/// Why a line ended.
enum Broken {
    Connection(tokio_postgres::Error),
    /// We do not hear ourselves.
    Deaf,
}

impl From<tokio_postgres::Error> for Broken {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Connection(error)
    }
}

impl Line {
    #[expect(clippy::disallowed_methods, reason = "a lost connection is tried again after a pause")]
    async fn keep_connected(self) {
        let mut pause = PAUSE_MIN;
        while self.store.strong_count() > 0 {
            match self.converse().await {
                Ok(()) => pause = PAUSE_MIN,
                Err(Broken::Connection(error)) => {
                    let why = describe(&error);
                    tracing::warn!(why, "no wake-ups from others, polling until they are back");
                }
                Err(Broken::Deaf) => {
                    tracing::warn!(
                        "the server does not deliver notifications on this connection, polling; \
                         behind a transaction pooler, give a direct URL"
                    );
                    pause = PAUSE_MAX;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Connects, listens, and tells until the connection ends or the store is gone.
    async fn converse(&self) -> Result<(), Broken> {
        let (client, mut connection) = self.connector.dial().await?;
        let Some(outbox) = self.store.upgrade().map(|shared| Arc::clone(&shared.outbox)) else {
            return Ok(());
        };
        let telling = self.tell(&client);
        tokio::pin!(telling);
        loop {
            let message = std::future::poll_fn(|cx| connection.poll_message(cx));
            tokio::select! {
                told = &mut telling => return told,
                message = message => match message {
                    Some(Ok(AsyncMessage::Notification(note))) => self.hear(&note, &outbox),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    None => return Ok(()),
                },
            }
        }
    }

    fn hear(&self, note: &Notification, outbox: &Outbox) {
        if note.process_id() != self.own.load(Ordering::Acquire) {
            give_all(&self.hints);
            outbox.heard.notify_one();
        } else if note.payload() == TEST {
            outbox.heard_ourselves.notify_one();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "what is told at once goes out together")]
    async fn tell(&self, client: &Client) -> Result<(), Broken> {
        self.listen(client).await?;
        // What was told while nobody listened here is found by looking once.
        give_all(&self.hints);
        let mut told_at = tokio::time::Instant::now();
        while let Some(outbox) = self.store.upgrade().map(|shared| Arc::clone(&shared.outbox)) {
            tokio::select! {
                () = outbox.wait() => {
                    // At once if it is quiet, and as rarely as this if it is not.
                    tokio::time::sleep_until(told_at + GATHER).await;
                    told_at = tokio::time::Instant::now();
                    self.notify(client, "").await?;
                }
                () = outbox.heard.notified() => self.look_at_policies(client).await?,
                // Also notices a connection that died in silence, and a store that is gone.
                () = tokio::time::sleep(PROBE) => self.look_at_policies(client).await?,
            }
        }
        Ok(())
    }

    /// Listens, and makes sure that what is told can be heard.
    #[expect(clippy::disallowed_methods, reason = "a test that is not heard has failed")]
    async fn listen(&self, client: &Client) -> Result<(), Broken> {
        let pid: i32 = client.query_one("select pg_backend_pid()", &[]).await?.try_get(0)?;
        self.own.store(pid, Ordering::Release);
        // The channel is made of the schema's name, which was checked to need no quotes.
        client.batch_execute(&["listen ", &self.channel].concat()).await?;
        self.notify(client, TEST).await?;
        let Some(outbox) = self.store.upgrade().map(|shared| Arc::clone(&shared.outbox)) else {
            return Ok(());
        };
        let heard = tokio::time::timeout(TEST_TIMEOUT, outbox.heard_ourselves.notified()).await;
        heard.map_err(|_| Broken::Deaf)
    }

    async fn notify(&self, client: &Client, payload: &str) -> Result<(), tokio_postgres::Error> {
        let tell = "select pg_notify($1, $2)";
        client.execute(tell, &[&self.channel, &payload]).await.map(drop)
    }

    async fn look_at_policies(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let Some(shared) = self.store.upgrade() else { return Ok(()) };
        let sql = shared.pool.sql(statements::DEFINITION_REVISIONS);
        let row = client.query_one(&*sql, &[]).await?;
        shared.saw_revisions(row.try_get(0)?);
        Ok(())
    }
}

fn give_all(hints: &HintSender) {
    for hint in Hint::ALL {
        hints.give(hint);
    }
}
