//! Every promise names the tests that hold it.
//!
//! `docs/requirements.md` is a table `| id | promise | tests |`. The last cell holds the names of
//! tests in backticks, or the word `planned` while there are none. Names that no longer exist are
//! findings, so that a renamed test cannot leave a promise without its proof.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::Finding;
use super::rust_source::is_test_path;
use super::sleeps::TESTING_FOLDER;
use super::tree::{SourceFile, Tree};

const TABLE: &str = "docs/requirements.md";
const PLANNED: &str = "planned";

/// The ids that must have a row, as letter and numbers.
const PROMISES: &[(char, RangeInclusive<u32>)] =
    &[('R', 0..=29), ('G', 1..=15), ('L', 1..=13), ('D', 1..=13)];

struct Row<'text> {
    id: &'text str,
    tests: &'text str,
    line: usize,
}

/// The name of each test function, with the modules that a qualified name may give.
type Tests<'tree> = BTreeMap<&'tree str, BTreeSet<&'tree str>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(table) = tree.file(TABLE) else {
        let message = "missing: the table of promises and their tests".to_owned();
        return vec![Finding { path: TABLE.to_owned(), line: 1, message }];
    };
    let tests = collect_tests(tree);
    let rows = rows(&table.text);
    let mut findings = missing_and_repeated(table, &rows);
    findings.extend(rows.iter().flat_map(|row| check_row(table, row, &tests)));
    findings
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if let [id, _, .., tests] = cells.as_slice()
            && is_id(id)
        {
            rows.push(Row { id, tests, line: index + 1 });
        }
    }
    rows
}

/// A capital letter and a number, as in `R15`.
fn is_id(cell: &str) -> bool {
    let number = cell.strip_prefix(|first: char| first.is_ascii_uppercase());
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn missing_and_repeated(table: &SourceFile, rows: &[Row<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert(row.id) {
            findings.push(table.finding(row.line, format!("{} has a second row", row.id)));
        }
    }
    for (letter, numbers) in PROMISES {
        for number in numbers.clone() {
            let id = format!("{letter}{number}");
            if !seen.contains(id.as_str()) {
                findings.push(table.finding(1, format!("{id} has no row")));
            }
        }
    }
    findings
}

fn check_row(table: &SourceFile, row: &Row<'_>, tests: &Tests<'_>) -> Vec<Finding> {
    let names: Vec<&str> =
        row.tests.split('`').skip(1).step_by(2).filter(|name| *name != PLANNED).collect();
    if names.is_empty() && !row.tests.contains(PLANNED) {
        let message = format!("{} names no test; name one or say `{PLANNED}`", row.id);
        return vec![table.finding(row.line, message)];
    }
    names
        .into_iter()
        .filter(|name| !exists(name, tests))
        .map(|name| table.finding(row.line, format!("{}: there is no test `{name}`", row.id)))
        .collect()
}

/// `name` alone, or with modules before it of which one is the file or folder of the test.
fn exists(name: &str, tests: &Tests<'_>) -> bool {
    let segments: Vec<&str> = name.split("::").collect();
    let Some((function, modules)) = segments.split_last() else {
        return false;
    };
    let Some(homes) = tests.get(function) else {
        return false;
    };
    modules.is_empty() || modules.iter().any(|module| homes.iter().any(|home| fits(module, home)))
}

/// `stepwell_claims` may stand for the file `claims.rs` of the crate `stepwell`.
fn fits(module: &str, home: &str) -> bool {
    module.strip_suffix(home).is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

fn collect_tests(tree: &Tree) -> Tests<'_> {
    let mut tests = Tests::new();
    for (file, source) in tree.rust_files() {
        for function in source.functions() {
            let is_suite = file.path.starts_with(TESTING_FOLDER) || is_test_path(&file.path);
            if is_suite || source.is_test(function.span.start) {
                tests.entry(function.name).or_default().extend(homes(&file.path));
            }
        }
    }
    tests
}

/// The names of the file and of its folders.
fn homes(path: &str) -> impl Iterator<Item = &str> {
    path.trim_end_matches(".rs").split('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    /// A table with a row for every promise, of which R15 has the given tests.
    fn table(r15_tests: &str) -> String {
        let mut lines = vec![
            "# Promises".to_owned(),
            String::new(),
            "| id | promise | tests |".to_owned(),
            "|---|---|---|".to_owned(),
            format!("| R15 | fan-in | {r15_tests} |"),
        ];
        for (letter, numbers) in PROMISES {
            let others = numbers.clone().filter(|number| (*letter, *number) != ('R', 15));
            lines.extend(others.map(|number| format!("| {letter}{number} | it holds | planned |")));
        }
        lines.join("\n")
    }

    #[track_caller]
    fn check_r15(r15_tests: &str, expected: &[&str]) {
        let suite = "crates/stepwell/src/testing/conformance/fan_in.rs";
        let files = [
            (TABLE, table(r15_tests).as_str()),
            ("crates/stepwell/tests/claims.rs", "#[test]\nfn claims_once() {}"),
            ("crates/stepwell/src/run.rs", "fn claim() {}\n#[cfg(test)]\nmod t { fn inner() {} }"),
            (suite, "pub async fn child_is_ready_once(store: S) {}"),
        ]
        .map(|(path, text)| (path, text.to_owned()));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
        assert_eq!(messages(check, &files), expected);
    }

    #[test]
    fn existing_tests_and_plans_are_accepted() {
        check_r15("planned", &[]);
        check_r15("`claims_once`, `child_is_ready_once`", &[]);
        check_r15("`stepwell_claims::claims_once`, `run::t::inner`, PostgreSQL planned", &[]);
    }

    #[test]
    fn tests_that_do_not_exist_are_found() {
        let missing = "docs/requirements.md:5: R15: there is no test";
        check_r15("`claims_twice`", &[&format!("{missing} `claims_twice`")]);
        check_r15("`other::claims_once`", &[&format!("{missing} `other::claims_once`")]);
    }

    #[test]
    fn production_functions_are_no_tests() {
        check_r15("`claim`", &["docs/requirements.md:5: R15: there is no test `claim`"]);
    }

    #[test]
    fn row_without_tests_is_found() {
        let message = "docs/requirements.md:5: R15 names no test; name one or say `planned`";
        check_r15("soon", &[message]);
        check_r15("", &[message]);
    }

    #[test]
    fn missing_and_repeated_rows_are_found() {
        let text = table("planned").replace("| D13 |", "| D12 |");
        let line = text.lines().count();
        let found = messages(check, &[(TABLE, &text)]);
        assert_eq!(
            found,
            [format!("{TABLE}:{line}: D12 has a second row"), format!("{TABLE}:1: D13 has no row"),]
        );
    }

    #[test]
    fn missing_table_is_found() {
        assert_eq!(
            messages(check, &[]),
            ["docs/requirements.md:1: missing: the table of promises and their tests"]
        );
    }
}
