//! What a client says, cut into statements.

use std::collections::HashMap;

use crate::frame::Message;

/// What a client sent until it waits for an answer: a simple query, or messages up to a Sync.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The query in the client's words; of several, the last one that is executed. Without one
    /// that is executed, the one that is prepared.
    pub text: String,
    /// Whether it executes something. The others only prepare or close.
    pub executes: bool,
    pub(super) bytes: Vec<u8>,
}

impl Statement {
    /// Whether this is the end of a transaction that is to take effect.
    #[must_use]
    pub fn is_commit(&self) -> bool {
        self.executes && self.text.trim().trim_end_matches(';').eq_ignore_ascii_case("commit")
    }
}

/// Gathers messages into statements, and remembers what was prepared under which name.
#[derive(Default)]
pub(super) struct Gatherer {
    prepared: HashMap<String, String>,
    bytes: Vec<u8>,
    text: String,
    executes: bool,
}

impl Gatherer {
    /// Takes the next message; gives the statement that it completes.
    pub(super) fn add(&mut self, message: &Message) -> Option<Statement> {
        self.bytes.extend(&message.bytes);
        match message.kind() {
            b'P' => {
                let (name, sql) = (message.text(0).to_owned(), message.text(1).to_owned());
                self.text.clone_from(&sql);
                self.prepared.insert(name, sql);
            }
            // Portal, then statement.
            b'B' => self.text = self.prepared.get(message.text(1)).cloned().unwrap_or_default(),
            b'E' => self.executes = true,
            b'C' if message.body().first() == Some(&b'S') => {
                self.prepared.remove(message.text(0).trim_start_matches('S'));
            }
            b'Q' => {
                message.text(0).clone_into(&mut self.text);
                self.executes = true;
                return Some(self.complete());
            }
            b'S' => return Some(self.complete()),
            _ => {}
        }
        None
    }

    fn complete(&mut self) -> Statement {
        Statement {
            text: std::mem::take(&mut self.text),
            executes: std::mem::take(&mut self.executes),
            bytes: std::mem::take(&mut self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(gatherer: &mut Gatherer, messages: &[(u8, &[u8])]) -> Vec<Statement> {
        let message = |(kind, body): &(u8, &[u8])| gatherer.add(&Message::new(*kind, body));
        messages.iter().filter_map(message).collect()
    }

    #[test]
    fn what_is_executed_is_known_by_the_text_it_was_prepared_with() {
        let mut gatherer = Gatherer::default();
        let prepare: &[(u8, &[u8])] =
            &[(b'P', b"s1\0select 1\0\0\0"), (b'D', b"Ss1\0"), (b'S', b"")];
        let [prepared] = &gather(&mut gatherer, prepare)[..] else { panic!("one statement") };
        assert!(!prepared.executes);
        let execute: &[(u8, &[u8])] =
            &[(b'B', b"\0s1\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")];
        let [executed] = &gather(&mut gatherer, execute)[..] else { panic!("one statement") };
        assert!(executed.executes);
        assert_eq!(executed.text, "select 1");
    }

    #[test]
    fn a_commit_is_known_in_any_spelling() {
        let mut gatherer = Gatherer::default();
        let queries: &[(u8, &[u8])] =
            &[(b'Q', b"commit\0"), (b'Q', b"COMMIT;\0"), (b'Q', b"select 'commit'\0")];
        let are: Vec<bool> =
            gather(&mut gatherer, queries).iter().map(Statement::is_commit).collect();
        assert_eq!(are, [true, true, false]);
    }
}
