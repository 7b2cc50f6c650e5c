//! What `docs/states.md` says about transitions is what the code does.
//!
//! `UPDATE_DOCS=1 cargo test -p stepwell-core --test docs` writes the diagram anew. The table is
//! written by hand, since it says in words what the code cannot.

use std::path::PathBuf;

use stepwell_core::run::{TRANSITIONS, mermaid};

const BEGIN: &str = "<!-- diagram:begin -->\n";
const END: &str = "<!-- diagram:end -->\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md")
}

fn read() -> String {
    std::fs::read_to_string(page()).expect("docs/states.md is there")
}

/// The page up to the diagram, the diagram, and the rest.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once(BEGIN).expect("the diagram's first mark is there");
    let (diagram, after) = rest.split_once(END).expect("the diagram's last mark is there");
    (before, diagram, after)
}

#[test]
fn the_diagram_in_the_docs_is_drawn_from_the_transition_table() {
    let text = read();
    let (before, diagram, after) = parts(&text);
    let drawn = format!("\n```mermaid\n{}```\n\n", mermaid());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), format!("{before}{BEGIN}{drawn}{END}{after}"))
            .expect("docs/states.md can be written");
        return;
    }
    assert_eq!(
        diagram, drawn,
        "docs/states.md is out of date: UPDATE_DOCS=1 cargo test -p stepwell-core --test docs"
    );
}

#[test]
fn the_table_in_the_docs_is_the_transition_table() {
    let text = read();
    let (_, section) = text.split_once("### Transitions").expect("the section is there");
    let (section, _) = section.split_once(BEGIN).expect("the diagram follows the table");
    let rows: Vec<String> = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| from"))
        .map(|line| line.split('|').skip(1).take(3).map(str::trim).collect::<Vec<_>>().join(" "))
        .collect();
    let expected: Vec<String> = TRANSITIONS
        .iter()
        .map(|(from, to, because)| format!("{from} {to} `{because:?}`"))
        .collect();
    assert_eq!(rows, expected, "edit the table in docs/states.md");
}
