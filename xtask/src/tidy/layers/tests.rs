//! What the layer table refuses, and what it must leave alone.

use super::check;
use crate::tidy::messages;

#[track_caller]
fn refuses(path: &str, text: &str, expected: &str) {
    assert_eq!(messages(check, &[(path, text)]), [expected]);
}

#[track_caller]
fn accepts(path: &str, text: &str) {
    assert!(messages(check, &[(path, text)]).is_empty(), "{:?}", messages(check, &[(path, text)]));
}

#[test]
fn core_may_not_use_std() {
    refuses(
        "crates/stepwell-core/src/retry.rs",
        "use core::fmt;\nuse std::time::Duration;",
        "crates/stepwell-core/src/retry.rs:2: `std::time::Duration` is outside of this layer",
    );
    accepts("crates/stepwell-core/src/retry.rs", "// use std::fmt;\nuse alloc::vec::Vec;");
}

#[test]
fn core_must_be_no_std() {
    let path = "crates/stepwell-core/src/lib.rs";
    refuses(path, "mod a;", "crates/stepwell-core/src/lib.rs:1: the core must be `#![no_std]`");
    accepts(path, "#![no_std]\nextern crate alloc;\n#[cfg(test)]\nextern crate std;");
    refuses(
        path,
        "#![no_std]\nextern crate std;",
        "crates/stepwell-core/src/lib.rs:2: the core must not link std",
    );
}

#[test]
fn core_may_depend_on_few_crates_only() {
    let path = "crates/stepwell-core/Cargo.toml";
    accepts(path, "[dependencies]\nserde.workspace = true\n\n[dev-dependencies]\nproptest = \"1\"");
    refuses(
        path,
        "[dependencies]\nserde.workspace = true\ntokio = \"1\"\n[lints]\nworkspace = true",
        "crates/stepwell-core/Cargo.toml:3: the core must not depend on `tokio`",
    );
    refuses(
        path,
        "[dependencies.tokio]\nversion = \"1\"",
        "crates/stepwell-core/Cargo.toml:1: write dependencies of the core as one line each",
    );
}

#[test]
fn ports_know_only_ports_and_other_crates() {
    let path = "crates/stepwell/src/ports/store.rs";
    accepts(path, "use crate::ports::Clock;\nuse stepwell_core::run::State;\nuse std::fmt;");
    refuses(
        path,
        "use crate::engine::Parts;",
        "crates/stepwell/src/ports/store.rs:1: `crate::engine::Parts` is outside of this layer",
    );
}

#[test]
fn stores_know_ports_and_themselves_but_no_other_store() {
    let path = "crates/stepwell/src/outbound/sqlite/claim.rs";
    accepts(path, "use crate::{ports::Store, outbound::sqlite::Connection, outbound::sql};");
    accepts(path, "use super::Connection;");
    refuses(
        path,
        "use super::super::memory::Table;",
        "crates/stepwell/src/outbound/sqlite/claim.rs:1: `crate::outbound::memory::Table` \
         is outside of this layer",
    );
    refuses(
        path,
        "fn f() { crate::engine::start() }",
        "crates/stepwell/src/outbound/sqlite/claim.rs:1: `crate::engine::start` \
         is outside of this layer",
    );
}

#[test]
fn root_file_of_a_store_is_part_of_it() {
    accepts("crates/stepwell/src/outbound/sqlite/mod.rs", "use self::claim::Claim;");
    accepts("crates/stepwell/src/outbound/sqlite.rs", "use crate::outbound::sqlite::claim;");
    accepts("crates/stepwell/src/outbound/mod.rs", "pub mod memory;");
}

#[test]
fn engine_worker_and_services_do_not_look_outward() {
    for folder in ["engine", "worker", "services"] {
        let path = format!("crates/stepwell/src/{folder}/start.rs");
        for name in ["outbound::memory", "api::Run", "testing::Probe", "wiring::host_name"] {
            let expected = format!("{path}:1: `crate::{name}` is outside of this layer");
            refuses(&path, &format!("use crate::{name};"), &expected);
        }
        accepts(
            &path,
            "use crate::ports::Clock;\nuse crate::error::Error;\nuse tokio::sync::Notify;",
        );
    }
}

