//! Links inside the documents lead somewhere.
//!
//! Every target of a Markdown link that is not a web address must be a file or folder of the
//! repository. Code blocks and code in backticks are not links.

use super::Finding;
use super::tree::{SourceFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.is_kind("md"))
        .flat_map(|file| check_document(tree, file))
        .collect()
}

fn check_document(tree: &Tree, document: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in document.text.lines().enumerate() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(opening), Some(closing)) if opening == closing => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                for target in targets(line).into_iter().filter(|target| is_local(target)) {
                    if !leads_somewhere(tree, &document.path, &target) {
                        let message = format!("the link target `{target}` does not exist");
                        findings.push(document.finding(index + 1, message));
                    }
                }
            }
        }
    }
    findings
}

/// The targets of `[text](target "title")` and `[name]: target` in one line.
fn targets(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let mut found: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .map(str::to_owned)
        .collect();
    if prose.starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        found.extend(target.split_whitespace().next().map(str::to_owned));
    }
    found.iter().map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

fn is_local(target: &str) -> bool {
    let is_address = target.contains("://") || target.starts_with("mailto:");
    !is_address && !target.starts_with('#')
}

fn leads_somewhere(tree: &Tree, document: &str, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            // A link that leaves the repository is broken for everybody else.
            ".." if parts.pop().is_none() => return false,
            "" | "." | ".." => {}
            part => parts.push(part),
        }
    }
    tree.holds(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    #[track_caller]
    fn check_guide(text: &str, expected: &[&str]) {
        let files = [("docs/start/guide.md", text), ("docs/errors.md", ""), ("README.md", "")];
        let expected: Vec<String> = expected
            .iter()
            .map(|found| format!("docs/start/guide.md:{found}` does not exist"))
            .collect();
        assert_eq!(messages(check, &files), expected);
    }

    #[test]
    fn links_to_files_and_folders_of_the_repository_are_accepted() {
        check_guide("[a](../errors.md#sw1), [b](../../README.md \"read\") and [c](.)", &[]);
        check_guide("[a](/docs/errors.md)\n\n[a]: ../errors.md", &[]);
    }

    #[test]
    fn addresses_and_anchors_are_not_checked() {
        check_guide("[a](https://example.org/x) [b](#here) [c](mailto:a@example.org)", &[]);
    }

    #[test]
    fn missing_targets_are_found() {
        check_guide("ok\n[a](errors.md)", &["2: the link target `errors.md"]);
        check_guide("[a]: ../gone.md", &["1: the link target `../gone.md"]);
        check_guide("a `[x](y)` and [`b`](gone.md)", &["1: the link target `gone.md"]);
    }

    #[test]
    fn links_out_of_the_repository_are_found() {
        let target = "../../../elsewhere/README.md";
        check_guide(&format!("[a]({target})"), &[&format!("1: the link target `{target}")]);
    }

    #[test]
    fn code_is_not_a_link() {
        check_guide("```md\n[a](gone.md)\n```\nand `[a](gone.md)`", &[]);
    }
}
