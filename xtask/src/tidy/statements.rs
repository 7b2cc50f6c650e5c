//! Statements of the databases name states, and rows are read in one place.
//!
//! A number in a statement would be a second list of states, and a column read by its position
//! outside of `rows/` a second list of columns. Migrations write down numbers once and for all.

use super::Finding;
use super::tree::{SourceFile, Tree};

const STORES: &str = "crates/stepwell/src/outbound/";

/// Columns that hold states.
const STATES: &[&str] = &["state", "status"];

/// How a column is read: a call that ends with its position.
const READS: &[&str] = &["get(", "get_ref(", "(row, ", "(&row, "];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.starts_with(STORES)) {
        if file.is_kind("sql") && file.path.contains("/sql/") {
            findings.extend(state_numbers(file));
        }
        if !file.path.contains("/rows/") {
            findings.extend(positional_reads(file));
        }
    }
    findings
}

fn state_numbers(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let code = line.split("--").next().unwrap_or_default();
        if compares_state_with_number(code) {
            let message = "a state by its number: write {task.QUEUED} or the like";
            findings.push(file.finding(index + 1, message));
        }
    }
    findings
}

/// Whether a state is followed by an operator and a number: `state = 2`, `status < 2`,
/// `state in (1, 2)`, `case state when 2`.
fn compares_state_with_number(code: &str) -> bool {
    let spaced: String = code
        .chars()
        .flat_map(|c| if "=<>(),;".contains(c) { vec![' ', c, ' '] } else { vec![c] })
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let is_state = |word: &str| STATES.contains(&word.rsplit('.').next().unwrap_or(word));
    let is_operator =
        |word: &&&str| ["=", "<", ">", "(", "in", "not", "between", "when"].contains(*word);
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    words.iter().enumerate().any(|(ix, word)| {
        let rest = &words[ix + 1..];
        let n_operators = rest.iter().take_while(is_operator).count();
        is_state(word) && n_operators > 0 && rest.get(n_operators).is_some_and(|w| is_number(w))
    })
}

fn positional_reads(file: &SourceFile) -> Vec<Finding> {
    let Some(source) = &file.rust else { return Vec::new() };
    let mut findings = Vec::new();
    for read in READS {
        for (offset, _) in source.code.match_indices(read) {
            let rest = &source.code[offset + read.len()..];
            let n_digits = rest.chars().take_while(char::is_ascii_digit).count();
            let is_read = n_digits > 0 && rest[n_digits..].starts_with(')');
            if is_read && !source.is_test(offset) {
                let message = "a column by its position: read rows in rows/";
                findings.push(file.finding_at(offset, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    const SQL: &str = "crates/stepwell/src/outbound/sqlite/sql/task.sql";
    const RUST: &str = "crates/stepwell/src/outbound/postgres/claims.rs";

    #[test]
    fn statements_name_states_and_never_number_them() {
        for text in [
            "where task.state = 2",
            "where state<>3",
            "set status =0",
            "where status < 2 and one",
            "where state in (1, 2)",
            "case state when 2 then 1 end",
            "where state not in (1)",
            "where task.state between 1 and 3",
        ] {
            assert_eq!(messages(check, &[(SQL, text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_of_a_state_is_left_alone() {
        for text in [
            "where task.state = {task.RUNNING}",
            "set state = c.state, n_unmet = 2",
            "where state = ?1 limit 2",
            "-- state = 2 is told in a comment",
            "where estate = 2",
        ] {
            assert!(messages(check, &[(SQL, text)]).is_empty(), "{text}");
        }
        let migration = "crates/stepwell/src/outbound/sqlite/schema/migrations/0001_tables.sql";
        assert!(messages(check, &[(migration, "check (state = 2)")]).is_empty());
    }

    #[test]
    fn rows_are_read_by_position_in_their_own_folder_only() {
        for text in [
            "fn f(row: &Row) { row.get(3) }",
            "fn f(row: &Row) { row.try_get(0)? }",
            "fn f(row: &Row) { count(row, 12)? }",
            "fn f(row: Row) { unsigned(&row, 1)? }",
        ] {
            assert_eq!(messages(check, &[(RUST, text)]).len(), 1, "{text}");
            let rows = "crates/stepwell/src/outbound/postgres/rows/run.rs";
            assert!(messages(check, &[(rows, text)]).is_empty(), "{text}");
        }
        for text in ["fn f() { list.get(ix) }", "fn f() { count(row, Col::Status) }"] {
            assert!(messages(check, &[(RUST, text)]).is_empty(), "{text}");
        }
    }
}