#[test]
fn engine_takes_time_and_tasks_from_ports() {
    refuses(
        "crates/stepwell/src/worker.rs",
        "use tokio::{sync::Notify, time::Duration};",
        "crates/stepwell/src/worker.rs:1: `tokio::time::Duration` is outside of this layer",
    );
}

#[test]
fn root_exports_do_not_hide_a_layer() {
    refuses(
        "crates/stepwell/src/engine/start.rs",
        "use crate::Engine;",
        "crates/stepwell/src/engine/start.rs:1: `crate::Engine` hides its layer: \
         import it from its own module",
    );
    accepts("crates/stepwell-core/src/decide/fail.rs", "use crate::Failure;");
}

#[test]
fn engine_knows_neither_the_worker_nor_the_services_that_call_it() {
    let path = "crates/stepwell/src/engine/start.rs";
    for name in ["worker::Worker", "services::EndWaiters"] {
        let expected = format!("{path}:1: `crate::{name}` is outside of this layer");
        refuses(path, &format!("use crate::{name};"), &expected);
    }
    for (folder, name) in [("worker", "services::EndWaiters"), ("services", "worker::Worker")] {
        let path = format!("crates/stepwell/src/{folder}/mod.rs");
        accepts(&path, "use crate::engine::Parts;");
        let expected = format!("{path}:1: `crate::{name}` is outside of this layer");
        refuses(&path, &format!("use crate::{name};"), &expected);
    }
}

#[test]
fn only_wiring_gives_an_engine_real_time() {
    let text = "use crate::outbound::tokio::SystemClock;";
    accepts("crates/stepwell/src/wiring.rs", text);
    refuses(
        "crates/stepwell/src/api/builder.rs",
        text,
        "crates/stepwell/src/api/builder.rs:1: `crate::outbound::tokio::SystemClock` \
         is outside of this layer",
    );
}

#[test]
fn stores_without_a_server_may_read_the_machines_clock() {
    let text = "use crate::outbound::tokio::SystemClock;";
    accepts("crates/stepwell/src/outbound/memory/mod.rs", text);
    accepts("crates/stepwell/src/outbound/sqlite/open.rs", text);
    refuses(
        "crates/stepwell/src/outbound/postgres/open.rs",
        text,
        "crates/stepwell/src/outbound/postgres/open.rs:1: `crate::outbound::tokio::SystemClock` \
         is outside of this layer",
    );
}

#[test]
fn every_file_of_the_library_has_a_layer() {
    refuses(
        "crates/stepwell/src/telemetry/mod.rs",
        "mod metrics;",
        "crates/stepwell/src/telemetry/mod.rs:1: belongs to no layer: add it to the table",
    );
    accepts("crates/stepwell/src/lib.rs", "pub use crate::api::Engine;");
    accepts("crates/stepwell/src/testing/mod.rs", "use crate::worker::StopReport;");
    accepts("crates/stepwell-cli/src/main.rs", "use crate::commands::run;");
}

#[test]
fn the_table_lists_what_exists() {
    let found = messages(check, &[("xtask/src/tidy/layers.rs", "")]);
    let worker = "xtask/src/tidy/layers.rs:1: there is no `crates/stepwell/src/worker` any more";
    assert!(found.contains(&worker.to_owned()), "{found:?}");
}

#[test]
fn tests_are_free() {
    accepts(
        "crates/stepwell/src/engine/start.rs",
        "#[cfg(test)]\nmod tests {\n    use crate::outbound::memory::MemoryStore;\n}",
    );
    accepts("crates/stepwell/src/engine/tests.rs", "use crate::testing::Probe;");
}

#[test]
fn super_inside_an_inline_module_means_the_file() {
    let path = "crates/stepwell/src/outbound/sqlite.rs";
    accepts(path, "mod rows { use super::Connection; }");
    refuses(
        path,
        "mod rows { use super::super::memory::Table; }",
        "crates/stepwell/src/outbound/sqlite.rs:1: `crate::outbound::memory::Table` \
         is outside of this layer",
    );
}
