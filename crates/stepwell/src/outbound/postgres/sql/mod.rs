//! The statements of the store, a file per table, and their texts under the store's schema.

use super::rows::{TABLES, words};
use crate::outbound::sql::{blocks, fill_in, number_of};

/// The schema that holds the tables, unless another is given; statements are written for it.
pub(crate) const SCHEMA: &str = "stepwell";

/// A file of statements.
#[derive(Clone, Copy)]
pub(crate) struct File(usize);

pub(crate) const ATTEMPT: File = File(0);
pub(crate) const DEFINITION: File = File(1);
pub(crate) const EVENT: File = File(2);
pub(crate) const LEADER: File = File(3);
pub(crate) const MEMO: File = File(4);
pub(crate) const PAYLOAD: File = File(5);
pub(crate) const POSITION: File = File(6);
pub(crate) const QUEUE: File = File(7);
pub(crate) const RUN: File = File(8);
pub(crate) const SESSION: File = File(9);
pub(crate) const SIGNAL: File = File(10);
pub(crate) const TASK: File = File(11);
pub(crate) const TENANT: File = File(12);
pub(crate) const TIMER: File = File(13);
pub(crate) const WAIT: File = File(14);
pub(crate) const WORKER: File = File(15);
pub(crate) const PROGRESS: File = File(16);
pub(crate) const PARKED: File = File(17);

const FILES: [&str; 18] = [
    include_str!("attempt.sql"),
    include_str!("definition.sql"),
    include_str!("event.sql"),
    include_str!("leader.sql"),
    include_str!("memo.sql"),
    include_str!("payload.sql"),
    include_str!("position.sql"),
    include_str!("queue.sql"),
    include_str!("run.sql"),
    include_str!("session.sql"),
    include_str!("signal.sql"),
    include_str!("task.sql"),
    include_str!("tenant.sql"),
    include_str!("timer.sql"),
    include_str!("wait.sql"),
    include_str!("worker.sql"),
    include_str!("progress.sql"),
    include_str!("parked.sql"),
];

/// A statement of the store: where it stands among all of them, so that its text is found at once.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    file: usize,
    number: usize,
}

impl File {
    /// The statement of this name; in a constant, a name that is not there does not compile.
    pub(crate) const fn named(self, name: &str) -> Sql {
        Sql { file: self.0, number: number_of(FILES[self.0], name) }
    }
}

/// The texts of all statements, as they are sent.
pub(crate) struct Texts(Vec<Vec<(&'static str, String)>>);

impl Texts {
    /// Fills in every statement once, for tables that lie in this schema.
    pub(crate) fn new(schema: &str) -> Self {
        let words = words();
        let text = |(name, block): (&'static str, &'static str)| {
            (name, in_schema(&filled(name, block, &words), schema))
        };
        Self(FILES.iter().map(|file| blocks(file).map(text).collect()).collect())
    }

    pub(crate) fn of(&self, sql: Sql) -> &str {
        &self.0[sql.file][sql.number].1
    }

    /// Every statement by name.
    #[cfg(feature = "testing")]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().flatten().map(|(name, text)| (*name, text.as_str()))
    }
}

/// A statement without its comments, behind the name by which the server's own views show it.
fn filled(name: &str, block: &str, words: &[(&'static str, String)]) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("--");
    let code: Vec<&str> = block.trim_end().lines().filter(is_code).collect();
    let mut text = format!("-- {name}\n{}", code.join("\n"));
    for (word, meaning) in words {
        text = text.replace(word, meaning);
    }
    fill_in(&text, TABLES)
}

/// A statement for tables in a schema. Its name was checked to be plain, but may be a word of SQL.
pub(crate) fn in_schema(sql: &str, schema: &str) -> String {
    if schema == SCHEMA {
        return sql.to_owned();
    }
    sql.replace("stepwell.", &format!("\"{schema}\"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_sent_with_its_name_its_columns_and_its_schema() {
        let texts = Texts::new("other");
        let expected = "-- read_events\nselect event.run, event.number, event.at, event.node, \
            event.attempt, event.kind from \"other\".event where run = $1 order by number";
        assert_eq!(texts.of(EVENT.named("read_events")), expected);
    }

    #[test]
    fn no_two_statements_have_one_name() {
        let mut names: Vec<&str> =
            FILES.iter().flat_map(|file| blocks(file)).map(|(name, _)| name).collect();
        names.sort_unstable();
        let n_names = names.len();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
