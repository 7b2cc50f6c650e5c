//! What the documents show is what the code has: settings, examples and quotations.

use std::collections::BTreeSet;
use std::path::Path;

#[cfg(feature = "sqlite")]
#[path = "../examples/approval.rs"]
mod approval;
#[cfg(feature = "sqlite")]
#[path = "../examples/linear.rs"]
mod linear;
#[cfg(all(feature = "cli", feature = "sqlite"))]
#[path = "../examples/onboarding.rs"]
mod onboarding;
#[path = "../examples/order.rs"]
mod order;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_order_example_runs_and_gives_what_it_says() {
    order::main().expect("both orders are answered");
}

#[cfg(feature = "sqlite")]
#[test]
fn the_approval_example_runs_and_gives_what_it_says() {
    approval::main().expect("every expense is settled");
}

#[cfg(feature = "sqlite")]
#[test]
fn the_linear_example_runs_and_gives_what_it_says() {
    // L1, L2, L5, L7
    linear::main().expect("the order is carried to its end");
}

#[cfg(all(feature = "cli", feature = "sqlite"))]
#[test]
fn the_onboarding_example_is_a_program_that_does_what_it_says() {
    use std::process::ExitCode;

    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("demo.db");
    let store = ["--store", file.to_str().expect("a plain path")];
    for args in [
        &["start", "onboarding", "--id", "ada", "--input", r#"{"name": "Ada"}"#][..],
        &["signal", "acme/ada", "signed"],
        &["resume", "acme/ada"],
        &["show", "acme/ada"],
        &["resume", "acme/ada"],
    ] {
        let args = [&["onboarding"], args, &store].concat();
        assert_eq!(onboarding::app().args(&args).run_blocking(), ExitCode::SUCCESS, "{args:?}");
    }
    // The arguments of this test are no command.
    assert_eq!(onboarding::main(), ExitCode::from(2));
}

#[test]
fn the_table_of_settings_names_every_field_and_no_other() {
    // R25
    let source = read("crates/stepwell/src/engine/config.rs");
    let (_, body) = source.split_once("pub struct Config {").expect("the settings are there");
    let (body, _) = body.split_once("\n}").expect("the settings end");
    let fields: BTreeSet<&str> = body
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "))
        .filter_map(|field| field.split(':').next())
        .collect();
    let page = read("docs/configuration.md");
    let (_, section) = page.split_once("## Settings").expect("the section is there");
    let (section, _) = section.split_once("\n## ").expect("another section follows");
    let rows: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .collect();
    assert_eq!(rows, fields, "edit the table in docs/configuration.md");
}

/// A quotation is a block of code below a comment that names the file it stands in.
#[test]
fn the_readme_quotes_word_for_word() {
    let readme = read("README.md");
    let quotations = readme.split("<!-- quoted from ").skip(1);
    let mut n_quotations = 0;
    for quotation in quotations {
        let (path, rest) = quotation.split_once(" -->\n").expect("the comment ends");
        let (_, rest) = rest.split_once("```rust\n").expect("code follows the comment");
        let (code, _) = rest.split_once("```").expect("the code ends");
        assert!(read(path).contains(code), "README.md does not quote {path} word for word");
        n_quotations += 1;
    }
    assert_eq!(n_quotations, 2);
}

#[test]
fn the_readme_fits_two_hundred_lines_and_its_examples_sixty() {
    assert!(read("README.md").lines().count() <= 200);
    assert!(read("crates/stepwell/examples/onboarding.rs").lines().count() <= 60);
    assert!(read("crates/stepwell/examples/order.rs").lines().count() <= 60);
}
