//! SQL kept as SQL, for both databases: a file per table, a block per statement.
//!
//! A block begins with a line such as `-- name: lock_runs` and is cut out of its file when the
//! crate is compiled, so that a name which is not there does not compile. Words in braces stand
//! for what Rust says once: `{run}` for the columns of a table, `{task.RUNNING}` for the number
//! of a state. They are filled in before a statement is prepared.

use stepwell_core::run::{AttemptState, MemoState, RunStatus, TaskState};

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

/// How many statements stand in a file before the one of this name.
///
/// # Panics
/// When the file has no such block; in a constant, that is an error of the compiler.
#[cfg(feature = "postgres")]
pub(crate) const fn number_of(file: &'static str, name: &str) -> usize {
    let bytes = file.as_bytes();
    let (mut at, mut number) = (0, 0);
    while at < bytes.len() {
        if is_at(bytes, at, MARK) {
            let end = at + MARK.len() + name.len();
            if is_at(bytes, at + MARK.len(), name.as_bytes()) && is_at(bytes, end, b"\n") {
                return number;
            }
            number += 1;
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

/// Every statement of a file with its name, in order.
#[cfg(any(test, feature = "postgres"))]
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
    pub(crate) kind: &'static str,
    /// Whether rows are found by it.
    pub(crate) is_key: bool,
    /// Whether a decision may change it after the row was inserted.
    pub(crate) is_changed: bool,
}

impl Column {
    /// A column by which rows are found; it keeps its value.
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
    #[cfg(any(test, feature = "sqlite"))]
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

    /// What a word stands for, if it is about this table.
    ///
    /// `{run}` lists its columns, `{run_names}` the same without the table's name. `{run_set}` sets
    /// those that change from a row `c`, `{run_excluded}` from the row that was to be inserted,
    /// `{run_updates}` by parameters that follow those of the key. `{run_values}` are parameters
    /// with a value for each column, `{run_arrays}` with a list of values; `{run_change_names}` and
    /// `{run_change_arrays}` are the same for the columns that change, after those of the key.
    fn word(&self, word: &str) -> Option<String> {
        let all = || self.columns.iter();
        let changed = || all().filter(|column| column.is_changed);
        let change = || all().filter(|column| column.is_key).chain(changed());
        match word.strip_prefix(self.name)? {
            "" => Some(list(all(), |column| format!("{}.{}", self.name, column.name))),
            "_names" => Some(list(all(), |column| column.name.to_owned())),
            "_values" => Some(list(all(), |_| "?".to_owned())),
            "_updates" => Some(self.updates()),
            "_arrays" => Some(arrays(all())),
            "_change_names" => Some(list(change(), |column| column.name.to_owned())),
            "_change_arrays" => Some(arrays(change())),
            "_set" => Some(list(changed(), |column| format!("{0} = c.{0}", column.name))),
            "_excluded" => Some(list(changed(), |c| format!("{0} = excluded.{0}", c.name))),
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

fn list<'c>(columns: impl Iterator<Item = &'c Column>, each: impl Fn(&Column) -> String) -> String {
    columns.map(each).collect::<Vec<_>>().join(", ")
}

/// A parameter for each column, with a list of values.
pub(crate) fn arrays<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let array = |(ix, column): (usize, &Column)| format!("${}::{}[]", ix + 1, column.kind);
    columns.enumerate().map(array).collect::<Vec<_>>().join(", ")
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

/// The states of a worker: it takes part, it left while it held tasks, it was found dead, it left
/// and holds nothing. Their numbers are their places here.
const WORKER_STATES: &[&str] = &["ALIVE", "LEAVING", "DEAD", "GONE"];

/// The number of a state: `task.RUNNING`, `run.ENDING`, `attempt.LOST`, `memo.GIVEN`,
/// `worker.GONE`.
fn state(word: &str) -> Option<String> {
    let (of, name) = word.split_once('.')?;
    let number = match of {
        "task" => TaskState::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "run" => RunStatus::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "attempt" => AttemptState::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
        "memo" => MemoState::ALL.iter().find(|s| s.as_str() == name).map(|s| *s as usize),
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
    #[cfg(feature = "postgres")]
    fn statements_are_numbered_in_the_order_of_their_file() {
        let numbers: Vec<usize> = blocks(FILE).map(|(name, _)| number_of(FILE, name)).collect();
        assert_eq!(numbers, [0, 1]);
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
        assert_eq!(fill_in("{run.ENDING} {attempt.LOST} {worker.GONE}", &tables), "1 4 3");
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
    fn words_stand_for_lists_of_values() {
        const COLUMNS: &[Column] = &[
            Column::kept("id", "text"),
            Column::key("key", "uuid"),
            Column::changed("status", "smallint"),
        ];
        let tables = [Table { name: "run", columns: COLUMNS }];
        let filled = |text: &str| fill_in(text, &tables);
        assert_eq!(filled("{run_arrays}"), "$1::text[], $2::uuid[], $3::smallint[]");
        assert_eq!(filled("{run_change_names}"), "key, status");
        assert_eq!(filled("{run_change_arrays}"), "$1::uuid[], $2::smallint[]");
    }

    #[test]
    #[should_panic(expected = "{run.SLEEPING}")]
    fn an_unknown_word_is_refused() {
        fill_in("{run.SLEEPING}", &[]);
    }
}
