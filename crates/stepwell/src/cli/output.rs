//! What the user sees: lines, tables and JSON on standard output, errors on standard error.
//!
//! Colours and progress bars are for people at a terminal. Whoever reads through a pipe gets
//! plain lines, or JSON and nothing else.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{
    Cell as TableCell, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use serde::Serialize;

use super::Failure;

/// Longest line of running text: fits the smallest usual terminal.
const TEXT_CHARS_MAX: usize = 80;

/// Longest word of a table that is kept whole on a narrow terminal: states, counts, dates.
const WORD_CHARS_MAX: usize = 12;

/// What a cell has besides its text.
const PADDING: u16 = 2;

/// How the user wants to be answered: options that every command takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct OutputArgs {
    /// Print JSON, one object per line, and nothing else on standard output
    #[arg(long, global = true)]
    json: bool,

    /// When to use colours; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Writes what a command has to say.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    is_json: bool,
    color: ColorChoice,
    has_color: bool,
    is_watched: bool,
}

/// What a piece of text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
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
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Output {
    /// An output as the user wants it, on the standard output of this process.
    #[must_use]
    pub fn new(args: OutputArgs) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            is_json: args.json,
            color: args.color,
            has_color: wants_color(args.color, is_terminal),
            is_watched: !args.json && is_terminal && io::stderr().is_terminal() && !is_dumb(),
        }
    }

    /// Whether standard output takes JSON and nothing else.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.is_json
    }

    /// Whether a person watches, for whom progress should be drawn.
    #[must_use]
    pub fn is_watched(self) -> bool {
        self.is_watched
    }

    /// Writes one line for people.
    pub fn line(self, text: &str) -> io::Result<()> {
        debug_assert!(!self.is_json, "JSON and nothing else was asked for");
        writeln!(io::stdout().lock(), "{}", text.trim_end())
    }

    /// Writes running text for people after a label, broken between words.
    pub fn paragraph(self, label: &str, text: &str) -> io::Result<()> {
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
    pub fn record(self, record: &impl Serialize) -> io::Result<()> {
        debug_assert!(self.is_json, "text was asked for");
        let json = serde_json::to_string(record)?;
        writeln!(io::stdout().lock(), "{json}")
    }

    /// Writes a table for people, as wide as the terminal allows.
    pub fn table(self, header: &[&str], rows: &[Vec<Cell>]) -> io::Result<()> {
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
        for (ix, column) in table.column_iter_mut().enumerate() {
            let cells = rows.iter().filter_map(|row| row.get(ix)).map(|cell| cell.text.as_str());
            let n_chars = longest_word(header.get(ix).copied().into_iter().chain(cells));
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(n_chars + PADDING)));
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
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        paint(self.has_color, tone, text)
    }

    /// Ends a command: writes what went wrong to standard error, and says how to exit.
    #[must_use]
    pub fn finish(self, done: Result<(), Failure>) -> ExitCode {
        match done {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of our output has seen enough, as `head` does.
            Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(failure) => {
                self.error(&failure);
                failure.exit_code()
            }
        }
    }

    fn error(self, failure: &Failure) {
        let has_color = wants_color(self.color, io::stderr().is_terminal());
        let label = paint(has_color, Tone::Bad, "error:");
        let mut stderr = io::stderr().lock();
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(stderr, "{label} {failure}");
        if let Some(hint) = failure.hint() {
            let label = paint(has_color, Tone::Waiting, "hint:");
            let _ = writeln!(stderr, "{label} {hint}");
        }
    }
}

impl Cell {
    /// A cell with a tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// A cell like any text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// The longest word of a column that is not broken on a narrow terminal.
fn longest_word<'a>(texts: impl Iterator<Item = &'a str>) -> u16 {
    let words = texts.flat_map(|text| text.split_whitespace().map(|word| word.chars().count()));
    let longest = words.filter(|n_chars| *n_chars <= WORD_CHARS_MAX).max().unwrap_or_default();
    u16::try_from(longest).unwrap_or_default()
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
    fn short_words_are_kept_whole_and_long_ones_are_not_counted() {
        let texts = ["status", "COMPLETED", "2026-11-18 00:31:31", "0192f0c1d2e3f4a5b6c7d8e9"];
        assert_eq!(longest_word(texts.into_iter()), 10);
        assert_eq!(longest_word([].into_iter()), 0);
    }

    #[test]
    fn text_without_colours_stays_as_it_is() {
        assert_eq!(paint(false, Tone::Bad, "error:"), "error:");
        assert_eq!(paint(true, Tone::Bad, "error:"), "\x1b[31merror:\x1b[0m");
    }
}
