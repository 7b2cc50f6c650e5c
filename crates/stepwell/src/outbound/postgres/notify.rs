//! Wake-ups between processes: one connection that tells others, and listens to them.
//!
//! NOTIFY takes a lock of the whole cluster at commit, so it is never sent inside a transaction
//! that does work. What a process has to tell within a few milliseconds goes out as one
//! notification that names what there is to see, so that others look at nothing else: of many
//! processes, each hears all others. It is only a hint: without it, everything is found by polling.

use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
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

/// What there is to see: a bit for each word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News(u8);

/// The words of notifications, and whom they concern.
const WORDS: [(&str, News); 5] = [
    ("ready", News::of(Hint::Ready)),
    ("timers", News::of(Hint::Timers)),
    ("ended", News::of(Hint::Ended)),
    ("claims", News::of(Hint::Claims)),
    ("policies", News::POLICIES),
];

impl News {
    /// Policies of a definition were replaced.
    pub(super) const POLICIES: Self = Self(1 << Hint::ALL.len());
    const EVERYTHING: Self = Self(u8::MAX);

    const fn of(hint: Hint) -> Self {
        Self(1 << hint as u8)
    }

    fn contains(self, news: Self) -> bool {
        self.0 & news.0 != 0
    }

    fn payload(self) -> String {
        let words = WORDS.iter().filter(|(_, news)| self.contains(*news)).map(|(word, _)| *word);
        words.collect::<Vec<_>>().join(" ")
    }

    /// What was heard. Another version may know other words, and none at all may mean anything.
    fn heard(payload: &str) -> Self {
        let meaning = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|(_, n)| *n);
        let news: Option<Vec<Self>> = payload.split_whitespace().map(meaning).collect();
        let news = news.filter(|news| !news.is_empty());
        news.map_or(Self::EVERYTHING, |news| news.into_iter().fold(Self(0), |a, b| Self(a.0 | b.0)))
    }

    /// Wakes those in this process whom it concerns.
    fn give(self, hints: &HintSender) {
        for hint in Hint::ALL.into_iter().filter(|hint| self.contains(Self::of(*hint))) {
            hints.give(hint);
        }
    }
}

impl<'h> FromIterator<&'h Hint> for News {
    fn from_iter<I: IntoIterator<Item = &'h Hint>>(hints: I) -> Self {
        Self(hints.into_iter().fold(0, |news, hint| news | Self::of(*hint).0))
    }
}

/// What this process has to tell others.
#[derive(Default)]
pub(super) struct Outbox {
    /// The bits of [`News`].
    pending: AtomicU8,
    filled: Notify,
    /// Another process replaced policies.
    policies: Notify,
    /// The line's test of itself was heard.
    heard_ourselves: Notify,
}

impl Outbox {
    /// Others will be told soon that there is something to see.
    pub(super) fn tell(&self, news: News) {
        if news != News::default() {
            self.pending.fetch_or(news.0, Ordering::AcqRel);
            self.filled.notify_one();
        }
    }

    /// Waits until there is something to tell.
    async fn wait(&self) {
        while self.pending.load(Ordering::Acquire) == 0 {
            self.filled.notified().await;
        }
    }

    /// Takes out all there is to tell.
    fn take(&self) -> News {
        News(self.pending.swap(0, Ordering::AcqRel))
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
            let news = News::heard(note.payload());
            news.give(&self.hints);
            if news.contains(News::POLICIES) {
                outbox.policies.notify_one();
            }
        } else if note.payload() == TEST {
            outbox.heard_ourselves.notify_one();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "what is told at once goes out together")]
    async fn tell(&self, client: &Client) -> Result<(), Broken> {
        self.listen(client).await?;
        // What was told while nobody listened here is found by looking once.
        News::EVERYTHING.give(&self.hints);
        let mut told_at = tokio::time::Instant::now();
        while let Some(outbox) = self.store.upgrade().map(|shared| Arc::clone(&shared.outbox)) {
            tokio::select! {
                () = outbox.wait() => {
                    // At once if it is quiet, and as rarely as this if it is not.
                    tokio::time::sleep_until(told_at + GATHER).await;
                    told_at = tokio::time::Instant::now();
                    self.notify(client, &outbox.take().payload()).await?;
                }
                () = outbox.policies.notified() => self.look_at_policies(client).await?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_heard() {
        let told = [Hint::Ready, Hint::Ended].iter().collect::<News>();
        assert_eq!(told.payload(), "ready ended");
        assert_eq!(News::heard("ready ended"), told);
        for (word, news) in WORDS {
            assert_eq!((news.payload().as_str(), News::heard(word)), (word, news));
        }
    }

    #[test]
    fn a_word_of_another_version_may_mean_anything() {
        assert_eq!(News::heard("ready weather"), News::EVERYTHING);
        assert_eq!(News::heard(""), News::EVERYTHING);
    }

    #[test]
    fn what_is_told_before_it_went_out_goes_out_together() {
        let outbox = Outbox::default();
        outbox.tell(News::of(Hint::Timers));
        outbox.tell(News::POLICIES);
        assert_eq!(outbox.take().payload(), "timers policies");
        assert_eq!(outbox.take(), News::default(), "once");
    }
}
