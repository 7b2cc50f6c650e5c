//! SQL kept as SQL, for both databases: a file per table, a block per statement.
//!
//! A block begins with a line such as `-- name: lock_runs` and is cut out of its file when the
//! crate is compiled, so that a name which is not there does not compile. Words in braces stand
//! for what Rust says once: `{run}` for the columns of a table, `{task.RUNNING}` for the number
//! of a state. They are filled in before a statement is prepared.

use stepwell_core::run::{AttemptState, RunStatus, TaskState};

/// How a block begins. The name follows, and the end of the line.
const MARK: &[u8] = b"-- name: ";

/// The statement of this name in a file of statements.
///
/// # Panics
/// When the file has no such block; in a constant, that is an error of the compiler.
pub(crate) const fn named(file: &'static str, name: &str) -> &'static str {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if is_at(bytes, at, MARK) && is_at(bytes, at + MARK.len(), name.as_bytes()) {
            let begin = at + MARK.len() + name.len();
            if begin < bytes.len() && bytes[begin] == b'\n' {
                let (block, _) = file.split_at(next_block(bytes, begin));
                let (_, block) = block.split_at(begin + 1);
                return block;
            }
        }
        at = next_line(bytes, at);
    }
    panic!("no statement of this name")
}

const fn is_at(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    let mut ix = 0;
    while ix < wanted.len() {
        if at + ix >= bytes.len() || bytes[at + ix] != wanted[ix] {
            return false;
        }
        ix += 1;
    }
    true
}

/// Where the line after this place begins.
const fn next_line(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    at + 1
}

/// Where the block after this place begins, or the file ends.
const fn next_block(bytes: &[u8], at: usize) -> usize {
    let mut at = next_line(bytes, at);
    while at < bytes.len() {
        if is_at(bytes, at, MARK) {
            return at;
        }
        at = next_line(bytes, at);
    }
    bytes.len()
}

/// Every statement of a file with its name, for tests that hold each against the schema.
#[cfg(test)]
pub(crate) fn blocks(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mark = std::str::from_utf8(MARK).expect("the mark is text");
    let begins = file.match_indices(mark).map(move |(at, _)| &file[at + mark.len()..]);
    begins.filter_map(move |block| {
        let (name, _) = block.split_once('\n')?;
        Some((name, named(file, name)))
    })
}

/// A column of a table, as statements name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Its type in the database.
    #[cfg_attr(
        feature = "sqlite",
        expect(dead_code, reason = "PostgreSQL casts arrays by it, and moves to it file by file")
    )]
    pub(crate) kind: &'static str,
    /// Whether a row is found by it.
    pub(crate) is_key: bool,
    /// Whether a decision may change it after the row was inserted.
    pub(crate) is_changed: bool,
}

impl Column {
    /// A column that rows are found by when they are updated.
    pub(crate) const fn key(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, is_key: true, is_changed: false }
    }

    /// A column that keeps its first value.
    pub(crate) const fn kept(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, is_key: false, is_changed: false }
    }

    /// A column that decisions change.
    pub(crate) const fn changed(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, is_key: false, is_changed: true }
    }
}

/// A table whose columns are listed once, for all statements that name them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

impl Table {
    /// The index by which a column is read from a row that lists them all.
    ///
    /// # Panics
    /// When there is no such column; in a constant, that is an error of the compiler.
    pub(crate) const fn index(&self, column: &str) -> usize {
        let mut ix = 0;
        while ix < self.columns.len() {
            let name = self.columns[ix].name.as_bytes();
            if name.len() == column.len() && is_at(name, 0, column.as_bytes()) {
                return ix;
            }
            ix += 1;
        }
        panic!("no column of this name")
    }

    /// What a word stands for, if it is about this table: `{run}` lists its columns,
    /// `{run_names}` the same without the table's name, `{run_values}` a parameter for each,
    /// `{run_updates}` sets those that change by parameters that follow those of the keys,
    /// `{run_set}` sets them from a row `c`.
    fn word(&self, word: &str) -> Option<String> {
        let list = |each: &dyn Fn(&Column) -> String, changed_only: bool| {
            let columns = self.columns.iter().filter(|column| column.is_changed || !changed_only);
            columns.map(each).collect::<Vec<_>>().join(", ")
        };
        match word.strip_prefix(self.name)? {
            "" => Some(list(&|column| format!("{}.{}", self.name, column.name), false)),
            "_names" => Some(list(&|column| column.name.to_owned(), false)),
            "_values" => Some(list(&|_| "?".to_owned(), false)),
            "_updates" => Some(self.updates()),
            "_set" => Some(list(&|column| format!("{0} = c.{0}", column.name), true)),
            _ => None,
        }
    }

