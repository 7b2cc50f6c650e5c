//! What processes write down about the steps they execute, in a file per process.
//!
//! A line is one write to a file that is only appended to, so a killed process leaves whole lines
//! behind. The page cache survives it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::functions::EffectRecorder;
use crate::real_time::{now_micros, until};
use crate::{Failure, Result};

/// One line: an execution began or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The process, which is also the worker's id.
    pub process: String,
    /// The run's id.
    pub run: String,
    /// The step's name.
    pub step: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// When, by the machine's clock, in microseconds.
    pub at: i64,
    /// Whether it began or ended, and how.
    pub mark: Mark,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It began, with this from its parents.
    Began(Vec<Option<u64>>),
    /// It ends with this output.
    Gave(u64),
    /// It fails on purpose.
    Failed,
    /// It goes waiting for a signal.
    Waits,
}

/// An execution as its lines name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Execution {
    /// The run's id.
    pub run: String,
    /// The step's name.
    pub step: String,
    /// The number of the attempt.
    pub attempt: u32,
}

impl Line {
    /// Which execution it is about.
    #[must_use]
    pub fn execution(&self) -> Execution {
        Execution { run: self.run.clone(), step: self.step.clone(), attempt: self.attempt }
    }
}

/// Writes the lines of one process.
#[derive(Debug)]
pub struct Recorder {
    process: String,
    folder: PathBuf,
    file: File,
    effects: EffectRecorder,
}

impl Recorder {
    /// Opens the file of a process in the folder of all of them.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path, process: &str) -> Result<Self> {
        let path = folder.join(format!("history-{process}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let effects = EffectRecorder::open(folder, process)?;
        Ok(Self { process: process.to_owned(), folder: folder.to_owned(), file, effects })
    }

    /// Writes down what functions do.
    #[must_use]
    pub const fn effects(&self) -> &EffectRecorder {
        &self.effects
    }

    /// Adds a line in one write.
    ///
    /// # Errors
    /// If it cannot be written. Then the execution must not go on as if it were recorded.
    pub fn note(&self, execution: Execution, mark: Mark) -> std::io::Result<()> {
        let Execution { run, step, attempt } = execution;
        let (process, at) = (self.process.clone(), now_micros());
        let line = Line { process, run, step, attempt, at, mark };
        append(&self.file, &line)
    }

    /// Whether the gate of an execution has been opened.
    #[must_use]
    pub fn is_open(&self, execution: &Execution) -> bool {
        gate(&self.folder, execution).exists()
    }
}

/// Appends one line of JSON in one write.
///
/// # Errors
/// If it cannot be written.
pub fn append(mut file: &File, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Opens the gate of an execution.
///
/// # Errors
/// If its file cannot be made.
pub fn open_gate(folder: &Path, execution: &Execution) -> Result<()> {
    File::create(gate(folder, execution))?;
    Ok(())
}

fn gate(folder: &Path, execution: &Execution) -> PathBuf {
    let Execution { run, step, attempt } = execution;
    folder.join(format!("gate-{run}-{step}-{attempt}"))
}

/// Everything that all processes wrote down, each in its order.
///
/// # Errors
/// If a file cannot be read or a line makes no sense.
pub fn read(folder: &Path) -> Result<Vec<Line>> {
    read_lines(folder, "history-")
}

/// The lines of all files whose names begin like this.
///
/// # Errors
/// If a file cannot be read or a line makes no sense.
pub fn read_lines<T: for<'de> Deserialize<'de>>(folder: &Path, prefix: &str) -> Result<Vec<T>> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let text = fs::read_to_string(entry.path())?;
        for line in whole_lines(&text) {
            let place = |why| Failure::of(&entry.path().display().to_string(), why);
            lines.push(serde_json::from_str(line).map_err(place)?);
        }
    }
    Ok(lines)
}

/// The lines that end. One that is just being written may be seen in part.
fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit_once('\n').map_or("", |(whole, _)| whole).lines()
}

/// Waits until some process has written such a line, and gives the first.
///
/// # Errors
/// If none has for a minute.
pub async fn wait_for(
    folder: &Path,
    what: &str,
    mut is_meant: impl FnMut(&Line) -> bool,
) -> Result<Line> {
    let look = || Ok(read(folder)?.into_iter().find(|line| is_meant(line)));
    until(what, Duration::from_mins(1), look).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_just_being_written_is_left_for_later() {
        assert_eq!(whole_lines("one\ntwo\nthr").collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(whole_lines("one\ntwo\n").collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(whole_lines("on").count(), 0);
        assert_eq!(whole_lines("").count(), 0);
    }
}
