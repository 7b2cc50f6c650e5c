//! Wake-ups between processes: one connection that tells others, and listens to them.
//!
//! NOTIFY takes a lock of the whole cluster at commit, so it is never sent inside a transaction
//! that does work. What a process has to tell within a few milliseconds goes out as one
//! notification without a payload. It is only a hint: without it, everything is found by polling.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use super::error::describe;
use super::{Shared, statements};
use crate::ports::{Hint, HintSender};

/// What is told within this span goes out together.
const GATHER: Duration = Duration::from_millis(5);

/// A silent connection is probed after this span.
const PROBE: Duration = Duration::from_secs(5);

/// Pauses between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What this process has to tell others.
#[derive(Default)]
pub(super) struct Outbox {
    is_pending: AtomicBool,
    filled: Notify,
    /// Another process told something.
    heard: Notify,
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
#[expect(clippy::disallowed_methods, reason = "the connection lives beside the store's calls")]
pub(super) fn start(shared: &Arc<Shared>, config: Config) {
    let channel = format!("{}_wake", shared.pool.schema());
    let (shared, hints) = (Arc::downgrade(shared), shared.hints.clone());
    drop(tokio::spawn(keep_connected(shared, hints, config, channel)));
}

#[expect(clippy::disallowed_methods, reason = "a lost connection is tried again after a pause")]
async fn keep_connected(shared: Weak<Shared>, hints: HintSender, config: Config, channel: String) {
    let mut pause = PAUSE_MIN;
    while shared.strong_count() > 0 {
        match converse(&shared, &hints, &config, &channel).await {
            Ok(()) => pause = PAUSE_MIN,
            Err(error) => {
                let why = describe(&error);
                tracing::warn!(
                    why,
                    "no wake-ups from other processes, polling until they are back"
                );
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Connects, listens, and tells until the connection ends or the store is gone.
async fn converse(
    shared: &Weak<Shared>,
    hints: &HintSender,
    config: &Config,
    channel: &str,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    // Our own notifications come back to us and are passed over.
    let own = AtomicI32::new(0);
    let Some(outbox) = shared.upgrade().map(|shared| Arc::clone(&shared.outbox)) else {
        return Ok(());
    };
    let heard = &outbox.heard;
    let telling = tell(shared, hints, &client, channel, &own);
    tokio::pin!(telling);
    loop {
        let message = std::future::poll_fn(|cx| connection.poll_message(cx));
        tokio::select! {
            told = &mut telling => return told,
            message = message => match message {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    if note.process_id() != own.load(Ordering::Acquire) {
                        give_all(hints);
                        heard.notify_one();
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what is told at once goes out together")]
async fn tell(
    shared: &Weak<Shared>,
    hints: &HintSender,
    client: &Client,
    channel: &str,
    own: &AtomicI32,
) -> Result<(), tokio_postgres::Error> {
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).await?.try_get(0)?;
    own.store(pid, Ordering::Release);
    // The channel is made of the schema's name, which was checked to need no quotes.
    client.batch_execute(&["listen ", channel].concat()).await?;
    // What was told while nobody listened here is found by looking once.
    give_all(hints);
    while let Some(outbox) = shared.upgrade().map(|shared| Arc::clone(&shared.outbox)) {
        tokio::select! {
            () = outbox.wait() => {
                tokio::time::sleep(GATHER).await;
                client.execute("select pg_notify($1, '')", &[&channel]).await?;
            }
            () = outbox.heard.notified() => look_at_policies(shared, client).await?,
            // Also notices a connection that died in silence, and a store that is gone.
            () = tokio::time::sleep(PROBE) => look_at_policies(shared, client).await?,
        }
    }
    Ok(())
}

async fn look_at_policies(
    shared: &Weak<Shared>,
    client: &Client,
) -> Result<(), tokio_postgres::Error> {
    let Some(shared) = shared.upgrade() else { return Ok(()) };
    let sql = shared.pool.sql(statements::DEFINITION_REVISIONS);
    let row = client.query_one(&*sql, &[]).await?;
    shared.saw_revisions(row.try_get(0)?);
    Ok(())
}

fn give_all(hints: &HintSender) {
    for hint in [Hint::Ready, Hint::Timers, Hint::Ended, Hint::Claims] {
        hints.give(hint);
    }
}
