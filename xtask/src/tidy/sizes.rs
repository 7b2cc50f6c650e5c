//! Nothing grows past one glance: files, functions and lines have limits.
//!
//! Tests are held to the same limits, because they are read more often than the code they test.

use super::Finding;
use super::rust_source::RustSource;
use super::tree::{SourceFile, Tree};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 60;
const LINE_CHARS_MAX: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.is_kind("rs") || file.is_kind("sql") {
            findings.extend(long_file(file));
            findings.extend(long_lines(file));
        }
        findings.extend(file.rust.iter().flat_map(|source| long_functions(file, source)));
    }
    findings
}

fn long_file(file: &SourceFile) -> Option<Finding> {
    let n_lines = file.text.lines().count();
    (n_lines > FILE_LINES_MAX).then(|| {
        let message = format!("file of {n_lines} lines, at most {FILE_LINES_MAX}");
        file.finding(FILE_LINES_MAX + 1, message)
    })
}

fn long_lines(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let n_chars = line.chars().count();
        if n_chars > LINE_CHARS_MAX {
            let message = format!("line of {n_chars} characters, at most {LINE_CHARS_MAX}");
            findings.push(file.finding(index + 1, message));
        }
    }
    findings
}

fn long_functions(file: &SourceFile, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in source.functions() {
        let n_lines = source.code[function.span.clone()].lines().count();
        if n_lines > FUNCTION_LINES_MAX {
            let name = function.name;
            let message = format!("`{name}` has {n_lines} lines, at most {FUNCTION_LINES_MAX}");
            findings.push(file.finding_at(function.span.start, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    fn function_of(n_lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    // why\n".repeat(n_lines - 2))
    }

    #[test]
    fn file_may_have_400_lines_and_no_more() {
        assert!(messages(check, &[("a.rs", &"\n".repeat(400))]).is_empty());
        let found = messages(check, &[("a.rs", &"\n".repeat(401))]);
        assert_eq!(found, ["a.rs:401: file of 401 lines, at most 400"]);
    }

    #[test]
    fn line_may_have_100_characters_and_no_more() {
        assert!(messages(check, &[("a.rs", &"é".repeat(100))]).is_empty());
        let found = messages(check, &[("a.rs", &format!("\n{}", "é".repeat(101)))]);
        assert_eq!(found, ["a.rs:2: line of 101 characters, at most 100"]);
    }

    #[test]
    fn function_may_have_60_lines_and_no_more() {
        assert!(messages(check, &[("a.rs", &function_of(60))]).is_empty());
        let found = messages(check, &[("a.rs", &function_of(61))]);
        assert_eq!(found, ["a.rs:1: `long` has 61 lines, at most 60"]);
    }

    #[test]
    fn compiler_output_of_compile_fail_tests_has_no_limit() {
        assert!(messages(check, &[("tests/ui/a.stderr", &"x".repeat(500))]).is_empty());
    }
}
