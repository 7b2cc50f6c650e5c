//! What a program of a user gets by one call.

use std::ffi::OsString;
use std::process::ExitCode;

use stepwell::cli;

use crate::story::{Kind, Story};

/// What the user typed, after the name of their program.
fn typed(words: &[&str]) -> Vec<OsString> {
    std::iter::once(&"shop").chain(words).map(OsString::from).collect()
}

fn is(code: u8, exit_code: ExitCode) -> bool {
    exit_code == ExitCode::from(code)
}

#[test]
fn one_call_is_a_whole_command_line() {
    let story = Story::tell(Kind::Sqlite);
    let runs = ["runs", "--store", &story.store, "--limit", "1"];
    assert!(is(0, cli::run_blocking(typed(&runs))));
    let show = ["show", "bakery/none", "--store", &story.store];
    assert!(is(1, cli::run_blocking(typed(&show))));
    assert!(is(2, cli::run_blocking(typed(&["runs", "--limit", "none"]))));
    assert!(is(0, cli::run_blocking(typed(&["--help"]))));
    // What belongs to the binary `stepwell` alone is not there.
    assert!(is(2, cli::run_blocking(typed(&["demo"]))));
}

#[tokio::test]
async fn the_call_is_there_for_async_programs_too() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    drop(stepwell::SqliteStore::open(&path).await.expect("it is made"));
    let runs = ["runs", "--store", path.to_str().expect("a plain path")];
    assert!(is(0, cli::run(typed(&runs)).await));
    // The other one would hold up the runtime: it is refused, and does not panic.
    assert!(is(1, cli::run_blocking(typed(&runs))));
}
