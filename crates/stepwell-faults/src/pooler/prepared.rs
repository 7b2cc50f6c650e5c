//! Prepared statements of clients on connections that are not theirs.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::frame::Message;

/// What becomes of prepared statements between two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedStatements {
    /// They are prepared again on whatever connection the client gets, as newer poolers do.
    Kept,
    /// They stay on the connection on which they were made, as with older poolers.
    LeftBehind,
}

/// An answer that something was prepared, which is still to come.
pub(super) struct Preparing {
    /// The name at the server.
    pub(super) name: String,
    /// Whether the answer is for us and not for the client.
    pub(super) is_own: bool,
}

impl Preparing {
    fn by(message: &Message, is_own: bool) -> Self {
        Self { name: message.text(0).to_owned(), is_own }
    }
}

/// What one client has prepared.
pub(super) struct Prepared {
    client: u64,
    mode: PreparedStatements,
    /// The messages that prepared them, by the client's names.
    made: HashMap<String, Message>,
}

impl Prepared {
    pub(super) fn new(client: u64, mode: PreparedStatements) -> Self {
        Self { client, mode, made: HashMap::new() }
    }

    /// The messages as this server connection has to hear them, and what they prepare on it.
    pub(super) fn translate(
        &mut self,
        messages: Vec<Message>,
        known: &mut BTreeSet<String>,
    ) -> (Vec<u8>, VecDeque<Preparing>) {
        let (mut said, mut expected) = (Vec::new(), VecDeque::new());
        for message in messages {
            let message = match self.mode {
                PreparedStatements::LeftBehind => message,
                PreparedStatements::Kept => {
                    self.remember(&message);
                    if let Some(again) = self.missing(&message, known) {
                        expected.push_back(Preparing::by(&again, true));
                        said.extend(again.bytes);
                    }
                    self.renamed(&message, known)
                }
            };
            if message.kind() == b'P' {
                expected.push_back(Preparing::by(&message, false));
            }
            said.extend(message.bytes);
        }
        (said, expected)
    }

    fn remember(&mut self, message: &Message) {
        if message.kind() == b'P' && !message.text(0).is_empty() {
            self.made.insert(message.text(0).to_owned(), message.clone());
        }
    }

    /// The message that prepares what this one needs and the connection lacks.
    fn missing(&self, message: &Message, known: &mut BTreeSet<String>) -> Option<Message> {
        let name = match message.kind() {
            b'B' => message.text(1),
            b'D' => message.text(0).strip_prefix('S')?,
            _ => return None,
        };
        let made = self.made.get(name)?;
        (!known.contains(&self.name_at_server(name))).then(|| self.renamed(made, known))
    }

    /// The message with the name that the statement has at the server: clients must not meet in
    /// their names.
    fn renamed(&self, message: &Message, known: &mut BTreeSet<String>) -> Message {
        let body = message.body();
        let (before, name) = match message.kind() {
            b'P' => (0, message.text(0)),
            b'B' => (message.text(0).len() + 1, message.text(1)),
            b'D' | b'C' if body.first() == Some(&b'S') => (1, &message.text(0)[1..]),
            _ => return message.clone(),
        };
        if name.is_empty() {
            return message.clone();
        }
        let at_server = self.name_at_server(name);
        let mut renamed = body[..before].to_vec();
        renamed.extend(at_server.as_bytes());
        renamed.extend(&body[before + name.len()..]);
        match message.kind() {
            b'P' => _ = known.insert(at_server),
            b'C' => _ = known.remove(&at_server),
            _ => {}
        }
        Message::new(message.kind(), &renamed)
    }

    fn name_at_server(&self, name: &str) -> String {
        format!("client{}_{name}", self.client)
    }
}
