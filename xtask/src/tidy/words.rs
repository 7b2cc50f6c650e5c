//! Words that must not stand in the tree.
//!
//! Names that say nothing about what they hold, marks of unfinished work, and paths that exist on
//! one machine only. The words are written in two halves here, because this file is checked too.

use super::Finding;
use super::rust_source::{RustSource, is_name_byte, is_test_path};
use super::tree::{SourceFile, Tree};

/// A module or type with such a name collects whatever has no home.
const EMPTY_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "managers", "util", "utils"];

const UNFINISHED_MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Searched in code only: documents may speak about them.
const UNFINISHED_CODE: &[&str] =
    &[concat!("todo", "!"), concat!("unimplemented", "!"), concat!("#[", "ignore")];

/// Found where a path begins, so that a web address or a folder of the same name may contain them.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("../", "shared"),
];

const TYPE_KEYWORDS: &[&str] = &["enum", "struct", "trait", "type", "union"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !is_foreign(&file.path)) {
        findings.extend(marks(file, &file.text, UNFINISHED_MARKS, "finish it or drop it"));
        findings.extend(machine_paths(file));
        if !is_test_path(&file.path) {
            findings.extend(empty_file_name(file));
        }
        if let Some(source) = &file.rust {
            let code = &source.code;
            findings.extend(marks(file, code, UNFINISHED_CODE, "finish it or drop it"));
            findings.extend(empty_item_names(file, source));
        }
    }
    findings
}

/// Text that others wrote word for word.
fn is_foreign(path: &str) -> bool {
    path == "Cargo.lock" || path.starts_with("LICENSE-")
}

fn marks(file: &SourceFile, text: &str, marks: &[&str], advice: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mark in marks {
        for (offset, _) in text.match_indices(mark) {
            if is_whole_word(text, offset, mark.len()) {
                findings.push(file.finding_at(offset, format!("`{mark}`: {advice}")));
            }
        }
    }
    findings
}

fn is_whole_word(text: &str, offset: usize, length: usize) -> bool {
    let bytes = text.as_bytes();
    let ends_in_name = is_name_byte(bytes[offset + length - 1]);
    let goes_on = bytes.get(offset + length).is_some_and(|byte| is_name_byte(*byte));
    let began_before = offset > 0 && is_name_byte(bytes[offset - 1]);
    let begins_as_name = is_name_byte(bytes[offset]);
    !(begins_as_name && began_before || ends_in_name && goes_on)
}

fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for machine_path in MACHINE_PATHS {
        for (offset, _) in file.text.match_indices(machine_path) {
            let before = file.text[..offset].chars().next_back();
            let is_inside = before.is_some_and(|c| c.is_alphanumeric() || "._-*}/".contains(c));
            if !is_inside {
                let message = format!("`{machine_path}` exists on one machine only");
                findings.push(file.finding_at(offset, message));
            }
        }
    }
    findings
}

fn empty_file_name(file: &SourceFile) -> Option<Finding> {
    if !file.is_kind("rs") && !file.is_kind("sql") {
        return None;
    }
    let stem = file.path.rsplit_once('.').map_or(file.path.as_str(), |(stem, _)| stem);
    let name = stem.split('/').find(|part| has_empty_word(part))?;
    Some(file.finding(1, format!("the file name `{name}` does not say what it holds")))
}

fn empty_item_names(file: &SourceFile, source: &RustSource) -> Vec<Finding> {
    let modules = source.items_after("mod").into_iter().filter(|name| has_empty_word(name.text));
    let types = TYPE_KEYWORDS
        .iter()
        .flat_map(|keyword| source.items_after(keyword))
        .filter(|name| EMPTY_NAMES.contains(&last_camel_word(name.text).as_str()));
    modules
        .chain(types)
        .filter(|name| !source.is_test(name.offset))
        .map(|name| {
            let message = format!("the name `{}` does not say what it holds", name.text);
            file.finding_at(name.offset, message)
        })
        .collect()
}

fn has_empty_word(snake_name: &str) -> bool {
    snake_name.split(['_', '-']).any(|word| EMPTY_NAMES.contains(&word))
}

/// `RunManager` ends in `manager`.
fn last_camel_word(name: &str) -> String {
    let start = name.rfind(char::is_uppercase).unwrap_or(0);
    name[start..].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    #[test]
    fn marks_of_unfinished_work_are_found_in_any_file() {
        let text = format!("one\n{}: two", UNFINISHED_MARKS[0]);
        let found = messages(check, &[("docs/a.md", &text)]);
        assert_eq!(
            found,
            [format!("docs/a.md:2: `{}`: finish it or drop it", UNFINISHED_MARKS[0])]
        );
    }

    #[test]
    fn marks_inside_longer_words_are_free() {
        let text = format!("{}S and {}_{}", UNFINISHED_MARKS[0], UNFINISHED_MARKS[1], "A");
        assert!(messages(check, &[("docs/a.md", &text)]).is_empty());
    }

    #[test]
    fn unfinished_code_and_ignored_tests_are_found_in_code_only() {
        for mark in UNFINISHED_CODE {
            assert_eq!(messages(check, &[("src/a.rs", mark)]).len(), 1, "{mark}");
            assert!(messages(check, &[("src/a.rs", &format!("// {mark}"))]).is_empty());
            assert!(messages(check, &[("docs/a.md", mark)]).is_empty());
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            let found = messages(check, &[("docs/a.md", &format!("see `{path}x`"))]);
            assert_eq!(found, [format!("docs/a.md:1: `{path}` exists on one machine only")]);
            let address = format!("https://example.org{}x", path.trim_start_matches('.'));
            assert!(messages(check, &[("docs/a.md", &address)]).is_empty());
        }
    }

    #[test]
    fn empty_file_and_folder_names_are_refused_in_production_code() {
        let found = messages(check, &[("crates/a/src/time_utils.rs", "")]);
        let expected = "the file name `time_utils` does not say what it holds";
        assert_eq!(found, [format!("crates/a/src/time_utils.rs:1: {expected}")]);
        assert_eq!(messages(check, &[("crates/a/src/common/mod.rs", "")]).len(), 1);
        assert!(messages(check, &[("crates/a/tests/common/mod.rs", "")]).is_empty());
    }

    #[test]
    fn empty_module_and_type_names_are_refused_in_production_code() {
        let found = messages(check, &[("src/a.rs", "mod helpers;\nstruct RunManager;\n")]);
        assert_eq!(
            found,
            [
                "src/a.rs:1: the name `helpers` does not say what it holds",
                "src/a.rs:2: the name `RunManager` does not say what it holds",
            ]
        );
        assert!(
            messages(check, &[("src/a.rs", "use tokio_util::sync; struct Utility;")]).is_empty()
        );
        assert!(messages(check, &[("src/a.rs", "#[cfg(test)]\nmod helpers {}")]).is_empty());
    }
}
