//! Arrows point inward: which folder may name which other one.
//!
//! The table below is the whole architecture in one place; ARCHITECTURE.md explains it. Code that
//! is compiled for tests only is free to reach across.

use std::collections::BTreeSet;

use super::Finding;
use super::paths::{UsedPath, paths, starts_with};
use super::rust_source::RustSource;
use super::tree::{SourceFile, Tree};

/// What the code of one folder may name.
struct Layer {
    /// The folder, without a slash at the end; `folder.rs` beside it belongs to it.
    folder: &'static str,
    /// Of its own crate, nothing but these and what lies below them.
    own_crate: &'static [&'static str],
    /// Of other crates, anything but these.
    not_of_others: &'static [&'static str],
}

/// The engine's loops take time and tasks from ports, so that they can run on virtual time.
const TIME_AND_TASKS: &[&str] = &["tokio::runtime", "tokio::task", "tokio::time"];

const LAYERS: &[Layer] = &[
    Layer { folder: "crates/stepwell-core/src", own_crate: &["crate"], not_of_others: &["std"] },
    Layer { folder: "crates/stepwell/src/ports", own_crate: &["crate::ports"], not_of_others: &[] },
    Layer { folder: "crates/stepwell/src/error", own_crate: &["crate::ports"], not_of_others: &[] },
    Layer { folder: "crates/stepwell/src/error_codes", own_crate: &[], not_of_others: &[] },
    Layer {
        folder: "crates/stepwell/src/engine",
        own_crate: &["crate::ports", "crate::error", "crate::engine"],
        not_of_others: TIME_AND_TASKS,
    },
    Layer {
        folder: "crates/stepwell/src/worker",
        own_crate: &["crate::ports", "crate::error", "crate::engine", "crate::worker"],
        not_of_others: TIME_AND_TASKS,
    },
    Layer {
        folder: "crates/stepwell/src/services",
        own_crate: &["crate::ports", "crate::error", "crate::engine", "crate::services"],
        not_of_others: TIME_AND_TASKS,
    },
    Layer {
        folder: "crates/stepwell/src/api",
        own_crate: &[
            "crate::ports",
            "crate::error",
            "crate::engine",
            "crate::worker",
            "crate::services",
            "crate::wiring",
            "crate::api",
        ],
        not_of_others: &[],
    },
    // Where commands open a store; after that they know nothing but ports.
    Layer {
        folder: "crates/stepwell/src/cli/store",
        own_crate: &[
            "crate::ports",
            "crate::cli",
            "crate::outbound::sqlite",
            "crate::outbound::postgres",
        ],
        not_of_others: &[],
    },
    // Commands stand beside the api: they read stores through ports and show the api's views.
    Layer {
        folder: "crates/stepwell/src/cli",
        own_crate: &["crate::ports", "crate::error", "crate::api", "crate::wiring", "crate::cli"],
        not_of_others: &[],
    },
    // Real time, threads and ids for engines that were given none.
    Layer {
        folder: "crates/stepwell/src/wiring",
        own_crate: &["crate::ports", "crate::error", "crate::outbound::tokio"],
        not_of_others: &[],
    },
    Layer {
        folder: "crates/stepwell/src/outbound/tokio",
        own_crate: &["crate::ports", "crate::outbound::tokio"],
        not_of_others: &[],
    },
    Layer { folder: "crates/stepwell/src/outbound/sql", own_crate: &[], not_of_others: &[] },
    Layer {
        folder: "crates/stepwell/src/outbound/store_clock",
        own_crate: &["crate::ports"],
        not_of_others: &[],
    },
    // Stores without a server take their time from the machine's clock.
    Layer {
        folder: "crates/stepwell/src/outbound/memory",
        own_crate: &[
            "crate::ports",
            "crate::outbound::tokio",
            "crate::outbound::store_clock",
            "crate::outbound::memory",
        ],
        not_of_others: &[],
    },
    Layer {
        folder: "crates/stepwell/src/outbound/sqlite",
        own_crate: &[
            "crate::ports",
            "crate::error",
            "crate::outbound::tokio",
            "crate::outbound::store_clock",
            "crate::outbound::sql",
            "crate::outbound::sqlite",
        ],
        not_of_others: &[],
    },
    Layer {
        folder: "crates/stepwell/src/outbound/postgres",
        own_crate: &["crate::ports", "crate::outbound::sql", "crate::outbound::postgres"],
        not_of_others: &[],
    },
];

/// The crate that is divided into layers, and what of it belongs to none: lists of modules, and
/// what is there for tests.
const DIVIDED: &str = "crates/stepwell/src";
const FREE: &[&str] = &["lib.rs", "outbound/mod.rs", "testing/"];

/// Where this table stands.
const TABLE: &str = "xtask/src/tidy/layers.rs";

const CORE_MANIFEST: &str = "crates/stepwell-core/Cargo.toml";
const CORE_ROOT: &str = "crates/stepwell-core/src/lib.rs";
const CORE_DEPENDENCIES: &[&str] = &["serde", "sha2"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_files() {
        match LAYERS.iter().find(|layer| layer.covers(&file.path)) {
            Some(layer) => findings.extend(check_file(layer, file, source)),
            None if is_free(&file.path) => {}
            None => findings.push(file.finding(1, "belongs to no layer: add it to the table")),
        }
    }
    findings.extend(tree.file(TABLE).into_iter().flat_map(|table| check_table(tree, table)));
    findings.extend(tree.file(CORE_MANIFEST).into_iter().flat_map(check_core_manifest));
    findings.extend(tree.file(CORE_ROOT).and_then(check_core_root));
    findings
}

impl Layer {
    fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.folder);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Why code of this layer must not name the path, or `None` when it may.
    fn objection(&self, path: &[&str]) -> Option<&'static str> {
        let is_named_in = |names: &[&str]| names.iter().any(|name| starts_with(path, name));
        if path[0] != "crate" {
            return is_named_in(self.not_of_others).then_some("is outside of this layer");
        }
        if is_named_in(self.own_crate) {
            return None;
        }
        Some(if is_root_export(path) {
            "hides its layer: import it from its own module"
        } else {
            "is outside of this layer"
        })
    }
}

fn is_free(path: &str) -> bool {
    let Some(below) = path.strip_prefix(DIVIDED).and_then(|rest| rest.strip_prefix('/')) else {
        return true;
    };
    FREE.iter().any(|free| below == *free || free.ends_with('/') && below.starts_with(free))
}

/// Folders that the table lists and the tree does not have.
fn check_table(tree: &Tree, table: &SourceFile) -> Vec<Finding> {
    let named = LAYERS.iter().flat_map(|layer| {
        let folder = |name: &str| name.replacen("crate::", &format!("{DIVIDED}/"), 1);
        let of_crate = layer.own_crate.iter().filter(|name| **name != "crate");
        let names = of_crate.map(move |name| folder(name).replace("::", "/"));
        names.chain([layer.folder.to_owned()])
    });
    let is_there = |folder: &String| tree.holds(folder) || tree.holds(&format!("{folder}.rs"));
    let missing: BTreeSet<String> = named.filter(|folder| !is_there(folder)).collect();
    let finding = |folder: &String| table.finding(1, format!("there is no `{folder}` any more"));
    missing.iter().map(finding).collect()
}

fn check_file(layer: &Layer, file: &SourceFile, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for used in paths(&source.code) {
        if source.is_test(used.offset) {
            continue;
        }
        let path = absolute(&file.path, source, &used);
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(objection) = layer.objection(&parts) {
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
