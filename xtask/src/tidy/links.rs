//! Links inside the documents lead somewhere.
//!
//! Every target of a Markdown link that is not a web address must be a file or folder of the
//! repository, and what follows a `#` a heading of that document. Code blocks and code in backticks
//! are not links.

use std::collections::BTreeMap;

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
    for (number, line) in prose(&document.text) {
        for target in targets(line).into_iter().filter(|target| is_local(target)) {
            if let Some(what) = missing(tree, &document.path, &target) {
                findings.push(document.finding(number, format!("the {what} does not exist")));
            }
        }
    }
    findings
}

/// The numbered lines of a document that are not in code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(opening), Some(closing)) if opening == closing => fence = None,
            (None, None) => return true,
            (Some(_), _) => {}
        }
        false
    })
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
    !target.contains("://") && !target.starts_with("mailto:")
}

/// What a link from a document names and nobody finds.
fn missing(tree: &Tree, document: &str, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
    let path = if path.is_empty() { Some(document.to_owned()) } else { resolve(document, path) };
    let Some(path) = path.filter(|path| tree.holds(path)) else {
        return Some(format!("link target `{target}`"));
    };
    let file = tree.file(&path).filter(|file| file.is_kind("md"))?;
    let is_missing = |anchor| !anchors(&file.text).any(|own| own == anchor);
    anchor.is_some_and(is_missing).then(|| format!("heading of the link `{target}`"))
}

/// A path as seen from a document. A link that leaves the repository is broken for everybody else.
fn resolve(document: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// What links call the headings of a document, as Git hosts do: lower case, hyphens for spaces,
/// other marks left out, and a number for the second of one name.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    prose(text).filter_map(|(_, line)| heading(line)).map(move |heading| {
        let n_before = seen.entry(heading.clone()).or_default();
        *n_before += 1;
        match *n_before {
            1 => heading,
            n => format!("{heading}-{}", n - 1),
        }
    })
}

fn heading(line: &str) -> Option<String> {
    let text = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?;
    // Of a link the text shows, and its target does not.
    let shown: String = text
        .split("](")
        .enumerate()
        .map(|(n, part)| match n {
            0 => part,
            _ => part.split_once(')').map_or("", |(_, rest)| rest),
        })
        .collect();
    let kept = shown
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect();
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    #[track_caller]
    fn check_guide(text: &str, expected: &[&str]) {
        let errors =
            "# Errors\n\n## SW1: `a`, [b](start/guide.md)\n\n```sh\n# no heading\n```\n## Errors\n";
        let files = [("docs/start/guide.md", text), ("docs/errors.md", errors), ("README.md", "")];
        let expected: Vec<String> = expected
            .iter()
            .map(|found| format!("docs/start/guide.md:{found}` does not exist"))
            .collect();
        assert_eq!(messages(check, &files), expected);
    }

    #[test]
    fn links_to_files_and_folders_of_the_repository_are_accepted() {
        check_guide("[a](../errors.md), [b](../../README.md \"read\") and [c](.)", &[]);
        check_guide("[a](/docs/errors.md)\n\n[a]: ../errors.md", &[]);
    }

    #[test]
    fn addresses_are_not_checked() {
        check_guide("[a](https://example.org/x#y) [c](mailto:a@example.org)", &[]);
    }

    #[test]
    fn links_to_headings_are_accepted() {
        check_guide("## Read_me first!\n[a](#read_me-first) [b](../errors.md#sw1-a-b)", &[]);
        check_guide("[a](../errors.md#errors) [b](../errors.md#errors-1)", &[]);
    }

    #[test]
    fn missing_headings_are_found() {
        check_guide("[a](#here)", &["1: the heading of the link `#here"]);
        for anchor in ["SW1", "errors-2", "no-heading", ""] {
            let target = format!("../errors.md#{anchor}");
            let found = format!("1: the heading of the link `{target}");
            check_guide(&format!("[a]({target})"), &[&found]);
        }
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
