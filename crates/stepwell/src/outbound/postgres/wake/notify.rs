//! Wake-ups between processes: one connection that tells others, and listens to them.
//!
//! NOTIFY takes a lock of the whole cluster at commit, so it is never sent inside a transaction
//! that does work. What a process has to tell within a few milliseconds goes out as one
//! notification that names what there is to see, so that others look at nothing else: of many
//! processes, each hears all others. It is only a hint: without it, everything is found by polling.

use std::future::Future;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::super::connection::connect::{CONNECT_MAX, Connector};
use super::super::connection::patience::Patience;
use super::super::connection::pool::{Pool, describe};
use super::super::lookup::PlanCache;
use super::super::lookup::plans::READ_REVISION;
use super::super::rows;
use super::pending::{PendingWakes, Wake, WakeKinds};
use crate::ports::{HintSet, StoreError};

/// What is told within this span after something else was goes out together.
const GATHER: Duration = Duration::from_millis(5);

/// A silent connection is probed after this span.
const PROBE: Duration = Duration::from_secs(5);

/// Pauses between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A channel hears itself tell this, within this span, or it is of no use.
const TEST: &str = "test";
const TEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts telling and listening, until the store is gone.
pub(crate) fn start(
    pool: &Pool,
    plans: &Arc<PlanCache>,
    wakes: &Arc<PendingWakes>,
    connector: Connector,
) {
    let channel = WakeChannel {
        plans: Arc::downgrade(plans),
        wakes: Arc::clone(wakes),
        connector,
        name: channel_name(&pool.schema),
        revision: pool.texts.of(READ_REVISION).to_owned(),
        own: AtomicI32::new(0),
    };
    pool.driver.spawn(channel.keep_connected());
}

/// The channel of a schema. The server takes no longer names than this, so that of a long schema is
/// made of its beginning and a digest.
fn channel_name(schema: &str) -> String {
    const BYTES_MAX: usize = 63;
    let name = format!("{schema}_wake");
    if name.len() <= BYTES_MAX {
        return name;
    }
    let digest = Sha256::digest(schema)
        .iter()
        .take(8)
        .fold(0_u64, |digest, byte| digest << 8 | u64::from(*byte));
    let begin: String = schema.chars().take(40).collect();
    format!("{begin}_{digest:016x}_wake")
}

/// The channel to other processes.
struct WakeChannel {
    /// Gone with the store.
    plans: Weak<PlanCache>,
    wakes: Arc<PendingWakes>,
    connector: Connector,
    name: String,
    /// The statement that tells whether policies were replaced.
    revision: String,
    /// The server process of our connection: our own notifications are passed over.
    own: AtomicI32,
}

/// Why a channel ended.
enum Broken {
    Connection(String),
    /// We do not hear ourselves.
    Deaf,
}

impl Broken {
    fn silent() -> Self {
        Self::Connection(Patience::brief().words())
    }
}

/// The server's answer, unless it does not come in time.
async fn answered<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Broken> {
    let answer = Patience::brief().wait_for(answer).await;
    Ok(answer.ok_or_else(Broken::silent)??)
}

impl From<tokio_postgres::Error> for Broken {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Connection(describe(&error))
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Connection(error.to_string())
    }
}

impl WakeChannel {
    #[expect(clippy::disallowed_methods, reason = "a lost connection is tried again after a pause")]
    async fn keep_connected(self) {
        let mut pause = PAUSE_MIN;
        while self.plans.strong_count() > 0 {
            match self.converse().await {
                Ok(()) => pause = PAUSE_MIN,
                Err(Broken::Connection(why)) => {
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
        let dialled = Patience::Each(CONNECT_MAX).wait_for(self.connector.dial()).await;
        let (client, mut connection) = dialled.ok_or_else(Broken::silent)??;
        let telling = self.tell(&client);
        tokio::pin!(telling);
        loop {
            let message = std::future::poll_fn(|cx| connection.poll_message(cx));
            tokio::select! {
                told = &mut telling => return told,
                message = message => match message {
                    Some(Ok(AsyncMessage::Notification(note))) => self.hear(&note),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    None => return Ok(()),
                },
            }
        }
    }

    fn hear(&self, note: &Notification) {
        let is_own = note.process_id() == self.own.load(Ordering::Acquire);
        match note.payload() {
            // That of another process is no news.
            TEST if is_own => self.wakes.heard_ourselves.notify_one(),
            TEST => {}
            _ if is_own => {}
            payload => {
                let wake = Wake::heard(payload);
                wake.give(&self.wakes.hints);
                if wake.contains(WakeKinds::POLICIES) {
                    self.wakes.policies.notify_one();
                }
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "what is told at once goes out together")]
    async fn tell(&self, client: &Client) -> Result<(), Broken> {
        self.listen(client).await?;
        // What was told while nobody listened here is found by looking once.
        self.wakes.hints.give_all(&HintSet::ALL);
        let mut told_at = tokio::time::Instant::now();
        while self.plans.strong_count() > 0 {
            tokio::select! {
                () = self.wakes.wait() => {
                    // At once if it is quiet, and as rarely as this if it is not.
                    tokio::time::sleep_until(told_at + GATHER).await;
                    told_at = tokio::time::Instant::now();
                    self.notify(client, &self.wakes.take().payload()).await?;
                }
                () = self.wakes.policies.notified() => self.look_at_policies(client).await?,
                // Also notices a connection that died in silence, and a store that is gone.
                () = tokio::time::sleep(PROBE) => self.look_at_policies(client).await?,
            }
        }
        Ok(())
    }

    /// Listens, and makes sure that what is told can be heard.
    #[expect(clippy::disallowed_methods, reason = "a test that is not heard has failed")]
    async fn listen(&self, client: &Client) -> Result<(), Broken> {
        let row = answered(client.query_one("select pg_backend_pid()", &[])).await?;
        let pid = rows::server::read_pid(&row)?;
        self.own.store(pid, Ordering::Release);
        // The channel is made of the schema's name, which was checked to need no quotes.
        answered(client.batch_execute(&["listen ", &self.name].concat())).await?;
        self.notify(client, TEST).await?;
        let heard = tokio::time::timeout(TEST_TIMEOUT, self.wakes.heard_ourselves.notified()).await;
        heard.map_err(|_| Broken::Deaf)
    }

    async fn notify(&self, client: &Client, payload: &str) -> Result<(), Broken> {
        let tell = "select pg_notify($1, $2)";
        answered(client.execute(tell, &[&self.name, &payload])).await.map(drop)
    }

    async fn look_at_policies(&self, client: &Client) -> Result<(), Broken> {
        let row = answered(client.query_one(&self.revision, &[])).await?;
        if let Some(plans) = self.plans.upgrade() {
            plans.saw_revision(rows::definition::read_revision(&row)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_of_every_schema_has_a_name_of_its_own_that_the_server_takes() {
        assert_eq!(channel_name("stepwell"), "stepwell_wake");
        let [one, other] = ["a", "b"].map(|end| channel_name(&("x".repeat(62) + end)));
        assert_ne!(one, other);
        assert!(one.len() <= 63 && one.starts_with("xxx") && one.ends_with("_wake"), "{one}");
        assert_eq!(channel_name(&"y".repeat(58)).len(), 63);
    }
}
