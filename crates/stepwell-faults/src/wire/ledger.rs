//! What is known of the sessions of a wire.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// What is known of one session.
#[derive(Clone, Debug, Default)]
pub struct SessionView {
    /// The name in its startup message.
    pub application_name: String,
    /// Its process at the server.
    pub process: Option<i32>,
    /// Whether it has ended.
    pub is_over: bool,
    /// Statements that were executed.
    pub n_statements: u64,
    /// Transactions that ended, statements of their own among them.
    pub n_transactions: u64,
    /// Bytes from the client to the server.
    pub bytes_up: u64,
    /// Bytes from the server to the client.
    pub bytes_down: u64,
    /// Every statement it executed, and how often.
    pub texts: BTreeMap<String, u64>,
    /// SQLSTATEs of the errors it was answered with.
    pub errors: Vec<String>,
    /// How often the reply to one of its statements was lost.
    pub n_replies_lost: u64,
}

impl SessionView {
    /// How often it executed statements that begin like this, in lower case.
    #[must_use]
    pub fn n_sent(&self, beginning: &str) -> u64 {
        let is_meant = |text: &str| text.to_lowercase().starts_with(beginning);
        self.texts.iter().filter(|(text, _)| is_meant(text)).map(|(_, n)| n).sum()
    }

    /// Whether it executed a statement that begins like this, in lower case.
    #[must_use]
    pub fn has_sent(&self, beginning: &str) -> bool {
        self.n_sent(beginning) > 0
    }
}

/// All sessions of a wire, those that are over too.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    entries: Arc<Mutex<BTreeMap<u64, Entry>>>,
}

#[derive(Default)]
struct Entry {
    view: SessionView,
    switches: Switches,
}

/// What tells a session what becomes of it.
#[derive(Clone, Default)]
pub(super) struct Switches {
    /// To end.
    pub(super) cut: Arc<Notify>,
    /// To pass nothing any more.
    pub(super) darken: Arc<Notify>,
}

impl Ledger {
    /// A line for a new session; gives its number, and what tells it what becomes of it.
    pub(super) fn open(&self, application_name: String) -> (u64, Switches) {
        let mut entries = self.entries();
        let number = entries.last_key_value().map_or(1, |(last, _)| last + 1);
        let view = SessionView { application_name, ..SessionView::default() };
        let entry = Entry { view, ..Entry::default() };
        let switches = entry.switches.clone();
        entries.insert(number, entry);
        (number, switches)
    }

    pub(super) fn note(&self, session: u64, note: impl FnOnce(&mut SessionView)) {
        if let Some(entry) = self.entries().get_mut(&session) {
            note(&mut entry.view);
        }
    }

    pub(super) fn views(&self) -> Vec<SessionView> {
        self.entries().values().map(|entry| entry.view.clone()).collect()
    }

    /// Tells sessions what becomes of them; gives how many.
    pub(super) fn tell(
        &self,
        is_meant: impl Fn(&SessionView) -> bool,
        switch: impl Fn(&Switches) -> &Notify,
    ) -> usize {
        let entries = self.entries();
        let meant = entries.values().filter(|entry| !entry.view.is_over && is_meant(&entry.view));
        meant.map(|entry| switch(&entry.switches).notify_one()).count()
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.entries.lock().expect("no holder of the lock panics")
    }
}
