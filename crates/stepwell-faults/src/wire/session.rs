//! One client and its connection to the server.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Shared;
use super::ledger::Switches;
use super::statement::{Gatherer, Statement};
use crate::endpoint::Stream;
use crate::frame::{Message, Opening, Startup, take_message, take_opening};

/// The type of a notification that the server delivers.
const NOTIFICATION: u8 = b'A';

/// Waits until a client has said who it is. `None` for one that wants something else.
pub(crate) async fn greet(client: &mut Stream) -> io::Result<Option<(Startup, Vec<u8>)>> {
    let mut arrived = Vec::new();
    loop {
        match take_opening(&mut arrived) {
            Some(Opening::Startup(startup)) => return Ok(Some((startup, arrived))),
            Some(Opening::WantsEncryption) => client.write_all(b"N").await?,
            Some(Opening::Other) => return Ok(None),
            None if client.read_buf(&mut arrived).await? == 0 => return Ok(None),
            None => {}
        }
    }
}

/// Passes what both sides say, as the wire's switches allow, until one of them goes or the
/// session is cut.
pub(super) async fn serve(shared: Arc<Shared>, mut client: Stream) -> io::Result<()> {
    let Some((startup, arrived)) = greet(&mut client).await? else { return Ok(()) };
    let server = shared.server.connect().await?;
    let name = startup.parameter("application_name").unwrap_or_default();
    let (number, switches) = shared.ledger.open(name);
    let mut session = Session::new(Arc::clone(&shared), number);
    session.from_client = arrived;
    session.to_server = startup.bytes;
    let ended = session.pump(client, server, &switches).await;
    shared.gate.forget(number);
    shared.ledger.note(number, |view| view.is_over = true);
    ended
}

struct Session {
    shared: Arc<Shared>,
    number: u64,
    gatherer: Gatherer,
    /// Arrived, not looked at.
    from_client: Vec<u8>,
    from_server: Vec<u8>,
    /// Allowed to pass.
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    waiting: VecDeque<Statement>,
    in_flight: VecDeque<InFlight>,
    /// The reply that was to be lost has come.
    is_cut: bool,
}

/// A statement that the server has not answered.
struct InFlight {
    executes: bool,
    loses_reply: bool,
}

impl Session {
    fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            gatherer: Gatherer::default(),
            from_client: Vec::new(),
            from_server: Vec::new(),
            to_client: Vec::new(),
            to_server: Vec::new(),
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            is_cut: false,
        }
    }

    async fn pump(
        &mut self,
        client: Stream,
        server: Stream,
        Switches { cut, darken }: &Switches,
    ) -> io::Result<()> {
        let (mut client_reads, mut client_writes) = tokio::io::split(client);
        let (mut server_reads, mut server_writes) = tokio::io::split(server);
        let mut gate = self.shared.gate.watch();
        let mut is_dark = self.shared.is_dark.subscribe();
        loop {
            let lit = !*is_dark.borrow_and_update();
            gate.mark_unchanged();
            if lit {
                self.look_at_client();
                self.let_statements_go();
                self.look_at_server();
            }
            if self.is_cut {
                return Ok(());
            }
            tokio::select! {
                n = client_reads.read_buf(&mut self.from_client), if lit => {
                    if n? == 0 { return Ok(()) }
                }
                n = server_reads.read_buf(&mut self.from_server), if lit => {
                    if n? == 0 {
                        // Its last words.
                        return client_writes.write_all(&self.to_client).await;
                    }
                }
                n = server_writes.write(&self.to_server), if lit && !self.to_server.is_empty() => {
                    drop(self.to_server.drain(..n?));
                }
                n = client_writes.write(&self.to_client), if lit && !self.to_client.is_empty() => {
                    drop(self.to_client.drain(..n?));
                }
                _ = gate.changed(), if !self.waiting.is_empty() => {}
                _ = is_dark.changed() => {}
                () = cut.notified() => return Ok(()),
                () = darken.notified() => {
                    cut.notified().await;
                    return Ok(());
                }
            }
        }
    }

    fn look_at_client(&mut self) {
        while let Some(message) = take_message(&mut self.from_client) {
            let n_bytes = message.bytes.len() as u64;
            self.shared.ledger.note(self.number, |view| view.bytes_up += n_bytes);
            // Passwords and copied rows belong to no statement.
            if matches!(message.kind(), b'p' | b'd' | b'c' | b'f' | b'X') {
                self.to_server.extend(message.bytes);
            } else if let Some(statement) = self.gatherer.add(&message) {
                if statement.executes {
                    self.shared.gate.hold(self.number, &statement.text);
                }
                self.waiting.push_back(statement);
            }
        }
    }

    fn let_statements_go(&mut self) {
        while let Some(first) = self.waiting.front() {
            if first.executes && !self.shared.gate.passes(self.number) {
                return;
            }
            let Some(statement) = self.waiting.pop_front() else { return };
            let loses_reply = self.shared.loses_reply(&statement);
            self.to_server.extend(&statement.bytes);
            let executes = statement.executes;
            self.in_flight.push_back(InFlight { executes, loses_reply });
            if executes {
                self.shared.ledger.note(self.number, |view| {
                    view.n_statements += 1;
                    *view.texts.entry(statement.text).or_default() += 1;
                });
            }
        }
    }

    fn look_at_server(&mut self) {
        while let Some(message) = take_message(&mut self.from_server) {
            if message.kind() == NOTIFICATION && self.shared.is_deaf.load(Ordering::Acquire) {
                continue;
            }
            let loses_reply = self.in_flight.front().is_some_and(|first| first.loses_reply);
            self.note_answer(&message);
            let is_end = message.status().is_some();
            if !loses_reply {
                self.to_client.extend(message.bytes);
            } else if is_end {
                self.shared.ledger.note(self.number, |view| view.n_replies_lost += 1);
                self.is_cut = true;
                return;
            }
        }
    }

    fn note_answer(&mut self, message: &Message) {
        let n_bytes = message.bytes.len() as u64;
        self.shared.ledger.note(self.number, |view| {
            view.bytes_down += n_bytes;
            view.errors.extend(message.sqlstate());
        });
        if let Some(process) = message.process() {
            self.shared.ledger.note(self.number, |view| view.process = Some(process));
            self.shared.gate.is_served_by(self.number, process);
        }
        let Some(status) = message.status() else { return };
        // The first one of a session answers nothing.
        if !self.in_flight.pop_front().is_some_and(|answered| answered.executes) {
            return;
        }
        self.shared.gate.answered(self.number);
        if status == b'I' {
            self.shared.ledger.note(self.number, |view| view.n_transactions += 1);
        }
    }
}
