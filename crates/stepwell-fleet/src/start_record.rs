//! A process that starts runs one after the other and records each answer in a file.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell::{Engine, Error};

use crate::chance::mix;
use crate::expected::run_id;
use crate::history::{append, read_lines};
use crate::plan::SINGLE;
use crate::real_time::pause;
use crate::{Failure, Result};

/// Between two attempts while the store cannot be reached.
const RETRY: Duration = Duration::from_millis(20);

/// The recorded answer to a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartRecord {
    /// The run with this id is stored.
    Acknowledged(String),
    /// The store could not be reached, in these words.
    Unavailable(String),
}

/// Starts runs one after the other and records each answer before it goes on.
///
/// # Errors
/// If a start is refused, or an answer cannot be recorded.
pub async fn keep_starting(engine: &Engine, folder: &Path, process: &str) -> Result<()> {
    let path = folder.join(format!("starts-{process}.jsonl"));
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let name = mix(process.bytes().map(u64::from));
    for number in 0.. {
        let input = mix([name, number]);
        let id = run_id(process, input);
        loop {
            match engine.start_by_name(SINGLE, &input).tenant("writer").id(&id).await {
                Ok(_) => break append(&file, &StartRecord::Acknowledged(id))?,
                Err(Error::Unavailable { message }) => {
                    append(&file, &StartRecord::Unavailable(message))?;
                    pause(RETRY).await;
                }
                Err(error) => return Err(Failure::of("start a run", error)),
            }
        }
    }
    Ok(())
}

/// The recorded answers to the starts of all processes.
///
/// # Errors
/// If a file cannot be read.
pub fn read(folder: &Path) -> Result<Vec<StartRecord>> {
    read_lines(folder, "starts-")
}

/// The recorded answers to the starts of one process.
///
/// # Errors
/// If its file cannot be read.
pub fn read_of(folder: &Path, process: &str) -> Result<Vec<StartRecord>> {
    read_lines(folder, &format!("starts-{process}."))
}

/// The ids of the runs whose start was acknowledged.
#[must_use]
pub fn acknowledged(records: Vec<StartRecord>) -> Vec<String> {
    let id = |record| match record {
        StartRecord::Acknowledged(id) => Some(id),
        StartRecord::Unavailable(_) => None,
    };
    records.into_iter().filter_map(id).collect()
}
