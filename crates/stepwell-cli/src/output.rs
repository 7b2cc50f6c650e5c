//! What the user sees: lines, tables and JSON on standard output, errors on standard error.
//!
//! Colours and progress bars are for people at a terminal. Whoever reads through a pipe gets
//! plain lines, or JSON and nothing else.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Cell as TableCell, Color, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::args::ColorChoice;

/// Longest line of running text: fits the smallest usual terminal.
const TEXT_CHARS_MAX: usize = 80;

/// Writes what a command has to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    is_json: bool,
    has_color: bool,
    is_watched: bool,
}

/// What a piece of text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As any text.
    Plain,
    /// Less important than the rest.
    Faint,
    /// A heading.
    Strong,
    /// Went well.
    Good,
    /// Waits for something.
    Waiting,
    /// Went wrong for now.
    Warning,
    /// Went wrong for good.
    Bad,
}

/// One cell of a table.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Output {
    pub(crate) fn new(is_json: bool, color: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_watched = !is_json && is_terminal && io::stderr().is_terminal() && !is_dumb();
        Self { is_json, has_color: wants_color(color, is_terminal), is_watched }
    }

    /// Whether standard output takes JSON and nothing else.
    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// Whether a person watches, for whom progress should be drawn.
    pub(crate) fn is_watched(self) -> bool {
        self.is_watched
    }

    /// Writes one line for people.
    pub(crate) fn line(self, text: &str) -> io::Result<()> {
        debug_assert!(!self.is_json, "JSON and nothing else was asked for");
        writeln!(io::stdout().lock(), "{}", text.trim_end())
    }

    /// Writes running text for people after a label, broken between words.
    pub(crate) fn paragraph(self, label: &str, text: &str) -> io::Result<()> {
        let mut line = self.paint(Tone::Strong, label);
        let mut n_chars = label.chars().count();
        for word in text.split(' ') {
            n_chars += 1 + word.chars().count();
            if n_chars > TEXT_CHARS_MAX {
                self.line(&line)?;
                line.clear();
                n_chars = word.chars().count();
            } else {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&line)
    }

    /// Writes one JSON object on a line of its own.
    pub(crate) fn record(self, record: &impl Serialize) -> io::Result<()> {
        debug_assert!(self.is_json, "text was asked for");
        let json = serde_json::to_string(record)?;
        writeln!(io::stdout().lock(), "{json}")
    }

    /// Writes a table for people, as wide as the terminal allows.
    pub(crate) fn table(self, header: &[&str], rows: &[Vec<Cell>]) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if self.has_color {
            table.enforce_styling();
        }
        table.set_header(header.iter().map(|text| self.cell(&Cell::new(*text, Tone::Strong))));
        for row in rows {
            table.add_row(row.iter().map(|cell| self.cell(cell)));
        }
        self.line(&table.trim_fmt())
    }

    fn cell(self, cell: &Cell) -> TableCell {
        let plain = TableCell::new(&cell.text);
        match cell.tone {
            _ if !self.has_color => plain,
            Tone::Plain => plain,
            Tone::Faint => plain.fg(Color::DarkGrey),
            Tone::Strong => plain.add_attribute(comfy_table::Attribute::Bold),
            Tone::Good => plain.fg(Color::DarkGreen),
            Tone::Waiting => plain.fg(Color::DarkCyan),
            Tone::Warning => plain.fg(Color::DarkYellow),
            Tone::Bad => plain.fg(Color::DarkRed),
        }
    }

    /// The text in the colour of its tone, if colours are wanted.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        paint(self.has_color, tone, text)
    }
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// Writes an error, and where to read more, to standard error.
pub(crate) fn error(color: ColorChoice, message: &str, hint: Option<&str>) {
    let has_color = wants_color(color, io::stderr().is_terminal());
    let label = paint(has_color, Tone::Bad, "error:");
    let mut stderr = io::stderr().lock();
    // There is nobody left to tell when standard error is closed.
    let _ = writeln!(stderr, "{label} {message}");
    if let Some(hint) = hint {
        let label = paint(has_color, Tone::Waiting, "hint:");
        let _ = writeln!(stderr, "{label} {hint}");
    }
}

fn paint(has_color: bool, tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Bad => "31",
        Tone::Good => "32",
        Tone::Warning => "33",
        Tone::Waiting => "36",
    };
    if has_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

fn wants_color(choice: ColorChoice, is_terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => is_terminal && !is_dumb() && !is_set("NO_COLOR"),
    }
}

/// By the convention of no-color.org, an empty variable counts as not set.
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_the_user_beats_what_the_terminal_says() {
        assert!(wants_color(ColorChoice::Always, false));
        assert!(!wants_color(ColorChoice::Never, true));
        assert!(!wants_color(ColorChoice::Auto, false));
    }

    #[test]
    fn text_without_colours_stays_as_it_is() {
        assert_eq!(paint(false, Tone::Bad, "error:"), "error:");
        assert_eq!(paint(true, Tone::Bad, "error:"), "\x1b[31merror:\x1b[0m");
    }
}
