//! A process that starts runs one after the other and writes down what it was promised.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::{Engine, Error};

use crate::chance::mix;
use crate::expected::run_id;
use crate::history::{append, read_lines};
use crate::pace::pause;
use crate::plan::SINGLE;
use crate::{Failure, Result};

/// Between two attempts while the store cannot be reached.
const RETRY: Duration = Duration::from_millis(20);

/// What a process was told about a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// The run with this id is stored.
    Acknowledged(String),
    /// The store could not be reached, in these words.
    Unavailable(String),
}

/// Starts runs one after the other and writes down each answer before it goes on.
///
/// # Errors
/// If a start is refused, or an answer cannot be written down.
pub async fn keep_starting(engine: &Engine, folder: &Path, process: &str) -> Result<()> {
    let path = folder.join(format!("promises-{process}.jsonl"));
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let name = mix(process.bytes().map(u64::from));
    for number in 0.. {
        let input = mix([name, number]);
        let id = run_id(process, input);
        loop {
            match engine.start_by_name(SINGLE, &input).tenant("writer").id(&id).await {
                Ok(_) => break append(&file, &Promise::Acknowledged(id))?,
                Err(Error::Unavailable { message }) => {
                    append(&file, &Promise::Unavailable(message))?;
                    pause(RETRY).await;
                }
                Err(error) => return Err(Failure::of("start a run", error)),
            }
        }
    }
    Ok(())
}

/// Everything that all processes were promised.
///
/// # Errors
/// If a file cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Promise>> {
    read_lines(folder, "promises-")
}

/// Everything that one process was promised.
///
/// # Errors
/// If its file cannot be read.
pub fn read_of(folder: &Path, process: &str) -> Result<Vec<Promise>> {
    read_lines(folder, &format!("promises-{process}."))
}

/// The ids of acknowledged runs among them.
#[must_use]
pub fn acknowledged(promises: Vec<Promise>) -> Vec<String> {
    let id = |promise| match promise {
        Promise::Acknowledged(id) => Some(id),
        Promise::Unavailable(_) => None,
    };
    promises.into_iter().filter_map(id).collect()
}