    fn updates(&self) -> String {
        let n_keys = self.columns.iter().filter(|column| column.is_key).count();
        let changed = self.columns.iter().filter(|column| column.is_changed);
        let set = changed.zip(n_keys + 1..).map(|(column, n)| format!("{} = ?{n}", column.name));
        set.collect::<Vec<_>>().join(", ")
    }
}

/// Fills in the words of a statement. What is in braces and is no word stays as it is.
///
/// # Panics
/// When a word is unknown: every statement is prepared by a test.
pub(crate) fn fill_in(text: &str, tables: &[Table]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, word, after)) = next_word(rest) {
        filled.push_str(before);
        let meaning = tables.iter().find_map(|table| table.word(word)).or_else(|| state(word));
        match meaning {
            Some(meaning) => filled.push_str(&meaning),
            None => panic!("the word {{{word}}} of a statement is unknown"),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The first word in braces, with what stands before and after it.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let is_word = |inside: &str| {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '.';
        !inside.is_empty() && inside.chars().all(is_letter)
    };
    text.match_indices('{').find_map(|(open, _)| {
        let inside = &text[open + 1..];
        let close = inside.find('}')?;
        let word = &inside[..close];
        is_word(word).then(|| (&text[..open], word, &inside[close + 1..]))
    })
}

/// The states of a worker: it takes part, it went by itself, it was found dead or left nothing
/// behind. Their numbers are their places here.
const WORKER_STATES: &[&str] = &["ALIVE", "GONE", "DEAD"];

/// The number of a state: `task.RUNNING`, `run.ENDING`, `attempt.LOST`, `worker.GONE`.
fn state(word: &str) -> Option<String> {
    let (of, name) = word.split_once('.')?;
    let number = match of {
        "task" => TaskState::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "run" => RunStatus::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "attempt" => AttemptState::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "worker" => WORKER_STATES.iter().position(|state| *state == name),
        _ => None,
    };
    number.map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- Words about the file.\n\n-- name: read_run\nselect {run}\nfrom run\n\n\
        -- name: read_runs\n-- Index: key of run.\nselect 1\n";

    #[test]
    fn a_statement_is_cut_out_by_its_whole_name() {
        const READ_RUN: &str = named(FILE, "read_run");
        assert_eq!(READ_RUN, "select {run}\nfrom run\n\n");
        assert_eq!(named(FILE, "read_runs"), "-- Index: key of run.\nselect 1\n");
        let names: Vec<&str> = blocks(FILE).map(|(name, _)| name).collect();
        assert_eq!(names, ["read_run", "read_runs"]);
    }

    #[test]
    #[should_panic(expected = "no statement of this name")]
    fn a_name_that_is_not_there_is_refused() {
        let _ = named(FILE, "read_ru");
    }

    #[test]
    fn words_stand_for_columns_and_states() {
        const COLUMNS: &[Column] =
            &[Column::kept("key", "uuid"), Column::changed("status", "smallint")];
        let tables = [Table { name: "run", columns: COLUMNS }];
        let text = "insert {run_names} select {run} set {run_set} where '{}' {task.RUNNING}";
        let filled = "insert key, status select run.key, run.status set status = c.status \
            where '{}' 2";
        assert_eq!(fill_in(text, &tables), filled);
        assert_eq!(fill_in("{run.ENDING} {attempt.LOST} {worker.GONE}", &tables), "1 4 1");
    }

    #[test]
    fn parameters_of_an_update_follow_those_of_its_keys() {
        const RUN: Table = Table {
            name: "run",
            columns: &[
                Column::key("no", "integer"),
                Column::kept("id", "text"),
                Column::changed("status", "integer"),
                Column::changed("n_open", "integer"),
            ],
        };
        assert_eq!(fill_in("{run_updates}", &[RUN]), "status = ?2, n_open = ?3");
        assert_eq!(fill_in("{run_values}", &[RUN]), "?, ?, ?, ?");
        assert_eq!(const { RUN.index("status") }, 2);
    }

    #[test]
    #[should_panic(expected = "no column of this name")]
    fn a_column_that_is_not_there_is_refused() {
        const RUN: Table = Table { name: "run", columns: &[Column::kept("status", "integer")] };
        let _ = RUN.index("stat");
    }

    #[test]
    #[should_panic(expected = "{run.SLEEPING}")]
    fn an_unknown_word_is_refused() {
        fill_in("{run.SLEEPING}", &[]);
    }
}
