//! Every path a file writes, with the groups of its imports spelled out.
//!
//! `use crate::{ports::Clock, engine}` yields `crate::ports::Clock` and `crate::engine`, each with
//! the place where it stands. Layers and sleeps are judged by these paths.

use super::rust_source::is_name_byte;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct UsedPath<'code> {
    pub(super) segments: Vec<&'code str>,
    pub(super) offset: usize,
}

/// All paths of two segments or more in masked code.
pub(super) fn paths(code: &str) -> Vec<UsedPath<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let length = name_length(code, at);
        if length == 0 {
            at += 1;
        } else if code[at + length..].starts_with("::") {
            at = collect(code, at, &mut Vec::new(), &mut found);
        } else {
            at += length;
        }
    }
    found.retain(|path| path.segments.len() > 1);
    found
}

/// Whether `path` is `prefix` or lies below it, compared segment by segment.
pub(super) fn starts_with(path: &[&str], prefix: &str) -> bool {
    let prefix: Vec<&str> = prefix.split("::").collect();
    path.starts_with(&prefix)
}

/// Reads one path or group that begins at `at` below `prefix`; returns where it ends.
fn collect<'code>(
    code: &'code str,
    mut at: usize,
    prefix: &mut Vec<&'code str>,
    found: &mut Vec<UsedPath<'code>>,
) -> usize {
    let start = skip_space(code, at);
    loop {
        at = skip_space(code, at);
        if code[at..].starts_with('{') {
            return collect_group(code, at + 1, prefix, found);
        }
        let length = name_length(code, at);
        if length == 0 {
            // A glob, or the type arguments of a call: the path so far is what is used.
            found.push(UsedPath { segments: prefix.clone(), offset: start });
            return (at + 1).min(code.len());
        }
        prefix.push(&code[at..at + length]);
        at += length;
        if !code[at..].starts_with("::") {
            found.push(UsedPath { segments: prefix.clone(), offset: start });
            return at;
        }
        at += "::".len();
    }
}

fn collect_group<'code>(
    code: &'code str,
    mut at: usize,
    prefix: &[&'code str],
    found: &mut Vec<UsedPath<'code>>,
) -> usize {
    loop {
        at = skip_space(code, at);
        match code.as_bytes().get(at) {
            None => return code.len(),
            Some(b'}') => return at + 1,
            Some(b',') => at += 1,
            Some(_) => {
                at = collect(code, at, &mut prefix.to_vec(), found);
                // An alias (`as Name`) does not change what is used.
                at += code[at..].find([',', '}']).unwrap_or(code.len() - at);
            }
        }
    }
}

fn name_length(code: &str, at: usize) -> usize {
    code.as_bytes()[at..].iter().take_while(|byte| is_name_byte(**byte)).count()
}

fn skip_space(code: &str, at: usize) -> usize {
    at + code.as_bytes()[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: &[&str]) {
        let found: Vec<String> = paths(code).iter().map(|path| path.segments.join("::")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn groups_are_spelled_out() {
        check(
            "use crate::{ports::{Clock, Ids as I}, engine, api::*};",
            &["crate::ports::Clock", "crate::ports::Ids", "crate::engine", "crate::api"],
        );
    }

    #[test]
    fn paths_in_expressions_are_found() {
        check(
            "let x = crate::engine::start(a, Vec::<std::io::Error>::new());",
            &["crate::engine::start", "std::io::Error"],
        );
        check("use ::std::fmt; match a::B { C => 1 }", &["std::fmt", "a::B"]);
    }

    #[test]
    fn broken_code_ends() {
        check("use crate::{a, b::", &["crate::a", "crate::b"]);
        check("use crate::{a", &["crate::a"]);
    }

    #[test]
    fn prefixes_match_by_segment() {
        assert!(starts_with(&["crate", "api", "Run"], "crate::api"));
        assert!(!starts_with(&["crate", "apidocs"], "crate::api"));
    }

    #[test]
    fn offsets_point_at_each_part_of_a_group() {
        let code = "use crate::{\n    ports,\n    engine,\n};";
        let lines: Vec<usize> =
            paths(code).iter().map(|path| code[..path.offset].matches('\n').count() + 1).collect();
        assert_eq!(lines, [2, 3]);
    }
}
