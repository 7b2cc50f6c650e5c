//! What processes write down about the functions they execute, in a file per process.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::chance::mix;
use crate::history::{append, read_lines};
use crate::real_time::now_micros;

/// One line: something that an execution of a function did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The process, which is also the worker's id.
    pub process: String,
    /// The run's id.
    pub run: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The round of the function.
    pub round: u32,
    /// What it asked for, by the key of its memo; empty for the function itself.
    pub key: String,
    /// When, by the machine's clock, in microseconds.
    pub at: i64,
    /// What it did.
    pub mark: EffectMark,
}

/// What an execution of a function did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectMark {
    /// The function is executed.
    Entered,
    /// The code of a step was called.
    Began,
    /// The code of a step gives this.
    Gave(u64),
    /// The code of a step fails on purpose.
    Failed,
    /// The function heard of this value.
    Heard(u64),
    /// The function heard of an error or a time-out.
    HeardOfNone,
    /// The function fails on purpose.
    GaveUp,
    /// The function ends, after it heard of these values.
    Ended {
        /// By key, in order.
        heard: Vec<(String, u64)>,
        /// What it gives.
        output: u64,
    },
}

/// Writes the lines of one process.
#[derive(Debug)]
pub struct EffectRecorder {
    process: String,
    folder: PathBuf,
    file: File,
    n_values: AtomicU64,
}

impl EffectRecorder {
    /// Opens the file of a process in the folder of all of them.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path, process: &str) -> Result<Self> {
        let path = folder.join(format!("effects-{process}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (process, folder) = (process.to_owned(), folder.to_owned());
        Ok(Self { process, folder, file, n_values: AtomicU64::new(0) })
    }

    /// Adds a line in one write.
    ///
    /// # Errors
    /// If it cannot be written. Then the execution must not go on as if it were recorded.
    pub fn note(
        &self,
        (run, attempt, round): (&str, u32, u32),
        key: &str,
        mark: EffectMark,
    ) -> std::io::Result<()> {
        let (process, run, key) = (self.process.clone(), run.to_owned(), key.to_owned());
        let at = now_micros();
        append(&self.file, &Effect { process, run, attempt, round, key, at, mark })
    }

    /// A value that no other execution of anything gives.
    pub fn fresh(&self) -> u64 {
        let number = self.n_values.fetch_add(1, Ordering::Relaxed);
        mix(self.process.bytes().map(u64::from).chain([number]))
    }

    /// Whether something is the first so many times that it is tried, in all processes together.
    ///
    /// # Errors
    /// If that cannot be written down.
    pub fn is_among_first(&self, run: &str, what: &str, n_times: u32) -> std::io::Result<bool> {
        for number in 0..n_times {
            let path = self.folder.join(format!("tried-{run}-{what}-{number}"));
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// What a function gives that has heard of these values.
#[must_use]
pub fn output_of(input: u64, heard: &[(String, u64)]) -> u64 {
    let values = heard.iter().flat_map(|(key, value)| key.bytes().map(u64::from).chain([*value]));
    mix([input].into_iter().chain(values))
}

/// Everything that all processes wrote down, each in its order.
///
/// # Errors
/// If a file cannot be read or a line makes no sense.
pub fn read(folder: &Path) -> Result<Vec<Effect>> {
    read_lines(folder, "effects-")
}
