//! A man in the middle between a program and PostgreSQL.
//!
//! A [`Wire`] listens like a server and passes everything to the real one. It knows where a
//! statement begins and ends, so a test can hold statements at its [`Gate`], lose the reply to a
//! COMMIT that took effect, cut single sessions, or turn the lights off for a while. It speaks no
//! TLS.

mod cut;
mod gate;
mod ledger;
mod session;
mod statement;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

pub use cut::LostReplies;
pub use gate::{Gate, GateState};
pub use ledger::SessionView;
pub(crate) use session::greet;
pub use statement::Statement;

use crate::endpoint::{Door, Server};

/// A man in the middle. Dropped, it accepts nobody any more and cuts everybody.
pub struct Wire {
    shared: Arc<Shared>,
    url: String,
    listening: tokio::task::AbortHandle,
}

/// What all sessions of a wire share.
pub(crate) struct Shared {
    server: Server,
    gate: Gate,
    ledger: ledger::Ledger,
    is_dark: watch::Sender<bool>,
    lost_replies: Mutex<Option<LostReplies>>,
    is_deaf: AtomicBool,
}

impl Shared {
    fn loses_reply(&self, statement: &Statement) -> bool {
        let mut rule = self.lost_replies.lock().expect("no holder of the lock panics");
        rule.as_mut().is_some_and(|rule| rule.strikes(statement))
    }
}

impl Wire {
    /// Stands before the server of this URL, on a free port of this machine.
    pub async fn to(server: &str) -> Self {
        let door = Door::on_a_free_port().await.expect("the machine has a free port");
        Self::behind(door, Server::of(server))
    }

    /// Stands before the server of this URL, with a socket in this folder.
    pub fn in_folder(server: &str, folder: &Path) -> Self {
        let door = Door::in_folder(folder).expect("the folder takes a socket");
        Self::behind(door, Server::of(server))
    }

    fn behind(door: Door, server: Server) -> Self {
        let host = door.host().expect("the door has an address");
        let url = format!("{host}{}", server.rest());
        let shared = Arc::new(Shared {
            server,
            gate: Gate::new(),
            ledger: ledger::Ledger::default(),
            is_dark: watch::Sender::new(false),
            lost_replies: Mutex::new(None),
            is_deaf: AtomicBool::new(false),
        });
        let listening = listen(Arc::clone(&shared), door);
        Self { shared, url, listening }
    }

    /// Where clients connect to, as whom the server's URL says.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The gate before the server; open at first.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Loses replies from now on, as the rule says; `None` for no more.
    pub fn lose_replies(&self, rule: impl Into<Option<LostReplies>>) {
        *self.shared.lost_replies.lock().expect("no holder of the lock panics") = rule.into();
    }

    /// Swallows notifications from now on, or passes them on again.
    pub fn deafen(&self, is_deaf: bool) {
        self.shared.is_deaf.store(is_deaf, Ordering::Release);
    }

    /// Freezes all sessions and refuses new ones, until the [light](Self::light) is back.
    pub fn black_out(&self) {
        self.shared.is_dark.send_replace(true);
    }

    /// Ends a black-out. What was under way goes on where it was.
    pub fn light(&self) {
        self.shared.is_dark.send_replace(false);
    }

    /// Cuts the sessions that are meant; gives how many.
    pub fn cut(&self, is_meant: impl Fn(&SessionView) -> bool) -> usize {
        self.shared.ledger.tell(is_meant, |switches| &switches.cut)
    }

    /// Lets the sessions that are meant go dark for good, as behind a proxy that hangs: what is
    /// sent is taken and passed on to nobody, and no end is told. Gives how many.
    pub fn darken(&self, is_meant: impl Fn(&SessionView) -> bool) -> usize {
        self.shared.ledger.tell(is_meant, |switches| &switches.darken)
    }

    /// Every session there was, in order.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionView> {
        self.shared.ledger.views()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut(|_| true);
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("url", &self.url).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "a server in a test lives beside the test")]
fn listen(shared: Arc<Shared>, door: Door) -> tokio::task::AbortHandle {
    let accept = async move {
        while let Ok(client) = door.accept().await {
            if !*shared.is_dark.borrow() {
                // A session that breaks is what this is for; its client sees it.
                drop(tokio::spawn(session::serve(Arc::clone(&shared), client)));
            }
        }
    };
    tokio::spawn(accept).abort_handle()
}
