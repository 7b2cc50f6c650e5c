//! Arrows point inward: which folder may name which other one.
//!
//! The table below is the whole architecture in one place; ARCHITECTURE.md explains it. Code that
//! is compiled for tests only is free to reach across.

use super::Finding;
use super::paths::{UsedPath, paths, starts_with};
use super::rust_source::RustSource;
use super::tree::{SourceFile, Tree};

/// What the code of one folder may name.
struct Layer {
    /// The folder, without a slash at the end; `folder.rs` beside it belongs to it.
    folder: &'static str,
    rule: Rule,
    /// Files of the folder that the rule leaves alone.
    exempt: &'static [&'static str],
}

enum Rule {
    /// Of our own crate, only these; other crates are free. [`OWN_FOLDER`] adds the file's own.
    Only(&'static [&'static str]),
    /// Anything but these.
    Never(&'static [&'static str]),
}

/// Stands for the folder below the layer in which a file lives, such as `crate::outbound::sqlite`.
const OWN_FOLDER: &str = "self";

/// Loops and rules of the engine: they meet the outside world, time and tasks through ports.
const INNER: Rule = Rule::Never(&[
    "crate::api",
    "crate::inbound",
    "crate::outbound",
    "crate::testing",
    "tokio::runtime",
    "tokio::task",
    "tokio::time",
]);

const LAYERS: &[Layer] = &[
    Layer { folder: "crates/stepwell-core/src", rule: Rule::Never(&["std"]), exempt: &[] },
    Layer { folder: "crates/stepwell/src/ports", rule: Rule::Only(&["crate::ports"]), exempt: &[] },
    Layer {
        folder: "crates/stepwell/src/outbound",
        rule: Rule::Only(&["crate::ports", "crate::telemetry", "crate::outbound::sql", OWN_FOLDER]),
        exempt: &[],
    },
    Layer { folder: "crates/stepwell/src/engine", rule: INNER, exempt: &[] },
    Layer { folder: "crates/stepwell/src/worker", rule: INNER, exempt: &[] },
    Layer { folder: "crates/stepwell/src/services", rule: INNER, exempt: &[] },
    Layer {
        folder: "crates/stepwell/src/api",
        rule: Rule::Never(&["crate::inbound", "crate::outbound", "crate::testing"]),
        // The constructors that pick a store for the user, each behind that store's feature.
        exempt: &["crates/stepwell/src/api/builder.rs"],
    },
    Layer {
        folder: "crates/stepwell/src/inbound",
        rule: Rule::Never(&["crate::outbound", "crate::testing"]),
        exempt: &[],
    },
];

const CORE_MANIFEST: &str = "crates/stepwell-core/Cargo.toml";
const CORE_ROOT: &str = "crates/stepwell-core/src/lib.rs";
const CORE_DEPENDENCIES: &[&str] = &["serde", "sha2"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_files() {
        for layer in LAYERS.iter().filter(|layer| layer.covers(&file.path)) {
            findings.extend(check_file(layer, file, source));
        }
    }
    findings.extend(tree.file(CORE_MANIFEST).into_iter().flat_map(check_core_manifest));
    findings.extend(tree.file(CORE_ROOT).and_then(check_core_root));
    findings
}

impl Layer {
    fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.folder);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            && !self.exempt.contains(&path)
    }

    /// Why code of this layer must not name the path, or `None` when it may.
    fn objection(&self, file_path: &str, path: &[&str]) -> Option<&'static str> {
        match self.rule {
            Rule::Never(forbidden) => {
                if forbidden.iter().any(|prefix| starts_with(path, prefix)) {
                    return Some("is outside of this layer");
                }
                let divides_the_crate =
                    forbidden.iter().any(|prefix| prefix.starts_with("crate::"));
                (divides_the_crate && is_root_export(path))
                    .then_some("hides its layer: import it from its own module")
            }
            Rule::Only(allowed) => {
                let own = own_folder(self.folder, file_path);
                let is_allowed = path[0] != "crate"
                    || allowed.iter().any(|prefix| match *prefix {
                        OWN_FOLDER => own.as_deref().is_some_and(|own| starts_with(path, own)),
                        prefix => starts_with(path, prefix),
                    });
                (!is_allowed).then_some("is outside of this layer")
            }
        }
    }
}

fn check_file(layer: &Layer, file: &SourceFile, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for used in paths(&source.code) {
        if source.is_test(used.offset) {
            continue;
        }
        let path = absolute(&file.path, source, &used);
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(objection) = layer.objection(&file.path, &parts) {
            let message = format!("`{}` {objection}", parts.join("::"));
            findings.push(file.finding_at(used.offset, message));
        }
    }
    findings
}

/// A name that `lib.rs` exports again for users, as in `crate::Engine`.
fn is_root_export(path: &[&str]) -> bool {
    path[0] == "crate" && path[1].starts_with(char::is_uppercase)
}

/// The path from the root of its crate, with `self` and `super` resolved.
fn absolute(file_path: &str, source: &RustSource, used: &UsedPath<'_>) -> Vec<String> {
    let mut segments = used.segments.as_slice();
    if !matches!(segments[0], "self" | "super") {
        return segments.iter().map(ToString::to_string).collect();
    }
    let mut module = module_of(file_path);
    module.extend(source.inline_modules(used.offset).into_iter().map(str::to_owned));
    while let [first @ ("self" | "super"), rest @ ..] = segments {
        if *first == "super" && module.len() > 1 {
            module.pop();
        }
        segments = rest;
    }
    module.extend(segments.iter().map(ToString::to_string));
    module
}

/// `crates/stepwell/src/api/run.rs` is the module `crate::api::run`.
fn module_of(file_path: &str) -> Vec<String> {
    let below_src = file_path.split_once("/src/").map_or(file_path, |(_, below)| below);
    let mut module = vec!["crate".to_owned()];
    for part in below_src.trim_end_matches(".rs").split('/') {
        if !matches!(part, "lib" | "main" | "mod") {
            module.push(part.to_owned());
        }
    }
    module
}

/// The module of the folder or file directly below the layer that holds this file.
fn own_folder(layer_folder: &str, file_path: &str) -> Option<String> {
    let layer_depth = module_of(layer_folder).len();
    let module = module_of(file_path);
    let own = module.get(..=layer_depth)?;
    Some(own.join("::"))
}

/// The core's dependencies are few on purpose; those for its tests do not matter here.
fn check_core_manifest(manifest: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    for (index, line) in manifest.text.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end().trim_end_matches(']');
            in_dependencies = section.ends_with("dependencies") && !section.starts_with("dev-");
            if section.starts_with("dependencies.") {
                let message = "write dependencies of the core as one line each";
                findings.push(manifest.finding(index + 1, message));
            }
            continue;
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        let is_entry = in_dependencies && !name.is_empty() && !name.starts_with('#');
        if is_entry && !CORE_DEPENDENCIES.contains(&name) {
            let message = format!("the core must not depend on `{name}`");
            findings.push(manifest.finding(index + 1, message));
        }
    }
    findings
}

fn check_core_root(root: &SourceFile) -> Option<Finding> {
    let source = root.rust.as_ref()?;
    let mut links = source.code.match_indices("extern crate std");
    if let Some((offset, _)) = links.find(|(offset, _)| !source.is_test(*offset)) {
        return Some(root.finding_at(offset, "the core must not link std"));
    }
    let is_no_std = source.code.contains("no_std");
    (!is_no_std).then(|| root.finding(1, "the core must be `#![no_std]`"))
}

#[cfg(test)]
mod tests;
