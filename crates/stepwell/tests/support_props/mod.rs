//! What the property tests share: a store under watch, fleets on virtual time, random workflows
//! and a naive model of what must become of them.
#![allow(dead_code, reason = "every file of property tests uses a part of it")]

pub(crate) mod claims_seen;
pub(crate) mod fleet;
pub(crate) mod journal;
pub(crate) mod link;
pub(crate) mod link_reads;
pub(crate) mod market;
pub(crate) mod marks;
pub(crate) mod model;
pub(crate) mod moves;
pub(crate) mod plan;
pub(crate) mod post;
pub(crate) mod shares;
pub(crate) mod steps;
pub(crate) mod storm;
pub(crate) mod watch;

use std::future::Future;

use futures_util::FutureExt;
use proptest::test_runner::Config;

/// So many cases, unless `PROPTEST_CASES` asks for more or fewer.
pub(crate) fn cases(n_cases: u32) -> Config {
    let config = Config::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_asked { config.cases } else { n_cases };
    Config { cases, failure_persistence: None, ..config }
}

/// The answer of a call to the memory store, which never waits.
pub(crate) fn at_once<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the memory store answers at once")
}
